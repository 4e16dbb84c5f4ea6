"""Prompt sections about the agent's own trades: the last closed ones and the open ones."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from backsight.core.errors import Invalid
from backsight.core.portfolio import Direction
from backsight.core.prompts.amounts import day_and_time, gain, in_r, money, percent, price, span
from backsight.core.prompts.sections import Section, section_of
from backsight.core.recall.rank import outcome_in_words
from backsight.core.regime import RegimeTag
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import MOST_TOKENS, name, quote
from backsight.core.trades.mark import PositionMark, open_result
from backsight.core.trades.trade import Outcome, Trade, minutes_between

CLOSED = "## Recent trades on this strategy (closed)"
OPEN = "## Open positions (memory view)"
RECENT, MOST_RECENT = 10, 30
ROW_TOKENS = (57, 52, 45)
"""The most tokens of a closed trade, with its newline: the first number with which all rows fit, else the last."""
OPEN_REASON_TOKENS = (50, 30, 20, 12, 8, 0)
"""The most tokens of the reason of an open position, by the same rule."""
SYMBOL_TOKENS = 12
EXIT_TOKENS = 11
"""The most tokens of an exit in the agent's words where something else follows."""
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

    def text(self, number: int, *, now: datetime, tokens: int = ROW_TOKENS[-1]) -> str:
        """The row, in at most so many tokens: the reasons are cut first, then what is before them, from the right."""
        return _fitted_row(self, number, day_and_time(self.closed_at or self.opened_at, now=now), tokens)

    def rows(self, number: int, day: str, tokens: int) -> Iterator[str]:
        """The row from its fullest form to its shortest."""
        return self._rows([fact for fact in self._facts(number, day) if fact], tokens)

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

    def _rows(self, facts: list[str], tokens: int) -> Iterator[str]:
        head = " ".join(facts)
        left = tokens - estimate(f"{head}\n")
        reason = quote(self.reason) if self.reason and self.reason.strip() else ""
        for_exit = max(left - estimate(f" {reason}") - 4, left // 2 - 3, FEWEST_REASON_TOKENS)
        out = exit_in_words(self.exit_reason, tokens=for_exit)
        left = tokens - estimate(f"{head}{out}\n")
        if reason:
            yield f"{head} {reason}{out}"
            for most in range(left, FEWEST_REASON_TOKENS - 1, -1):
                yield f"{head} {quote(self.reason or '', tokens=most)}{out}"
        yield f"{head}{out}"
        for count in range(len(facts), 2, -1):
            yield " ".join(facts[:count])
        yield facts[0]


@lru_cache(maxsize=512)
def _fitted_row(line: ClosedLine, number: int, day: str, tokens: int) -> str:
    """The fullest row that fits; cached, since a trade has the same row in most ticks."""
    return next(row for row in line.rows(number, day, tokens) if estimate(f"{row}\n") <= tokens)


def exit_in_words(reason: str | None, *, tokens: int = EXIT_TOKENS) -> str:
    """How a trade ended, as the end of a row.

    >>> exit_in_words("stop_loss"), exit_in_words("range broke down"), exit_in_words(None)
    (', stopped out', ', exit "range broke down"', '')
    """
    if reason is None or not reason.strip():
        return ""
    words = EXITS.get(reason)
    return f", {words}" if words else f", exit {quote(reason, tokens=tokens)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLine:
    """What memory adds to an open position: its result now, the levels in force, excursions, and why it was entered."""

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
    result_r: float | None = None
    """The result at the mark in R, costs included; None if the risk at entry is not known."""
    stop_price: float | None = None
    """The stop in force."""
    target_price: float | None = None

    def text(self, *, tokens: int = MOST_TOKENS) -> str:
        """The row, with at most so many tokens of the reason."""
        known = self.mfe is not None and self.mae is not None
        reason = self.reason if self.reason and self.reason.strip() and tokens else None
        return _joined(
            f"- {name(self.symbol)}",
            self.direction,
            None if self.notional is None else money(self.notional, self.currency),
            f"@ {price(self.entry_price)}",
            None if self.mark is None else f"mark={price(self.mark)}",
            None if self.result_r is None else f"now {in_r(self.result_r)}",
            None if self.stop_price is None else f"stop={price(self.stop_price)}",
            None if self.target_price is None else f"target={price(self.target_price)}",
            f"MFE={gain(self.mfe, self.currency)} / MAE={gain(self.mae, self.currency)}" if known else None,
            None if self.minutes is None else f"held {span(self.minutes)}",
            None if reason is None else quote(reason, tokens=tokens),
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
    result = open_result(trade, mark)
    outcome = None if result is None else result.outcome
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
        result_r=outcome.value if outcome is not None and outcome.unit == "R" else None,
        stop_price=None if mark is None else mark.position.stop_price,
        target_price=None if mark is None else mark.position.target_price,
    )


def recent_trades(lines: Iterable[ClosedLine], *, now: datetime, k: int = RECENT) -> Section:
    """At most `k` closed trades, latest exit first and numbered, as many as fit; `k` above 30 is refused."""
    if not 0 <= k <= MOST_RECENT:
        raise Invalid(f"{k} is out of range; give 0 to {MOST_RECENT}", field="recent_trades_k")
    numbered = list(enumerate(_latest(lines)[:k], start=1))
    return _roomiest(
        section_of("recent_trades", CLOSED, (line.text(number, now=now, tokens=tokens) for number, line in numbered))
        for tokens in ROW_TOKENS
    )


def _roomiest(sections: Iterable[Section]) -> Section:
    """The first of ever shorter sections that leaves no row out, else the last one."""
    section = Section(name="", heading="", rows=())
    for section in sections:
        if not section.left_out:
            break
    return section


def row_numbers(section: Section, lines: Iterable[ClosedLine]) -> dict[str, int]:
    """The numbers of the trades that a section of recent trades shows, by the ids of the trades."""
    return {line.id: number for number, line in enumerate(_latest(lines)[: len(section.rows)], start=1)}


def open_positions(lines: Iterable[OpenLine]) -> Section:
    """The open positions, latest entry first, as many as fit."""
    latest = _latest(lines)
    return _roomiest(
        section_of("open_positions", OPEN, (line.text(tokens=tokens) for line in latest))
        for tokens in OPEN_REASON_TOKENS
    )


_Line = TypeVar("_Line", ClosedLine, OpenLine)


def _latest(lines: Iterable[_Line]) -> list[_Line]:
    """Closed trades by their exit, open ones by their entry, latest first, ties by id."""
    by_id = sorted(lines, key=lambda line: line.id)
    return sorted(by_id, key=_latest_event, reverse=True)


def _latest_event(line: ClosedLine | OpenLine) -> datetime:
    return (line.closed_at if isinstance(line, ClosedLine) else line.opened_at) or _LONG_AGO


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
