"""Recorded trades as the lab replays them: what was known at the entry, apart from how the trade ended."""

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush

from backsight.core.context import ContextVector
from backsight.core.portfolio import Direction
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Trade

TRADES_FOR_SCALE = 10
"""Earlier trades that are needed before 1R can be estimated for a trade without a stop."""
FIRST_SCALE = 0.02
"""1R as a share of the notional, until so many trades have closed."""
USUAL_SHARE = 0.01
"""The share of equity that counts as risked on a trade of unknown size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabEntry:
    """What was known of a trade when it was opened. Arms see this, and never the outcome."""

    id: str
    at: datetime
    symbol: str
    direction: Direction
    strategy_name: str
    price: float
    recorded_share: float
    """The share of equity that the trader risked."""
    context: ContextVector = ContextVector()  # noqa: RUF009 (frozen)
    market_context: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabTrade:
    """A recorded trade: its entry and its outcome."""

    entry: LabEntry
    closed_at: datetime
    exit_price: float
    pnl: float
    outcome_r: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LabTrades:
    """The trades of a run in the order of their entries, and what was assumed about them, in sentences."""

    trades: tuple[LabTrade, ...]
    notes: tuple[str, ...] = ()
    change_at: int | None = None
    """The place of the first trade after a planted change; None where nothing is planted."""


def lab_trades(trades: Iterable[Trade], *, start_equity: float | None = None) -> LabTrades:
    """Closed trades as the lab replays them; nothing about a trade depends on a trade that closed after its entry.

    1R is the risk to the stop. For a trade without a stop, 1R is the median result of the trades that closed before its
    entry, as a share of the notional and without its sign.
    """
    closed = sorted(filter(_is_usable, trades), key=lambda trade: (_entered_at(trade), trade.id))
    scale, exposure, equity = _Scale(), _Exposure(), start_equity
    open_trades: list[tuple[datetime, str, Trade]] = []
    replayed: list[LabTrade] = []
    without_stop = without_equity = 0
    for trade in closed:
        at = _entered_at(trade)
        while open_trades and open_trades[0][0] < at:
            earlier = heappop(open_trades)[2]
            scale.add(abs(_return(earlier) or 0.0))
            exposure.add(earlier)
            equity = None if equity is None else equity + (earlier.money or 0.0)
        heappush(open_trades, (trade.closed_at or at, trade.id, trade))
        stated = _stated_risk_share(trade)
        without_stop += stated is None
        risk_share = scale.value if stated is None else stated
        known_equity = trade.entry.equity if equity is None else equity
        without_equity += not known_equity
        notional = trade.notional(trade.size)
        share = risk_share * notional / (known_equity or max(notional, exposure.largest)) if notional else USUAL_SHARE
        replayed.append(_lab_trade(trade, risk_share, recorded_share=min(1.0, max(0.0, share))))
    return LabTrades(trades=tuple(replayed), notes=tuple(_notes(len(replayed), without_stop, without_equity)))


def _is_usable(trade: Trade) -> bool:
    return trade.status == "closed" and trade.closed_at is not None and _return(trade) is not None


def _entered_at(trade: Trade) -> datetime:
    at = trade.opened_at or trade.closed_at
    if at is None:
        raise AssertionError(f"trade {trade.id!r} is not closed")
    return at


def _return(trade: Trade) -> float | None:
    """The net result as a share of the notional; by prices where the size is not known."""
    notional = trade.notional(trade.size)
    if notional and trade.pnl is not None:
        return trade.pnl / notional
    if trade.exit_price is None or not trade.entry_price:
        return None
    move = (trade.exit_price - trade.entry_price) / abs(trade.entry_price)
    return move if trade.direction == "long" else -move


def _stated_risk_share(trade: Trade) -> float | None:
    """1R as a share of the notional, by the stop or the stated result in R; None without either."""
    outcome = trade.outcome
    result = _return(trade)
    if outcome is None or outcome.unit != "R" or result is None:
        return None
    if outcome.value and result / outcome.value > 0:
        return result / outcome.value
    notional = trade.notional(trade.size)
    return trade.risk / notional if trade.risk and notional else None


def _lab_trade(trade: Trade, risk_share: float, *, recorded_share: float) -> LabTrade:
    at, outcome = _entered_at(trade), trade.outcome
    in_r = outcome.value if outcome is not None and outcome.unit == "R" else (_return(trade) or 0.0) / risk_share
    return LabTrade(
        entry=LabEntry(
            id=trade.id,
            at=at,
            symbol=trade.symbol,
            direction=trade.direction,
            strategy_name=trade.strategy_name,
            price=trade.entry_price,
            recorded_share=recorded_share,
            # The state of the agent is what the replay makes of its own past, not what the account had.
            context=replace(trade.context, drawdown_pct=None, consecutive_losses=None, confidence=None),
            market_context=trade.market_context,
            confidence=trade.confidence,
        ),
        closed_at=trade.closed_at or at,
        exit_price=trade.entry_price if trade.exit_price is None else trade.exit_price,
        pnl=trade.pnl or 0.0,
        outcome_r=in_r,
    )


def _notes(replayed: int, without_stop: int, without_equity: int) -> Iterator[str]:
    if without_stop:
        yield (
            f"{count_of(without_stop, 'trade')} without a stop: 1R is the median result of the trades that closed "
            f"before the entry, as a share of the notional, or {FIRST_SCALE:.0%} until {TRADES_FOR_SCALE} have closed."
        )
    if without_equity:
        yield (
            f"The account's equity is not known for {without_equity} of {replayed} trades: it counts as the largest "
            f"notional that was open at a time so far, and a trade of unknown size risks {USUAL_SHARE:.0%}."
        )


class _Scale:
    """1R as a share of the notional: the median of the results so far."""

    def __init__(self) -> None:
        self._results: list[float] = []

    @property
    def value(self) -> float:
        results, (middle, odd) = self._results, divmod(len(self._results), 2)
        if len(results) < TRADES_FOR_SCALE:
            return FIRST_SCALE
        return (results[middle] if odd else (results[middle - 1] + results[middle]) / 2) or FIRST_SCALE

    def add(self, result: float) -> None:
        insort(self._results, result)


class _Exposure:
    """The largest notional that was open at a time, of the trades that have closed so far.

    Trades that are open still do not count: a file that ends here does not have them.
    """

    def __init__(self) -> None:
        self.largest = 0.0
        self._closed: list[Trade] = []
        self._at_entry: dict[str, float] = {}
        """For each trade the notional that was open when it was opened, its own included."""

    def add(self, trade: Trade) -> None:
        """Add the next trade in the order of closes."""
        opened_at, notional = _entered_at(trade), trade.notional(trade.size) or 0.0
        total = notional
        for other in reversed(self._closed):
            if other.closed_at is None or other.closed_at <= opened_at:
                break
            if _entered_at(other) <= opened_at:
                total += other.notional(other.size) or 0.0
            else:
                self._count(other, self._at_entry[other.id] + notional)
        self._closed.append(trade)
        self._count(trade, total)

    def _count(self, trade: Trade, total: float) -> None:
        self._at_entry[trade.id] = total
        self.largest = max(self.largest, total)
