"""The labels of a market's state: one spelling each."""

from datetime import datetime
from typing import Literal, get_args

Regime = Literal["trending_up", "trending_down", "ranging", "volatile"]
VolatilityRegime = Literal["low", "normal", "high", "extreme"]
Session = Literal["asia", "london", "overlap", "newyork"]

REGIMES: tuple[Regime, ...] = get_args(Regime)
VOLATILITY_REGIMES: tuple[VolatilityRegime, ...] = get_args(VolatilityRegime)
SESSIONS: tuple[Session, ...] = get_args(Session)


def session_of(at: datetime) -> Session:
    """The trading session of an instant, by its UTC hour.

    >>> from datetime import UTC
    >>> [session_of(datetime(2026, 6, 4, hour, tzinfo=UTC)) for hour in (6, 7, 12, 16, 22)]
    ['asia', 'london', 'overlap', 'newyork', 'asia']
    """
    hour = at.hour
    if 7 <= hour < 12:
        return "london"
    if 12 <= hour < 16:
        return "overlap"
    if 16 <= hour < 22:
        return "newyork"
    return "asia"
