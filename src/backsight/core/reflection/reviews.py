"""The review of a period as Markdown: trades and results, evidence, lessons in force, and reflections."""

import math
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import assert_never

from backsight.core.instants import nearest_minute
from backsight.core.memory.drift_report import Drift
from backsight.core.numbers import signed
from backsight.core.reflection.evidence_view import describe_evidence, watch_message
from backsight.core.reflection.notes import Reflection
from backsight.core.reflection.patterns import TradeEvidence
from backsight.core.reflection.periods import Period
from backsight.core.reflection.wording import amount, bullet_text
from backsight.core.statistics import rate_bounds
from backsight.core.text.counts import count_of
from backsight.core.text.untrusted_text import shorten
from backsight.core.trades.summary import outcomes_in_words
from backsight.core.trades.trade import Trade

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
BEST_AND_WORST = 3
"""The number of best trades, and of worst trades, in a review."""
MAX_REASON_CHARACTERS = 60
MAX_SYMBOLS = 10
"""The number of symbols whose drift a review reports."""
NEWLINE = "\n"
NOT_TESTED = "`review_period` adds what the strategy's trades showed at this instant."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodResult:
    """The results of the trades of a period."""

    trades: int
    days: int
    wins: int
    win_rate: float | None
    win_rate_interval: tuple[float, float] | None
    """90% confidence interval (Clopper & Pearson), if trades are independent of each other."""
    pnl: float
    """Net, in the currency of the account."""
    fees: float
    unconverted: int = 0
    """Trades that are not in the sums, because no rate of their currency is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolDrift:
    """Whether the outcomes of a strategy in a symbol have changed."""

    symbol: str
    drift: Drift


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRecord:
    """Everything that a review reports."""

    deployment: str
    mode: str
    currency: str
    period: Period
    start: datetime
    end: datetime
    trades: Sequence[Trade]
    """Closed within the period."""
    lessons: str | None
    """In force at the end of the period."""
    reflections: Sequence[Reflection]
    """Of the deployment within the period, oldest first."""
    evidence: TradeEvidence | None = None
    """None if it was not tested; then the review says so."""
    drift: Sequence[SymbolDrift] = ()
    """Of the outcomes in each symbol."""


def period_start(period: Period, end: datetime) -> datetime:
    """The start of the period that ends at an instant: a day, seven days or a calendar month earlier.

    >>> period_start("monthly", datetime(2026, 3, 31, 12, tzinfo=UTC)).isoformat()
    '2026-02-28T12:00:00+00:00'
    """
    match period:
        case "daily":
            return end - timedelta(days=1)
        case "weekly":
            return end - timedelta(days=7)
        case "monthly":
            year, month = (end.year, end.month - 1) if end.month > 1 else (end.year - 1, 12)
            return end.replace(year=year, month=month, day=min(end.day, monthrange(year, month)[1]))
    assert_never(period)


def period_end(period: Period, at: datetime) -> datetime:
    """The end of the calendar day, week (from Monday) or month that contains an instant, in UTC.

    >>> at = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> [period_end(period, at).date().isoformat() for period in ("daily", "weekly", "monthly")]
    ['2026-06-05', '2026-06-08', '2026-07-01']
    """
    just_before = at - timedelta(microseconds=1)  # a trade closed at the very end belongs to the period
    midnight = just_before.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "daily":
            return midnight + timedelta(days=1)
        case "weekly":
            return midnight + timedelta(days=7 - midnight.weekday())
        case "monthly":
            return midnight.replace(day=1) + timedelta(days=monthrange(midnight.year, midnight.month)[1])
    assert_never(period)


def period_name(period: Period, end: datetime) -> str:
    """The name of the calendar period that ends at an instant.

    >>> [period_name(period, datetime(2026, 6, 8, tzinfo=UTC)) for period in ("daily", "weekly", "monthly")]
    ['2026-06-07', '2026-W23', '2026-06']
    """
    last = end - timedelta(microseconds=1)
    match period:
        case "daily":
            return f"{last:%Y-%m-%d}"
        case "weekly":
            return f"{last:%G-W%V}"
        case "monthly":
            return f"{last:%Y-%m}"
    assert_never(period)


def summarise_trades(trades: Iterable[Trade]) -> PeriodResult:
    """The results of trades; a trade is won if its net profit is above 0."""
    closed = list(trades)
    wins = sum(trade.won for trade in closed)
    return PeriodResult(
        trades=len(closed),
        days=len({_close_time(trade).date() for trade in closed}),
        wins=wins,
        win_rate=wins / len(closed) if closed else None,
        win_rate_interval=rate_bounds(wins, len(closed)) if closed else None,
        pnl=math.fsum(trade.money or 0.0 for trade in closed),
        fees=math.fsum(trade.fees for trade in closed if trade.currency is None),
        unconverted=sum(trade.currency is not None for trade in closed),
    )


def best_and_worst(trades: Iterable[Trade]) -> tuple[tuple[Trade, ...], tuple[Trade, ...]]:
    """The trades with the largest gains and with the largest losses."""
    ranked = sorted(trades, key=lambda trade: (-(trade.money or 0.0), trade.id))
    won = tuple(trade for trade in ranked if (trade.money or 0.0) > 0.0)
    lost = tuple(trade for trade in reversed(ranked) if (trade.money or 0.0) < 0.0)
    return won[:BEST_AND_WORST], lost[:BEST_AND_WORST]


def render_review(record: PeriodRecord) -> str:
    """The review as Markdown."""
    return "\n\n".join(section for section in _sections(record) if section) + "\n"


def _months(start: datetime, end: datetime) -> str:
    """The names of the months of a period, so that a search for a month finds its review.

    >>> _months(datetime(2026, 5, 25, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    'May 2026'
    """
    last = end - timedelta(microseconds=1)
    return " to ".join(dict.fromkeys(f"{MONTHS[each.month - 1]} {each.year}" for each in (start, last)))


def _sections(record: PeriodRecord) -> Iterator[str]:
    span = f"{_minute(record.start)} to {_minute(record.end)} UTC"
    yield f"# {record.period.capitalize()} review: {_cell(record.deployment)}"
    yield f"{span} ({_months(record.start, record.end)}), {record.mode}, as known at its end."
    yield "\n".join(["## Results", "", *_results(record)])
    best, worst = best_and_worst(record.trades)
    yield _table("## Best trades", best)
    yield _table("## Worst trades", worst)
    if record.evidence is None:
        yield NOT_TESTED
    else:
        yield "\n".join(["## What the strategy's trades show", "", *_evidence(record.evidence)])
        yield "\n".join(["## Watched, not proven", "", *_watched(record.evidence)])
        yield "\n".join(["## Drift", "", *_drift(record.drift)])
    yield f"## Lessons in force\n\n{(record.lessons or 'None.').replace(f'{NEWLINE}### ', f'{NEWLINE * 2}### ')}"
    if record.reflections:
        yield "\n".join(["## Reflections", "", *map(_reflection_line, record.reflections)])


def _results(record: PeriodRecord) -> Iterator[str]:
    result = summarise_trades(record.trades)
    if not result.trades:
        yield "No trade was closed."
        return
    yield "| | |"
    yield "|---|---|"
    yield f"| closed | {count_of(result.trades, 'trade')} on {count_of(result.days, 'day')} |"
    if result.win_rate is not None and result.win_rate_interval is not None:
        low, high = (f"{100.0 * bound:.0f}%" for bound in result.win_rate_interval)
        yield f"| won | {result.wins}, {100.0 * result.win_rate:.0f}% (90%: {low} to {high}) |"
    without = f", without {result.unconverted} in currencies of unknown rate" if result.unconverted else ""
    yield f"| net | {signed(result.pnl, 2)} {_cell(record.currency)}, after fees of {result.fees:.2f}{without} |"
    yield f"| outcome | {outcomes_in_words(record.trades) or 'not known'} |"


def _table(heading: str, trades: Sequence[Trade]) -> str:
    if not trades:
        return ""
    head = ["| closed | symbol | way | net | outcome | why |", "|---|---|---|---|---|---|"]
    return "\n".join([heading, "", *head, *map(_row, trades)])


def _row(trade: Trade) -> str:
    outcome = "" if trade.outcome is None else amount(trade.outcome.value, trade.outcome.unit)
    why = shorten(trade.entry.reason or trade.reflection or "", most=MAX_REASON_CHARACTERS)
    cells = (_minute(_close_time(trade)), trade.symbol, trade.direction, signed(trade.pnl or 0.0, 2), outcome, why)
    return f"| {' | '.join(map(_cell, cells))} |"


def _evidence(evidence: TradeEvidence) -> Iterator[str]:
    yield f"The last {evidence.n} of {evidence.closed} closed trades, on {count_of(evidence.days, 'day')}."
    yield ""
    if not evidence.patterns:
        yield f"No clear pattern yet: {describe_evidence(evidence).missing}."
    yield from (f"- {_cell(bullet_text(pattern))}" for pattern in evidence.patterns)


def _watched(evidence: TradeEvidence) -> Iterator[str]:
    yield watch_message(evidence)
    if evidence.watched:
        yield ""
    yield from (f"- {_cell(each.sentence)}" for each in evidence.watched)


def _drift(symbols: Sequence[SymbolDrift]) -> Iterator[str]:
    """One line for each symbol, those with an alarm and those with most days first."""
    if not symbols:
        yield "No trade has an outcome yet."
    ranked = sorted(symbols, key=lambda each: (each.drift.turn is None, -each.drift.values, each.symbol))
    yield from (f"- {_cell(each.symbol)}: {_cell(each.drift.message)}" for each in ranked[:MAX_SYMBOLS])
    if len(ranked) > MAX_SYMBOLS:
        yield f"- … {len(ranked) - MAX_SYMBOLS} more symbols"


def _reflection_line(reflection: Reflection) -> str:
    return f"- {_minute(reflection.at)}: {reflection.came}, {_cell(reflection.reason)}"


def _close_time(trade: Trade) -> datetime:
    return (trade.closed_at or trade.known_at).astimezone(UTC)


def _minute(at: datetime) -> str:
    return f"{nearest_minute(at.astimezone(UTC)):%Y-%m-%d %H:%M}"


def _cell(text: str) -> str:
    """Untrusted text on one line, with Markdown characters escaped."""
    line = shorten(text, most=300, tokens=300)
    return "".join(f"\\{each}" if each in "\\`*_|<>[]#" else each for each in line)
