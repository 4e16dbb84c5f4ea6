"""Mean outcomes with errors by day: trades that close on one day are not independent of each other."""

import math
from dataclasses import dataclass

from backsight.core.statistics import t_cdf, t_quantile

SCEPTICAL_TRADES = 10.0
"""How many trades at the reference the prior of a mean outcome is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyMoments:
    """Count, mean and sum of squared deviations of outcomes that come day after day, and their sums by day.

    Only the current day is kept apart. A day that comes back after another one counts as one more day.
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

    def add(self, value: float, *, day: str) -> "DailyMoments":
        """The moments with one more outcome.

        >>> DailyMoments().add(1.0, day="2026-01-05").add(3.0, day="2026-01-05").add(-1.0, day="2026-01-06").mean
        1.0
        """
        builder = DailyMomentsBuilder(self)
        builder.add(value, day)
        return builder.build()

    def joined(self, later: "DailyMoments") -> "DailyMoments":
        """The moments of both, `later` following; a day that both share counts as two."""
        if not (self.n and later.n):
            return self if self.n else later
        n, difference = self.n + later.n, later.mean - self.mean
        squares = self.squares + later.squares + difference * difference * self.n * later.n / n  # Chan et al. 1979
        sums = zip(self._day_squares, later.past_squares, strict=True)
        counts, products, totals = (mine + others for mine, others in sums)
        return DailyMoments(
            n=n,
            mean=self.mean + difference * later.n / n,
            squares=squares,
            days=self.days + later.days,
            day=later.day,
            day_n=later.day_n,
            day_sum=later.day_sum,
            past_squares=(int(counts), products, totals),
        )

    @property
    def error(self) -> float | None:
        """The standard error of the mean, clustered by day and never below that of independent outcomes.

        V = G/(G − 1) · Σ_g (S_g − n_g·mean)² / n², S_g the sum of the n_g outcomes of day g (Liang & Zeger 1986). None
        with fewer than two days.

        >>> both = DailyMoments()
        >>> for day in ("2026-01-05", "2026-01-06"):
        ...     for _ in range(2):
        ...         both = both.add(1.0 if day.endswith("5") else -1.0, day=day)
        >>> both.error, both.interval()[0] < -6.3
        (1.0, True)
        """
        if self.days < 2:
            return None
        counts, products, totals = self._day_squares
        deviations = max(0.0, totals - 2.0 * self.mean * products + self.mean * self.mean * counts)
        clustered = deviations / (self.n * self.n) * self.days / (self.days - 1)
        return math.sqrt(max(clustered, self.squares / (self.n - 1) / self.n))

    def interval(self, *, level: float = 0.9) -> tuple[float, float] | None:
        """The confidence interval of the mean, by Student's t with days − 1 degrees of freedom."""
        error = self.error
        if error is None:
            return None
        half_width = t_quantile(0.5 + level / 2.0, freedom=self.days - 1) * error
        return self.mean - half_width, self.mean + half_width

    def probability_above(self, reference: float) -> float:
        """The probability that the true mean is above a reference, under ten sceptical trades at the reference.

        As in sizing, m independent trades would be as precise as the n outcomes. The mean less the reference is shrunk
        by m / (m + 10); its variance is the mean square about the reference over m + 10; Student's t has days − 1
        degrees of freedom. ½ with fewer than two days.

        >>> trend = DailyMoments()
        >>> for number in range(40):
        ...     trend = trend.add(5.0 if number % 10 < 3 else -1.0, day=f"day {number}")
        >>> round(trend.mean, 2), round(trend.probability_above(0.0), 2)
        (0.8, 0.94)
        """
        error, distance = self.error, self.mean - reference
        mean_square = self.squares / self.n + distance * distance if self.n else 0.0
        if error is None or mean_square == 0.0:
            return 0.5
        independent = self.squares / (self.n - 1) / self.n
        effective_n = self.n * independent / (error * error) if independent else float(self.n)
        t = distance * effective_n / math.sqrt(mean_square * (effective_n + SCEPTICAL_TRADES))
        return t_cdf(t, freedom=self.days - 1)

    @property
    def _day_squares(self) -> tuple[int, float, float]:
        """Σ n², Σ n·sum and Σ sum² over all days."""
        counts, products, totals = self.past_squares
        n, total = self.day_n, self.day_sum
        return counts + n * n, products + n * total, totals + total * total


class DailyMomentsBuilder:
    """`DailyMoments` to which outcomes are added in place."""

    __slots__ = ("counts", "day", "day_n", "day_sum", "days", "mean", "n", "products", "squares", "totals")

    def __init__(self, moments: DailyMoments) -> None:
        self.n, self.mean, self.squares = moments.n, moments.mean, moments.squares
        self.days, self.day, self.day_n, self.day_sum = moments.days, moments.day, moments.day_n, moments.day_sum
        self.counts, self.products, self.totals = moments.past_squares

    def add(self, value: float, day: str) -> None:
        self.n += 1  # one step of Welford's algorithm
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)
        if day != self.day:
            n, total = self.day_n, self.day_sum
            self.counts += n * n
            self.products += n * total
            self.totals += total * total
            self.day, self.day_n, self.day_sum = day, 0, 0.0
            self.days += 1
        self.day_n += 1
        self.day_sum += value

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
        )
