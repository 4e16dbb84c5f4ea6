"""The watch list: the strongest patterns that are not proven yet, and about how many more trades would prove them.

A watched pattern is information for the owner. It writes no lesson and proposes no plan or belief.
"""

import math
from collections.abc import Iterable, Mapping

from backsight.core.reflection.alpha_spending import next_test
from backsight.core.reflection.patterns import DIMENSIONS, WINDOW, Pattern, WatchedPattern
from backsight.core.reflection.wording import UNPROVEN, bullet_text

MAX_WATCHED = 5
MAX_P = 0.5
"""A group that chance equals in more than half of the cases is not worth watching."""
SAME_FACT = 0.7
"""Two groups whose memberships correlate by more than this, in either direction, are one fact."""
MIN_RUNS = 10
"""As in `shift_test`, which is not imported here because it needs NumPy."""


def watch_list(
    unproven: Iterable[Pattern], *, p_values: Mapping[str, float], strengths: Mapping[str, float], closed: int
) -> tuple[WatchedPattern, ...]:
    """The strongest unproven patterns, one for each fact.

    `strengths` has the groups that could be patterns, with their test statistic as a share of the critical value;
    `closed` is the number of all trades closed by then.
    """
    near = [each for each in unproven if each.key in strengths and p_values[each.key] <= MAX_P]
    watched = list[Pattern]()
    for pattern in sorted(near, key=lambda each: (-round(strengths[each.key], 9), *_tie_break(each))):
        if len(watched) < MAX_WATCHED and not any(_same_fact(pattern, other) for other in watched):
            watched.append(pattern)
    return tuple(
        _watched(
            pattern,
            p=p_values[pattern.key],
            more=more_trades(pattern, strength=strengths[pattern.key], closed=closed),
        )
        for pattern in watched
    )


def more_trades(pattern: Pattern, *, strength: float, closed: int) -> int | None:
    """About how many more closed trades prove a pattern, if its effect stays as it is; None beyond the window.

    The test statistic grows with the square root of the number of trades, the interval shrinks with it, and the number
    of separate runs grows in proportion. New patterns are tested for twice in each doubling of closed trades, so
    the answer is the distance to a test.

    >>> from backsight.testing.reflection import a_pattern
    >>> weak = a_pattern(n=30, rest_n=90, interval=(-0.9, -0.1), mean=-0.5, difference=-0.6)
    >>> more_trades(weak, strength=0.8, closed=120), more_trades(weak, strength=0.4, closed=120)
    (80, None)
    """
    analysed = pattern.n + pattern.rest_n
    half_width = pattern.half_width or 0.0
    growth = max(1.0, strength**-2, (half_width / abs(pattern.difference)) ** 2, MIN_RUNS / max(pattern.runs, 1))
    if growth * analysed > WINDOW:
        return None
    needed = closed + math.ceil((growth - 1.0) * analysed)
    return next_test(max(closed, needed - 1), tested_at=max(closed, needed - 1)) - closed


def _tie_break(pattern: Pattern) -> tuple[int, int, str]:
    """The order of patterns of the same strength: the most specific dimension, then the smaller group."""
    return DIMENSIONS.index(pattern.dimension), pattern.n, pattern.value


def _same_fact(pattern: Pattern, other: Pattern) -> bool:
    """Whether two groups in one measure have nearly the same trades, or nearly the opposite ones."""
    if pattern.measure != other.measure:
        return False
    total = pattern.n + pattern.rest_n
    both = len(set(pattern.trade_ids) & set(other.trade_ids))
    spread = math.sqrt(pattern.n * pattern.rest_n * other.n * other.rest_n)
    return abs(both * total - pattern.n * other.n) > SAME_FACT * spread


def _watched(pattern: Pattern, *, p: float, more: int | None) -> WatchedPattern:
    text = f"{UNPROVEN} {bullet_text(pattern)}"
    return WatchedPattern(
        key=pattern.key,
        slot=pattern.slot,
        label=pattern.label,
        measure=pattern.measure,
        unit=pattern.unit,
        n=pattern.n,
        days=pattern.days,
        mean=pattern.mean,
        interval=pattern.interval,
        rest_n=pattern.rest_n,
        rest_mean=pattern.rest_mean,
        difference=pattern.difference,
        difference_interval=pattern.difference_interval,
        p=p,
        more_trades=more,
        text=text,
        sentence=_sentence(text, p=p, more=more),
    )


def _sentence(text: str, *, p: float, more: int | None) -> str:
    need = (
        f"more than the {WINDOW} trades that are analysed would be needed to prove it"
        if more is None
        else f"about {more} more closed trades would prove it, if the effect stays as it is"
    )
    chance = "below 0.01" if p < 0.01 else f"{p:.2f}"
    return f"{text}; p = {chance} after correction for all comparisons; {need}"
