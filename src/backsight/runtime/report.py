"""A backtest as a document: what was run, on what, and what it came to, each number with its sample size."""

import re
from collections.abc import Mapping, Sequence

from backsight.core.ids import digest
from backsight.core.statistics import rate_bounds
from backsight.core.trades.summary import mean_outcomes
from backsight.core.trades.trade import Trade
from backsight.runtime.backtest import BacktestRun

NAMED_EXITS = ("stop_loss", "take_profit", "liquidated", "external_flatten", "unexplained")


def report_path(strategy: str, run: BacktestRun, text: str) -> str:
    """Where a report belongs in a workspace; the same run is the same file."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", strategy).strip("-") or "strategy"
    span = f"{run.first_at:%Y%m%d}-{run.last_at:%Y%m%d}"
    return f"artifacts/backtests/{plain[:60]}-{span}-{digest(text)[:8]}.md"


def report_of(
    strategy: str,
    run: BacktestRun,
    trades: Sequence[Trade],
    *,
    said: Mapping[str, Sequence[str]],
    terms: Mapping[str, object],
    lessons: Sequence[str] = (),
) -> str:
    """The report as Markdown; the same run gives the same bytes."""
    change = run.end_equity / run.start_equity - 1 if run.start_equity else 0.0
    means = ", ".join(map(str, mean_outcomes(trade.outcome for trade in trades if trade.outcome)))
    exits = ", ".join(f"{reason} {count}" for reason, count in exits_of(trades).items())
    symbols = ", ".join(sorted({trade.symbol for trade in trades}))
    result = {
        "period": f"{run.first_at:%Y-%m-%d} to {run.last_at:%Y-%m-%d}, {run.ticks:,} ticks",
        "equity": f"{run.start_equity:,.2f} to {run.end_equity:,.2f} ({change:+.1%})",
        "largest drawdown": f"{run.drawdown:.1%}",
        "trades": f"{len(trades)} closed{_won(trades)}",
        "outcome": f"{means}, mean with its 95 % interval" if means else "",
        "exits": exits,
        "symbols": symbols,
    }
    sections = [
        f"# Backtest of {strategy}",
        _list({name: value for name, value in result.items() if value}),
        *(_section(name.capitalize(), lines) for name, lines in said.items()),
        "## Terms\n\n" + _list({name: str(value) for name, value in terms.items()}),
        _section("Lessons", lessons),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def exits_of(trades: Sequence[Trade]) -> dict[str, int]:
    """How trades ended; what the agent said in its own words is one kind."""
    counted = dict.fromkeys((*NAMED_EXITS, "by order"), 0)
    for trade in trades:
        counted[trade.exit_reason if trade.exit_reason in NAMED_EXITS else "by order"] += 1
    return {reason: count for reason, count in counted.items() if count}


def _won(trades: Sequence[Trade]) -> str:
    if not trades:
        return ""
    won = sum(trade.won for trade in trades)
    low, high = rate_bounds(won, len(trades))
    return f", {won} won ({won / len(trades):.0%}, 90 % interval {low:.0%} to {high:.0%})"


def _section(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _list(told: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in told.items())
