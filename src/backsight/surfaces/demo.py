"""The demonstration: one screen that shows what the memory is for."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.surfaces.tables import console, show

ASKED = ContextVector(regime="trending_up", volatility_regime="normal", session="london")
SYMBOL = "XAUUSD"


@contextmanager
def show_demo(*, seed: int, store: Path | None) -> Iterator[Memory]:
    """Fill a store, show what can be asked of it, and hand it over open."""
    if store is not None and store.exists():
        raise Conflict(f"{store} is already there; name a new file", field="store")
    folder = nullcontext(str(store.parent)) if store else tempfile.TemporaryDirectory(prefix="backsight-")
    with folder as inside:
        path = store or Path(inside) / "demo.db"
        clock = SimulatedClock(demo.START)
        with open_memory(f"sqlite:///{path}", owner="demo", actor="demo", clock=clock) as memory:
            _fill(memory, clock, seed)
            _show(memory)
            yield memory


def _fill(memory: Memory, clock: SimulatedClock, seed: int) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console()) as bar:
        task = bar.add_task("Remembering a simulated year", total=None)
        demo.fill(memory, clock, seed=seed, progress=lambda done, total: bar.update(task, completed=done, total=total))


def _show(memory: Memory) -> None:
    to = console()
    _ask(memory, "get_my_deployments", {})
    given = ", ".join(f"{name} {getattr(ASKED, name)}" for name in ASKED.known)
    to.print(f"\n[bold]About to go long {SYMBOL}[/bold] ({given}). What comes to mind?")
    asked = {"symbol": SYMBOL, "direction": "long", "context": ASKED, "deployment": demo.DEPLOYMENT, "limit": 8}
    _ask(memory, "recall_memories", asked)
    to.print("\n[bold]Is every row as the commands left it?[/bold]")
    _ask(memory, "verify_audit", {})
    to.print()


def _ask(memory: Memory, name: str, arguments: dict[str, object]) -> None:
    operation = OPERATIONS[name]
    show(console(), name, operation.as_json(memory.run(operation, arguments)))
