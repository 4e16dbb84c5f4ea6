"""Prompt sections about the agent's own trades: the last closed ones and the open ones."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from backsight.core.errors import Invalid
from backsight.core.portfolio import Direction
from backsight.core.prompts.amounts import day_and_time, gain, money, percent, price, span
from backsight.core.prompts.sections import Section, section_of
from backsight.core.recall.rank import outcome_in_words
from backsight.core.regime import RegimeTag
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import name, quote
from backsight.core.trades.mark import PositionMark
from backsight.core.trades.trade import Outcome, Trade, minutes_between

CLOSED = "## Recent trades on this strategy (closed)"
OPEN = "## Open positions (memory view)"
RECENT, MOST_RECENT = 10, 30
ROW_TOKENS = 45
"""The most tokens of a closed trade, with its newline."""
SYMBOL_TOKENS = 12
EXIT_CHARACTERS, EXIT_TOKENS = 40, 11
FEWEST_REASON_TOKENS = 3
EXITS: Mapping[str, str] = {
    "stop_loss": "stopped out",
    "take_profit": "target hit",
    "liquidated": "liquidated",
    "external_flatten": "closed by command",
    "unexplained": "exit unexplained",
}
"""Exits that the ledger names; any other exit reason is the agent's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLine:
    """A closed trade in one line; money is in the account's currency and `pnl` is net of costs."""

    id: str
    opened_at: datetime | None
    closed_at: datetime | None
    symbol: str
    direction: Direction
    notional: float | None
    outcome: Outcome | None
    pnl: float | None
    minutes: float | None
    regime: RegimeTag | None
    reason: str | None
    exit_reason: str | None
    currency: str | None

    def text(self, number: int, *, now: datetime) -> str:
        """The row, in at most 45 tokens: the reasons are cut first, then what stands before them from the right."""
        return _fitted_row(self, number, day_and_time(self.opened_at or self.closed_at, now=now))

    def rows(self, number: int, day: str) -> Iterator[str]:
        """The row from its fullest form to its shortest."""
        return self._rows([fact for fact in self._facts(number, day) if fact])

    def _facts(self, number: int, day: str) -> Iterator[str | None]:
        yield f"- #{number}"
        yield day
        yield name(self.symbol, tokens=SYMBOL_TOKENS)
        yield self.direction
        yield from self._result()
        yield None if self.minutes is None else span(self.minutes)
        yield self.regime

    def _result(self) -> Iterator[str | None]:
        """The result in R and in money; without an R the size, the result and its share of the size."""
        if self.outcome is not None and self.outcome.unit == "R" and abs(self.outcome.value) < LARGEST_R:
            yield outcome_in_words(self.outcome)
            yield gain(self.pnl, self.currency)
            return
        share = self.pnl / self.notional if self.pnl is not None and self.notional else None
        yield None if self.notional is None else money(self.notional, self.currency)
        yield gain(self.pnl, self.currency)
        yield None if share is None else f"({percent(share)})"

    def _rows(self, facts: list[str]) -> Iterator[str]:
        head = " ".join(facts)
        left = ROW_TOKENS - estimate(f"{head}\n")
        out = exit_in_words(self.exit_reason, tokens=max(FEWEST_REASON_TOKENS, left // 2 - 3))
        left = ROW_TOKENS - estimate(f"{head}{out}\n")
        if self.reason and self.reason.strip():
            for tokens in range(left, FEWEST_REASON_TOKENS - 1, -1):
                yield f"{head} {quote(self.reason, tokens=tokens)}{out}"
        yield f"{head}{out}"
        for count in range(len(facts), 2, -1):
            yield " ".join(facts[:count])
        yield facts[0]


@lru_cache(maxsize=256)
def _fitted_row(line: ClosedLine, number: int, day: str) -> str:
    """The fullest row that fits; cached, since a trade has the same row in most ticks."""
    return next(row for row in line.rows(number, day) if estimate(f"{row}\n") <= ROW_TOKENS)


def exit_in_words(reason: str | None, *, tokens: int = EXIT_TOKENS) -> str:
    """How a trade ended, as the end of a row.

    >>> exit_in_words("stop_loss"), exit_in_words("range broke down"), exit_in_words(None)
    (', stopped out', ', exit "range broke down"', '')
    """
    if reason is None or not reason.strip():
        return ""
    words = EXITS.get(reason)
    return f", {words}" if words else f", exit {quote(reason, most=EXIT_CHARACTERS, tokens=min(tokens, EXIT_TOKENS))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLine:
    """What memory adds to an open position: excursions, holding time and entry reason."""

    id: str
    opened_at: datetime | None
    symbol: str
    direction: Direction
    notional: float | None
    entry_price: float
    mark: float | None
    mfe: float | None
    mae: float | None
    minutes: float | None
    reason: str | None
    currency: str | None

    @property
    def text(self) -> str:
        known = self.mfe is not None and self.mae is not None
        return _joined(
            f"- {name(self.symbol)}",
            self.direction,
            None if self.notional is None else money(self.notional, self.currency),
            f"@ {price(self.entry_price)}",
            None if self.mark is None else f"mark={price(self.mark)}",
            f"MFE={gain(self.mfe, self.currency)} / MAE={gain(self.mae, self.currency)}" if known else None,
            None if self.minutes is None else f"held {span(self.minutes)}",
            _quoted(self.reason),
        )


LARGEST_R = 1e6
"""A larger R comes from a stop next to the entry, and says nothing."""


def closed_line(trade: Trade, *, currency: str | None) -> ClosedLine:
    """The line of a closed trade; its notional is the largest size times the average entry price."""
    return ClosedLine(
        id=trade.id,
        opened_at=trade.opened_at,
        closed_at=trade.closed_at,
        symbol=trade.symbol,
        direction=trade.direction,
        notional=trade.notional(trade.size),
        outcome=trade.outcome,
        pnl=trade.pnl,
        minutes=minutes_held(trade),
        regime=trade.entry.regime_tag,
        reason=trade.entry.reason,
        exit_reason=trade.exit_reason,
        currency=trade.currency or currency,
    )


def minutes_held(trade: Trade) -> float | None:
    """How long a closed trade was held; None if it is not known."""
    known = trade.holding_minutes
    return minutes_between(trade.opened_at, trade.closed_at) if known is None else known


def open_line(trade: Trade, mark: PositionMark | None, *, now: datetime, currency: str | None) -> OpenLine:
    """The line of an open trade at the mark of its last tick; without a tick the mark is unknown."""
    excursions = None if mark is None else mark.reach.excursions
    cost = trade.entry_price if trade.average_cost is None else trade.average_cost
    return OpenLine(
        id=trade.id,
        opened_at=trade.opened_at,
        symbol=trade.symbol,
        direction=trade.direction,
        notional=trade.notional(trade.open_size or None, cost),
        entry_price=cost,
        mark=None if mark is None else mark.position.mark,
        mfe=trade.mfe if excursions is None else excursions.mfe,
        mae=trade.mae if excursions is None else excursions.mae,
        minutes=minutes_between(trade.opened_at, now),
        reason=trade.entry.reason,
        currency=trade.currency or currency,
    )


def recent_trades(lines: Iterable[ClosedLine], *, now: datetime, k: int = RECENT) -> Section:
    """At most `k` closed trades, latest exit first and numbered, as many as fit; `k` above 30 is refused."""
    if not 0 <= k <= MOST_RECENT:
        raise Invalid(f"{k} is out of range; give 0 to {MOST_RECENT}", field="recent_trades_k")
    rows = (line.text(number, now=now) for number, line in enumerate(_latest(lines)[:k], start=1))
    return section_of("recent_trades", CLOSED, rows)


def row_numbers(section: Section, lines: Iterable[ClosedLine]) -> dict[str, int]:
    """The numbers of the trades that a section of recent trades shows, by the ids of the trades."""
    return {line.id: number for number, line in enumerate(_latest(lines)[: len(section.rows)], start=1)}


def open_positions(lines: Iterable[OpenLine]) -> Section:
    """The open positions, latest entry first, as many as fit."""
    return section_of("open_positions", OPEN, (line.text for line in _latest(lines)))


_Line = TypeVar("_Line", ClosedLine, OpenLine)


def _latest(lines: Iterable[_Line]) -> list[_Line]:
    """Closed trades by their exit, open ones by their entry, latest first, ties by id."""
    by_id = sorted(lines, key=lambda line: line.id)
    return sorted(by_id, key=_latest_event, reverse=True)


def _latest_event(line: ClosedLine | OpenLine) -> datetime:
    return (line.closed_at if isinstance(line, ClosedLine) else line.opened_at) or _LONG_AGO


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _quoted(reason: str | None) -> str | None:
    return quote(reason) if reason and reason.strip() else None


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
