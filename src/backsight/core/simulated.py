"""A seeded market: prices that trend, range and break, for demonstrations and tests."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.regime import REGIMES, Regime, VolatilityRegime

DRIFT: dict[Regime, float] = {"trending_up": 0.12, "trending_down": -0.12, "ranging": 0.0, "volatile": 0.0}
"""Mean hourly move in hourly ATRs."""
NOISE: dict[Regime, float] = {"trending_up": 0.8, "trending_down": 0.8, "ranging": 0.6, "volatile": 1.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """One hour of a simulated market, as it looked when the hour closed."""

    at: datetime
    close: float
    atr_h1: float
    atr_d1: float
    regime: Regime
    volatility_regime: VolatilityRegime


def simulated_hours(
    rng: random.Random, *, start: datetime, hours: int, price: float, daily_atr: float
) -> Iterator[Hour]:
    """Hourly closes of a market that stays in one regime for one to five days at a time.

    >>> from datetime import UTC
    >>> first = list(simulated_hours(random.Random(7), start=datetime(2026, 1, 5, tzinfo=UTC), hours=48,
    ...                              price=2400.0, daily_atr=40.0))
    >>> again = list(simulated_hours(random.Random(7), start=datetime(2026, 1, 5, tzinfo=UTC), hours=48,
    ...                              price=2400.0, daily_atr=40.0))
    >>> len(first), first == again
    (48, True)
    """
    regime, left, anchor = rng.choice(REGIMES), 0, price
    share = daily_atr / price
    for hour in range(hours):
        if left == 0:
            regime, left, anchor = rng.choice(REGIMES), rng.randint(24, 120), price
        left -= 1
        step = price * share / 24**0.5
        pull = 0.05 * (anchor - price) / step if regime == "ranging" else 0.0
        price = max(price * 0.2, price + step * (DRIFT[regime] + pull + rng.gauss(0.0, NOISE[regime])))
        volatility: VolatilityRegime = "high" if regime == "volatile" else "low" if regime == "ranging" else "normal"
        yield Hour(
            at=start + timedelta(hours=hour + 1),
            close=price,
            atr_h1=step * NOISE[regime] * 1.6,
            atr_d1=price * share * NOISE[regime],
            regime=regime,
            volatility_regime=volatility,
        )
