"""The rule on advice: what trades earn decides whether to trade less or more in a domain, never how often they win.

A trend strategy wins three of ten of its best trades, and a strategy that wins nine of ten can lose money. Every plan
and every proposal that memory makes follows from `advise`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from backsight.core.numbers import signed
from backsight.core.trades.trade import OutcomeUnit, unit_suffix, unknown_outcomes

Advice = Literal["trade_less", "trade_more"]

_LESS = re.compile(
    r"\b(avoid|skip|shun|stay out|stay away|stay flat|sit out|do not trade|don't trade|never trade|stop trading|"
    r"trade less|fewer|smaller|reduce|halve|shrink|cut (the )?size|stand aside|no trades)",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(favou?r|prefer|prioriti[sz]e|focus on|concentrate on|trade more|larger|bigger|increase|double|press|add size)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainOutcome:
    """The mean outcome of the trades in a domain, and of the strategy's other trades."""

    unit: OutcomeUnit
    n: int
    """The number of trades whose outcome is known in the unit."""
    mean: float
    interval: tuple[float, float] | None
    """The 90% confidence interval of the mean, clustered by day; None if all trades closed on one day."""
    elsewhere: float | None
    """The mean outcome of the strategy's other trades; None if there are none."""
    unknown: int = 0
    """The number of further trades in the domain, whose outcome is not known in the unit."""
    biased: str | None = None
    """Why the trades with a known outcome do not speak for the others, in one clause; None if they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRange:
    """The smallest and the largest size that `position_size` recommends in the contexts of a domain."""

    smallest: float
    """0 where a context has no recommendation or no edge: there is nothing to trade more for."""
    largest: float
    """0 where no context has a size: a context without a recommendation does not speak against trading less."""


def size_range(recommended: Iterable[float | None]) -> SizeRange:
    """The range of some recommended shares of equity; None is a context without a recommendation.

    >>> size_range([0.01, None, 0.02]), size_range([None])
    (SizeRange(smallest=0.0, largest=0.02), SizeRange(smallest=0.0, largest=0.0))
    """
    shares = [share or 0.0 for share in recommended]
    return SizeRange(smallest=min(shares, default=0.0), largest=max(shares, default=0.0))


def advise(outcome: DomainOutcome, sizes: SizeRange | None) -> Advice | None:
    """Whether to trade less or more in a domain; None if the outcomes do not support either.

    Less needs a 90% interval of the mean outcome below 0, and no context of the domain in which `position_size` would
    risk anything. More needs an interval above 0 and above the mean elsewhere, and no context without a size. Without
    sizes there is no advice.

    >>> trend = DomainOutcome(unit="R", n=60, mean=0.8, interval=(0.2, 1.4), elsewhere=0.04)
    >>> advise(trend, SizeRange(smallest=0.012, largest=0.019))
    'trade_more'
    >>> ranges = DomainOutcome(unit="R", n=60, mean=-0.22, interval=(-0.4, -0.04), elsewhere=0.1)
    >>> advise(ranges, SizeRange(smallest=0.0, largest=0.0))
    'trade_less'
    >>> advise(ranges, SizeRange(smallest=0.0, largest=0.004)) is None
    True
    """
    return None if objection(outcome, sizes) else direction_of(outcome)


def direction_of(outcome: DomainOutcome) -> Advice | None:
    """What the mean outcome alone supports, before the recommended sizes are looked at."""
    if outcome.interval is None:
        return None
    low, high = outcome.interval
    if high < 0.0:
        return "trade_less"
    if low > 0.0 and outcome.elsewhere is not None and low > outcome.elsewhere:
        return "trade_more"
    return None


def objection(outcome: DomainOutcome, sizes: SizeRange | None) -> str | None:
    """Why there is no advice for a domain, in one clause; None if there is advice.

    >>> even = DomainOutcome(unit="R", n=60, mean=-0.1, interval=(-0.4, 0.2), elsewhere=0.1)
    >>> objection(even, SizeRange(smallest=0.0, largest=0.0))
    'the mean outcome there is -0.10R (90%: -0.40 to +0.20R, n=60), neither surely below 0 nor surely the better'
    """
    direction = direction_of(outcome)
    if outcome.biased is not None:
        return f"{outcome.biased}: the mean outcome there is not that of all trades"
    if direction is None or sizes is None:
        mean = outcome_text(outcome.mean, outcome.interval, unit=outcome.unit, n=outcome.n, unknown=outcome.unknown)
        return f"the mean outcome there is {mean}, neither surely below 0 nor surely the better"
    if direction == "trade_less" and sizes.largest > 0.0:
        return f"position_size recommends up to {sizes.largest:.1%} of equity there"
    if direction == "trade_more" and sizes.smallest <= 0.0:
        return "position_size recommends nothing in part of it"
    return None


def outcome_text(
    mean: float,
    interval: tuple[float, float] | None,
    *,
    unit: OutcomeUnit,
    n: int | None = None,
    unknown: int = 0,
) -> str:
    """A mean outcome in words, with its interval and its sample size where they are given.

    `unknown` is the number of further trades whose outcome is not known in the unit.

    >>> outcome_text(0.8, (0.2, 1.4), unit="R", n=40), outcome_text(-0.0123, None, unit="pct")
    ('+0.80R (90%: +0.20 to +1.40R, n=40)', '-1.23%')
    >>> outcome_text(0.8, None, unit="R", n=40, unknown=12)
    '+0.80R (n=40 of 52, R is unknown for 12)'
    """
    scale, suffix = 100.0 if unit == "pct" else 1.0, unit_suffix(unit)
    doubt = []
    if interval is not None:
        low, high = (signed(scale * end, 2) for end in interval)
        doubt.append(f"90%: {low} to {high}{suffix}")
    if n is not None and unknown:
        doubt.append(f"n={n} of {n + unknown}, {unknown_outcomes(unknown, unit)}")
    elif n is not None:
        doubt.append(f"n={n}")
    return f"{signed(scale * mean, 2)}{suffix}" + (f" ({', '.join(doubt)})" if doubt else "")


def advice_in(text: str) -> Advice | None:
    """The advice that a sentence gives by its words; a sentence that gives both kinds counts as advice to trade less.

    >>> [advice_in(text) for text in ("Skip ranging markets", "Favour London", "ranging markets: -0.70R")]
    ['trade_less', 'trade_more', None]
    """
    if _LESS.search(text):
        return "trade_less"
    return "trade_more" if _MORE.search(text) else None
