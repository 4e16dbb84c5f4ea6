"""Position marks: an open position at a tick, with the excursions and the risk of its trade so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.market import Bar
from backsight.core.portfolio import Position
from backsight.core.trades.excursion import Excursions, ObservedPrice, excursions, risk_of
from backsight.core.trades.fold import RoundTrip, Step
from backsight.core.trades.trade import Outcome, Trade, outcome_of

STOP_SEEN_BY = 1
"""A stop counts as the first stop only if the entry's tick or the next one saw it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeProgress:
    """The excursions and the risk of a trade so far."""

    excursions: Excursions | None = None
    first_stop: float | None = None
    initial_risk: float | None = None
    risk: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldState:
    """What is needed, beside the trade itself, to go on with its round trip without reading its fills."""

    entered: float
    """How much was bought of a long position, or sold of a short one, so far."""
    left: float
    """How much of that was sold, or bought back."""
    peak_notional: float
    last_fill_at: datetime
    """When its size last changed."""
    point_value: float = 1.0
    """Of the trade, as is `inverse`: if it is another since, the fills were revalued."""
    inverse: bool = False
    rate: float | None = None
    """The last rate known: units of the account's currency for one unit of the instrument's."""

    def is_of(self, trade: Trade) -> bool:
        """Whether the trade is still valued as it was at its last mark."""
        return (self.point_value, self.inverse) == (trade.point_value, trade.inverse)


SnapshotSide = Literal["before", "after"]
"""Which of a tick's two broker snapshots: before or after the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionMark:
    """A position at the end of a tick, or at its beginning if the tick closed it, with the progress of its trade."""

    owner_id: str
    account_id: str
    position: Position
    at: datetime
    sequence: int
    """Of the tick."""
    trade_id: str
    decision_id: str
    look: SnapshotSide
    """`before` if the tick closed the position."""
    nth: int
    """The number of earlier ticks that saw the trade."""
    reach: TradeProgress
    fold: FoldState
    known_at: datetime
    recorded_at: datetime


def fold_state(trip: RoundTrip) -> FoldState:
    """The state of a round trip that its next mark keeps."""
    return FoldState(
        entered=trip.entered,
        left=trip.left,
        peak_notional=trip.peak_notional,
        last_fill_at=trip.steps[-1].at,
        point_value=trip.point_value,
        inverse=trip.inverse,
        rate=trip.rate,
    )


def continued_trip(trade: Trade, mark: PositionMark) -> RoundTrip | None:
    """The round trip of an open trade as its last mark left it; None if its fills are needed to go on.

    They are needed in the first ticks of a trade: its initial risk is that of the first fill. They are needed again
    after they were revalued.
    """
    fold = mark.fold
    if not fold.is_of(trade) or mark.nth < STOP_SEEN_BY:
        return None
    if trade.opened_at is None or trade.size is None or trade.average_cost is None:
        return None
    step = Step(
        at=fold.last_fill_at,
        size=trade.open_size,
        average_cost=trade.average_cost,
        realized_pnl=trade.realized_pnl or 0.0,
    )
    return RoundTrip(
        position_key=trade.position_key,
        symbol=trade.symbol,
        direction=trade.direction,
        first_fill_id=trade.first_fill_id or "",
        opened_at=trade.opened_at,
        closed_at=None,
        size=trade.open_size,
        point_value=trade.point_value,
        inverse=trade.inverse,
        currency=trade.currency,
        rate=fold.rate,
        peak_size=trade.size,
        peak_notional=fold.peak_notional,
        average_cost=trade.average_cost,
        entry_price=trade.entry_price,
        exit_price=trade.exit_price,
        entry_size=trade.entry.size or 0.0,
        entered=fold.entered,
        left=fold.left,
        realized_pnl=step.realized_pnl,
        fees=trade.fees,
        funding=trade.funding,
        broker_pnl=trade.broker_pnl,
        inferred=trade.inferred,
        entry_reason=trade.entry.reason,
        exit_reason=None,
        entry_decision_id=trade.entry.snapshot_id,
        exit_decision_id=None,
        group_id=trade.group_id,
        steps=(step,),
        known_at=trade.known_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenResult:
    """An open trade as it stands at its last mark: what closing it there would bring, and its excursions so far."""

    mark: float
    at: datetime
    """When the mark was taken."""
    unrealized_pnl: float
    """Of the size that is still open, before fees."""
    pnl: float
    """Net, with what was realised so far, funding and fees."""
    outcome: Outcome | None
    risk: float | None
    """The largest risk so far; without a stop, the strategy's risk per trade."""
    excursions: Excursions | None
    """From bars or marks up to now, in money."""
    mfe_r: float | None
    """In multiples of the risk, as is `mae_r`."""
    mae_r: float | None


def open_result(trade: Trade, mark: PositionMark | None) -> OpenResult | None:
    """The result of an open trade at its last mark; None if the trade is closed, or has no mark yet."""
    if trade.status != "open" or mark is None:
        return None
    position, extremes, atr = mark.position, mark.reach.excursions, trade.context.atr_d1
    unrealized = trade.unrealized(position.mark, position.signed_size)
    if unrealized is None:
        return None
    pnl = unrealized + (trade.realized_pnl or 0.0) + trade.funding - trade.fees
    risk = mark.reach.risk or trade.configured_risk
    return OpenResult(
        mark=position.mark,
        at=mark.at,
        unrealized_pnl=unrealized,
        pnl=pnl,
        outcome=outcome_of(
            pnl,
            risk=risk,
            notional=trade.notional(trade.size),
            atr_share=abs(atr / trade.entry_price) if atr and trade.entry_price else None,
        ),
        risk=risk,
        excursions=extremes,
        mfe_r=extremes.mfe / risk if extremes is not None and risk else None,
        mae_r=extremes.mae / risk if extremes is not None and risk else None,
    )


NO_PROGRESS = TradeProgress()


def converted(progress: TradeProgress, factor: float) -> TradeProgress:
    """The progress of a trade with its money in another currency."""
    extremes = progress.excursions
    if extremes is not None:
        extremes = replace(extremes, mfe=extremes.mfe * factor, mae=extremes.mae * factor)
    return replace(
        progress,
        excursions=extremes,
        initial_risk=None if progress.initial_risk is None else progress.initial_risk * factor,
        risk=None if progress.risk is None else progress.risk * factor,
    )


def progress_after(
    trip: RoundTrip,
    before: TradeProgress,
    *,
    nth: int,
    stops: Sequence[ObservedPrice],
    bars: Sequence[Bar] = (),
    marks: Sequence[ObservedPrice] = (),
) -> TradeProgress:
    """The progress of a trade after a tick: the progress before it, and what the tick adds.

    `stops` are those in force at the last tick and at this one. `bars` closed since the last tick, or since the entry
    if the excursions so far come from marks. `marks` are those of this tick.
    """
    risk = risk_of(trip, stops)
    first_stop, initial = before.first_stop, before.initial_risk
    stop_prices = [stop.price for stop in stops if stop.price is not None]
    if first_stop is None and stop_prices and nth <= STOP_SEEN_BY:
        first_stop, initial = stop_prices[0], risk.initial
    return TradeProgress(
        excursions=_with_exit(trip, _farther(before.excursions, excursions(trip, bars=bars, marks=marks))),
        first_stop=first_stop,
        initial_risk=initial,
        risk=max((amount for amount in (before.risk, risk.largest) if amount is not None), default=None),
    )


def _farther(former: Excursions | None, new: Excursions | None) -> Excursions | None:
    """The extremes of both; excursions from bars take precedence over those from marks."""
    if former is None or new is None:
        return former or new
    if former.source != new.source:
        return former if former.source == "bars" else new
    return Excursions(
        mfe=max(former.mfe, new.mfe),
        mae=min(former.mae, new.mae),
        mfe_at=new.mfe_at if new.mfe > former.mfe else former.mfe_at,
        mae_at=new.mae_at if new.mae < former.mae else former.mae_at,
        source=former.source,
        interval_seconds=former.interval_seconds,
    )


def _with_exit(trip: RoundTrip, extremes: Excursions | None) -> Excursions | None:
    """The extremes including the realised result of a closed trade, which bars and marks may not show."""
    if extremes is None or trip.closed_at is None:
        return extremes
    best, worst = trip.realized_pnl > extremes.mfe, trip.realized_pnl < extremes.mae
    return replace(
        extremes,
        mfe=trip.realized_pnl if best else extremes.mfe,
        mae=trip.realized_pnl if worst else extremes.mae,
        mfe_at=trip.closed_at if best else extremes.mfe_at,
        mae_at=trip.closed_at if worst else extremes.mae_at,
    )
