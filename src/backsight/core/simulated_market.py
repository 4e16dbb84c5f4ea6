"""A simulated market: seeded prices that trend, range and jump, for demonstrations and tests."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.errors import Invalid
from backsight.core.instants import to_utc
from backsight.core.market import Bar
from backsight.core.regime import REGIMES, Regime

BAR_SECONDS, BARS_AN_HOUR, BARS_A_DAY, HOURS_A_YEAR = 300, 12, 288, 364 * 24
RANGE_OF_SIGMA = math.sqrt(8 / math.pi)
"""Mean range of a random walk, in its standard deviations (Feller 1951)."""
TREND: dict[Regime, float] = {"trending_up": 0.5, "trending_down": -0.5, "ranging": 0.0, "volatile": 0.0}
"""Mean move of a day by regime, in daily ATRs."""
ROUGHNESS: dict[Regime, float] = {"trending_up": 0.75, "trending_down": 0.75, "ranging": 0.7, "volatile": 1.6}
"""Noise by regime, relative to a random walk whose mean daily range is the daily ATR."""
STRETCH_HOURS = (8, 96)
RANGE_PULL = 0.012
"""Share of the distance to the middle of a range by which each bar is drawn back."""
FIRST_PRICE_PULL = 1 / (90 * BARS_A_DAY)
"""Share of the distance to the first price by which each bar is drawn back, so that a year does not drift away."""
SHOCKS_A_YEAR, SHOCK_ATRS = 16, (0.6, 2.0)
"""Sizes of shocks are in daily ATRs; a daily ATR is about five hourly ATRs."""
OUTAGES_A_YEAR, OUTAGE_HOURS = 10, (1, 4)
GAP = 0.4
"""Noise of an hour without bars, relative to an hour with bars."""
WICK = 0.9
"""The longest wick, in standard deviations of a bar."""
SIGNIFICANT_DIGITS = 6
ACTIVITY = (
    *(0.65, 0.7, 0.7, 0.65, 0.6, 0.65, 0.75),  # asia, from midnight on
    *(1.1, 1.25, 1.15, 1.0, 1.0),  # london
    *(1.3, 1.6, 1.7, 1.45),  # overlap
    *(1.15, 1.0, 0.9, 0.85, 0.75, 0.6),  # newyork
    *(0.5, 0.55),  # asia again
)
"""Noise of each UTC hour, relative to the day; the mean of the squares is about 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """The movement of the log price in one hour; rates are per bar."""

    sigma: float
    drift: float
    middle: float
    """The log price to which a range draws back."""
    pull: float
    jumps: tuple[float, ...]
    activity: float


def simulated_bars(
    rng: random.Random,
    *,
    symbol: str,
    start: datetime,
    days: int,
    price: float,
    daily_atr: float,
    rests: bool = False,
) -> list[Bar]:
    """5-minute bars of a market from a whole UTC hour on, in stretches of 8 to 96 hours of one regime each.

    A few times a year the price jumps by about a daily ATR within two bars, or bars are missing for some hours. A
    market that rests has no bars from Friday 22:00 to Sunday 22:00 UTC. The price moves on in hours without bars.

    >>> from datetime import UTC
    >>> bars = simulated_bars(random.Random(7), symbol="XAUUSD", start=datetime(2025, 1, 6, tzinfo=UTC), days=7,
    ...                       price=2650.0, daily_atr=32.0, rests=True)
    >>> len(bars), bars[0].open, bars[-1].closes_at.isoformat()
    (1440, 2650.0, '2025-01-13T00:00:00+00:00')
    """
    start = _checked(start, days=days, price=price, daily_atr=daily_atr)
    share = daily_atr / price
    sigma = share / RANGE_OF_SIGMA / math.sqrt(BARS_A_DAY)
    first_level, regime, hours_left, middle = math.log(price), REGIMES[0], 0, 0.0
    bars: list[Bar] = []
    for opened_at, missed in _open_hours(rng, start=start, hours=24 * days, rests=rests):
        level = math.log(price) + rng.gauss(0.0, GAP * sigma * math.sqrt(BARS_AN_HOUR * missed))
        if hours_left == 0:
            regime, hours_left, middle = rng.choice(REGIMES), rng.randint(*STRETCH_HOURS), level
        hours_left -= 1
        activity = ACTIVITY[opened_at.hour]
        pace = _Pace(
            sigma=sigma * ROUGHNESS[regime] * activity,
            drift=share * TREND[regime] * activity / BARS_A_DAY + FIRST_PRICE_PULL * (first_level - level),
            middle=middle,
            pull=RANGE_PULL if regime == "ranging" else 0.0,
            jumps=_jumps(rng, share=share),
            activity=activity,
        )
        bars += _hour_of_bars(rng, symbol=symbol, opened_at=opened_at, level=level, pace=pace)
        price = bars[-1].close
    return bars


def _checked(start: datetime, *, days: int, price: float, daily_atr: float) -> datetime:
    start = to_utc(start, field="start")
    if start != start.replace(minute=0, second=0, microsecond=0):
        raise Invalid(f"{start.isoformat()} is not a whole hour; give a whole hour", field="start")
    if days < 0:
        raise Invalid(f"{days} is not a number of days; give 0 or more", field="days")
    if not 0 < price < math.inf:
        raise Invalid(f"{price} is not a price; give one above 0", field="price")
    if not 0 < daily_atr <= price / 2:
        raise Invalid(f"{daily_atr} is not above 0 and at most half of the price {price}; give less", field="daily_atr")
    return start


def _open_hours(rng: random.Random, *, start: datetime, hours: int, rests: bool) -> Iterator[tuple[datetime, int]]:
    """The hours that have bars, each with the number of hours without bars just before it."""
    missed = outage = 0
    for number in range(hours):
        opened_at = start + timedelta(hours=number)
        if rng.random() < OUTAGES_A_YEAR / HOURS_A_YEAR:
            outage = rng.randint(*OUTAGE_HOURS)
        if outage or (rests and _at_rest(opened_at)):
            outage, missed = max(0, outage - 1), missed + 1
            continue
        yield opened_at, missed
        missed = 0


def _at_rest(at: datetime) -> bool:
    """Whether an hour lies between Friday 22:00 and Sunday 22:00 UTC."""
    weekday = at.isoweekday()
    return weekday == 6 or (weekday == 5 and at.hour >= 22) or (weekday == 7 and at.hour < 22)


def _jumps(rng: random.Random, *, share: float) -> tuple[float, ...]:
    """The jump of each bar of an hour: nearly always zero, else a shock over two bars."""
    if rng.random() >= SHOCKS_A_YEAR / HOURS_A_YEAR:
        return (0.0,) * BARS_AN_HOUR
    size = rng.choice((-1, 1)) * share * rng.uniform(*SHOCK_ATRS)
    first, part = rng.randrange(BARS_AN_HOUR - 1), rng.uniform(0.6, 1.0)
    after = BARS_AN_HOUR - first - 2
    return (*(0.0,) * first, size * part, size * (1 - part), *(0.0,) * after)


def _hour_of_bars(rng: random.Random, *, symbol: str, opened_at: datetime, level: float, pace: _Pace) -> Iterator[Bar]:
    """The bars of one hour, from a log price on."""
    digits = SIGNIFICANT_DIGITS - 1 - math.floor(level / math.log(10))
    sigma, wick, length = pace.sigma, WICK * pace.sigma, timedelta(seconds=BAR_SECONDS)
    price = round(math.exp(level), digits)
    for jump in pace.jumps:
        # drift and pull are the mean of the step, then the jump is added
        step = rng.gauss(pace.drift + pace.pull * (pace.middle - level), sigma)
        level += step + jump
        close = round(math.exp(level), digits)
        top, bottom = (price, close) if price > close else (close, price)
        yield Bar(
            symbol=symbol,
            interval_seconds=BAR_SECONDS,
            opened_at=opened_at,
            open=price,
            high=max(top, round(top * (1 + wick * rng.random()), digits)),
            low=min(bottom, round(bottom * (1 - wick * rng.random()), digits)),
            close=close,
            volume=round(100 * pace.activity * (0.5 + rng.random()) * (1 + abs(step + jump) / sigma), 1),
        )
        price, opened_at = close, opened_at + length
