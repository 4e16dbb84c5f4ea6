"""Exit timing: what the price did after a trade was left, for as long again as the trade was open.

Whether an exit was early can be seen only afterwards. In a market whose next move is a coin's, what follows an exit is
as often good as bad whatever the rule of the exit was: the mean of `exit_timing` is 0 there, also for an agent that
leaves at a target or at a stop. A share of the best price, as was measured before, is no such measure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.portfolio import Direction

BARS_WANTED = 8
"""How many bars the time after an exit should have: the longest bars that are short enough are read."""
LEAST_COVERED = 0.5
"""The share of the time after an exit that bars must cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The time after an exit that is looked at."""

    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRange:
    """The highest and lowest price over some bars."""

    high: float
    low: float
    bars: int


def stretch_after(opened_at: datetime | None, closed_at: datetime | None, *, now: datetime) -> Stretch | None:
    """The time after an exit, as long as the trade; None if it is not over yet, or if the holding time is not known."""
    if opened_at is None or closed_at is None or not opened_at < closed_at:
        return None
    until = closed_at + (closed_at - opened_at)
    return Stretch(since=closed_at, until=until) if until <= now else None


def intervals_for(stretch: Stretch, intervals: Sequence[int]) -> list[int]:
    """The intervals of bars to try, in seconds: the longest of which eight fit first, then shorter ones.

    Then those of which fewer fit, the shortest first: bars of the others may have become known only later.

    >>> from datetime import UTC, timedelta
    >>> noon = datetime(2026, 6, 4, 12, tzinfo=UTC)
    >>> hours = [Stretch(since=noon, until=noon + timedelta(hours=n)) for n in (0.5, 2, 24)]
    >>> [intervals_for(stretch, (3600, 300)) for stretch in hours], intervals_for(hours[0], (3600,))
    ([[300], [300, 3600], [3600, 300]], [])
    """
    fitting = [seconds for seconds in intervals if BARS_WANTED * seconds <= stretch.seconds]
    others = [seconds for seconds in intervals if seconds <= stretch.seconds and seconds not in fitting]
    return sorted(fitting, reverse=True) + sorted(others)


def exit_timing(
    direction: Direction, exit_price: float, prices: PriceRange, *, stretch: Stretch, interval: int
) -> float | None:
    """(against − in favour) / (against + in favour) of how far the price went from the exit; None with too few bars.

    −1: it only went on in the trade's favour, so the exit was early. +1: it only turned. 0: as far either way.

    >>> from datetime import UTC, timedelta
    >>> noon = datetime(2026, 6, 4, 12, tzinfo=UTC)
    >>> hour = {"stretch": Stretch(since=noon, until=noon + timedelta(hours=1)), "interval": 600}
    >>> after = PriceRange(high=103.0, low=99.0, bars=6)
    >>> exit_timing("long", 100.0, after, **hour), exit_timing("short", 100.0, after, **hour)
    (-0.5, 0.5)
    >>> exit_timing("long", 100.0, PriceRange(high=103.0, low=99.0, bars=2), **hour) is None
    True
    """
    if prices.bars * interval < LEAST_COVERED * stretch.seconds:
        return None
    above, below = max(0.0, prices.high - exit_price), max(0.0, exit_price - prices.low)
    if not above + below > 0.0:
        return None
    return (below - above) / (above + below) * (1.0 if direction == "long" else -1.0)
