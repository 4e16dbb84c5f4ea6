"""The row of a trade: what its fills say, what was stamped on it at entry, and how far it went."""

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.holdout import MemoryArm
from backsight.core.ids import derive_id
from backsight.core.strategies import Deployment
from backsight.core.trades.excursion import Excursions
from backsight.core.trades.fold import RoundTrip
from backsight.core.trades.mark import Reach
from backsight.core.trades.trade import Entry, Outcome, Trade, minutes_between, outcome_of

USD = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """What a trade carries from its entry on: whose it is, and what was known, shown and meant."""

    home: Deployment
    entry: Entry
    context: ContextVector
    memory_arm: MemoryArm
    confidence: float | None


def trade_id_of(account_id: str, trip: RoundTrip) -> str:
    """The id of a round trip's trade: it follows from the account, the position and the first fill."""
    return derive_id("trade", account_id, trip.position_key, trip.first_fill_id)


def opened_trade(trip: RoundTrip, stamped: Stamped, *, recorded_at: datetime) -> Trade:
    """The row of a round trip that is new, before anything is counted."""
    home = stamped.home
    return Trade(
        owner_id=home.owner_id,
        id=trade_id_of(home.account_id, trip),
        deployment_id=home.id,
        account_id=home.account_id,
        strategy_id=home.strategy_id,
        strategy_name=home.strategy_name,
        strategy_version=home.strategy_version,
        mode=home.mode,
        position_key=trip.position_key,
        symbol=trip.symbol,
        direction=trip.direction,
        status="open",
        opened_at=trip.opened_at,
        closed_at=None,
        entry_price=trip.entry_price,
        exit_price=None,
        size=None,
        stop_price=None,
        risk=None,
        pnl=None,
        realized_pnl=None,
        fees=0.0,
        funding=0.0,
        outcome=None,
        mae=None,
        entry=stamped.entry,
        memory_arm=stamped.memory_arm,
        context=stamped.context,
        market_context=None,
        confidence=stamped.confidence,
        reflection=None,
        tags=(),
        group_id=trip.group_id,
        first_fill_id=trip.first_fill_id,
        request_digest="",
        created_at=recorded_at,
        known_at=trip.known_at,
        recorded_at=recorded_at,
    )


def materialised(
    row: Trade, trip: RoundTrip, reach: Reach, *, usd_rate: float | None, known_at: datetime, recorded_at: datetime
) -> Trade:
    """The row as its round trip now stands. What only an end can tell is told when it is closed."""
    counted = replace(
        row,
        status=trip.status,
        opened_at=trip.opened_at,
        closed_at=trip.closed_at,
        holding_minutes=minutes_between(trip.opened_at, trip.closed_at),
        entry_price=trip.entry_price,
        exit_price=trip.exit_price,
        size=trip.peak_size,
        open_size=trip.size,
        average_cost=trip.average_cost,
        entry=replace(row.entry, size=trip.steps[0].size),
        realized_pnl=trip.realized_pnl,
        fees=trip.fees,
        funding=trip.funding,
        broker_pnl=trip.broker_pnl,
        inferred=trip.inferred,
        exit_reason=exit_reason_of(trip),
        exit_snapshot_id=trip.exit_decision_id,
        known_at=max(row.known_at, trip.known_at, known_at),
        recorded_at=recorded_at,
    )
    made = _still_open(counted) if trip.status == "open" else _ended(counted, trip, reach, usd_rate=usd_rate)
    check_finite(made, symbol=made.symbol)
    return made


def _still_open(row: Trade) -> Trade:
    """The row without what a trade has only at its end, also where a correction opened it again."""
    if row.pnl is None:
        return row
    return replace(
        row,
        stop_price=None,
        initial_risk=None,
        risk=None,
        pnl=None,
        outcome=None,
        usd_rate=None,
        realized_pnl_usd=None,
        fees_usd=None,
        mfe=None,
        mae=None,
        mfe_at=None,
        mae_at=None,
        mfe_r=None,
        mae_r=None,
        mfe_usd=None,
        mae_usd=None,
        excursion_source=None,
        excursion_interval_seconds=None,
    )


def exit_reason_of(trip: RoundTrip) -> str | None:
    """Why a round trip ended, as far as anybody's word goes; None while it is open."""
    return None if trip.status == "open" else trip.exit_reason or "unexplained"


def reach_of(row: Trade) -> Reach:
    """How far a closed trade went, as its row has it."""
    gone = None
    if row.excursion_source is not None and row.mfe_at is not None and row.mae_at is not None:
        gone = Excursions(
            mfe=row.mfe or 0.0,
            mae=row.mae or 0.0,
            mfe_at=row.mfe_at,
            mae_at=row.mae_at,
            source=row.excursion_source,
            interval_seconds=row.excursion_interval_seconds,
        )
    return Reach(excursions=gone, first_stop=row.stop_price, initial_risk=row.initial_risk, risk=row.risk)


def _ended(row: Trade, trip: RoundTrip, reach: Reach, *, usd_rate: float | None) -> Trade:
    gone = reach.excursions
    risk = reach.risk or row.entry.configured_risk
    return replace(
        row,
        stop_price=reach.first_stop,
        initial_risk=reach.initial_risk,
        risk=risk,
        pnl=trip.net,
        usd_rate=usd_rate,
        realized_pnl_usd=_times(trip.realized_pnl, usd_rate),
        fees_usd=_times(trip.fees, usd_rate),
        outcome=_outcome(row, trip, risk),
        mfe=None if gone is None else gone.mfe,
        mae=None if gone is None else gone.mae,
        mfe_at=None if gone is None else gone.mfe_at,
        mae_at=None if gone is None else gone.mae_at,
        mfe_r=None if gone is None or not risk else gone.mfe / risk,
        mae_r=None if gone is None or not risk else gone.mae / risk,
        mfe_usd=None if gone is None else _times(gone.mfe, usd_rate),
        mae_usd=None if gone is None else _times(gone.mae, usd_rate),
        excursion_source=None if gone is None else gone.source,
        excursion_interval_seconds=None if gone is None else gone.interval_seconds,
    )


def _outcome(row: Trade, trip: RoundTrip, risk: float | None) -> Outcome | None:
    price, atr = trip.entry_price, row.context.atr_d1
    atr_share = abs(atr / price) if atr and price else None
    return outcome_of(trip.net, risk=risk, notional=trip.peak_notional, atr_share=atr_share)


def _times(amount: float, rate: float | None) -> float | None:
    return None if rate is None else amount * rate


def check_finite(value: object, *, symbol: str) -> None:
    """Nothing, where all numbers in a row can be kept; else it is refused."""
    if isinstance(value, float) and not math.isfinite(value):
        told = f"{symbol} comes to numbers too large or too small to keep; check sizes, prices and units"
        raise Invalid(told, field="fills")
    if is_dataclass(value):
        for field in fields(value):
            check_finite(getattr(value, field.name), symbol=symbol)
