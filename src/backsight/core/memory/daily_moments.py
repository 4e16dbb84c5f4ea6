"""Mean outcomes with errors by day and by blocks of days.

Trades that close on one day are not independent of each other, and days are not independent of the days before them.
Sums of products of each day with the faded sum of earlier days give the errors by blocks without keeping the days.
"""

import math
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from statistics import NormalDist

from backsight.core.quick_init import quick_init
from backsight.core.statistics import t_cdf, t_quantile

MEMORY = 0.9
"""Weight of two days in the errors by blocks: .9^(days between them − 1)."""
EXTRAPOLATION = 1.9
"""From weighted covariances to all of them: exact where the likeness of days falls by a tenth a day, as in spells of
ten days, and more than enough where it falls faster."""
FEWEST_DEGREES, DAYS_A_DEGREE = 2.0, 8.0
"""The degrees of freedom of covariances between days: 2, and one more for every eight days."""
SCEPTICAL_TRADES = 10.0
"""How many trades at the reference the prior of a mean outcome is worth."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class DailyMoments:
    """Count, mean and sum of squared deviations of outcomes that come day after day, and their sums by day.

    Only the current day is kept apart. A day that comes back after another one counts as one more day, the next one.
    """

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    days: int = 0
    """How many days have outcomes, including the current one."""
    day: str | None = None
    """The current day, in ISO 8601."""
    day_n: int = 0
    day_sum: float = 0.0
    past_squares: tuple[int, float, float] = (0, 0.0, 0.0)
    """Σ n², Σ n·sum and Σ sum² over the days before the current one."""
    echo: tuple[float, float] = (0.0, 0.0)
    """Σ w·n and Σ w·sum over the days before the current one, w = .9^(days between it and the current one − 1)."""
    past_products: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Over pairs of days before the current one: Σ w·n·n′, Σ w·(n·sum′ + sum·n′) and Σ w·sum·sum′."""

    def add(self, value: float, *, day: str) -> "DailyMoments":
        """The moments with one more outcome.

        >>> DailyMoments().add(1.0, day="2026-01-05").add(3.0, day="2026-01-05").add(-1.0, day="2026-01-06").mean
        1.0
        """
        builder = DailyMomentsBuilder(self)
        builder.add(value, day)
        return builder.build()

    def joined(self, later: "DailyMoments") -> "DailyMoments":
        """The moments of both, `later` following; a day that both share counts as two, and days do not pair across."""
        if not (self.n and later.n):
            return self if self.n else later
        n, difference = self.n + later.n, later.mean - self.mean
        squares = self.squares + later.squares + difference * difference * self.n * later.n / n  # Chan et al. 1979
        sums = zip(self._day_squares, later.past_squares, strict=True)
        counts, products, totals = (mine + others for mine, others in sums)
        pairs = zip(self._pair_products, later.past_products, strict=True)
        by_n, by_both, by_sum = (mine + others for mine, others in pairs)
        return DailyMoments(
            n=n,
            mean=self.mean + difference * later.n / n,
            squares=squares,
            days=self.days + later.days,
            day=later.day,
            day_n=later.day_n,
            day_sum=later.day_sum,
            past_squares=(int(counts), products, totals),
            echo=later.echo,
            past_products=(by_n, by_both, by_sum),
        )

    @property
    def error(self) -> float | None:
        """The standard error of the mean, by day or by blocks of days, and never below that of independent outcomes.

        V = G/(G − 1) · Σ_g (S_g − n_g·mean)² / n², S_g the sum of the n_g outcomes of day g (Liang & Zeger 1986). By
        blocks the covariances of days are added. None with fewer than two days.

        >>> both = DailyMoments()
        >>> for day in ("2026-01-05", "2026-03-06"):
        ...     for _ in range(2):
        ...         both = both.add(1.0 if day.endswith("5") else -1.0, day=day)
        >>> both.error, both.interval()[0] < -6.3
        (1.0, True)
        """
        return math.sqrt(self._variance_and_freedom()[0]) if self.days > 1 else None

    def interval(self, *, level: float = 0.9) -> tuple[float, float] | None:
        """The confidence interval of the mean; None with fewer than two days."""
        reach = self.reach(level=level)
        return None if reach is None else (self.mean - reach, self.mean + reach)

    def reach(self, *, level: float = 0.9) -> float | None:
        """Half the width of the confidence interval: a quantile of Student's t times the error."""
        if self.days < 2:
            return None
        variance, freedom = self._variance_and_freedom()
        return t_quantile(0.5 + level / 2.0, freedom=freedom) * math.sqrt(variance)

    def effective_n(self, *, level: float = 0.9) -> float:
        """How many independent outcomes would have as wide an interval; days, where all outcomes are equal.

        The fewer the days, the fewer they are at a high level: the tails of Student's t are heavier than the normal's.

        >>> moments = DailyMoments()
        >>> for number in range(40):
        ...     moments = moments.add(number // 4 % 2, day=f"2026-{1 + number // 4:02}-01")
        >>> moments.n, round(moments.effective_n(), 1)
        (40, 7.4)
        """
        reach = self.reach(level=level)
        if reach is None or self.squares == 0.0:
            return float(min(self.n, self.days))
        error = reach / NormalDist().inv_cdf(0.5 + level / 2.0)
        return min(float(self.n), self.squares / (self.n - 1) / (error * error)) if error else float(self.n)

    def probability_above(self, reference: float) -> float:
        """The probability that the true mean is above a reference, under ten sceptical trades at the reference.

        As in sizing, m independent trades would be as precise as the n outcomes. The mean less the reference is shrunk
        by m / (m + 10); its variance is the mean square about the reference over m + 10; Student's t has the degrees of
        freedom of the error. ½ with fewer than two days.

        >>> trend, first = DailyMoments(), date(2026, 1, 1).toordinal()
        >>> for number in range(40):
        ...     day = date.fromordinal(first + 30 * number).isoformat()
        ...     trend = trend.add(5.0 if number % 10 < 3 else -1.0, day=day)
        >>> round(trend.mean, 2), round(trend.probability_above(0.0), 2)
        (0.8, 0.93)
        """
        distance = self.mean - reference
        mean_square = self.squares / self.n + distance * distance if self.n else 0.0
        if self.days < 2 or mean_square == 0.0:
            return 0.5
        variance, freedom = self._variance_and_freedom()
        independent = self.squares / (self.n - 1) / self.n
        effective_n = self.n * independent / variance if independent else float(self.n)
        t = distance * effective_n / math.sqrt(mean_square * (effective_n + SCEPTICAL_TRADES))
        return t_cdf(t, freedom=freedom)

    def _variance_and_freedom(self) -> tuple[float, float]:
        """The variance of the mean, by days or by blocks of days, and its degrees of freedom.

        With r_g = (S_g − n_g·mean) / n and w = .9^(days between − 1):

            V = D + C,  D = G/(G − 1) · Σ r_g²,  C = 2 · 1.9 · max(0, Σ_{g<h} w·r_g·r_h + b)

        b is how much the mean's own error lowers the sum of covariances in the mean. D is known from G − 1 degrees of
        freedom and C from 2 + G/8; those of V follow (Satterthwaite 1946).
        """
        squared, mean = self.n * self.n, self.mean
        counts, products, totals = self._day_squares
        deviations = max(0.0, totals - 2.0 * mean * products + mean * mean * counts) / squared
        by_day, freedom = deviations * self.days / (self.days - 1), self.days - 1.0
        independent = self.squares / (self.n - 1) / self.n
        by_n, by_both, by_sum = self._pair_products
        covariances = (by_sum - mean * by_both + mean * mean * by_n + by_n * by_day) / squared
        if covariances <= 0.0:
            return max(by_day, independent), freedom
        by_blocks = 2.0 * EXTRAPOLATION * covariances
        variance, few = by_day + by_blocks, min(freedom, FEWEST_DEGREES + self.days / DAYS_A_DEGREE)
        share = by_blocks / variance
        return max(variance, independent), 1.0 / ((1.0 - share) ** 2 / freedom + share**2 / few)

    @property
    def _day_squares(self) -> tuple[int, float, float]:
        """Σ n², Σ n·sum and Σ sum² over all days."""
        counts, products, totals = self.past_squares
        n, total = self.day_n, self.day_sum
        return counts + n * n, products + n * total, totals + total * total

    @property
    def _pair_products(self) -> tuple[float, float, float]:
        """Σ w·n·n′, Σ w·(n·sum′ + sum·n′) and Σ w·sum·sum′ over all pairs of days."""
        by_n, by_both, by_sum = self.past_products
        echo_n, echo_sum = self.echo
        n, total = self.day_n, self.day_sum
        return by_n + n * echo_n, by_both + n * echo_sum + total * echo_n, by_sum + total * echo_sum


class DailyMomentsBuilder:
    """`DailyMoments` to which outcomes are added in place."""

    __slots__ = (
        "by_both",
        "by_n",
        "by_sum",
        "counts",
        "day",
        "day_n",
        "day_sum",
        "days",
        "echo_n",
        "echo_sum",
        "mean",
        "n",
        "products",
        "squares",
        "totals",
    )

    def __init__(self, moments: DailyMoments) -> None:
        self.n, self.mean, self.squares = moments.n, moments.mean, moments.squares
        self.days, self.day, self.day_n, self.day_sum = moments.days, moments.day, moments.day_n, moments.day_sum
        self.counts, self.products, self.totals = moments.past_squares
        self.echo_n, self.echo_sum = moments.echo
        self.by_n, self.by_both, self.by_sum = moments.past_products

    def add(self, value: float, day: str) -> None:
        self.n += 1  # one step of Welford's algorithm
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)
        if day != self.day:
            self._begin(day)
        self.day_n += 1
        self.day_sum += value

    def _begin(self, day: str) -> None:
        """End the current day and begin another one."""
        n, total = self.day_n, self.day_sum
        if self.day is not None:
            self.counts += n * n
            self.products += n * total
            self.totals += total * total
            self.by_n += n * self.echo_n
            self.by_both += n * self.echo_sum + total * self.echo_n
            self.by_sum += total * self.echo_sum
            fading = MEMORY ** (days_between(self.day, day) - 1)
            self.echo_n = fading * (MEMORY * self.echo_n + n)
            self.echo_sum = fading * (MEMORY * self.echo_sum + total)
        self.day, self.day_n, self.day_sum = day, 0, 0.0
        self.days += 1

    def build(self) -> DailyMoments:
        return DailyMoments(
            n=self.n,
            mean=self.mean,
            squares=self.squares,
            days=self.days,
            day=self.day,
            day_n=self.day_n,
            day_sum=self.day_sum,
            past_squares=(self.counts, self.products, self.totals),
            echo=(self.echo_n, self.echo_sum),
            past_products=(self.by_n, self.by_both, self.by_sum),
        )


@lru_cache(maxsize=4096)
def days_between(first: str, second: str) -> int:
    """The days from one ISO date to a later one; an earlier one counts as the next day.

    >>> days_between("2026-01-05", "2026-02-05"), days_between("2026-01-05", "2026-01-04")
    (31, 1)
    """
    return max(1, date.fromisoformat(second).toordinal() - date.fromisoformat(first).toordinal())
