"""What a plain stop and a plain target would have made of trades, from how far each went either way."""

from dataclasses import dataclass

import numpy as np

from backsight.core.statistics import Moments
from backsight.core.trades.columns import ClosedTradeColumns, Floats, Integers

LEVEL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitFigures:
    """The mean outcome in R as trades were closed, and with a plain stop and target, each with its 90% interval."""

    n: int
    """Trades with an outcome in R of which both excursions are known."""
    unknown: int
    """The other trades."""
    stopped: int
    """Trades that the stop would have ended, those that reached stop and target included."""
    reached: int
    """Trades that the target would have ended."""
    both: int
    """Trades that reached stop and target; which came first is not known, and they count as stopped."""
    actual_mean: float | None
    actual_interval: tuple[float, float] | None
    plain_mean: float | None
    plain_interval: tuple[float, float] | None
    difference: float | None
    """Plain minus actual."""
    difference_interval: tuple[float, float] | None


def plain_exits(columns: ClosedTradeColumns, rows: Integers, *, stop_r: float, target_r: float) -> ExitFigures:
    """The figures of some trades; a trade that reached neither ends as it did."""
    is_r = np.array([group.outcome_unit == "R" for group in columns.groups], np.bool_)[columns.group[rows]]
    actual, best, worst = columns.outcome[rows], columns.mfe_r[rows], columns.mae_r[rows]
    known = is_r & np.isfinite(actual) & np.isfinite(best) & np.isfinite(worst)
    actual, best, worst = actual[known], best[known], worst[known]
    stopped, reached = worst <= -stop_r, best >= target_r
    outcome = np.where(stopped, -stop_r, np.where(reached, target_r, actual))
    (actual_mean, actual_interval), (mean, interval) = _mean(actual), _mean(outcome)
    difference, difference_interval = _mean(outcome - actual)
    return ExitFigures(
        n=len(actual),
        unknown=len(rows) - len(actual),
        stopped=int(np.count_nonzero(stopped)),
        reached=int(np.count_nonzero(reached & ~stopped)),
        both=int(np.count_nonzero(reached & stopped)),
        actual_mean=actual_mean,
        actual_interval=actual_interval,
        plain_mean=mean,
        plain_interval=interval,
        difference=difference,
        difference_interval=difference_interval,
    )


def _mean(values: Floats) -> tuple[float | None, tuple[float, float] | None]:
    """The mean and its interval by Student's t, summed over sorted values, whatever the order of the rows."""
    if not len(values):
        return None, None
    mean = float(np.sort(values).sum()) / len(values)
    squares = float(np.sort((values - mean) ** 2).sum())
    return mean, Moments(n=len(values), mean=mean, squares=squares).interval(level=LEVEL)
