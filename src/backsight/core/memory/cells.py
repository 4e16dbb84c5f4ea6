"""Cells: a strategy's trades by one or two dimensions, and the test of a cell against the strategy's other trades.

A cell counts the trades of one strategy that share one or two dimensions, for example "IM in ranging markets". The cell
that names no dimension counts all trades of the strategy.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import (
    DIMENSIONS,
    FEWEST_DAYS,
    Domain,
    EpisodePlace,
    EvidenceTally,
    error_of_look,
    place_of,
    won,
)
from backsight.core.quick_init import quick_init
from backsight.core.statistics import t_two_sided

WIDTHS = (1, 2)
"""How many dimensions a cell that is tested may name."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """The trades of a cell that closed on one UTC day."""

    n: int = 0
    wins: int = 0


NO_TRADES = DayCount()


@lru_cache(maxsize=1024)
def day_count(n: int, wins: int) -> DayCount:
    """The count of a day; days with equal counts, which most cells have, share one object."""
    return DayCount(n=n, wins=wins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The trades of one strategy in one or two dimensions, or all of them, and their counts by day."""

    tally: EvidenceTally = field(default_factory=EvidenceTally)
    days: Mapping[date, DayCount] = field(default_factory=dict)
    """By UTC day; a cell that was read in part has only some of its days."""
    traded_days: int = 0
    """How many days have trades, including days that were not read."""
    squares: tuple[int, int, int] = (0, 0, 0)
    """Σ n², Σ n·wins and Σ wins² over all days."""


def day_of(episode: Episode) -> date:
    """The UTC day on which a trade closed; trades of one day are treated as dependent."""
    return episode.ended_at.astimezone(UTC).date()


@lru_cache(maxsize=4096)
def cells_at(place: EpisodePlace) -> tuple[Domain, ...]:
    """The cells of the episodes at a place: the cell of the strategy, then those of every one and every two dimensions.

    An episode with an unknown dimension is in no cell of that dimension.
    """
    strategy, values = place
    known = {name: value for name, value in zip(DIMENSIONS, values, strict=True) if value is not None}
    selections = [names for width in (0, *WIDTHS) for names in combinations(known, width)]
    return tuple(_domain(strategy, names, tuple(known[name] for name in names)) for names in selections)


@lru_cache(maxsize=4096)
def _domain(strategy: str, names: tuple[str, ...], values: tuple[str, ...]) -> Domain:
    """The domain with these values; one object for all places in it, since a place is in sixteen domains."""
    return Domain(strategy=strategy, **dict(zip(names, values, strict=True)))  # type: ignore[arg-type]


def cells_met(episodes: Iterable[Episode]) -> Mapping[Domain, int]:
    """The cells of some episodes, with the number of episodes in each; episodes without a result do not count."""
    places = Counter(place_of(episode) for episode in episodes if won(episode) is not None)
    counts: Counter[Domain] = Counter()
    for place, n in places.items():
        for domain in cells_at(place):
            counts[domain] += n
    return counts


def level_of_look(n: int, *, cells: int) -> float:
    """The significance level for a cell of n episodes, where `cells` cells of its width exist so far.

    The level is .05 / cells / 6 up to 320 episodes (Bonferroni over cells and looks). Each later doubling of n halves
    the level, so that the sum over all looks stays bounded.

    >>> [round(level_of_look(n, cells=10), 7) for n in (10, 320, 640, 1280)]
    [0.0008333, 0.0008333, 0.0004167, 0.0002083]
    """
    return error_of_look(n) / cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far the win rate of a cell is from that of the strategy's other trades, and how significant that is."""

    rate: float
    elsewhere: float
    """The win rate of the other trades."""
    error: float
    """The standard error of `rate` − `elsewhere`."""
    elsewhere_error: float
    """The standard error of `elsewhere`, larger than the binomial one by as much as `error` is."""
    days: int
    """How many days, or runs of days, the error is estimated from."""
    p: float
    """The two-sided p-value."""
    least: float
    """1 / (m + 2) for m other trades: the smallest reference win rate, for a rate of 0 that may yet change."""


def difference(cell: Cell, strategy: Cell) -> Difference | None:
    """Compare a cell with the strategy's other trades; None where either has fewer than eight days.

    With n trades in the cell and m others, p̂ and q̂ their win rates, and g the UTC day of the close:

        u_g = Σ_{i in cell, g} (y_i − p̂) / n − Σ_{i in rest, g} (y_i − q̂) / m
        V   = G/(G − 1) · Σ_g u_g²                                 Liang & Zeger 1986, clusters are days
        B   = π̂(1 − π̂)(1/n + 1/m), π̂ the win rate of all           binomial, under "no difference"
        t   = (p̂ − q̂) / √max(V, B), two-sided, G − 1 degrees of freedom

    G is the smaller number of days of the two groups, since a rate is known only from its own days. A day that both
    groups share enters u_g once, so that a good day for all trades is no difference.
    """
    n, wins = cell.tally.n, cell.tally.wins
    m, other_wins = strategy.tally.n - n, strategy.tally.wins - wins
    days = min(cell.traded_days, _days_of_others(cell, strategy))
    if days < FEWEST_DAYS:
        return None
    rate, elsewhere, pooled = wins / n, other_wins / m, strategy.tally.wins / strategy.tally.n
    # The variance is the larger of the day-clustered and the pooled binomial estimate.
    clustered = _sum_of_squares(cell, strategy, rate, elsewhere) * days / (days - 1)
    binomial = _binomial_variance(pooled, n, m)
    error = math.sqrt(max(clustered, binomial))
    p = t_two_sided((rate - elsewhere) / error, freedom=days - 1) if error else 1.0
    return Difference(
        rate=rate,
        elsewhere=elsewhere,
        error=error,
        elsewhere_error=math.sqrt(elsewhere * (1.0 - elsewhere) / m)
        * (error / math.sqrt(binomial) if binomial else 1.0),
        days=days,
        p=p,
        least=1.0 / (m + 2),
    )


class CellCounts(NamedTuple):
    """The trades of a cell without their days."""

    n: int
    wins: int
    traded_days: int


def least_p(cell: CellCounts, strategy: CellCounts) -> float:
    """A bound that the p-value of `difference` is never below, found without the days of either cell.

    The error is at least the binomial one, and rates are known from the days of the cell at most. 1 where there is no
    difference to test.

    >>> round(least_p(CellCounts(40, 28, 20), CellCounts(400, 160, 90)), 6)
    0.000635
    """
    n, m = cell.n, strategy.n - cell.n
    if not m or min(cell.traded_days, strategy.traded_days) < FEWEST_DAYS:
        return 1.0
    apart = cell.wins / n - (strategy.wins - cell.wins) / m
    error = math.sqrt(_binomial_variance(strategy.wins / strategy.n, n, m))
    return t_two_sided(apart / error, freedom=min(cell.traded_days, strategy.traded_days) - 1) if error else 1.0


def _binomial_variance(rate: float, n: int, m: int) -> float:
    """The variance of the difference of two win rates if all trades win at one rate."""
    return rate * (1.0 - rate) * (1.0 / n + 1.0 / m)


def difference_by_runs(test: Difference, cell: Cell, strategy: Cell, labels: Iterable[Cell]) -> Difference | None:
    """The difference with errors by runs of days, where these are larger; None where a label has fewer than eight runs.

    A market stays in a regime for days, and the level of its trades stays with it. Consecutive days on which all trades
    of the strategy have a label, or none has it, are one run; a day with both is a run of its own, since it compares
    the two. Runs take the place of days in V, for each of the `labels`: the cell itself and, for a cell of two
    dimensions, the two cells that name one of them. All cells must have all their days.
    """
    n, m = cell.tally.n, strategy.tally.n - cell.tally.n
    days = sorted(strategy.days)
    inside = [cell.days.get(day, NO_TRADES) for day in days]
    outside = [
        DayCount(n=whole.n - own.n, wins=whole.wins - own.wins) for whole, own in _paired(strategy, days, inside)
    ]
    residuals = [
        (own.wins - test.rate * own.n) / n - (others.wins - test.elsewhere * others.n) / m
        for own, others in zip(inside, outside, strict=True)
    ]
    variance, fewest = test.error * test.error, test.days
    for label in labels:
        run_of_day = _runs(label, strategy, days)
        with_trades = {run for run, own in zip(run_of_day, inside, strict=True) if own.n}
        with_others = {run for run, others in zip(run_of_day, outside, strict=True) if others.n}
        runs = min(len(with_trades), len(with_others))
        if runs < FEWEST_DAYS:
            return None
        sums = [0.0] * (run_of_day[-1] + 1)
        for run, residual in zip(run_of_day, residuals, strict=True):
            sums[run] += residual
        variance = max(variance, math.fsum(each * each for each in sums) * runs / (runs - 1))
        fewest = min(fewest, runs)
    error = math.sqrt(variance)
    p = t_two_sided((test.rate - test.elsewhere) / error, freedom=fewest - 1) if error else 1.0
    elsewhere_error = test.elsewhere_error * (error / test.error if test.error else 1.0)
    return replace(test, error=error, elsewhere_error=elsewhere_error, days=fewest, p=p)


def _paired(strategy: Cell, days: Iterable[date], inside: Iterable[DayCount]) -> Iterable[tuple[DayCount, DayCount]]:
    return zip((strategy.days[day] for day in days), inside, strict=True)


def _runs(label: Cell, strategy: Cell, days: Iterable[date]) -> list[int]:
    """The number of the run that each day belongs to."""
    runs, former = list[int](), 0
    for day in days:
        n, whole = label.days.get(day, NO_TRADES).n, strategy.days[day].n
        side = 1 if n == whole else -1 if n == 0 else 0
        runs.append(runs[-1] + (side != former or side == 0) if runs else 0)
        former = side
    return runs


def _days_of_others(cell: Cell, strategy: Cell) -> int:
    """On how many days the strategy has trades outside the cell."""
    return strategy.traded_days - sum(strategy.days[day].n == count.n for day, count in cell.days.items())


def _sum_of_squares(cell: Cell, strategy: Cell, rate: float, elsewhere: float) -> float:
    """Σ u_g², visiting only the days of the cell.

    On all other days u_g is (wins − q̂·n) / m. The strategy's sums of squares give Σ (wins − q̂·n)² over all days; the
    days of the cell are subtracted from it and counted with their own u_g.
    """
    n, m = cell.tally.n, strategy.tally.n - cell.tally.n
    n_squared, n_by_wins, wins_squared = strategy.squares
    outside = [wins_squared - 2.0 * elsewhere * n_by_wins + elsewhere * elsewhere * n_squared]
    inside = []
    for day, count in cell.days.items():
        whole = strategy.days[day]
        outside.append(-((whole.wins - elsewhere * whole.n) ** 2))
        others = (whole.wins - count.wins) - elsewhere * (whole.n - count.n)
        inside.append(((count.wins - rate * count.n) / n - others / m) ** 2)
    return max(0.0, math.fsum(outside)) / (m * m) + math.fsum(inside)
