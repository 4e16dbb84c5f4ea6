"""`backsight backtest` on a terminal: a progress bar, a summary, and the files that the user asked for."""

from pathlib import Path
from typing import Any

from rich.text import Text

from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.text.counts import count_of
from backsight.core.trades.summary import outcomes_in_words
from backsight.importers.workspace import workspace_at
from backsight.memory import Memory, open_simulation
from backsight.runtime.backtest import BacktestResult
from backsight.runtime.backtest_setup import BacktestRequest, prepare_backtest, run_setup
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.report import all_trades, backtest_report, exit_counts, report_path
from backsight.surfaces.progress import Stopwatch, peak_memory, progress_bar, sparkline
from backsight.surfaces.tables import console, signed
from backsight.surfaces.terminal import echo_json


def show_backtest(
    request: BacktestRequest,
    *,
    store: Path | None,
    report: Path | None = None,
    workspace: str | None = None,
    as_json: bool = False,
) -> None:
    """Run a backtest and print its result.

    The store is saved to a new file if `store` names one. The report is written to `report`, else to the workspace if
    there is one.
    """
    for field, file in (("store", store), ("report", report)):
        if file is not None and file.exists():
            raise Conflict(f"{file} exists already; name a new file", field=field)
    setup = prepare_backtest(request)
    clock, watch = SimulatedClock(setup.start), Stopwatch()
    with open_simulation(clock, actor="backtest") as memory:
        with progress_bar() as progress:
            deployment, result = run_setup(memory, clock, setup, progress=progress)
        written = None
        if report is not None or workspace is not None:
            text = backtest_report(memory, setup, result, deployment=deployment.name)
            path = report_path(setup.agent.name, result, text)
            written = _write_report(text, file=report, workspace=workspace, path=path)
        if store is not None:
            memory.save(store)
        if as_json:
            described = result_as_json(memory, result, deployment=deployment.name)
            files = {"store": None if store is None else str(store), "report": written}
            echo_json(described | files)
            return
        show_result(memory, result, deployment=deployment.name, seconds=watch.seconds)
        if setup.cadence.kind != "off":
            show_lessons(memory, deployment=deployment.name)
        if written is not None:
            console().print(Text(f"Report in {written}"))
        if store is not None:
            console().print(Text(f"Store saved to {store}: backsight --url sqlite:///{store} trades list"))


def result_as_json(memory: Memory, result: BacktestResult, *, deployment: str) -> dict[str, Any]:
    """The result of a backtest as JSON."""
    trades = all_trades(memory, deployment)
    lessons = memory.active_lessons(deployment=deployment, as_of=result.last_at).note
    return {
        "deployment": deployment,
        "simulation_id": result.simulation_id,
        "currency": _currency(memory),
        "first_at": format_instant(result.first_at),
        "last_at": format_instant(result.last_at),
        "ticks": result.ticks,
        "trades": len(trades),
        "won": sum(trade.won for trade in trades),
        "net": sum(trade.money or 0.0 for trade in trades),
        "exits": exit_counts(trades),
        "start_equity": result.start_equity,
        "end_equity": result.end_equity,
        "drawdown": result.drawdown,
        "lessons": [] if lessons is None else [bullet.text for bullet in lessons.bullets],
    }


def show_result(memory: Memory, result: BacktestResult, *, deployment: str, seconds: float) -> None:
    """Print the result of a backtest in a few lines, each number with its sample size."""
    to, currency = console(), _currency(memory)
    trades = all_trades(memory, deployment)
    won = sum(trade.won for trade in trades)
    net = sum(trade.money or 0.0 for trade in trades)
    change = result.end_equity - result.start_equity
    to.print(Text.assemble(("equity   ", "bold"), sparkline(result.equity)))
    to.print(
        Text.assemble(
            ("         ", ""),
            f"{result.start_equity:,.0f} → {result.end_equity:,.0f} {currency} ",
            signed(f"({change / result.start_equity:+.1%})", change),
            f", largest drawdown {result.drawdown:.1%}",
        )
    )
    rate = f", {won} won ({won / len(trades):.0%})" if trades else ""
    money = signed(f"{net:+,.2f} {currency}", net)
    to.print(Text.assemble(("trades   ", "bold"), f"{len(trades)} closed{rate}, net ", money))
    to.print(Text.assemble(("outcome  ", "bold"), outcomes_in_words(trades) or "none yet"))
    exits = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in exit_counts(trades).items())
    to.print(Text.assemble(("exits    ", "bold"), exits))
    size = memory.database.size
    store_size = "" if size is None else f", store {size / 1e6:.0f} MB"
    speed = f"{result.ticks:,} ticks in {seconds:.1f} s ({result.ticks / seconds:.0f} a second){store_size}"
    peak = peak_memory()
    peak_text = "" if peak is None else f", peak memory {peak:.0f} MB"
    to.print(Text.assemble(("speed    ", "bold"), speed + peak_text))


def _currency(memory: Memory) -> str:
    """The currency of the only account of a simulation."""
    return memory.list_accounts().accounts[0].account.currency


def _write_report(text: str, *, file: Path | None, workspace: str | None, path: str) -> str:
    """Write a report to a file, or else to a path in the workspace, where it is indexed as every other document.

    The answer says where the report is.
    """
    if file is None:
        workspace_at(workspace).write(path, text)
        return f"{path} of the workspace"
    file.write_text(text, encoding="utf-8")
    return str(file)


def show_lessons(memory: Memory, *, deployment: str) -> None:
    """Print the number of reflections, and the lessons that are active at the end."""
    listed = memory.list_lessons(deployment=deployment, limit=100)
    lessons = memory.active_lessons(deployment=deployment, as_of=memory.now)
    text = f"{count_of(len(listed.notes), 'revision')} from {count_of(len(listed.attempts), 'reflection')}"
    if not listed.notes:
        text = f"{text}; {listed.attempts[0].reason}" if listed.attempts else "no reflection yet"
    console().print(Text.assemble(("lessons  ", "bold"), text))
    for bullet in () if lessons.note is None else lessons.note.bullets:
        console().print(Text(f"         - {bullet.text}"), soft_wrap=True)
