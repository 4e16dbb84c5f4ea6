"""Labels of a market's state (regime, volatility, session), and their computation from bars."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise
from statistics import median
from typing import Literal, assert_never, get_args

from backsight.core.errors import Invalid
from backsight.core.market import Bar

Regime = Literal["trending_up", "trending_down", "ranging", "volatile"]
VolatilityRegime = Literal["low", "normal", "high", "extreme"]
Session = Literal["asia", "london", "overlap", "newyork"]
RegimeTag = Literal[
    "trend_up_lowvol",
    "trend_up_hivol",
    "trend_down_lowvol",
    "trend_down_hivol",
    "chop_lowvol",
    "chop_hivol",
    "unknown",
]
Preset = Literal["seed", "scaled"]

REGIME_WORDS: Mapping[str, Regime] = {
    "trend up": "trending_up",
    "up trend": "trending_up",
    "bull": "trending_up",
    "bullish": "trending_up",
    "trend down": "trending_down",
    "down trend": "trending_down",
    "bear": "trending_down",
    "bearish": "trending_down",
    "range": "ranging",
    "range bound": "ranging",
    "sideways": "ranging",
}
"""`trending` has two meanings, and `choppy` may be ranging or volatile."""
VOLATILITY_WORDS: Mapping[str, VolatilityRegime] = {"medium": "normal", "moderate": "normal", "average": "normal"}
SESSION_WORDS: Mapping[str, Session] = {
    "asian": "asia",
    "tokyo": "asia",
    "europe": "london",
    "european": "london",
    "london newyork": "overlap",
    "ny": "newyork",
    "us": "newyork",
    "american": "newyork",
}

REGIMES: tuple[Regime, ...] = get_args(Regime)
VOLATILITY_REGIMES: tuple[VolatilityRegime, ...] = get_args(VolatilityRegime)
SESSIONS: tuple[Session, ...] = get_args(Session)
REGIME_TAGS: tuple[RegimeTag, ...] = get_args(RegimeTag)

WINDOW = 100
FEWEST_BARS = 12
SEED_INTERVAL_SECONDS = 300
TRAILING_WINDOWS = 10
FEWEST_TRAILING_ATRS = 14
TRAILING_ATRS = 100
VOLATILITY_LIMITS: tuple[tuple[float, VolatilityRegime], ...] = ((0.75, "low"), (1.5, "normal"), (2.5, "high"))
ROUNDING = 1e-9


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeReading:
    """A regime tag with the interval and the preset by which it was computed."""

    tag: RegimeTag
    interval_seconds: int | None
    """None if there was no bar."""
    preset: Preset


def classify_regime(bars: Sequence[Bar], *, preset: Preset | None = None, window: int = WINDOW) -> RegimeReading:
    """The trend and volatility of the last `window` bars (of all, where there are fewer), oldest first.

    `seed`, for 5-minute bars: a trend when last/first − 1 of the closes is beyond ±0.5%; `hivol` when σ ≥ 0.4%.
    `scaled`, for any other interval: a trend when |log(last/first)| > σ√n; `hivol` when σ ≥ 1.25 × its trailing median.

    n is the number of log returns between the closes of the window, one less than its bars. σ is their population
    standard deviation (divided by n), because it describes these returns and estimates nothing. (Divided by n − 1, a
    window with one jump would lie exactly on the threshold of a trend, and rounding would decide.)

    The trailing median is the median of σ over up to ten whole windows of the same length before this one, without gaps
    between them; so `hivol` needs two windows of bars. Without earlier windows, or if no price moves, the tag is
    `lowvol`.

    The tag is `unknown` below 12 bars, or if a price in the window is not finite and positive. An earlier window with
    such a price does not count. Pass only bars that were closed at the instant of the decision.

    >>> from datetime import UTC, timedelta
    >>> def hourly(*closes):
    ...     start = datetime(2026, 6, 1, tzinfo=UTC)
    ...     return [Bar(symbol="BTC", interval_seconds=3600, opened_at=start + timedelta(hours=n),
    ...                 open=close, high=close, low=close, close=close) for n, close in enumerate(closes)]
    >>> classify_regime(hourly(*range(100, 120)))
    RegimeReading(tag='trend_up_lowvol', interval_seconds=3600, preset='scaled')
    >>> [classify_regime(hourly(*[100, 101] * 10), preset=preset).tag for preset in ("scaled", "seed")]
    ['chop_lowvol', 'trend_up_hivol']
    >>> classify_regime(hourly(*range(100, 111))).tag
    'unknown'
    """
    interval = bars[-1].interval_seconds if bars else None
    preset = preset or ("seed" if interval == SEED_INTERVAL_SECONDS else "scaled")
    tag: RegimeTag = "unknown"
    if min(len(bars), window) >= FEWEST_BARS and _all_positive(recent := bars[-window:]):
        tag = _seed_tag(recent) if preset == "seed" else _scaled_tag(recent, before=bars[:-window])
    return RegimeReading(tag=tag, interval_seconds=interval, preset=preset)


def regime_of(tag: RegimeTag) -> Regime | None:
    """The regime of a context vector for a tag; None if the tag is `unknown`.

    >>> [regime_of(tag) for tag in ("trend_up_hivol", "trend_down_lowvol", "chop_lowvol", "chop_hivol", "unknown")]
    ['trending_up', 'trending_down', 'ranging', 'volatile', None]
    """
    match tag:
        case "trend_up_lowvol" | "trend_up_hivol":
            return "trending_up"
        case "trend_down_lowvol" | "trend_down_hivol":
            return "trending_down"
        case "chop_lowvol":
            return "ranging"
        case "chop_hivol":
            return "volatile"
        case "unknown":
            return None
    assert_never(tag)


def true_ranges(bars: Sequence[Bar]) -> list[float]:
    """The true range of each bar: its range, with the jump from the previous close (Wilder 1978).

    The first bar has no previous close; its true range is high less low.

    >>> from dataclasses import replace
    >>> from datetime import UTC
    >>> quiet = Bar(symbol="BTC", interval_seconds=3600, opened_at=datetime(2026, 6, 1, tzinfo=UTC),
    ...             open=10.0, high=11.0, low=9.0, close=10.0)
    >>> true_ranges([quiet, replace(quiet, opened_at=quiet.closes_at, open=14.0, high=15.0, low=14.0, close=15.0)])
    [2.0, 5.0]
    """
    first = [bar.high - bar.low for bar in bars[:1]]
    return first + [max(bar.high, last.close) - min(bar.low, last.close) for last, bar in pairwise(bars)]


def atr(bars: Sequence[Bar], *, n: int = 14) -> float | None:
    """Average true range in price units, by Wilder's smoothing; None below n bars or on a price that is not finite.

    It starts as the mean of the first n true ranges. Each further true range moves it by 1/n of the difference. So it
    depends a little on the first bar: a bar 100 bars back has a weight below 0.1%.

    >>> from datetime import UTC, timedelta
    >>> start = datetime(2026, 6, 1, tzinfo=UTC)
    >>> bars = [Bar(symbol="BTC", interval_seconds=3600, opened_at=start + timedelta(hours=n),
    ...             open=10.0, high=10.0 + n, low=10.0, close=10.0) for n in range(1, 16)]
    >>> atr(bars[:13]), atr(bars[:14]), round(atr(bars), 4)
    (None, 7.5, 8.0357)
    """
    return values[-1] if (values := _atrs(bars, n=n)) else None


def volatility_regime(bars: Sequence[Bar]) -> VolatilityRegime | None:
    """The last ATR(14) over its trailing median: low below 0.75, normal below 1.5, high below 2.5, else extreme.

    The median is over the ATR(14) of the bars before the last: at least 14 of them (28 bars in all), at most 100. None
    with fewer bars, or if no price moved.

    >>> from datetime import UTC, timedelta
    >>> start = datetime(2026, 6, 1, tzinfo=UTC)
    >>> bars = [Bar(symbol="BTC", interval_seconds=3600, opened_at=start + timedelta(hours=n), open=10.0,
    ...             high=11.0 if n < 30 else 19.0, low=10.0, close=10.0) for n in range(33)]
    >>> [volatility_regime(bars[:n]) for n in (27, 28, 31, 33)]
    [None, 'normal', 'high', 'extreme']
    """
    values = _atrs(bars, n=14)
    past = values[-1 - TRAILING_ATRS : -1]
    if len(past) < FEWEST_TRAILING_ATRS or not 0 < (usual := median(past)) < math.inf:
        return None
    # the first limit that the ratio does not reach gives the label
    for share, label in VOLATILITY_LIMITS:
        if not _reaches(values[-1], share * usual):
            return label
    return "extreme"


def _seed_tag(window: Sequence[Bar]) -> RegimeTag:
    move = window[-1].close / window[0].close - 1
    return _tag(move, is_trend=_exceeds(abs(move), 0.005), is_volatile=_reaches(_sigma(window), 0.004))


def _scaled_tag(window: Sequence[Bar], *, before: Sequence[Bar]) -> RegimeTag:
    move = math.log(window[-1].close) - math.log(window[0].close)
    sigma, past = _sigma(window), _past_sigmas(before, length=len(window))
    return _tag(
        move,
        is_trend=_exceeds(abs(move), sigma * math.sqrt(len(window) - 1)),
        is_volatile=bool(past) and sigma > 0 and _reaches(sigma, 1.25 * median(past)),
    )


def _tag(move: float, *, is_trend: bool, is_volatile: bool) -> RegimeTag:
    if not is_trend:
        return "chop_hivol" if is_volatile else "chop_lowvol"
    if move > 0:
        return "trend_up_hivol" if is_volatile else "trend_up_lowvol"
    return "trend_down_hivol" if is_volatile else "trend_down_lowvol"


def _past_sigmas(before: Sequence[Bar], *, length: int) -> list[float]:
    ends = range(len(before), length - 1, -length)[:TRAILING_WINDOWS]
    windows = [before[end - length : end] for end in ends]
    return [_sigma(window) for window in windows if _all_positive(window)]


def _sigma(window: Sequence[Bar]) -> float:
    """Standard deviation of the log returns of closes; zero if it is within rounding."""
    logs = [math.log(bar.close) for bar in window]
    returns = [later - earlier for earlier, later in pairwise(logs)]
    mean = math.fsum(returns) / len(returns)
    sigma = math.sqrt(math.fsum((value - mean) ** 2 for value in returns) / len(returns))
    return sigma if sigma > 1e-12 else 0.0


def _atrs(bars: Sequence[Bar], *, n: int) -> list[float]:
    """The average true range at each bar from the n-th on; empty if a value is not finite."""
    if n < 1:
        raise Invalid(f"{n} is too few bars; give 1 or more", field="n")
    if len(bars) < n or not math.isfinite(sum(bar.open + bar.high + bar.low + bar.close for bar in bars)):
        return []
    ranges = true_ranges(bars)
    first = sum(ranges[:n]) / n
    values = list(accumulate(ranges[n:], lambda average, new: average + (new - average) / n, initial=first))
    return values if math.isfinite(values[-1]) else []


def _all_positive(bars: Sequence[Bar]) -> bool:
    return all(0 < price < math.inf for bar in bars for price in bar.prices)


# Prices are decimals and doubles are not: 99.5 / 100 − 1 is slightly beyond −0.5%. A value within rounding of a
# threshold counts as equal to it, so that results agree with a calculation on paper.
def _exceeds(value: float, threshold: float) -> bool:
    return value > threshold * (1 + ROUNDING)


def _reaches(value: float, threshold: float) -> bool:
    return value >= threshold * (1 - ROUNDING)
