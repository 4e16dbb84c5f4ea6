"""The factor Period: an episode counts for more if its strategy did well in the 30 days up to the episode's end.

The window ends with the episode. A window around the episode would depend on later results.
"""

import math
from collections.abc import Sequence
from datetime import timedelta

PERIOD = timedelta(days=30)
KINDS = ("trade", "call")
"""The kinds of episodes whose outcomes in R count, archived or not, if they have the same strategy and mode."""
FEWEST_OUTCOMES = 5
UNWEIGHTED = 1.0
YEARLY = math.sqrt(252.0 / 30.0)
BEST_SHARPE = 3.0
BEST_WEIGHT = 0.5 + 0.5 * BEST_SHARPE


def sharpe_weight(outcomes: Sequence[float]) -> float:
    """.5 + .5 · Sharpe ratio of outcomes in R, the ratio clipped to 0 and 3; 1 for fewer than five or without spread.

    The ratio is mean / population standard deviation · √(252/30). The sums are exact except for one rounding, whatever
    the order of the outcomes.

    >>> round(sharpe_weight([1.0, -1.0, 1.0, -1.0, 1.0, 1.0]), 3)
    1.012
    >>> sharpe_weight([1.0, 2.0, 3.0, 2.0, 1.0]), sharpe_weight([-1.0, -2.0, -1.0, -1.0, 0.5])
    (2.0, 0.5)
    >>> sharpe_weight([0.1] * 7), sharpe_weight([3.0, 1.0, 2.0, 1.0])
    (1.0, 1.0)
    """
    if len(outcomes) < FEWEST_OUTCOMES:
        return UNWEIGHTED
    lowest, highest = min(outcomes), max(outcomes)
    if lowest == highest:  # a rounded mean of equal values would leave a spread of about 1e-17
        return UNWEIGHTED
    largest = max(-lowest, highest)  # scale, so that no square overflows or underflows
    scaled = [x / largest for x in outcomes]
    mean = math.fsum(scaled) / len(scaled)
    deviations = [x - mean for x in scaled]
    variance = math.fsum([x * x for x in deviations]) / len(deviations)
    return 0.5 + 0.5 * min(BEST_SHARPE, max(0.0, mean / math.sqrt(variance) * YEARLY))
