"""A trade as it is stored: computed from its round trip, the record of its entry and its progress."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, get_args, get_type_hints

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.holdout import MemoryArm
from backsight.core.ids import derive_id
from backsight.core.strategies import Deployment
from backsight.core.trades.excursion import Excursions
from backsight.core.trades.fold import RoundTrip
from backsight.core.trades.mark import TradeProgress
from backsight.core.trades.trade import Entry, Outcome, Trade, dollars_for_one, in_dollars, minutes_between, outcome_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """What is recorded of a trade at its entry; it changes only if a late report names another decision."""

    deployment: Deployment
    entry: Entry
    context: ContextVector
    memory_arm: MemoryArm | None
    """None if no tick opened the trade."""
    confidence: float | None


def trade_id_of(account_id: str, trip: RoundTrip) -> str:
    """The id of a round trip's trade, derived from the account, the position and the first fill."""
    return derive_id("trade", account_id, trip.position_key, trip.first_fill_id)


def opened_trade(trip: RoundTrip, record: EntryRecord, *, recorded_at: datetime) -> Trade:
    """The trade of a new round trip, before `updated_trade` fills in its numbers."""
    deployment = record.deployment
    return Trade(
        owner_id=deployment.owner_id,
        id=trade_id_of(deployment.account_id, trip),
        deployment_id=deployment.id,
        account_id=deployment.account_id,
        strategy_id=deployment.strategy_id,
        strategy_name=deployment.strategy_name,
        strategy_version=deployment.strategy_version,
        mode=deployment.mode,
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
        entry=record.entry,
        memory_arm=record.memory_arm,
        context=record.context,
        market_context=None,
        confidence=record.confidence,
        reflection=None,
        tags=(),
        group_id=trip.group_id,
        first_fill_id=trip.first_fill_id,
        request_digest="",
        created_at=recorded_at,
        known_at=trip.known_at,
        recorded_at=recorded_at,
    )


def entered_by(row: Trade, record: EntryRecord) -> Trade:
    """A trade whose entry belongs to another decision than was inferred; what the account was then does not change."""
    former = row.entry
    entry = replace(
        record.entry,
        size_usd=former.size_usd,
        leverage=former.leverage,
        equity=former.equity,
        configured_risk=former.configured_risk,
    )
    return replace(row, entry=entry, context=record.context, memory_arm=record.memory_arm, confidence=record.confidence)


def updated_trade(
    row: Trade,
    trip: RoundTrip,
    progress: TradeProgress,
    *,
    usd_rate: float | None,
    known_at: datetime,
    recorded_at: datetime,
) -> Trade:
    """A trade with the numbers of its round trip; outcome, risk and excursions are set when the trade is closed."""
    later = _values_of_open(row) if trip.status == "open" else _values_of_closed(row, trip, progress, usd_rate)
    trade = replace(
        row,
        symbol=trip.symbol,
        status=trip.status,
        opened_at=trip.opened_at,
        closed_at=trip.closed_at,
        holding_minutes=minutes_between(trip.opened_at, trip.closed_at),
        entry_price=trip.entry_price,
        exit_price=trip.exit_price,
        size=trip.peak_size,
        open_size=trip.size,
        rest=trip.rest,
        point_value=trip.point_value,
        inverse=trip.inverse,
        currency=trip.currency,
        average_cost=trip.average_cost,
        entry=replace(row.entry, size=trip.entry_size),
        realized_pnl=trip.realized_pnl,
        fees=trip.fees,
        funding=trip.funding,
        broker_pnl=trip.broker_pnl,
        inferred=trip.inferred,
        exit_reason=exit_reason_of(trip),
        exit_snapshot_id=trip.exit_decision_id,
        known_at=max(row.known_at, trip.known_at, known_at),
        recorded_at=recorded_at,
        **later,
    )
    check_finite(trade, symbol=trade.symbol)
    return trade


OF_CLOSED: tuple[str, ...] = (
    "stop_price",
    "initial_risk",
    "risk",
    "pnl",
    "outcome",
    "usd_rate",
    "realized_pnl_usd",
    "fees_usd",
    "mfe",
    "mae",
    "mfe_at",
    "mae_at",
    "mfe_r",
    "mae_r",
    "mfe_usd",
    "mae_usd",
    "excursion_source",
    "excursion_interval_seconds",
)
"""The fields that only a closed trade has."""


def _values_of_open(row: Trade) -> dict[str, Any]:
    """No values of a closed trade; a correction may have opened a closed trade again."""
    return {} if row.pnl is None else dict.fromkeys(OF_CLOSED)


def exit_reason_of(trip: RoundTrip) -> str | None:
    """Why a round trip was closed; `unexplained` if nobody gave a reason, None while it is open."""
    return None if trip.status == "open" else trip.exit_reason or "unexplained"


def progress_of(row: Trade) -> TradeProgress:
    """The progress of a closed trade, from its row."""
    excursions = None
    if row.excursion_source is not None and row.mfe_at is not None and row.mae_at is not None:
        excursions = Excursions(
            mfe=row.mfe or 0.0,
            mae=row.mae or 0.0,
            mfe_at=row.mfe_at,
            mae_at=row.mae_at,
            source=row.excursion_source,
            interval_seconds=row.excursion_interval_seconds,
        )
    return TradeProgress(excursions=excursions, first_stop=row.stop_price, initial_risk=row.initial_risk, risk=row.risk)


def _values_of_closed(row: Trade, trip: RoundTrip, progress: TradeProgress, usd_rate: float | None) -> dict[str, Any]:
    """The values of `OF_CLOSED`; money is in the currency of the round trip."""
    excursions = progress.excursions
    risk = progress.risk or (row.entry.configured_risk if trip.currency is None else None)
    usd_rate = usd_rate if trip.currency is None else dollars_for_one(trip.currency)
    return {
        "stop_price": progress.first_stop,
        "initial_risk": progress.initial_risk,
        "risk": risk,
        "pnl": trip.net,
        "usd_rate": usd_rate,
        "realized_pnl_usd": in_dollars(trip.realized_pnl, usd_rate),
        "fees_usd": in_dollars(trip.fees, usd_rate),
        "outcome": _outcome(row, trip, risk),
        "mfe": None if excursions is None else excursions.mfe,
        "mae": None if excursions is None else excursions.mae,
        "mfe_at": None if excursions is None else excursions.mfe_at,
        "mae_at": None if excursions is None else excursions.mae_at,
        "mfe_r": None if excursions is None or not risk else excursions.mfe / risk,
        "mae_r": None if excursions is None or not risk else excursions.mae / risk,
        "mfe_usd": None if excursions is None else in_dollars(excursions.mfe, usd_rate),
        "mae_usd": None if excursions is None else in_dollars(excursions.mae, usd_rate),
        "excursion_source": None if excursions is None else excursions.source,
        "excursion_interval_seconds": None if excursions is None else excursions.interval_seconds,
    }


def _outcome(row: Trade, trip: RoundTrip, risk: float | None) -> Outcome | None:
    price, atr = trip.entry_price, row.context.atr_d1
    atr_share = abs(atr / price) if atr and price else None
    return outcome_of(trip.net, risk=risk, notional=trip.peak_notional, atr_share=atr_share)


def check_finite(value: object, *, symbol: str) -> None:
    """Refuse a row with a number that is not finite."""
    if not _is_finite(value):
        message = f"{symbol} gives numbers that are too large or too small to store; check sizes, prices and units"
        raise Invalid(message, field="fills")


def _is_finite(value: Any) -> bool:
    """Whether every number in a dataclass is finite."""
    dataclass_type: Any = type(value)
    numbers, parts = _number_fields(dataclass_type)
    if not all(map(math.isfinite, [number for number in numbers(value) if number is not None])):
        return False
    return all(_is_finite(part) for name in parts if (part := getattr(value, name)) is not None)


@cache
def _number_fields(of: Any) -> tuple[Callable[[Any], Sequence[float | None]], tuple[str, ...]]:
    """A reader of the numbers of a dataclass, and its fields that hold dataclasses; cached, since it is slow."""
    kinds = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(of).items()}
    names = [name for name, hints in kinds.items() if float in hints]
    # With two names or more, attrgetter answers with a tuple.
    numbers = attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]
    return numbers, tuple(name for name, hints in kinds.items() if any(map(is_dataclass, hints)))
