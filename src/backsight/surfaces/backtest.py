"""The backtest on a terminal: a strategy over bars, with a bar of progress, a store to keep, and a summary."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from rich.text import Text

from backsight.core.errors import Conflict, Invalid
from backsight.core.market import Bar
from backsight.core.reflection.cadence import parse_cadence
from backsight.core.strategies import MemoryOverrides
from backsight.core.trades.summary import mean_outcomes
from backsight.core.trades.trade import Trade
from backsight.importers.bars import read_bars
from backsight.importers.workspace import workspace_at
from backsight.memory import Memory, PaperBroker, PaperTerms, open_simulation
from backsight.runtime.backtest import BacktestRun, record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import Authored, load_agent, memory_for
from backsight.runtime.report import exits_of, report_of, report_path
from backsight.surfaces.progress import Stopwatch, peak_memory, progress_bar, sparkline
from backsight.surfaces.tables import console, money

ACCOUNT = "backtest"


def show_backtest(
    strategy: str,
    files: Sequence[Path],
    *,
    store: Path | None,
    symbol: str | None,
    timezone: str,
    every: timedelta,
    cash: float,
    currency: str,
    terms: PaperTerms,
    reflect: str = "off",
    report: Path | None = None,
    workspace: str | None = None,
) -> None:
    """Run a strategy over the bars of files and show how it did.

    The store is kept in a new file if one is named, and the report in a file or in the workspace if there is one.
    """
    cadence = parse_cadence(reflect, field="reflect")
    for name, file in (("store", store), ("report", report)):
        if file is not None and file.exists():
            raise Conflict(f"{file} is already there; name a new file", field=name)
    agent = load_agent(strategy)
    bars = _bars(files, symbol=symbol, timezone=timezone)
    start = min(series[0].opened_at for series in bars.values())
    clock, watch = SimulatedClock(start), Stopwatch()
    with open_simulation(clock, actor="backtest") as memory, progress_bar() as tell:
        record_history(memory, clock, bars, progress=lambda *at: tell("Recording bars", *at))
        clock.at = start
        account = memory.open_account(venue="simulated", name=ACCOUNT, mode="sim", currency=currency).account
        memory.save_strategy(name=agent.name, thesis=agent.thesis, rules=list(agent.rules), avoid=list(agent.avoid))
        learning = MemoryOverrides(cadence=cadence.kind, every_n_trades=cadence.trades)
        used = memory_for(agent) if cadence.kind == "off" else learning
        home = memory.deploy(strategy_name=agent.name, account=ACCOUNT, memory=used).deployment
        run = run_backtest(
            memory,
            clock,
            agent,
            PaperBroker(account.id, at=start, cash=cash, terms=terms),
            deployment=home.id,
            bars=bars,
            every=every,
            progress=lambda *at: tell(f"Trading {agent.name}", *at),
        )
        show_run(memory, run, deployment=home.name, seconds=watch.seconds)
        if cadence.kind != "off":
            show_learned(memory, deployment=home.name)
        _keep_report(memory, run, agent, deployment=home.name, terms=terms, every=every, file=report, folder=workspace)
        if store is not None:
            memory.save(store)
            console().print(Text(f"Kept in {store}: backsight --url sqlite:///{store} trades list"))


def show_run(memory: Memory, run: BacktestRun, *, deployment: str, seconds: float) -> None:
    """How a run did, in a few lines, each number with its sample size."""
    to = console()
    trades = all_trades(memory, deployment)
    won = sum(trade.won for trade in trades)
    net = sum(trade.pnl or 0.0 for trade in trades)
    change = run.end_equity - run.start_equity
    to.print(Text.assemble(("equity   ", "bold"), sparkline(run.equity)))
    to.print(
        Text.assemble(
            ("         ", ""),
            f"{run.start_equity:,.0f} → {run.end_equity:,.0f} ",
            money(f"({change / run.start_equity:+.1%})", change),
            f", largest drawdown {run.drawdown:.1%}",
        )
    )
    rate = f", {won} won ({won / len(trades):.0%})" if trades else ""
    to.print(Text.assemble(("trades   ", "bold"), f"{len(trades)} closed{rate}, net ", money(f"{net:+,.2f}", net)))
    means = ", ".join(map(str, mean_outcomes(trade.outcome for trade in trades if trade.outcome)))
    to.print(Text.assemble(("outcome  ", "bold"), f"{means or 'none yet'}, mean with its 95 % interval"))
    exits = ", ".join(f"{reason} {count}" for reason, count in exits_of(trades).items())
    to.print(Text.assemble(("exits    ", "bold"), exits))
    size = memory.database.size
    kept = "" if size is None else f", store {size / 1e6:.0f} MB"
    speed = f"{run.ticks:,} ticks in {seconds:.1f} s ({run.ticks / seconds:.0f} a second){kept}"
    to.print(Text.assemble(("run      ", "bold"), f"{speed}, peak memory {peak_memory():.0f} MB"))


def _keep_report(
    memory: Memory,
    run: BacktestRun,
    agent: Authored,
    *,
    deployment: str,
    terms: PaperTerms,
    every: timedelta,
    file: Path | None,
    folder: str | None,
) -> None:
    """Write the report into a file, or into the workspace, where it is found like every other document."""
    if file is None and folder is None:
        return
    note = memory.active_lessons(deployment=deployment).note
    told = report_of(
        agent.name,
        run,
        all_trades(memory, deployment),
        said={"thesis": [agent.thesis], "rules": agent.rules, "avoid": agent.avoid},
        terms={"every": every, **asdict(terms)},
        lessons=[] if note is None else [bullet.text for bullet in note.bullets],
    )
    if file is None:
        path = report_path(agent.name, run, told)
        workspace_at(folder).write(path, told)
        console().print(Text(f"Report in {path} of the workspace"))
    else:
        file.write_text(told, encoding="utf-8")
        console().print(Text(f"Report in {file}"))


def show_learned(memory: Memory, *, deployment: str) -> None:
    """How often lessons were looked for, and those that are in force at the end."""
    listed = memory.list_lessons(deployment=deployment, limit=100)
    lessons = memory.active_lessons(deployment=deployment)
    told = f"{len(listed.notes)} revisions from {len(listed.attempts)} reflections"
    console().print(Text.assemble(("lessons  ", "bold"), told))
    for bullet in () if lessons.note is None else lessons.note.bullets:
        console().print(Text(f"         - {bullet.text}"), soft_wrap=True)


def all_trades(memory: Memory, deployment: str) -> list[Trade]:
    """Every closed trade of a deployment, newest first."""
    found: list[Trade] = []
    cursor: str | None = None
    while True:
        page = memory.list_trades(deployment=deployment, limit=100, cursor=cursor)
        found += page.trades
        cursor = page.next_cursor
        if cursor is None:
            return found


def _bars(files: Sequence[Path], *, symbol: str | None, timezone: str) -> Mapping[str, Sequence[Bar]]:
    found: dict[str, Sequence[Bar]] = {}
    for file in files:
        for name, series in read_bars(file, symbol=symbol, timezone=timezone).bars.items():
            if name in found:
                raise Invalid(f"{file} has bars of {name!r} again; give each symbol in one file", field="bars")
            found[name] = series
    return found
