"""`backsight demo`: trade a simulated year, then print a recall and the audit on one screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.memory import Memory, open_simulation
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.surfaces.backtest import show_run
from backsight.surfaces.progress import Stopwatch, progress_bar
from backsight.surfaces.tables import console, show

CONTEXT = ContextVector(regime="trending_up", volatility_regime="normal", session="london")


@contextmanager
def show_demo(*, seed: int, days: int, store: Path | None) -> Iterator[Memory]:
    """Fill a store, print a recall from it, and yield the open memory."""
    if store is not None and store.exists():
        raise Conflict(f"{store} exists already; name a new file", field="store")
    clock, watch = SimulatedClock(demo.START), Stopwatch()
    with open_simulation(clock, owner="demo", actor="demo") as memory:
        with progress_bar() as progress:
            run = demo.fill(memory, clock, seed=seed, days=days, progress=progress)
        show_run(memory, run, deployment=demo.DEPLOYMENT, seconds=watch.seconds)
        _show_recall(memory)
        if store is not None:
            memory.save(store)
        yield memory


def _show_recall(memory: Memory) -> None:
    to = console()
    context = ", ".join(f"{name} {getattr(CONTEXT, name)}" for name in CONTEXT.known)
    to.print(f"\n[bold]Recall before going long {demo.SYMBOL}[/bold] ({context})")
    recall = memory.recall_memories(
        symbol=demo.SYMBOL, direction="long", context=CONTEXT, deployment=demo.DEPLOYMENT, limit=8
    )
    show(to, recall)
    to.print("\n[bold]Audit of every row[/bold]")
    show(to, memory.verify_audit())
    to.print()
