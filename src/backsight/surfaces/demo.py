"""The demonstration: one screen that shows what the memory is for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.memory import OPERATIONS, Memory, open_simulation
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.surfaces.backtest import show_run
from backsight.surfaces.layouts import show
from backsight.surfaces.progress import Stopwatch, progress_bar
from backsight.surfaces.tables import console

ASKED = ContextVector(regime="trending_up", volatility_regime="normal", session="london")


@contextmanager
def show_demo(*, seed: int, days: int, store: Path | None) -> Iterator[Memory]:
    """Fill a store, show what can be asked of it, and hand it over open."""
    if store is not None and store.exists():
        raise Conflict(f"{store} is already there; name a new file", field="store")
    clock, watch = SimulatedClock(demo.START), Stopwatch()
    with open_simulation(clock, owner="demo", actor="demo") as memory:
        with progress_bar() as tell:
            run = demo.fill(memory, clock, seed=seed, days=days, progress=tell)
        show_run(memory, run, deployment=demo.DEPLOYMENT, seconds=watch.seconds)
        _show(memory)
        if store is not None:
            memory.save(store)
        yield memory


def _show(memory: Memory) -> None:
    to = console()
    given = ", ".join(f"{name} {getattr(ASKED, name)}" for name in ASKED.known)
    to.print(f"\n[bold]About to go long {demo.SYMBOL}[/bold] ({given}). What comes to mind?")
    asked = {"symbol": demo.SYMBOL, "direction": "long", "context": ASKED, "deployment": demo.DEPLOYMENT, "limit": 8}
    _ask(memory, "recall_memories", asked)
    to.print("\n[bold]Is every row as the commands left it?[/bold]")
    _ask(memory, "verify_audit", {})
    to.print()


def _ask(memory: Memory, name: str, arguments: dict[str, object]) -> None:
    show(console(), name, memory.run(OPERATIONS[name], arguments))
