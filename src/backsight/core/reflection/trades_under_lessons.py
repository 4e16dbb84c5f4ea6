"""Closed trades as arrays, each with the revision of the lessons that was shown when the trade was opened."""

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from backsight.core.reflection.patterns import UNITS
from backsight.core.trades.columns import ClosedTradeColumns, Floats, Integers, converted_pnl
from backsight.core.trades.trade import OutcomeUnit

DAY_MICROS = timedelta(days=1) // timedelta(microseconds=1)
NO_UNIT = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradesUnderLessons:
    """An element of each array is a trade; NaN is unknown."""

    hashes: tuple[str | None, ...]
    """The revisions by code; None if no lessons were shown."""
    revision: Integers
    """The code of each trade's revision."""
    day: Integers
    """The UTC day of the close, counted from 1970."""
    unit: Integers
    """The place of the outcome's unit in `UNITS`; −1 without an outcome."""
    outcome: Floats
    pnl: Floats
    """Net, in the account's currency."""
    pnl_usd: Floats
    """Gross, in US dollars."""
    won: Floats
    """1 or 0."""

    def __len__(self) -> int:
        return len(self.day)

    def of_revision(self, lessons_hash: str | None) -> NDArray[np.bool_]:
        """Which trades were opened under a revision."""
        codes = [code for code, each in enumerate(self.hashes) if each == lessons_hash]
        return np.isin(self.revision, codes)

    @property
    def most_common_unit(self) -> OutcomeUnit | None:
        """The unit of most outcomes, R before daily ATR before percent on a tie; None without outcomes."""
        counts = np.bincount(self.unit + 1, minlength=len(UNITS) + 1)[1:]
        return UNITS[int(counts.argmax())] if counts.any() else None

    @property
    def revisions(self) -> list[str]:
        """The revisions in the order of their first days, and of their hashes if they have the same first day."""
        first = np.full(len(self.hashes), np.iinfo(np.int64).max)
        np.minimum.at(first, self.revision, self.day)
        traded = set(self.revision.tolist())
        dated = (
            (int(first[code]), each) for code, each in enumerate(self.hashes) if each is not None and code in traded
        )
        return list(dict.fromkeys(each for _, each in sorted(dated)))


def trades_under_lessons(columns: ClosedTradeColumns, rows: Integers) -> TradesUnderLessons:
    """Some closed trades with the lessons that were shown when they were opened."""
    groups, pnl = columns.group[rows], columns.pnl[rows]
    units = [NO_UNIT if each.outcome_unit is None else UNITS.index(each.outcome_unit) for each in columns.groups]
    return TradesUnderLessons(
        hashes=tuple(group.lessons_hash for group in columns.groups),
        revision=groups.astype(np.int64),
        day=columns.closed_at[rows] // DAY_MICROS,
        unit=np.array(units, np.int64)[groups],
        outcome=columns.outcome[rows],
        pnl=converted_pnl(columns, rows),
        pnl_usd=columns.realized_pnl_usd[rows],
        won=np.where(np.isnan(pnl), np.nan, pnl > 0.0),
    )
