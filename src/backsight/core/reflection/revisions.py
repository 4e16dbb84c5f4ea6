"""When a lessons note gets a new revision: when a pattern enters or leaves, or when its effect has moved.

The text of a note, numbers included, stays as adopted until then. So every revision is in force for many trades, and
trades can be compared by the revision that they were opened under.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backsight.core.reflection.patterns import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedPattern:
    """A pattern behind a note, with its effect as it was when the note was written."""

    key: str
    label: str
    difference: float
    """The effect: mean of the group minus mean of the rest."""
    interval: tuple[float, float] | None
    """90% confidence interval of the effect."""


def adopted_patterns(patterns: Iterable[Pattern]) -> tuple[AdoptedPattern, ...]:
    """Patterns as a note that is written now adopts them."""
    return tuple(
        AdoptedPattern(key=each.key, label=each.label, difference=each.difference, interval=each.difference_interval)
        for each in patterns
    )


def revision_reasons(adopted: Sequence[AdoptedPattern], patterns: Sequence[Pattern]) -> list[str]:
    """Why patterns need another revision than the one that adopted others; empty if the revision stays.

    >>> from backsight.testing.reflection import a_pattern
    >>> chop = a_pattern(difference=-0.8, difference_interval=(-1.0, -0.6))
    >>> adopted = adopted_patterns([chop])
    >>> revision_reasons(adopted, [a_pattern(difference=-0.61)]), revision_reasons(adopted, [])
    ([], ['chop_hivol left'])
    >>> revision_reasons(adopted, [a_pattern(difference=-0.59), a_pattern(value="asia", label="the Asian session")])
    ['the Asian session entered', 'chop_hivol moved']
    """
    before, now = {each.key: each for each in adopted}, {each.key: each for each in patterns}
    return [
        *(f"{each.label} entered" for each in patterns if each.key not in before),
        *(f"{each.label} left" for each in adopted if each.key not in now),
        *(f"{each.label} moved" for each in adopted if each.key in now and _has_moved(each, now[each.key])),
    ]


def _has_moved(adopted: AdoptedPattern, pattern: Pattern) -> bool:
    """Whether the effect has moved by more than half the width of its interval."""
    if adopted.interval is None:
        return pattern.difference_interval is not None
    low, high = adopted.interval
    return abs(pattern.difference - adopted.difference) > (high - low) / 2.0
