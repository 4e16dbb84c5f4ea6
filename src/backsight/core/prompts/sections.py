"""A section: a heading and rows within a ceiling of tokens, and how many rows found no place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from backsight.core.decision import Segment
from backsight.core.text.tokens import estimate

CEILINGS: Mapping[str, int] = {
    "portfolio": 350,
    "last_decision": 100,
    "recent_activity": 140,
    "recent_trades": 700,
    "open_positions": 150,
    "what_usually_happens": 400,
    "plans": 110,
    "lessons": 500,
    "rules_and_incidents": 200,
}
"""Tokens of each section at the most, the empty line after it included."""
BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a section; rows of a lower rank are kept first, and of one rank those above."""

    text: str
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows under a heading, in the order in which they are read."""

    name: str
    heading: str
    rows: tuple[Row, ...]
    after: str = ""
    """A line that stays at the end whatever is left out."""
    left_out: int = 0
    """Rows that found no place."""

    @property
    def text(self) -> str:
        """As the agent reads it, without a newline at its end; empty where nothing has a place.

        >>> print(Section(name="plans", heading="## Plans", rows=(Row("- skip the trade"),), left_out=7).text)
        ## Plans
        - skip the trade
        … 7 more
        """
        if not self.rows:
            return ""
        more = f"… {self.left_out} more" if self.left_out else ""
        return "\n".join(part for part in (self.heading, *(row.text for row in self.rows), more, self.after) if part)

    @property
    def tokens(self) -> int:
        """What it takes with the empty line after it."""
        return estimate(self.text + BETWEEN) if self.text else 0

    @property
    def segment(self) -> Segment:
        return Segment(name=self.name, text=self.text)


def fitted(section: Section, ceiling: int) -> Section:
    """The section with as many of its rows as a number of tokens has place for, the others counted.

    Rows are taken in the order of their rank until one does not fit. Where not even one does, the text is empty.

    >>> rows = tuple(Row(f"- {n} o'clock and all is well") for n in range(9))
    >>> fitted(Section(name="watch", heading="## Watch", rows=rows), 40).left_out
    7
    """
    if section.tokens <= ceiling:
        return section
    order = sorted(range(len(section.rows)), key=lambda place: (section.rows[place].rank, place))
    kept = (_keeping(section, order[:count]) for count in range(_guess(section, order, ceiling), -1, -1))
    return next(each for each in kept if each.tokens <= max(0, ceiling))


def section_of(name: str, heading: str, rows: Iterable[str | Row], *, left_out: int = 0, after: str = "") -> Section:
    """The section of this name within its ceiling."""
    lines = tuple(row if isinstance(row, Row) else Row(row) for row in rows)
    whole = Section(name=name, heading=heading, rows=lines, after=after, left_out=left_out)
    return fitted(whole, CEILINGS[name])


def _guess(section: Section, order: list[int], ceiling: int) -> int:
    """How many rows fit if each takes what it takes alone."""
    left = ceiling - estimate(section.heading + "\n")
    for count, place in enumerate(order):
        left -= estimate(section.rows[place].text + "\n")
        if left < 0:
            return count
    return len(order)


def _keeping(section: Section, places: list[int]) -> Section:
    rows = tuple(section.rows[place] for place in sorted(places))
    return replace(section, rows=rows, left_out=section.left_out + len(section.rows) - len(rows))
