"""What imports share: rows that are left out, counted by their reason, and how a dry run ends."""

from dataclasses import dataclass, field
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.core.portfolio import Mode
from backsight.core.text.counts import count_of
from backsight.importers.files import RowUnit
from backsight.importers.formats import FileFormat

EXAMPLES = 3
"""Rows that are named for each reason."""
REASONS = 40
"""Reasons that are told apart; rows with further ones are counted together."""
SAMPLE = 5
"""Rows that are shown as they are understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRows:
    """Rows of a file that are not imported, and why."""

    reason: str
    rows: int
    broken: bool
    """Whether they cannot be read, rather than being of no use."""
    first: tuple[str, ...]
    """The first three of them."""


@dataclass(slots=True, kw_only=True)
class LeftOutCount:
    """The rows that are left out so far."""

    unit: RowUnit = "line"
    """What a row is called in messages."""
    _rows: dict[tuple[str, bool], tuple[int, list[str]]] = field(default_factory=dict)

    def add(self, number: int, reason: str, *, broken: bool, detail: str = "") -> None:
        """Count a row; `detail` says more than the reason, which is the same for many rows."""
        key = reason, broken
        if key not in self._rows and len(self._rows) >= REASONS:
            key = "other reasons", broken
        count, first = self._rows.get(key, (0, []))
        if len(first) < EXAMPLES:
            first.append(f"{self.unit} {number}: {detail or reason}")
        self._rows[key] = count + 1, first

    @property
    def rows(self) -> tuple[LeftOutRows, ...]:
        """The rows by reason, in the order in which the reasons were met."""
        return tuple(
            LeftOutRows(reason=reason, rows=count, broken=broken, first=tuple(first))
            for (reason, broken), (count, first) in self._rows.items()
        )

    @property
    def total(self) -> int:
        return sum(each.rows for each in self.rows)

    def refuse_broken(self, file: Path) -> None:
        """Refuse a file with rows that cannot be read."""
        broken = [each for each in self.rows if each.broken]
        if not broken:
            return
        total, examples = sum(each.rows for each in broken), "; ".join(broken[0].first)
        message = f"{file}: {count_of(total, 'row')} cannot be imported ({examples})"
        raise Invalid(f"{message}; correct the file, or set skip_broken to leave such rows out", field="path")


class TakenBackError(Exception):
    """Ends the transaction of a dry run, which then has written nothing."""


def mode_of_file(chosen: FileFormat, mode: Mode | None) -> Mode:
    """The given mode, else that of every file of a format; it is never assumed."""
    known = mode or chosen.mode
    if known is None:
        message = "the file does not say whether its trades are of real money"
        raise Invalid(f"{message}; give live, paper or sim", field="mode")
    return known
