"""A caller's whole budget: when it is lower than what there is to say, sections give way in a fixed order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backsight.core.decision import Cut, Segment
from backsight.core.prompts.sections import BETWEEN, Section, fitted
from backsight.core.text.tokens import estimate

GIVES_WAY = (
    "decisions_under_review",
    "what_usually_happens",
    "recent_trades",
    "lessons",
    "rules_and_incidents",
    "plans",
    "last_decision",
    "recent_activity",
    "open_positions",
)
"""The first gives way first, down to its last row, before the next one does. All others stay whole: what the agent is
and may do, its account, and the market."""

Part = Section | Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted:
    """What is shown within a budget, and what had to be cut for it."""

    segments: tuple[Segment, ...]
    """In the order given; empty ones are left out."""
    tokens: int
    """An estimate that is never too low."""
    cuts: tuple[Cut, ...]
    """In the order in which they gave way."""
    fits: bool
    """Whether it is within the budget; what never gives way may be more."""

    @property
    def text(self) -> str:
        return BETWEEN.join(segment.text for segment in self.segments)


def within(parts: Sequence[Part], *, budget: int | None = None) -> Budgeted:
    """The parts in their order, cut as far as a budget asks for.

    >>> from backsight.core.prompts.sections import Row
    >>> trades = Section(name="recent_trades", heading="## Trades", rows=(Row("- one"), Row("- two"), Row("- three")))
    >>> cut = within([Segment(name="header", text="You trade."), trades], budget=14)
    >>> print(cut.text)
    You trade.
    <BLANKLINE>
    ## Trades
    - one
    … 2 more
    >>> [(each.name, each.rows) for each in cut.cuts]
    [('recent_trades', 2)]
    """
    kept, cuts = list(parts), list[Cut]()
    total = tokens_of(kept)
    for place in _order(parts) if budget is not None else ():
        if budget is None or total <= budget:
            break
        before, had = kept[place], _tokens(kept[place])
        kept[place] = _less(before, max(0, had - (total - budget)))
        total -= had - _tokens(kept[place])
        cuts.append(_cut(before, kept[place]))
    segments = tuple(segment for segment in map(_segment, kept) if segment.text)
    return Budgeted(segments=segments, tokens=total, cuts=tuple(cuts), fits=budget is None or total <= budget)


def tokens_of(parts: Iterable[Part]) -> int:
    """What the parts take together, each with the empty line after it."""
    return sum(map(_tokens, parts))


def _order(parts: Sequence[Part]) -> list[int]:
    yielding = [place for place, part in enumerate(parts) if part.name in GIVES_WAY and part.text]
    return sorted(yielding, key=lambda place: GIVES_WAY.index(parts[place].name))


def _less(part: Part, ceiling: int) -> Part:
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
