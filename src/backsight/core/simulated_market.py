"""A seeded market: prices that trend, range and break, for demonstrations and tests."""

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
"""Mean range of a random walk over its standard deviation (Feller 1951)."""
TREND: dict[Regime, float] = {"trending_up": 0.5, "trending_down": -0.5, "ranging": 0.0, "volatile": 0.0}
"""Mean move of a day in daily ATRs."""
ROUGHNESS: dict[Regime, float] = {"trending_up": 0.75, "trending_down": 0.75, "ranging": 0.7, "volatile": 1.6}
"""Noise over that of a random walk whose mean daily range is the daily ATR."""
STRETCH_HOURS = (8, 96)
RANGE_PULL = 0.012
"""Share of the way back to the middle of a range by which a bar is drawn there."""
HOME_PULL = 1 / (90 * BARS_A_DAY)
"""The same, back to the first price: a year later the market is still the same one."""
SHOCKS_A_YEAR, SHOCK_ATRS = 16, (0.6, 2.0)
"""Sizes are in daily ATRs: one of them is about five hourly ones."""
OUTAGES_A_YEAR, OUTAGE_HOURS = 10, (1, 4)
GAP = 0.4
"""Noise of an hour without bars over that of one with them."""
WICK = 0.9
"""The longest wick in standard deviations of a bar."""
SIGNIFICANT_DIGITS = 6
ACTIVITY = (
    *(0.65, 0.7, 0.7, 0.65, 0.6, 0.65, 0.75),  # asia, from midnight on
    *(1.1, 1.25, 1.15, 1.0, 1.0),  # london
    *(1.3, 1.6, 1.7, 1.45),  # overlap
    *(1.15, 1.0, 0.9, 0.85, 0.75, 0.6),  # newyork
    *(0.5, 0.55),  # asia again
)
"""Noise of each UTC hour over that of the day; the mean of its squares is about 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pace:
    """How the price moves for an hour, in logarithms and for each bar."""

    sigma: float
    drift: float
    middle: float
    """Where a range draws it."""
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
    """5-minute bars of a market from a whole UTC hour on: trends, ranges and wild stretches of 8 to 96 hours each.

    A few times a year the price jumps by about a daily ATR within two bars, or there are no bars for some hours. A
    market that rests has none from Friday 22:00 to Sunday 22:00 UTC. After hours without bars the price has moved on.

    >>> from datetime import UTC
    >>> bars = simulated_bars(random.Random(7), symbol="XAUUSD", start=datetime(2025, 1, 6, tzinfo=UTC), days=7,
    ...                       price=2650.0, daily_atr=32.0, rests=True)
    >>> len(bars), bars[0].open, bars[-1].closes_at.isoformat()
    (1440, 2650.0, '2025-01-13T00:00:00+00:00')
    """
    start = _checked(start, days=days, price=price, daily_atr=daily_atr)
    share = daily_atr / price
    sigma = share / RANGE_OF_SIGMA / math.sqrt(BARS_A_DAY)
    home, regime, left, middle = math.log(price), REGIMES[0], 0, 0.0
    bars: list[Bar] = []
    for opened_at, missed in _open_hours(rng, start=start, hours=24 * days, rests=rests):
        level = math.log(price) + rng.gauss(0.0, GAP * sigma * math.sqrt(BARS_AN_HOUR * missed))
        if left == 0:
            regime, left, middle = rng.choice(REGIMES), rng.randint(*STRETCH_HOURS), level
        left -= 1
        activity = ACTIVITY[opened_at.hour]
        pace = _Pace(
            sigma=sigma * ROUGHNESS[regime] * activity,
            drift=share * TREND[regime] * activity / BARS_A_DAY + HOME_PULL * (home - level),
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
        raise Invalid(f"{start.isoformat()} is within an hour; give a whole one", field="start")
    if days < 0:
        raise Invalid(f"{days} is no length; give 0 or more", field="days")
    if not 0 < price < math.inf:
        raise Invalid(f"{price} is no price to start from; give one above 0", field="price")
    if not 0 < daily_atr <= price / 2:
        raise Invalid(f"{daily_atr} is not above 0 and at most half of {price}; give less", field="daily_atr")
    return start


def _open_hours(rng: random.Random, *, start: datetime, hours: int, rests: bool) -> Iterator[tuple[datetime, int]]:
    """The hours that have bars, each with the number of hours without any just before it."""
    missed = out = 0
    for number in range(hours):
        opened_at = start + timedelta(hours=number)
        if rng.random() < OUTAGES_A_YEAR / HOURS_A_YEAR:
            out = rng.randint(*OUTAGE_HOURS)
        if out or (rests and _at_rest(opened_at)):
            out, missed = max(0, out - 1), missed + 1
            continue
        yield opened_at, missed
        missed = 0


def _at_rest(at: datetime) -> bool:
    """Whether an hour lies between Friday 22:00 and Sunday 22:00 UTC."""
    weekday = at.isoweekday()
    return weekday == 6 or (weekday == 5 and at.hour >= 22) or (weekday == 7 and at.hour < 22)


def _jumps(rng: random.Random, *, share: float) -> tuple[float, ...]:
    """What each bar of an hour jumps: nearly always nothing, else a shock over two bars."""
    if rng.random() >= SHOCKS_A_YEAR / HOURS_A_YEAR:
        return (0.0,) * BARS_AN_HOUR
    size = rng.choice((-1, 1)) * share * rng.uniform(*SHOCK_ATRS)
    first, part = rng.randrange(BARS_AN_HOUR - 1), rng.uniform(0.6, 1.0)
    after = BARS_AN_HOUR - first - 2
    return (*(0.0,) * first, size * part, size * (1 - part), *(0.0,) * after)


def _hour_of_bars(rng: random.Random, *, symbol: str, opened_at: datetime, level: float, pace: _Pace) -> Iterator[Bar]:
    digits = SIGNIFICANT_DIGITS - 1 - math.floor(level / math.log(10))
    sigma, wick, length = pace.sigma, WICK * pace.sigma, timedelta(seconds=BAR_SECONDS)
    price = round(math.exp(level), digits)
    for jump in pace.jumps:
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
