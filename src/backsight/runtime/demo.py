"""A store to look at: a year of simulated trades, remembered one by one."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.portfolio import Direction
from backsight.core.regime import session_of
from backsight.core.simulated import Hour, simulated_hours
from backsight.memory import Memory
from backsight.runtime.clock import SimulatedClock

START = datetime(2025, 1, 6, tzinfo=UTC)
HOURS = 24 * 364
MARKETS = {"XAUUSD": (2650.0, 32.0), "BTC/USDT": (98_000.0, 3_100.0), "EURUSD": (1.03, 0.0075)}
"""Symbol: first price, daily ATR."""
STRATEGY = "VolBreakout"
ACCOUNT = "demo"
DEPLOYMENT = f"{STRATEGY}@{ACCOUNT}"
RISK = 100.0
STOP_ATRS, TARGET_R, LONGEST = 2.0, 2.0, 48


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTrade:
    """A trade of the breakout strategy, from the hour it entered to the hour it left."""

    symbol: str
    direction: Direction
    entry: Hour
    exit: Hour
    stop: float
    target: float

    @property
    def pnl_r(self) -> float:
        """R at the stop, the target, or the last close; costs take a twentieth."""
        way = 1 if self.direction == "long" else -1
        stopped = way * (self.exit.close - self.stop) <= 0
        reached = way * (self.exit.close - self.target) >= 0
        price = self.stop if stopped else self.target if reached else self.exit.close
        return way * (price - self.entry.close) / abs(self.entry.close - self.stop) - 0.05

    def arguments(self) -> dict[str, Any]:
        """What an agent would remember of it."""
        entry, won = self.entry, self.pnl_r > 0
        return {
            "symbol": self.symbol,
            "direction": self.direction,
            "entry_price": round(entry.close, 5),
            "exit_price": round(self.exit.close, 5),
            "pnl": round(self.pnl_r * RISK, 2),
            "pnl_r": round(self.pnl_r, 3),
            "strategy_name": STRATEGY,
            "deployment": DEPLOYMENT,
            "market_context": f"{entry.regime.replace('_', ' ')}, break of the 24-hour range in {session_of(entry.at)}",
            "confidence": 0.7 if entry.regime.startswith("trending") else 0.5,
            "reflection": "The move carried." if won else "The break failed.",
            "opened_at": entry.at,
            "closed_at": self.exit.at,
            "context": ContextVector(
                price=entry.close,
                atr_d1=entry.atr_d1,
                atr_h1=entry.atr_h1,
                regime=entry.regime,
                volatility_regime=entry.volatility_regime,
            ),
        }


def breakouts(symbol: str, hours: list[Hour]) -> Iterator[SimulatedTrade]:
    """The trades of a breakout strategy: in at a new 24-hour extreme, out at the stop, the target or two days."""
    at = 24
    while at < len(hours) - 1:
        recent = [hour.close for hour in hours[at - 24 : at]]
        price = hours[at].close
        if min(recent) <= price <= max(recent):
            at += 1
            continue
        way = 1 if price > max(recent) else -1
        distance = STOP_ATRS * hours[at].atr_h1
        stop, target = price - way * distance, price + way * TARGET_R * distance
        leave = next(
            (
                later
                for later in range(at + 1, min(at + LONGEST, len(hours) - 1))
                if way * (hours[later].close - stop) <= 0 or way * (hours[later].close - target) >= 0
            ),
            min(at + LONGEST, len(hours) - 1),
        )
        direction: Direction = "long" if way > 0 else "short"
        yield SimulatedTrade(
            symbol=symbol, direction=direction, entry=hours[at], exit=hours[leave], stop=stop, target=target
        )
        at = leave + 36


def simulated_year(seed: int) -> list[SimulatedTrade]:
    """Every trade of the year in all markets, in the order in which they closed."""
    found: list[SimulatedTrade] = []
    for symbol, (price, daily_atr) in MARKETS.items():
        rng = random.Random(f"{seed} {symbol}")  # noqa: S311 (prices, not secrets)
        found += breakouts(
            symbol, list(simulated_hours(rng, start=START, hours=HOURS, price=price, daily_atr=daily_atr))
        )
    return sorted(found, key=lambda trade: (trade.exit.at, trade.symbol))


def fill(memory: Memory, clock: SimulatedClock, *, seed: int, progress: Callable[[int, int], None]) -> int:
    """Remember the whole year, each trade at the instant it closed; the number of trades."""
    memory.open_account(venue="simulated", name=ACCOUNT, mode="sim")
    memory.save_strategy(name=STRATEGY, thesis="A break of the 24-hour range carries on when the market trends.")
    memory.deploy(strategy_name=STRATEGY, account=ACCOUNT)
    trades = simulated_year(seed)
    for done, trade in enumerate(trades, start=1):
        clock.at = trade.exit.at
        memory.remember_trade(**trade.arguments())
        progress(done, len(trades))
    return len(trades)
