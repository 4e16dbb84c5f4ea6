"""Which columns of a table fit into a width: columns give way, so that no word is broken and no row becomes a tower."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backsight.answers.brief import Column

GAP = 2
"""Spaces between two columns."""
WRAPPED_FROM = 24
"""A column of text this wide may be wrapped at its spaces."""
NARROWEST = 24
"""The least width of a column that is wrapped."""
SAME_IN = 2
"""In a table of at least so many rows, a column with one value can be stated once, above the table."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The columns of a table that are shown, by index, those that are stated once, and those that are left out."""

    shown: tuple[int, ...]
    stated: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Fit:
    """Choose the columns that fit into a width.

    First the columns with one value in all rows are stated once, then optional columns go, then others, the last first;
    the first column and the id stay.

    >>> columns = [Column("day", "day", False), Column("symbol", "symbol", False), Column("id", "id", False)]
    >>> fit(columns, [["monday", "XAUUSD", "2bc9"], ["friday", "XAUUSD", "51fe"]], 12)
    Fit(shown=(0, 2), stated=(1,), left_out=())

    A text keeps a readable width before others stay:

    >>> columns = [Column("day", "day", False), Column("symbol", "symbol", False), Column("why", "why", False)]
    >>> fit(columns, [["monday", "XAUUSD", "broke out of the range of a day"], ["friday", "XAUUSD", "no break"]], 36)
    Fit(shown=(0, 2), stated=(1,), left_out=())
    """
    widths = [least_width(column, [row[index] for row in rows]) for index, column in enumerate(columns)]
    shown = list(range(len(columns)))

    def is_too_wide() -> bool:
        return sum(widths[index] + GAP for index in shown) - GAP > width

    def without(removed: Collection[int]) -> list[int]:
        return [index for index in shown if index not in removed]

    stated: list[int] = []
    if is_too_wide() and len(rows) >= SAME_IN:
        stated = [index for index in shown if not stays(columns, index) and len({row[index] for row in rows}) == 1]
        shown = without(stated)
    left_out: list[int] = []
    removable = [index for index in reversed(shown) if not stays(columns, index)]
    for index in sorted(removable, key=lambda each: not columns[each].optional):
        if is_too_wide():
            left_out.append(index)
            shown = without([index])
    return Fit(tuple(shown), tuple(stated), tuple(sorted(left_out)))


def stays(columns: Sequence[Column], index: int) -> bool:
    """Whether a column is shown in every width: it says what the row is, or how to name it in another command."""
    return index == 0 or columns[index].heading == "id"


def least_width(column: Column, cells: Sequence[str]) -> int:
    """The least width in which a column is readable: whole, or if it is long text, wrapped at its spaces."""
    whole = max(map(len, [column.heading, *cells]))
    if not may_wrap(column, cells):
        return whole
    return max(NARROWEST, max((len(word) for cell in cells for word in cell.split()), default=0))


def may_wrap(column: Column, cells: Sequence[str]) -> bool:
    """Whether the cells of a column are long text."""
    return not column.right and column.heading != "id" and max(map(len, cells), default=0) >= WRAPPED_FROM
