"""Distributions: Beta, Student's t, exact binomial bounds, running moments.

Plain Python, exact to 1e-9 for parameters up to a million. The tests compare with published values and with SciPy.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from backsight.core.errors import Invalid
from backsight.core.quick_init import quick_init

NORMAL_95 = 1.6448536269514722
"""The 95% quantile of the normal distribution."""

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
STIRLING_FROM = 16.0
TINY = 1e-300
PRECISION = 1e-15
MAX_TERMS = 20_000


def beta_cdf(x: float, *, alpha: float, beta: float) -> float:
    """P(X ≤ x) for X ~ Beta(α, β): the regularised incomplete beta function I_x(α, β).

    Lentz's continued fraction (Numerical Recipes §6.4) under a prefactor free of cancellation (Loader 2000).

    >>> beta_cdf(0.5, alpha=1.0, beta=1.0)
    0.5
    >>> round(beta_cdf(0.5, alpha=8.0, beta=4.0), 9)
    0.11328125
    """
    _check_shape(alpha, beta)
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    return _lower_and_upper(x, 1.0 - x, alpha, beta)[0]


@lru_cache(maxsize=1024)  # an answer asks several times for the credibility of a belief
def beta_tail(x: float, *, alpha: float, beta: float) -> float:
    """P(X > x) for X ~ Beta(α, β), with full relative precision for small probabilities.

    >>> round(beta_tail(0.5, alpha=8.0, beta=4.0), 9)
    0.88671875
    >>> beta_tail(0.9, alpha=1.0, beta=20.0) < 1e-19
    True
    """
    _check_shape(alpha, beta)
    if x <= 0.0 or x >= 1.0:
        return 1.0 if x <= 0.0 else 0.0
    return _lower_and_upper(x, 1.0 - x, alpha, beta)[1]


@lru_cache(maxsize=1024)  # the figures of the same trades are shown again and again
def beta_quantile(p: float, *, alpha: float, beta: float) -> float:
    """The quantile of Beta(α, β): the x with P(X ≤ x) = p.

    >>> [round(beta_quantile(p, alpha=8.0, beta=4.0), 6) for p in (0.05, 0.5, 0.95)]
    [0.435626, 0.676196, 0.864925]
    """
    _check_shape(alpha, beta)
    _check_probability(p)
    if p in (0.0, 1.0):
        return p
    return _solve(lambda x: beta_cdf(x, alpha=alpha, beta=beta) - p, low=0.0, high=1.0)


def t_two_sided(t: float, *, freedom: float) -> float:
    """P(|T| ≥ |t|) for Student's t: I_{ν/(ν+t²)}(ν/2, ½).

    >>> round(t_two_sided(2.262157, freedom=9), 6), t_two_sided(0.0, freedom=3)
    (0.05, 1.0)
    """
    if not freedom > 0:
        raise Invalid(f"{freedom} degrees of freedom; give more than 0", field="freedom")
    if math.isinf(t):
        return 0.0
    square = t * t
    if square == 0.0:
        return 1.0
    if math.isinf(square):
        return 0.0
    total = freedom + square
    return _lower_and_upper(freedom / total, square / total, freedom / 2.0, 0.5)[0]


def t_cdf(t: float, *, freedom: float) -> float:
    """P(T ≤ t) for Student's t.

    >>> t_cdf(0.0, freedom=5), round(t_cdf(1.833113, freedom=9), 6)
    (0.5, 0.95)
    """
    tail = t_two_sided(t, freedom=freedom) / 2.0
    return tail if t < 0 else 1.0 - tail


@lru_cache(maxsize=1024)  # the figures of the same trades are shown again and again
def t_quantile(p: float, *, freedom: float) -> float:
    """The quantile of Student's t: the t with P(T ≤ t) = p.

    >>> round(t_quantile(0.975, freedom=9), 6), t_quantile(0.5, freedom=9), round(t_quantile(0.05, freedom=1), 6)
    (2.262157, 0.0, -6.313752)
    """
    if not 0.0 < p < 1.0:
        raise Invalid(f"{p} is not a probability between 0 and 1, both excluded", field="p")
    if p == 0.5:
        return 0.0
    tail = 2.0 * min(p, 1.0 - p)
    high = 1.0
    while t_two_sided(high, freedom=freedom) > tail:
        high *= 2.0
    size = _solve(lambda t: tail - t_two_sided(t, freedom=freedom), low=0.0, high=high)
    return size if p > 0.5 else -size


def rate_bounds(hits: int, of: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """One-sided lower and upper confidence bounds of a rate (Clopper & Pearson 1934).

    Each bound alone holds with `confidence`; both together with 2·confidence − 1.

    >>> [round(bound, 4) for bound in rate_bounds(3, 300)]
    [0.0027, 0.0256]
    >>> rate_bounds(0, 10)[0], rate_bounds(10, 10)[1]
    (0.0, 1.0)
    """
    if not 0 <= hits <= of or of == 0:
        raise Invalid(f"{hits} of {of} is not a rate; give 0 to {of} hits, of at least one trial", field="hits")
    lower = beta_quantile(1.0 - confidence, alpha=hits, beta=of - hits + 1) if hits else 0.0
    upper = beta_quantile(confidence, alpha=hits + 1, beta=of - hits) if hits < of else 1.0
    return lower, upper


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Count, mean and sum of squared deviations of a stream of values (Welford 1962)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> "Moments":
        """The moments with one more value.

        >>> moments_of([1.0, 2.0, 3.0, 4.0]).add(5.0)
        Moments(n=5, mean=3.0, squares=10.0)
        """
        n = self.n + 1
        step = value - self.mean
        mean = self.mean + step / n
        return Moments(n=n, mean=mean, squares=self.squares + step * (value - mean))

    def joined(self, other: "Moments") -> "Moments":
        """The moments of both sets of values (Chan, Golub & LeVeque 1979).

        >>> moments_of([1.0, 2.0]).joined(moments_of([3.0, 4.0, 5.0]))
        Moments(n=5, mean=3.0, squares=10.0)
        """
        if not (self.n and other.n):
            return self if self.n else other
        n, difference = self.n + other.n, other.mean - self.mean
        squares = self.squares + other.squares + difference * difference * self.n * other.n / n
        return Moments(n=n, mean=self.mean + difference * other.n / n, squares=squares)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (divisor n − 1); None with fewer than two values.

        >>> moments_of([1.0, 2.0, 3.0]).deviation, moments_of([1.0]).deviation
        (1.0, None)
        """
        return math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else None

    def interval(self, *, level: float = 0.9) -> tuple[float, float] | None:
        """The confidence interval of the mean, mean ± t·s/√n; None with fewer than two values.

        >>> [round(bound, 3) for bound in moments_of([1.0, 2.0, 3.0, 4.0, 5.0]).interval()]
        [1.493, 4.507]
        """
        if self.deviation is None:
            return None
        half_width = t_quantile(0.5 + level / 2.0, freedom=self.n - 1) * self.deviation / math.sqrt(self.n)
        return self.mean - half_width, self.mean + half_width


def moments_of(values: Iterable[float]) -> Moments:
    """The moments of values, bit for bit as if they were added one by one with `add`.

    >>> moments_of([2.0, 4.0])
    Moments(n=2, mean=3.0, squares=2.0)
    """
    n, mean, squares = 0, 0.0, 0.0
    for value in values:
        n += 1
        step = value - mean
        mean += step / n
        squares += step * (value - mean)
    return Moments(n=n, mean=mean, squares=squares)


def _lower_and_upper(x: float, y: float, alpha: float, beta: float) -> tuple[float, float]:
    """I_x(α, β) and its complement; y = 1 − x. The smaller is computed, the larger is 1 minus it."""
    if x * (alpha + beta + 2.0) < alpha + 1.0:
        lower = min(1.0, _prefactor(x, y, alpha, beta) * _continued_fraction(x, alpha, beta) / alpha)
        return lower, 1.0 - lower
    upper = min(1.0, _prefactor(y, x, beta, alpha) * _continued_fraction(y, beta, alpha) / beta)
    return 1.0 - upper, upper


def _prefactor(x: float, y: float, alpha: float, beta: float) -> float:
    """x^α y^β / B(α, β), from deviances and Stirling remainders: differences of large logarithms would cancel."""
    total = alpha + beta
    deviance = _x_log_ratio(alpha, total * x) + _x_log_ratio(beta, total * y)
    remainders = _stirling(total) - _stirling(alpha) - _stirling(beta)
    scale = math.log(alpha) + math.log(beta) - math.log(total)
    return math.exp(-deviance + remainders + 0.5 * scale - HALF_LOG_TWO_PI)


def _x_log_ratio(a: float, b: float) -> float:
    """a · ln(a / b)."""
    relative = (b - a) / a
    return -a * (math.log1p(relative) if abs(relative) < 0.5 else math.log(b) - math.log(a))


def _stirling(z: float) -> float:
    """ln Γ(z) minus Stirling's formula (z − ½) ln z − z + ½ ln 2π."""
    if z < STIRLING_FROM:
        return math.lgamma(z) - ((z - 0.5) * math.log(z) - z + HALF_LOG_TWO_PI)
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w / 1188)))) / z


def _continued_fraction(x: float, alpha: float, beta: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    total, c = alpha + beta, 1.0
    d = 1.0 / _away_from_zero(1.0 - total * x / (alpha + 1.0))
    value = d
    for m in range(1, MAX_TERMS):  # each round adds an even and an odd coefficient of the fraction
        even = m * (beta - m) * x / ((alpha + 2 * m - 1.0) * (alpha + 2 * m))
        d, c = 1.0 / _away_from_zero(1.0 + even * d), _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(alpha + m) * (total + m) * x / ((alpha + 2 * m) * (alpha + 2 * m + 1.0))
        d, c = 1.0 / _away_from_zero(1.0 + odd * d), _away_from_zero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def _solve(rising: Callable[[float], float], *, low: float, high: float) -> float:
    """The zero of a rising function between two points, to the last bits of a double.

    Inverse quadratic interpolation where three points allow it, bisection otherwise (Chandrupatla 1997).
    """
    near, at_near = high, rising(high)
    far, at_far = low, rising(low)
    fraction = 0.5
    while True:
        x = near + fraction * (far - near)
        value = rising(x)
        # Keep two points with the zero between them, and the point that was replaced as the third of the parabola.
        if (value < 0.0) == (at_near < 0.0):
            third, at_third = near, at_near
        else:
            third, at_third, far, at_far = far, at_far, near, at_near
        near, at_near = x, value
        best = near if abs(at_near) < abs(at_far) else far
        # Stop when the bracket is as narrow as neighbouring doubles; never step closer to an end than that.
        finest = 2.0 * math.ulp(best) / abs(far - near)
        if finest > 0.5 or value == 0.0:
            return best
        fraction = min(max(_interpolated(near, far, third, at_near, at_far, at_third), finest), 1.0 - finest)


def _interpolated(a: float, b: float, c: float, at_a: float, at_b: float, at_c: float) -> float:
    """The zero by inverse quadratic interpolation, as a fraction of the way from a to b; ½ where that is unreliable."""
    if at_c == at_b:
        return 0.5
    along, up = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    if not (up * up < along and (1.0 - up) * (1.0 - up) < 1.0 - along):
        return 0.5
    return at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)


def _check_shape(alpha: float, beta: float) -> None:
    if not (0.0 < alpha < math.inf and 0.0 < beta < math.inf):
        raise Invalid(f"Beta({alpha}, {beta}) is not a distribution; give two numbers above 0", field="alpha")


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise Invalid(f"{p} is not a probability; give a number from 0 to 1", field="p")
