"""The period weight: what comes from a month in which its strategy did well counts for more.

The month is the one up to an episode's own end; one around it would tell what came after.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Mode

PERIOD = timedelta(days=30)
KINDS = ("trade", "call")
LEAST_COMPANY = 5
UNWEIGHTED = 1.0
YEARLY = math.sqrt(252.0 / 30.0)
BEST_SHARPE = 3.0
BEST_WEIGHT = 0.5 + 0.5 * BEST_SHARPE


def sharpe_weight(outcomes: Sequence[float]) -> float:
    """.5 + .5 · Sharpe ratio of some outcomes in R, which is cut at 0 and 3; 1 for fewer than five or without spread.

    The ratio is mean / population standard deviation · √(252/30). Whatever the order of the outcomes, the sums are
    exact but for one rounding.

    >>> round(sharpe_weight([1.0, -1.0, 1.0, -1.0, 1.0, 1.0]), 3)
    1.012
    >>> sharpe_weight([1.0, 2.0, 3.0, 2.0, 1.0]), sharpe_weight([-1.0, -2.0, -1.0, -1.0, 0.5])
    (2.0, 0.5)
    >>> sharpe_weight([0.1] * 7), sharpe_weight([3.0, 1.0, 2.0, 1.0])
    (1.0, 1.0)
    """
    if len(outcomes) < LEAST_COMPANY:
        return UNWEIGHTED
    lowest, highest = min(outcomes), max(outcomes)
    if lowest == highest:  # of equal values the mean may be rounded, and leave a spread that is none
        return UNWEIGHTED
    largest = max(-lowest, highest)  # scaled by it, so that no square over- or underflows
    scaled = [x / largest for x in outcomes]
    mean = math.fsum(scaled) / len(scaled)
    apart = [x - mean for x in scaled]
    variance = math.fsum([x * x for x in apart]) / len(apart)
    return 0.5 + 0.5 * min(BEST_SHARPE, max(0.0, mean / math.sqrt(variance) * YEARLY))


def period_weights(episodes: Iterable[Episode], company: Iterable[Episode]) -> dict[str, float]:
    """The weight of each episode, by id, from the outcomes in R of its company: same strategy and mode, at the time.

    That is what ended in the 30 days up to and with the episode's own end, archived or not.

    >>> from backsight.testing import T0, an_episode
    >>> days = [an_episode(n, pnl_r=1.0 + n % 2, ended_at=T0 + timedelta(days=n)) for n in range(6)]
    >>> [weight for weight in period_weights(days, days).values()]
    [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    """
    teams: dict[tuple[str, Mode], list[tuple[datetime, float]]] = {}
    for e in company:
        if e.kind in KINDS and e.outcome is not None and e.outcome.unit == "R":
            teams.setdefault((e.strategy_name, e.mode), []).append((e.ended_at, e.outcome.value))
    for told in teams.values():
        told.sort()
    return {e.id: _weight(teams.get((e.strategy_name, e.mode), []), e.ended_at) for e in episodes}


def _weight(told: Sequence[tuple[datetime, float]], until: datetime) -> float:
    """The weight of the 30 days up to and with an instant."""
    first = bisect_right(told, -PERIOD, key=lambda each: each[0] - until)
    stop = bisect_right(told, timedelta(0), key=lambda each: each[0] - until)
    return sharpe_weight([x for _, x in told[first:stop]])
