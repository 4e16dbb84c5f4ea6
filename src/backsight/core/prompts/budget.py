"""Fit the whole prompt into the caller's token budget by shortening sections in a fixed order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backsight.core.decision import Cut, Segment
from backsight.core.prompts.sections import BETWEEN, Section, fitted
from backsight.core.text.tokens import estimate

CUT_ORDER = (
    "decisions_under_review",
    "what_usually_happens",
    "how_you_trade",
    "recent_trades",
    "lessons",
    "rules_and_incidents",
    "plans",
    "last_decision",
    "state",
    "recent_activity",
    "open_positions",
)
"""Sections in the order in which they are cut: the first is cut down to nothing before the second is touched.

Sections that are not listed are never cut: identity, protocol, leash, strategy, account and the caller's market
sections."""

Part = Section | Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPrompt:
    """The segments that fit into a budget, and the cuts that this took."""

    segments: tuple[Segment, ...]
    """In the order given, without empty segments."""
    tokens: int
    """An upper bound of the token count."""
    cuts: tuple[Cut, ...]
    """In the order in which they were made."""
    fits: bool
    """False if the parts that are never cut exceed the budget."""

    @property
    def text(self) -> str:
        return BETWEEN.join(segment.text for segment in self.segments)


def fit_to_budget(parts: Sequence[Part], *, budget: int | None = None) -> FittedPrompt:
    """The parts in their order, cut until they fit; without a budget nothing is cut.

    >>> from backsight.core.prompts.sections import Row
    >>> trades = Section(name="recent_trades", heading="## Trades", rows=(Row("- one"), Row("- two"), Row("- three")))
    >>> prompt = fit_to_budget([Segment(name="header", text="You trade."), trades], budget=14)
    >>> print(prompt.text)
    You trade.
    <BLANKLINE>
    ## Trades
    - one
    … 2 more
    >>> [(each.name, each.rows) for each in prompt.cuts]
    [('recent_trades', 2)]
    """
    fitted_parts, cuts = list(parts), list[Cut]()
    total = tokens_of(parts)
    for position in _cut_positions(parts) if budget is not None else ():
        if budget is None or total <= budget:
            break
        whole = parts[position]
        tokens = _tokens(whole)
        shorter = _shortened(whole, max(0, tokens - (total - budget)))
        total -= tokens - _tokens(shorter)
        fitted_parts[position] = shorter
        cuts.append(_cut(whole, shorter))
    segments = tuple(segment for segment in map(_segment, fitted_parts) if segment.text)
    return FittedPrompt(segments=segments, tokens=total, cuts=tuple(cuts), fits=budget is None or total <= budget)


def tokens_of(parts: Iterable[Part]) -> int:
    """The tokens of all parts together, each with the empty line after it."""
    return sum(map(_tokens, parts))


def _cut_positions(parts: Sequence[Part]) -> list[int]:
    """The positions of the parts that may be cut, in the order in which they are cut."""
    positions = [position for position, part in enumerate(parts) if part.name in CUT_ORDER and part.text]
    return sorted(positions, key=lambda position: CUT_ORDER.index(parts[position].name))


def _shortened(part: Part, ceiling: int) -> Part:
    return fitted(part, ceiling) if isinstance(part, Section) else Segment(name=part.name, text="")


def _cut(before: Part, after: Part) -> Cut:
    rows = None
    if isinstance(before, Section) and isinstance(after, Section):
        rows = len(before.rows) - len(after.rows)
    return Cut(name=before.name, rows=rows, whole=not after.text, tokens=_tokens(before) - _tokens(after))


def _tokens(part: Part) -> int:
    return estimate(part.text + BETWEEN) if part.text else 0


def _segment(part: Part) -> Segment:
    return part.segment if isinstance(part, Section) else part
