"""Reports of closed trades, from an agent or from a file: their checks, and the ledger row that a report becomes."""

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from backsight.core.context import ContextVector, merged_context
from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import CLOCK_SKEW, format_instant
from backsight.core.numbers import positive_zero
from backsight.core.portfolio import Direction
from backsight.core.quick_init import quick_init
from backsight.core.regime import Regime
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import (
    EXPLAINED_SHARE,
    REPORTED_ENTRY,
    Entry,
    Outcome,
    Trade,
    in_dollars,
    minutes_between,
    outcome_of,
    risk_to_stop,
)

N = TypeVar("N", float, None, float | None)
R_TOLERANCE = 0.01
"""How far a stated R multiple may be from pnl / risk, relative and absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeNote:
    """An agent's own words about a trade."""

    market_context: str | None = None
    confidence: float | None = None
    reflection: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.reflection or self.market_context or self.tags) and self.confidence is None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class TradeReport:
    """A closed trade as it is reported: arguments of `remember_trade`, and columns that only a file has."""

    symbol: str
    direction: Direction
    entry_price: float
    exit_price: float
    pnl: float
    pnl_r: float | None = None
    market_context: str | None = None
    context_regime: Regime | None = None
    context_atr_d1: float | None = None
    confidence: float | None = None
    reflection: str | None = None
    max_adverse_excursion: float | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None
    size: float | None = None
    risk: float | None = None
    stop_price: float | None = None
    fees: float = 0.0
    equity: float | None = None
    """What the account was worth after the close."""
    context: ContextVector = field(default_factory=ContextVector)
    position_key: str | None = None
    tags: tuple[str, ...] = ()
    reason: str | None = None
    """Why the trade was opened. This and what follows are columns of a file only."""
    exit_reason: str | None = None
    max_favorable_excursion: float | None = None
    funding: float = 0.0
    """Received; negative for paid."""
    leverage: float | None = None
    point_value: float | None = 1.0
    """Money that one unit of size earns for one point of price, by the stored instrument; None if that is not a fixed
    amount of the account's currency."""

    @property
    def note(self) -> TradeNote:
        return TradeNote(
            market_context=self.market_context,
            confidence=self.confidence,
            reflection=self.reflection,
            tags=self.tags,
        )

    @property
    def outcome(self) -> Outcome | None:
        """The net result in the best unit that the report allows."""
        atr_d1 = self.context.atr_d1
        return outcome_of(
            self.pnl,
            pnl_r=self.pnl_r,
            risk=self.risk,
            notional=self.notional,
            atr_share=abs(atr_d1 / self.entry_price) if atr_d1 and self.entry_price else None,
        )

    @property
    def notional(self) -> float | None:
        """What the size was worth at the entry; None without a size."""
        return None if self.size is None else abs(self.size * self.entry_price) * (self.point_value or 1.0)

    @property
    def price_result(self) -> float | None:
        """The result before fees and funding that prices and size give; None if they do not tell it."""
        if self.size is None or self.point_value is None:
            return None
        points = self.exit_price - self.entry_price if self.direction == "long" else self.entry_price - self.exit_price
        return points * abs(self.size) * self.point_value

    @property
    def doubt(self) -> str | None:
        """A sentence if the stated result is not what prices and size give; None if they agree or cannot tell.

        >>> report = TradeReport(symbol="ES", direction="long", entry_price=5_000.0, exit_price=5_010.0, pnl=500.0)
        >>> print(replace(report, size=1.0).doubt)
        ES: prices and size give 10, but 500 is stated; if one unit earns 50 a point, save_instrument(multiplier=50).
        >>> print(replace(report, size=1.0, pnl=-500.0).doubt)
        ES: prices and size give 10, but -500 is stated; check the direction, the prices and the sign.
        """
        expected, stated = self.price_result, self.gross
        explained = EXPLAINED_SHARE * (self.notional or 0.0) + abs(self.fees) + abs(self.funding)
        if expected is None or abs(stated - expected) <= explained:
            return None
        figures = f"{self.symbol}: prices and size give {expected:.10g}, but {stated:.10g} is stated"
        if stated * expected <= 0:
            return f"{figures}; check the direction, the prices and the sign."
        worth = f"{(self.point_value or 1.0) * stated / expected:.6g}"
        return f"{figures}; if one unit earns {worth} a point, save_instrument(multiplier={worth})."

    @property
    def mae(self) -> float | None:
        """The maximum adverse excursion with its sign: 0 or negative."""
        stated = self.max_adverse_excursion
        return None if stated is None else positive_zero(-abs(stated))

    @property
    def mfe(self) -> float | None:
        """The maximum favourable excursion: 0 for a trade that was never in profit, else positive."""
        stated = self.max_favorable_excursion
        return None if stated is None else max(0.0, stated)

    def in_risk(self, amount: float | None) -> float | None:
        """An amount in multiples of the risk; None if either is not known."""
        return None if amount is None or not self.risk else amount / self.risk

    @property
    def gross(self) -> float:
        """The result before fees and funding."""
        return self.pnl + self.fees - self.funding


def checked_report(report: TradeReport, *, now: datetime) -> TradeReport:
    """The report with its context and its risk completed; `Invalid` if its numbers or times contradict each other."""
    context = merged_context(
        report.context, symbol=report.symbol, regime=report.context_regime, atr_d1=report.context_atr_d1
    )
    _check_times(report.opened_at, report.closed_at, now=now)
    completed = copy_with(
        report,
        context=context.completed(symbol=report.symbol, price=report.entry_price, at=report.opened_at),
        risk=_risk(report),
    )
    _check_result(completed.pnl, pnl_r=completed.pnl_r, risk=completed.risk)
    outcome = completed.outcome
    _finite("pnl", None if outcome is None else outcome.value)
    _finite("pnl", completed.gross)
    _finite("max_adverse_excursion", completed.in_risk(completed.mae))
    _finite("max_favorable_excursion", completed.in_risk(completed.mfe))
    return completed


def trade_from_report(
    report: TradeReport,
    deployment: Deployment,
    trade_id: str,
    *,
    entry: Entry = REPORTED_ENTRY,
    context: ContextVector | None = None,
    usd_rate: float | None,
    request_digest: str,
    now: datetime,
) -> Trade:
    """The ledger row of a checked report.

    `entry` has what is known of the entry beyond the report, and `context` replaces the context of the report.
    """
    closed_at = now if report.closed_at is None else report.closed_at
    return Trade(
        owner_id=deployment.owner_id,
        id=trade_id,
        deployment_id=deployment.id,
        account_id=deployment.account_id,
        strategy_id=deployment.strategy_id,
        strategy_name=deployment.strategy_name,
        strategy_version=deployment.strategy_version,
        mode=deployment.mode,
        position_key=report.position_key or report.symbol,
        symbol=report.symbol,
        direction=report.direction,
        status="closed",
        opened_at=report.opened_at,
        closed_at=closed_at,
        holding_minutes=minutes_between(report.opened_at, closed_at),
        entry_price=report.entry_price,
        exit_price=report.exit_price,
        size=report.size,
        point_value=report.point_value or 1.0,
        stop_price=report.stop_price,
        initial_risk=report.risk,
        risk=report.risk,
        pnl=report.pnl,
        realized_pnl=report.gross,
        realized_pnl_usd=in_dollars(report.gross, usd_rate),
        usd_rate=usd_rate,
        fees=report.fees,
        fees_usd=in_dollars(report.fees, usd_rate),
        funding=report.funding,
        outcome=report.outcome,
        mfe=report.mfe,
        mae=report.mae,
        mfe_r=report.in_risk(report.mfe),
        mae_r=report.in_risk(report.mae),
        mfe_usd=in_dollars(report.mfe, usd_rate),
        mae_usd=in_dollars(report.mae, usd_rate),
        entry=copy_with(entry, leverage=report.leverage, reason=report.reason),
        exit_reason=report.exit_reason,
        context=context or report.context,
        market_context=report.market_context,
        confidence=report.confidence,
        reflection=report.reflection,
        tags=report.tags,
        request_digest=request_digest,
        created_at=now,
        known_at=closed_at,
        recorded_at=now,
    )


def with_note(trade: Trade, note: TradeNote, *, now: datetime) -> Trade:
    """The trade with a note added: a correction, known from `now` on. Tags are added, other fields replaced."""
    return replace(
        trade,
        market_context=note.market_context or trade.market_context,
        confidence=trade.confidence if note.confidence is None else note.confidence,
        reflection=note.reflection or trade.reflection,
        tags=tuple(dict.fromkeys((*trade.tags, *note.tags))),
        known_at=max(trade.known_at, now),
        recorded_at=now,
    )


def reported_trade_id(owner: str, key: str | None, request_digest: str) -> str:
    """The id of a reported trade: made from its idempotency key, or from its content if it has no key."""
    return derive_id("trade", owner, "content", request_digest) if key is None else keyed_trade_id(owner, key)


def keyed_trade_id(owner: str, key: str) -> str:
    """The id of the trade that an idempotency key names."""
    return derive_id("trade", owner, "key", key)


def _check_times(opened_at: datetime | None, closed_at: datetime | None, *, now: datetime) -> None:
    if closed_at is not None and closed_at > now + CLOCK_SKEW:
        message = f"{format_instant(closed_at)} is in the future; give the time of the close, with its time zone"
        raise Invalid(message, field="closed_at")
    if opened_at is not None and opened_at > (closed_at or now):
        message = f"{format_instant(opened_at)} is after the close; give a time before the close"
        raise Invalid(message, field="opened_at")


def _risk(report: TradeReport) -> float | None:
    """The stated risk; else the loss at the stop, if neither the risk nor the R multiple is stated."""
    if report.risk is not None or report.pnl_r is not None or report.stop_price is None or report.size is None:
        return report.risk
    risk = risk_to_stop(
        report.direction, entry_price=report.entry_price, stop_price=report.stop_price, size=report.size
    )
    return _finite("stop_price", None if risk is None else risk * (report.point_value or 1.0))


def _check_result(pnl: float, *, pnl_r: float | None, risk: float | None) -> None:
    if pnl_r and (pnl == 0 or (pnl > 0) != (pnl_r > 0)):
        message = f"{pnl_r} and pnl {pnl} have different signs; both are net, so give them the same sign"
        raise Invalid(message, field="pnl_r")
    if pnl_r is None or risk is None:
        return
    if not math.isclose(pnl / risk, pnl_r, rel_tol=R_TOLERANCE, abs_tol=R_TOLERANCE):
        raise Invalid(f"{pnl_r} is not pnl / risk = {pnl / risk:.4g}; give either pnl_r or risk", field="pnl_r")


def _finite(name: str, value: N) -> N:
    """A computed number, if a database can store it."""
    if value is not None and not math.isfinite(value):
        raise Invalid("too large or too small beside the other numbers; check the units", field=name)
    return value
