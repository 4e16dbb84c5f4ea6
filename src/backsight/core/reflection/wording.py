"""Patterns in words. Lessons, prompts for models and citation checks all use this one spelling of the numbers."""

from backsight.core.numbers import half_width, signed, with_margin
from backsight.core.reflection.patterns import Pattern
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import OutcomeUnit, unit_suffix, unknown_outcomes

PERCENT = 100.0
UNPROVEN = "(unproven)"
"""The first word of a lesson that chance may explain."""


def bullet_text(pattern: Pattern) -> str:
    """A pattern as the text of a lesson: its mean, its sample and the rest, in numbers."""
    return f"{pattern.label}: {_headline(pattern)}"


def facts(pattern: Pattern) -> str:
    """All that a model is given about a pattern, its key first. The model may use only these numbers."""
    parts = [f"[{pattern.key}] {bullet_text(pattern)}", _difference(pattern)]
    if pattern.measure == "outcome" and pattern.captured is not None and pattern.rest_captured is not None:
        parts.append(f"{_percent(pattern.captured)} of the best price kept against {_percent(pattern.rest_captured)}")
    if pattern.hold_seconds is not None and pattern.rest_hold_seconds is not None:
        parts.append(f"held {duration(pattern.hold_seconds)} against {duration(pattern.rest_hold_seconds)}")
    return "; ".join(parts)


def amount(value: float, unit: OutcomeUnit) -> str:
    """An outcome with sign and unit.

    >>> amount(-0.7, "R"), amount(0.0123, "pct"), amount(0.25, "vol")
    ('-0.70R', '+1.23%', '+0.25 daily ATR')
    """
    return f"{_number(value, unit)}{unit_suffix(unit)}"


def duration(seconds: float) -> str:
    """A holding time in minutes, hours or days.

    >>> duration(2100.0), duration(9000.0), duration(259_200.0)
    ('35 min', '2.5 h', '3.0 days')
    """
    if seconds < 7_200.0:
        return f"{seconds / 60.0:.0f} min"
    return f"{seconds / 3_600.0:.1f} h" if seconds < 172_800.0 else f"{seconds / 86_400.0:.1f} days"


def _headline(pattern: Pattern) -> str:
    sample = f"over {_trades(pattern)} on {count_of(pattern.days, 'day')}"
    if pattern.unit is None:
        margin = None if pattern.half_width is None else PERCENT * pattern.half_width
        kept_share = with_margin(f"{PERCENT * pattern.mean:.0f}", margin, suffix="%", digits=0)
        capture = f"{kept_share} of the best price kept {sample}"
        return f"{capture}, against {_percent(pattern.rest_mean)} elsewhere"
    margin = None if pattern.half_width is None else _scale(pattern.unit) * pattern.half_width
    mean = with_margin(_number(pattern.mean, pattern.unit), margin, suffix=unit_suffix(pattern.unit))
    text = f"{mean} {sample}, against {amount(pattern.rest_mean, pattern.unit)} elsewhere"
    if pattern.win_rate is None or pattern.rest_win_rate is None:
        return text
    return f"{text}; {_percent(pattern.win_rate)} won against {_percent(pattern.rest_win_rate)}"


def _trades(pattern: Pattern) -> str:
    """The number of trades of a mean, and of how many where their outcome is not known for all."""
    if pattern.unit is None or not pattern.unknown:
        return f"{pattern.n} trades"
    return f"{pattern.n} of {pattern.n + pattern.unknown} trades ({unknown_outcomes(pattern.unknown, pattern.unit)})"


def _difference(pattern: Pattern) -> str:
    scale = PERCENT if pattern.unit is None else _scale(pattern.unit)
    digits, suffix = (0, "%") if pattern.unit is None else (2, unit_suffix(pattern.unit))
    margin = half_width(pattern.difference_interval, scale=scale)
    difference = signed(scale * pattern.difference, digits)
    return f"difference {with_margin(difference, margin, suffix=suffix, digits=digits)}"


def _number(value: float, unit: OutcomeUnit) -> str:
    return signed(_scale(unit) * value, 2)


def _percent(share: float) -> str:
    return f"{PERCENT * share:.0f}%"


def _scale(unit: OutcomeUnit) -> float:
    return PERCENT if unit == "pct" else 1.0
