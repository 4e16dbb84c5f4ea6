"""Metrics of daily results, for one arm or for many resamples of it at once.

Returns are by UTC day, with 365 days a year, days without trades included. A metric that has no value is NaN: a profit
factor without losses, or a return per unit of drawdown without a drawdown. An arm that never traded has a Sharpe ratio
of 0.
"""

import math
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from backsight.lab.equity import DailyResults, Floats
from backsight.lab.split import Integers

DAYS_A_YEAR = 365.0
TAIL = 0.05
ROLLING_DAYS = 30
Metric = Literal[
    "final_equity",
    "holding_period_return",
    "profit_factor",
    "sharpe",
    "sortino",
    "calmar",
    "max_drawdown",
    "drawdown_days",
    "tail_loss",
    "rolling_sharpe",
    "worst_rolling_sharpe",
]
METRICS: tuple[Metric, ...] = get_args(Metric)
MEANINGS: Mapping[Metric, str] = {
    "final_equity": "equity at the end, 1 at the start",
    "holding_period_return": "geometric mean return of a trade that was taken",
    "profit_factor": "gains over losses",
    "sharpe": "mean over standard deviation of daily returns, a year",
    "sortino": "mean over downside deviation of daily returns, a year",
    "calmar": "yearly growth over the largest drawdown",
    "max_drawdown": "largest fall from a peak, as a share of it",
    "drawdown_days": "longest time below a peak, in days",
    "tail_loss": "mean loss on the worst 5% of days",
    "rolling_sharpe": "median Sharpe ratio of 30 days in a row",
    "worst_rolling_sharpe": "the Sharpe ratio that one in ten spells of 30 days falls below",
}


def metrics_of(daily: DailyResults) -> dict[Metric, Floats]:
    """Every metric, one value a row."""
    returns = daily.returns
    growth = equity_curves(returns)
    final = growth[:, -1]
    drawdown = drawdowns(growth)
    largest = drawdown.max(axis=1, initial=0.0)
    rolling = rolling_sharpe(returns)
    return {
        "final_equity": final,
        "holding_period_return": holding_period_return(final, daily.trades.sum(axis=1)),
        "profit_factor": _ratio(daily.wins.sum(axis=1), daily.losses.sum(axis=1)),
        "sharpe": sharpe(returns),
        "sortino": sortino(returns),
        "calmar": _ratio(yearly_growth(final, returns.shape[1]), largest),
        "max_drawdown": largest,
        "drawdown_days": longest_run(drawdown > 0.0),
        "tail_loss": expected_shortfall(returns),
        "rolling_sharpe": np.median(rolling, axis=1),
        "worst_rolling_sharpe": np.quantile(rolling, 0.1, axis=1),
    }


def equity_curves(returns: Floats) -> Floats:
    """The equity at the end of each day, 1 before the first."""
    return np.asarray(np.cumprod(1.0 + returns, axis=1), np.float64)


def sharpe(returns: Floats) -> Floats:
    """The yearly Sharpe ratio of each row of daily returns, without a riskless rate (Sharpe 1994); 0 without variance.

    >>> sharpe(np.array([[0.01, 0.0, 0.02, -0.01], [0.0, 0.0, 0.0, 0.0]])).round(3).tolist()
    [7.399, 0.0]
    """
    mean, deviation = returns.mean(axis=-1), _deviation(returns)
    return math.sqrt(DAYS_A_YEAR) * _quotient(mean, deviation, otherwise=0.0)


def _deviation(returns: Floats) -> Floats:
    """The standard deviation with divisor n − 1; rounding alone counts as none."""
    if returns.shape[-1] < 2:
        return np.zeros(returns.shape[:-1])
    deviation = returns.std(axis=-1, ddof=1)
    return np.where(deviation > 1e-12 * np.abs(returns).max(axis=-1), deviation, 0.0)


def sortino(returns: Floats) -> Floats:
    """The yearly Sortino ratio: the mean over the root mean square of the losses, all days counted (Sortino 1994)."""
    downside = np.sqrt(np.square(np.minimum(returns, 0.0)).mean(axis=-1))
    return math.sqrt(DAYS_A_YEAR) * _ratio(returns.mean(axis=-1), downside)


def yearly_growth(final: Floats, days: int) -> Floats:
    """The growth of a year at the same pace; −1 for an account that lost everything."""
    with np.errstate(over="ignore"):
        return np.asarray(np.power(final, DAYS_A_YEAR / max(1, days)) - 1.0, np.float64)


def holding_period_return(final: Floats, trades: Floats) -> Floats:
    """The geometric mean return of a trade that was taken; NaN if none was (Vince 1990)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(trades > 0.0, np.power(final, 1.0 / np.maximum(trades, 1.0)) - 1.0, np.nan)


def drawdowns(growth: Floats) -> Floats:
    """The fall from the highest equity so far, as a share of it; the start counts as a peak.

    >>> drawdowns(np.array([[1.1, 0.99, 1.21]])).round(3).tolist()
    [[0.0, 0.1, 0.0]]
    """
    return 1.0 - growth / np.maximum(np.maximum.accumulate(growth, axis=1), 1.0)


def longest_run(below: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> Floats:
    """The longest run of true values in each row.

    >>> longest_run(np.array([[True, True, False, True], [False] * 4])).tolist()
    [2.0, 0.0]
    """
    place = np.arange(1, below.shape[1] + 1)
    since_peak = place - np.maximum.accumulate(np.where(below, 0, place), axis=1)
    return np.asarray(since_peak.max(axis=1, initial=0), np.float64)


def expected_shortfall(returns: Floats, *, tail: float = TAIL) -> Floats:
    """The mean loss on the worst days, a part of a day counted as that part (Rockafellar & Uryasev 2002).

    >>> expected_shortfall(np.array([[-0.05, -0.02] + [0.0] * 28])).round(6).tolist()
    [0.04]
    """
    size = tail * returns.shape[-1]
    whole = int(size)
    worst = np.partition(returns, min(whole, returns.shape[-1] - 1), axis=-1)
    losses = worst[..., :whole].sum(axis=-1) + (size - whole) * worst[..., min(whole, returns.shape[-1] - 1)]
    return np.asarray(-losses / size, np.float64)


def rolling_sharpe(returns: Floats, *, days: int = ROLLING_DAYS) -> Floats:
    """The yearly Sharpe ratio of every spell of so many days; of the whole series where it is shorter."""
    length = min(days, returns.shape[1])
    padded = np.concatenate([np.zeros((len(returns), 1)), returns], axis=1)
    sums, squares = np.cumsum(padded, axis=1), np.cumsum(np.square(padded), axis=1)
    total, square = sums[:, length:] - sums[:, :-length], squares[:, length:] - squares[:, :-length]
    mean = total / length
    variance = np.maximum(square - length * np.square(mean), 0.0) / max(1, length - 1)
    noise = 1e-20 + 1e-12 * squares[:, -1:] / length  # differences of running sums leave rounding errors
    deviation = np.where(variance > noise, np.sqrt(variance), 0.0)
    return math.sqrt(DAYS_A_YEAR) * _quotient(mean, deviation, otherwise=0.0)


def rank_correlation(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Spearman's rank correlation for each row of weights; ties share their mean rank, NaN where one side is constant.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]), np.ones((1, 3))).round(9).tolist()
    [0.5]
    """
    total = weights.sum(axis=1)
    x, y = mean_ranks(first), mean_ranks(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_x, mean_y = (weights @ x) / total, (weights @ y) / total
        covariance = (weights @ (x * y)) / total - mean_x * mean_y
        variances = ((weights @ (x * x)) / total - mean_x**2) * ((weights @ (y * y)) / total - mean_y**2)
        correlation = covariance / np.sqrt(variances)
    return np.where(variances > 1e-9, np.clip(correlation, -1.0, 1.0), np.nan)


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of their ranks.

    >>> mean_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - 0.5 * (counts - 1))[inverse], np.float64)


def brier_score(confidence: Floats, won: Floats, weights: Floats) -> Floats:
    """The mean squared difference between stated probability and result, of trades with one; NaN without any.

    >>> brier_score(np.array([0.8, np.nan]), np.array([1.0, 0.0]), np.ones((1, 2))).round(3).tolist()
    [0.04]
    """
    known = ~np.isnan(confidence)
    squares = np.where(known, np.square(np.where(known, confidence, 0.0) - won), 0.0)
    total = weights @ known.astype(np.float64)
    return _quotient(weights @ squares, total, np.nan)


def trades_until_halved(multiples: Floats, change: int, *, window: int = 20, smoothing: int = 5) -> int | None:
    """Trades after a change until the mean size of the last few is at most half of the mean size before it.

    None if the arm had no size before the change, or never halves it.

    >>> trades_until_halved(np.array([1.0] * 30 + [0.0] * 10), 30)
    3
    """
    before = float(multiples[max(0, change - window) : change].mean()) if change > 0 else 0.0
    if before <= 0.0:
        return None
    for count in range(1, len(multiples) - change + 1):
        recent = multiples[max(0, change + count - smoothing) : change + count]
        if float(recent.mean()) <= before / 2:
            return count
    return None


def change_point(outcome_r: Floats, *, least: int = 20) -> tuple[int, float] | None:
    """The place at which the mean outcome changes most, and its test statistic; None for fewer than 2 × `least` trades.

    The statistic is the largest standardised difference of means over all places (Hinkley 1970).

    >>> place, statistic = change_point(np.array([1.0, 0.9] * 20 + [-1.0, -0.9] * 20))
    >>> place, statistic > 10
    (40, True)
    """
    n = len(outcome_r)
    if n < 2 * least:
        return None
    sums = np.cumsum(outcome_r)
    places = np.arange(least, n - least + 1)
    before, after = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (n - places)
    squares = float(np.square(outcome_r).sum()) - places * before**2 - (n - places) * after**2
    error = np.sqrt(np.maximum(squares, 1e-18) / (n - 2) * (1.0 / places + 1.0 / (n - places)))
    statistics = np.abs(before - after) / error
    best = int(np.argmax(statistics))
    return int(places[best]), float(statistics[best])


def weights_of_trades(day_counts: Floats, day: Integers) -> Floats:
    """How often each trade is drawn, from how often its day is drawn."""
    return day_counts[:, day]


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """A quotient; NaN where nothing divides it, and 0 where both are 0."""
    return np.where((denominator == 0.0) & (numerator == 0.0), 0.0, _quotient(numerator, denominator, np.nan))


def _quotient(numerator: Floats, denominator: Floats, otherwise: float) -> Floats:
    known = np.asarray(denominator) != 0.0
    return np.where(known, np.asarray(numerator) / np.where(known, denominator, 1.0), otherwise)
