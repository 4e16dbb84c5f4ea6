"""The null: what an arm's own sizes would have made if they had been dealt to the trades at random.

For an arm that skips trades, a draw is as many skips at random: the arm `random_skip`. For an arm that sizes them, it
is the same sizes in another order. An arm that knows something lies above its null; one that only trades less does not.
"""

from dataclasses import dataclass

import numpy as np

from backsight.lab.equity import DailyResults, Floats, TradeTimes, daily_results
from backsight.lab.metrics import sharpe

DRAWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullDistribution:
    """The Sharpe ratios of the draws, and the place of the arm among them."""

    sharpe: Floats
    place: float | None
    """The share of draws that the arm beats, ties as half; None if all draws are alike, as for equal sizes."""
    daily: DailyResults


def size_multiples(shares: Floats, recorded: Floats) -> Floats:
    """The sizes of an arm as multiples of the recorded ones; 0 where nothing was recorded.

    >>> size_multiples(np.array([0.0, 0.02]), np.array([0.01, 0.01])).tolist()
    [0.0, 2.0]
    """
    return np.divide(shares, recorded, out=np.zeros(len(shares)), where=recorded > 0.0)


def null_of(shares: Floats, recorded: Floats, times: TradeTimes, rng: np.random.Generator) -> NullDistribution:
    """The null of one arm, from 1,000 draws."""
    multiples = size_multiples(shares, recorded)
    draws = rng.permuted(np.broadcast_to(multiples, (DRAWS, len(multiples))).copy(), axis=1)
    daily = daily_results(draws * recorded, times)
    ratios = sharpe(daily.returns)
    own = float(sharpe(daily_results(shares[None, :], times).returns)[0])
    place = None
    if np.ptp(ratios) > 1e-9:
        place = float(np.mean(ratios < own - 1e-12) + 0.5 * np.mean(np.abs(ratios - own) <= 1e-12))
    return NullDistribution(sharpe=ratios, place=place, daily=daily)
