"""Trades as an agent or an importer reports them: checked, completed and matched with the ledger."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.numbers import positive_zero
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import TOLD, Entry, Outcome, Trade, minutes_between, outcome_of, risk_to_stop
from backsight.services.context import CLOCK_SKEW, Context
from backsight.services.deployments import deployment_named, manual_deployment
from backsight.store import trades as stored
from backsight.store.transaction import Transaction

N = TypeVar("N", float, None, float | None)


CLOSE_APART = timedelta(minutes=5)
"""How far apart two words for one close may be: the agent's and the broker's."""


REPLAY_WINDOW = timedelta(seconds=60)


def merged_context(
    context: ContextVector | None, *, symbol: str, regime: Regime | None, atr_d1: float | None
) -> ContextVector:
    """The context vector with what was given beside it; two words for one thing must agree."""
    held = context or ContextVector()
    beside = {"symbol": symbol, "regime": regime, "atr_d1": atr_d1}
    for name, value in beside.items():
        inner = getattr(held, name)
        if value is not None and inner is not None and value != inner:
            outer = "symbol" if name == "symbol" else f"context_{name}"
            raise Invalid(f"{value!r} contradicts context.{name} {inner!r}; give one of them", field=outer)
    added = {name: value for name, value in beside.items() if value is not None and name != "symbol"}
    return replace(held, **added) if added else held  # type: ignore[arg-type]


def _check_times(opened_at: datetime | None, closed_at: datetime | None, *, now: datetime) -> None:
    if closed_at is not None and closed_at > now + CLOCK_SKEW:
        said = format_instant(closed_at)
        raise Invalid(f"{said} is in the future; give when it was closed, with its zone", field="closed_at")
    if opened_at is not None and opened_at > (closed_at or now):
        said = format_instant(opened_at)
        raise Invalid(f"{said} is after the close; a trade opens before it closes", field="opened_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What an agent adds to a trade in its own words."""

    market_context: str | None = None
    confidence: float | None = None
    reflection: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeTold:
    """A closed trade as somebody tells it, its context completed and its risk told, as `trade_told` makes it."""

    symbol: str
    direction: Direction
    entry_price: float
    exit_price: float
    pnl: float
    outcome: Outcome | None
    """How much was won or lost, in the best unit that is known."""
    context: ContextVector
    opened_at: datetime | None
    closed_at: datetime | None
    note: Note
    size: float | None
    risk: float | None
    stop_price: float | None
    fees: float
    mae: float | None
    position_key: str | None

    def trade(
        self, home: Deployment, trade_id: str, *, equity: float | None, request_digest: str, now: datetime
    ) -> Trade:
        """The row of the trade; `equity` is that of the account before the entry, as far as it is known."""
        at = now if self.closed_at is None else self.closed_at
        return Trade(
            owner_id=home.owner_id,
            id=trade_id,
            deployment_id=home.id,
            account_id=home.account_id,
            strategy_id=home.strategy_id,
            strategy_name=home.strategy_name,
            strategy_version=home.strategy_version,
            mode=home.mode,
            position_key=self.position_key or self.symbol,
            symbol=self.symbol,
            direction=self.direction,
            status="closed",
            opened_at=self.opened_at,
            closed_at=at,
            holding_minutes=minutes_between(self.opened_at, at),
            entry_price=self.entry_price,
            exit_price=self.exit_price,
            size=self.size,
            stop_price=self.stop_price,
            initial_risk=self.risk,
            risk=self.risk,
            pnl=self.pnl,
            realized_pnl=self.pnl + self.fees,
            fees=self.fees,
            funding=0.0,
            outcome=self.outcome,
            mae=self.mae,
            entry=TOLD if equity is None else Entry(equity=equity),
            context=self.context,
            market_context=self.note.market_context,
            confidence=self.note.confidence,
            reflection=self.note.reflection,
            tags=self.note.tags,
            request_digest=request_digest,
            created_at=now,
            known_at=at,
            recorded_at=now,
        )

    def is_of(self, trade: Trade) -> bool:
        """Whether a trade of the ledger is the one: closed then, where that is said, with about this result."""
        if trade.first_fill_id is None or trade.pnl is None or trade.closed_at is None:
            return False
        if self.position_key not in (None, trade.position_key):
            return False
        if self.closed_at is not None and abs(self.closed_at - trade.closed_at) > CLOSE_APART:
            return False
        return math.isclose(self.pnl, trade.pnl, rel_tol=0.05, abs_tol=0.05 * trade.fees + 0.01)


def trade_told(
    *,
    symbol: str,
    direction: Direction,
    entry_price: float,
    exit_price: float,
    pnl: float,
    now: datetime,
    pnl_r: float | None = None,
    market_context: str | None = None,
    context_regime: Regime | None = None,
    context_atr_d1: float | None = None,
    confidence: float | None = None,
    reflection: str | None = None,
    max_adverse_excursion: float | None = None,
    opened_at: datetime | None = None,
    closed_at: datetime | None = None,
    size: float | None = None,
    risk: float | None = None,
    stop_price: float | None = None,
    fees: float = 0.0,
    context: ContextVector | None = None,
    position_key: str | None = None,
    tags: Sequence[str] = (),
) -> TradeTold:
    """A trade from the arguments of `remember_trade`, if it makes sense; else `Invalid`."""
    given = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    _check_times(opened_at, closed_at, now=now)
    completed = given.completed(symbol=symbol, price=entry_price, at=opened_at)
    if risk is None and pnl_r is None and stop_price is not None and size is not None:
        to_stop = risk_to_stop(direction, entry_price=entry_price, stop_price=stop_price, size=size)
        risk = finite("stop_price", to_stop)
    _check_result(pnl, pnl_r=pnl_r, risk=risk)
    atr_d1 = completed.atr_d1
    outcome = outcome_of(
        pnl,
        pnl_r=pnl_r,
        risk=risk,
        notional=None if size is None else abs(size * entry_price),
        atr_share=abs(atr_d1 / entry_price) if atr_d1 and entry_price else None,
    )
    finite("pnl", None if outcome is None else outcome.value)
    finite("pnl", pnl + fees)
    return TradeTold(
        symbol=symbol,
        direction=direction,
        entry_price=entry_price,
        exit_price=exit_price,
        pnl=pnl,
        outcome=outcome,
        context=completed,
        opened_at=opened_at,
        closed_at=closed_at,
        note=Note(market_context=market_context, confidence=confidence, reflection=reflection, tags=tuple(tags)),
        size=size,
        risk=risk,
        stop_price=stop_price,
        fees=fees,
        mae=None if max_adverse_excursion is None else positive_zero(-abs(max_adverse_excursion)),
        position_key=position_key,
    )


def _check_result(pnl: float, *, pnl_r: float | None, risk: float | None) -> None:
    if pnl_r and (pnl == 0 or (pnl > 0) != (pnl_r > 0)):
        raise Invalid(f"{pnl_r} has another sign than pnl {pnl}; both are net, so give both alike", field="pnl_r")
    if pnl_r is not None and risk is not None and not math.isclose(pnl / risk, pnl_r, rel_tol=0.01, abs_tol=0.01):
        raise Invalid(f"{pnl_r} is not pnl / risk = {pnl / risk:.4g}; give one of pnl_r and risk", field="pnl_r")


def finite(field: str, value: N) -> N:
    """A computed number that can be kept."""
    if value is not None and not math.isfinite(value):
        raise Invalid("too large or too small beside the other numbers; check the units", field=field)
    return value


def home_of(transaction: Transaction, ctx: Context, deployment: str | None, strategy_name: str) -> Deployment:
    """The deployment that is named, if it runs the strategy; the implicit one of the strategy where none is."""
    if deployment is None:
        return manual_deployment(transaction, ctx, strategy_name)
    home = deployment_named(transaction.connection, ctx.owner, deployment)
    if home.strategy_name != strategy_name:
        told = f"deployment {home.name!r} runs {home.strategy_name!r}"
        raise Invalid(f"{told}, not {strategy_name!r}; name its strategy", field="strategy_name")
    return home


def _named(
    transaction: Transaction, ctx: Context, key: str | None, closed_at: datetime | None
) -> tuple[str, Trade | None]:
    """The id a request's trade has, and that trade if the request was carried out before."""
    if key is None and closed_at is None:
        since = ctx.now - REPLAY_WINDOW
        former = stored.recent_equal(transaction.connection, ctx.owner, ctx.request_digest, since)
        return derive_id("trade", ctx.owner, ctx.request_digest, format_instant(ctx.now)), former
    trade_id = _trade_id(ctx.owner, key, ctx.request_digest)
    return trade_id, stored.trade(transaction.connection, ctx.owner, trade_id)


def _trade_id(owner: str, key: str | None, request_digest: str) -> str:
    """The id of a trade that is told: its key names it, or else its content."""
    return derive_id("trade", owner, "content", request_digest) if key is None else keyed_trade_id(owner, key)


def keyed_trade_id(owner: str, key: str) -> str:
    """The id of the trade that an idempotency key names."""
    return derive_id("trade", owner, "key", key)
