"""Fakes and builders for tests of code that builds on Backsight.

>>> clock = FakeClock(T0)
>>> with open_memory("sqlite://", clock=clock) as memory:
...     memory.remember_trade(**a_trade_call(pnl=-100.0, pnl_r=-1.0)).trade.won
False
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.fills import Fill
from backsight.core.market import Bar
from backsight.core.memory.episodic import Episode
from backsight.core.orders import BrokerSnapshot, ReportedFill
from backsight.core.portfolio import Account, Portfolio, Position
from backsight.core.trades.trade import Outcome
from backsight.memory import open_memory
from backsight.runtime.clock import SimulatedClock as FakeClock
from backsight.testing.randomness import FakeRandomness
from backsight.testing.reflection import FakeReflector

__all__ = [
    "T0",
    "FakeClock",
    "FakeRandomness",
    "FakeReflector",
    "a_bar",
    "a_fill",
    "a_position",
    "a_snapshot",
    "a_trade_call",
    "an_episode",
    "open_memory",
]

T0 = datetime(2026, 6, 4, 10, tzinfo=UTC)


def a_trade_call(**changes: Any) -> dict[str, Any]:
    """The arguments of a call of `remember_trade` after a win."""
    return {
        "symbol": "XAUUSD",
        "direction": "long",
        "entry_price": 5175.0,
        "exit_price": 5190.5,
        "pnl": 1175.0,
        "pnl_r": 3.0,
        "strategy_name": "VolBreakout",
        "market_context": "London open broke the Asian range on rising volume",
        "context_regime": "trending_up",
        "context_atr_d1": 95.0,
        "confidence": 0.8,
    } | changes


def a_fill(number: int = 0, *, quantity: float = 1.0, price: float | None = 100.0, **changes: Any) -> Fill:
    """A fill as a broker reports it. Fills are a minute apart, in the order of `number`, from T0 on."""
    at = T0 + timedelta(minutes=number)
    values: dict[str, Any] = {
        "owner_id": "ana",
        "account_id": "account",
        "id": f"fill-{number:06d}",
        "kind": "trade",
        "at": at,
        "sequence": number,
        "position_key": "BTC",
        "symbol": "BTC",
        "quantity": quantity,
        "price": price,
        "price_source": "reported",
        "fee": 0.0,
        "amount": 0.0,
        "realized_pnl": None,
        "reason": None,
        "decision_id": None,
        "group_id": None,
        "earliest_at": None,
        "latest_at": None,
        "replaces": None,
        "known_at": at,
        "recorded_at": at,
    }
    return Fill(**(values | changes))


def an_account(**changes: Any) -> Account:
    """A live account in dollars."""
    values: dict[str, Any] = {
        "owner_id": "ana",
        "id": "account",
        "venue": "binance",
        "name": "main",
        "currency": "USD",
        "mode": "live",
        "position_mode": "netting",
        "known_at": T0,
        "recorded_at": T0,
    }
    return Account(**(values | changes))


def a_position(size: float = 1.0, **changes: Any) -> Position:
    """A long position in BTC at 100; a negative size is a short one."""
    values: dict[str, Any] = {
        "position_key": changes.get("symbol", "BTC"),
        "symbol": "BTC",
        "direction": "long" if size > 0 else "short",
        "size": abs(size),
        "mark": 100.0,
        "average_price": 100.0,
    }
    return Position(**(values | changes))


def a_snapshot(
    *positions: Position,
    at: datetime = T0,
    fills: Sequence[ReportedFill] = (),
    marks: Mapping[str, float] | None = None,
    equity: float = 10_000.0,
) -> BrokerSnapshot:
    """A broker's snapshot with these positions; the default mark of BTC is 100."""
    prices = {"BTC": 100.0, **{position.symbol: position.mark for position in positions}, **(marks or {})}
    portfolio = Portfolio(at=at, equity=equity, cash=equity, positions=positions)
    return BrokerSnapshot(portfolio=portfolio, fills=tuple(fills), marks=prices)


def a_bar(symbol: str = "BTC", *, at: datetime = T0, price: float = 100.0, seconds: int = 3_600) -> Bar:
    """A bar that opens at an instant and stays at one price."""
    return Bar(symbol=symbol, interval_seconds=seconds, opened_at=at, open=price, high=price, low=price, close=price)


def an_episode(number: int = 1, *, pnl_r: float | None = 1.0, **changes: Any) -> Episode:
    """The episode of a closed trade; `number` distinguishes episodes."""
    values: dict[str, Any] = {
        "owner_id": "ana",
        "id": f"episode-{number:06d}",
        "kind": "trade",
        "trade_id": f"trade-{number:06d}",
        "deployment_id": "deployment",
        "strategy_name": "VolBreakout",
        "mode": "live",
        "symbol": "XAUUSD",
        "direction": "long",
        "series_id": f"episode-{number:06d}",
        "context": ContextVector(),
        "entry_price": 5175.0,
        "exit_price": 5190.5,
        "pnl": None if pnl_r is None else 100.0 * pnl_r,
        "outcome": None if pnl_r is None else Outcome(value=pnl_r, unit="R"),
        "hold_seconds": 3600.0,
        "confidence": 0.5,
        "ended_at": changes.get("known_at", T0),
        "first_known_at": changes.get("known_at", T0),
        "known_at": T0,
        "recorded_at": T0,
    }
    return Episode(**(values | changes))
