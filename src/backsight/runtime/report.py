"""The report of a backtest as a Markdown document; every rate and mean has its sample size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from backsight.core.ids import digest
from backsight.core.statistics import rate_bounds
from backsight.core.trades.summary import outcomes_in_words
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.runtime.backtest import BacktestResult
from backsight.runtime.backtest_setup import BacktestSetup

NAMED_EXITS = ("stop_loss", "take_profit", "liquidated", "external_flatten", "unexplained")


def report_path(strategy: str, result: BacktestResult, text: str) -> str:
    """The path of a report in a workspace; equal reports have equal paths."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", strategy).strip("-") or "strategy"
    span = f"{result.first_at:%Y%m%d}-{result.last_at:%Y%m%d}"
    return f"artifacts/backtests/{plain[:60]}-{span}-{digest(text)[:8]}.md"


def backtest_report(memory: Memory, setup: BacktestSetup, result: BacktestResult, *, deployment: str) -> str:
    """The report of a backtest that is still in memory: its result, its strategy, its terms and the active lessons."""
    agent = setup.agent
    note = memory.active_lessons(deployment=deployment, as_of=memory.now).note
    sections = [
        f"# Backtest of {agent.name}",
        _list(_result(result, all_trades(memory, deployment))),
        _section("Thesis", [agent.thesis]),
        _section("Rules", agent.rules),
        _section("Avoid", agent.avoid),
        "## Terms\n\n" + _list({"every": setup.every, **asdict(setup.terms)}),
        _section("Lessons", [] if note is None else [bullet.text for bullet in note.bullets]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def all_trades(memory: Memory, deployment: str) -> list[Trade]:
    """Every closed trade of a deployment, newest first."""
    trades: list[Trade] = []
    cursor: str | None = None
    while True:
        page = memory.list_trades(deployment=deployment, limit=100, cursor=cursor)
        trades += page.trades
        cursor = page.next_cursor
        if cursor is None:
            return trades


def exit_counts(trades: Sequence[Trade]) -> dict[str, int]:
    """How many trades ended for each reason; reasons in the agent's own words count as `by order`."""
    counts = dict.fromkeys((*NAMED_EXITS, "by order"), 0)
    for trade in trades:
        counts[trade.exit_reason if trade.exit_reason in NAMED_EXITS else "by order"] += 1
    return {reason: count for reason, count in counts.items() if count}


def _result(result: BacktestResult, trades: Sequence[Trade]) -> dict[str, str]:
    change = result.end_equity / result.start_equity - 1 if result.start_equity else 0.0
    lines = {
        "period": f"{result.first_at:%Y-%m-%d} to {result.last_at:%Y-%m-%d}, {result.ticks:,} ticks",
        "equity": f"{result.start_equity:,.2f} to {result.end_equity:,.2f} ({change:+.1%})",
        "largest drawdown": f"{result.drawdown:.1%}",
        "trades": f"{len(trades)} closed{_won(trades)}",
        "outcome": outcomes_in_words(trades),
        "exits": ", ".join(f"{reason} {count}" for reason, count in exit_counts(trades).items()),
        "symbols": ", ".join(sorted({trade.symbol for trade in trades})),
    }
    return {name: line for name, line in lines.items() if line}


def _won(trades: Sequence[Trade]) -> str:
    if not trades:
        return ""
    won = sum(trade.won for trade in trades)
    low, high = rate_bounds(won, len(trades))
    return f", {won} won ({won / len(trades):.0%}, 90% interval {low:.0%} to {high:.0%})"


def _section(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _list(values: Mapping[str, object]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in values.items())
