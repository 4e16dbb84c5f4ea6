"""`backsight demo`: trade a simulated year, keep the store, and print a recall, a prompt and what to try next."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from backsight.answers.brief import Reference
from backsight.answers.layouts import brief_of
from backsight.core.context import ContextVector
from backsight.memory import Memory, open_memory
from backsight.ops.ticks import ContextPreview
from backsight.runtime import demo
from backsight.runtime.backtest import BacktestResult
from backsight.runtime.clock import SimulatedClock
from backsight.settings import Settings
from backsight.surfaces.backtest import result_as_json, show_lessons, show_result
from backsight.surfaces.cli import program_name
from backsight.surfaces.progress import Stopwatch, progress_bar
from backsight.surfaces.tables import console, show, show_part

CONTEXT = ContextVector(regime="trending_up", volatility_regime="normal", session="london")
SECTION_LINES = 4
STORE, WORKSPACE = "store.db", "workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The backtest of the demonstration, and how long it took."""

    result: BacktestResult
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFolder:
    """The folder in which the demonstration keeps its store and its documents."""

    path: Path

    @property
    def store(self) -> Path:
        return self.path / STORE

    @property
    def url(self) -> str:
        return f"sqlite:///{self.store}"

    @property
    def workspace(self) -> Path:
        return self.path / WORKSPACE

    @property
    def removal(self) -> str:
        return f"rm -r {self.path}"

    def open(self) -> Memory:
        """Open the store as every other command does, with the documents."""
        return open_memory(settings=Settings(url=self.url, actor="demo", workspace=str(self.workspace)))

    def commands(self, *, as_of: datetime) -> list[str]:
        """Three commands to try next, as one types them in the current folder; a prompt is that of an instant."""
        begin = f"{program_name()} --url {self.url}"
        return [
            f"{begin} lessons does-memory-help --strategy-name {demo.STRATEGY} --mode sim",
            f"{begin} ticks preview-context {demo.DEPLOYMENT} --memory-arm shown --as-of {as_of:%Y-%m-%dT%H:%MZ}",
            f"BACKSIGHT_WORKSPACE={self.workspace} {begin} documents search 'daily loss'",
        ]


@contextmanager
def show_demo(*, seed: int, days: int, folder: Path) -> Iterator[Memory]:
    """Fill a store in a folder unless it is there already, print a recall and a prompt, and yield the open memory."""
    place, to = DemoFolder(path=folder), console()
    made = fill_folder(place, seed=seed, days=days)
    with place.open() as memory:
        if made is None:
            to.print(f"{place.path} has a demo already, shown as it is. To make a new one, remove it: {place.removal}")
        else:
            show_result(memory, made.result, deployment=demo.DEPLOYMENT, seconds=made.seconds)
            show_lessons(memory, deployment=demo.DEPLOYMENT)
        last = last_decision_at(memory)
        _show_recall(to, memory, as_of=last)
        _show_prompt(to, memory.preview_context(deployment=demo.DEPLOYMENT, memory_arm="shown", as_of=last))
        to.print("\n[bold]Audit of every row[/bold]")
        show(to, memory.verify_audit())
        to.print(f"\nThe store and its documents are in {place.path}; to remove them: {place.removal}. Try next:")
        for command in place.commands(as_of=last):
            to.print(Text(f"  {in_lines(command, width=to.width - 2)}"), soft_wrap=True)
        to.print()
        yield memory


@contextmanager
def describe_demo(*, seed: int, days: int, folder: Path) -> Iterator[tuple[Memory, dict[str, Any]]]:
    """Fill a store as `show_demo` does, and yield the open memory with the result as JSON."""
    place = DemoFolder(path=folder)
    made = fill_folder(place, seed=seed, days=days)
    with place.open() as memory:
        yield (
            memory,
            {
                "folder": str(place.path),
                "url": place.url,
                "workspace": str(place.workspace),
                "deployment": demo.DEPLOYMENT,
                "existed": made is None,
                "backtest": None if made is None else result_as_json(memory, made.result, deployment=demo.DEPLOYMENT),
                "commands": place.commands(as_of=last_decision_at(memory)),
                "removal": place.removal,
            },
        )


def fill_folder(place: DemoFolder, *, seed: int, days: int) -> DemoResult | None:
    """Trade the demonstration in memory and save its store; None if the folder has a store already.

    The file gets its name when it is whole, so that an interrupted demonstration is made again.
    """
    if place.store.exists():
        return None
    demo.write_workspace(place.workspace)
    clock, watch = SimulatedClock(demo.START), Stopwatch()
    settings = Settings(url="sqlite://", actor="demo", workspace=str(place.workspace))
    with open_memory(settings=settings, clock=clock) as memory, progress_bar() as progress:
        memory.reindex()
        result = demo.fill(memory, clock, seed=seed, days=days, progress=progress)
        unfinished = place.path / f"{STORE}.unfinished"
        unfinished.unlink(missing_ok=True)
        memory.save(unfinished)
    unfinished.rename(place.store)
    return DemoResult(result=result, seconds=watch.seconds)


def last_decision_at(memory: Memory) -> datetime:
    """When the agent of the demonstration last decided."""
    return memory.list_decisions(deployment=demo.DEPLOYMENT, limit=1).decisions[0].at


def in_lines(command: str, *, width: int) -> str:
    r"""A command in one line or, if it is too wide, in lines that a shell joins: before the program and the noun.

    >>> print(in_lines("A=b backsight --url sqlite:///c.db documents search 'd e'", width=40))
    A=b \
          backsight --url sqlite:///c.db \
          documents search 'd e'
    >>> print(in_lines("python -m backsight --url sqlite:///c.db ticks preview-context d", width=40))
    python -m backsight --url sqlite:///c.db \
          ticks preview-context d
    """
    if len(command) <= width:
        return command
    return re.sub(r"(?<!-m) (?=(\S+ -m )?\S+ --url |lessons |ticks |documents )", " \\\\\n      ", command)


def _show_recall(to: Console, memory: Memory, *, as_of: datetime) -> None:
    """Print what comes to mind at an instant, also of a day on which the agent is shown no memory."""
    context = ", ".join(f"{name} {getattr(CONTEXT, name)}" for name in CONTEXT.known)
    to.print(f"\n[bold]Recall before going long {demo.SYMBOL}[/bold] ({context})")
    recall = memory.recall_memories(
        symbol=demo.SYMBOL, direction="long", context=CONTEXT, deployment=demo.DEPLOYMENT, limit=3, as_of=as_of
    )
    for part in brief_of(recall).parts:
        if not isinstance(part, Reference):  # the cursor of the next page
            show_part(to, part)


def _show_prompt(to: Console, prompt: ContextPreview) -> None:
    """Print the message of a prompt, shortened to a part of a screen."""
    memory_tokens = f"{prompt.memory_tokens:,} of {prompt.total_tokens:,} tokens are memory"
    to.print(f"\n[bold]The agent's last prompt[/bold] ({memory_tokens})")
    for segment in prompt.segments:
        for line in shortened(segment.text.splitlines(), width=to.width - 2):
            to.print(Text(f"  {line}", style="bold" if line.startswith("## ") else ""), soft_wrap=True)


def shortened(lines: Sequence[str], *, width: int, most: int = SECTION_LINES) -> list[str]:
    """The first lines of a section, each cut to a width, and the number of lines that are left out.

    >>> shortened(["## Portfolio", "- equity $90,067", "- XAUUSD long"], width=12, most=2)
    ['## Portfolio', '- equity $9…', '… 1 more line']
    """
    cut = [line if len(line) <= width else line[: width - 1] + "…" for line in lines[:most]]
    left = len(lines) - most
    return cut if left <= 0 else [*cut, f"… {left} more line{'s' if left > 1 else ''}"]
