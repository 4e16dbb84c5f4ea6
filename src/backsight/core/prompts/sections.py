"""Prompt sections: a heading and as many rows as fit under a token ceiling, plus a count of the rows left out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from backsight.core.decision import Segment
from backsight.core.text.tokens import estimate

CEILINGS: Mapping[str, int] = {
    "protocol": 1_500,
    "portfolio": 350,
    "last_decision": 100,
    "recent_activity": 140,
    "recent_trades": 700,
    "open_positions": 150,
    "what_usually_happens": 400,
    "state": 40,
    "plans": 110,
    "how_you_trade": 90,
    "lessons": 460,
    "rules_and_incidents": 200,
    "decisions_under_review": 120,
}
"""The most tokens of each section, including the empty line after it; `what_usually_happens` is for one symbol."""
FURTHER_SYMBOL = 200
"""The tokens that each further symbol adds to `what_usually_happens`."""
MOST_SYMBOLS = 6
"""The symbols that have a block in `what_usually_happens`; others are named."""
BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a section. If not all rows fit, rows of a lower rank stay; within one rank, earlier rows stay."""

    text: str
    rank: int = 0
    id: str | None = None
    """The episode that the row is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows under a heading, in reading order."""

    name: str
    heading: str
    rows: tuple[Row, ...]
    after: str = ""
    """A closing line that always stays."""
    left_out: int = 0
    """How many rows did not fit."""

    @property
    def text(self) -> str:
        """The section as the agent reads it, without a trailing newline; empty if it has no rows.

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
        """The tokens of the section, including the empty line after it."""
        return estimate(self.text + BETWEEN) if self.text else 0

    @property
    def segment(self) -> Segment:
        return Segment(name=self.name, text=self.text)


def fitted(section: Section, ceiling: int) -> Section:
    """The section with as many rows as fit into a number of tokens; the other rows are counted.

    Rows are taken by rank until one does not fit. If not even the first fits, the section is empty.

    >>> rows = tuple(Row(f"- {n} o'clock and all is well") for n in range(9))
    >>> fitted(Section(name="watch", heading="## Watch", rows=rows), 40).left_out
    7
    """
    if section.tokens <= ceiling:
        return section
    order = sorted(range(len(section.rows)), key=lambda index: (section.rows[index].rank, index))
    shorter = (_with_rows(section, order[:count]) for count in range(_first_guess(section, order, ceiling), -1, -1))
    return next(candidate for candidate in shorter if candidate.tokens <= max(0, ceiling))


def symbols_ceiling(symbols: int) -> int:
    """The most tokens of `what_usually_happens` with blocks for so many symbols.

    >>> symbols_ceiling(1), symbols_ceiling(2), symbols_ceiling(9)
    (400, 600, 1400)
    """
    return CEILINGS["what_usually_happens"] + FURTHER_SYMBOL * (min(max(1, symbols), MOST_SYMBOLS) - 1)


def section_of(
    name: str,
    heading: str,
    rows: Iterable[str | Row],
    *,
    left_out: int = 0,
    after: str = "",
    ceiling: int | None = None,
) -> Section:
    """The named section, cut to its ceiling."""
    lines = tuple(row if isinstance(row, Row) else Row(row) for row in rows)
    whole = Section(name=name, heading=heading, rows=lines, after=after, left_out=left_out)
    return fitted(whole, CEILINGS[name] if ceiling is None else ceiling)


def _first_guess(section: Section, order: list[int], ceiling: int) -> int:
    """How many rows fit if the tokens of the rows simply add up."""
    left = ceiling - estimate(section.heading + "\n")
    for count, index in enumerate(order):
        left -= estimate(section.rows[index].text + "\n")
        if left < 0:
            return count
    return len(order)


def _with_rows(section: Section, indices: list[int]) -> Section:
    rows = tuple(section.rows[index] for index in sorted(indices))
    return replace(section, rows=rows, left_out=section.left_out + len(section.rows) - len(rows))
