"""Selecting rows of the columns by a condition, block by block.

The summary of a block often decides about all of its rows, so that few blocks are read row by row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from backsight.core.instants import Horizon
from backsight.core.portfolio import Mode
from backsight.core.recall.arrays.columns import Booleans, Columns, GroupTable, Integers, RowSelection, micros

LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """The condition for a row: its group, what was known at the horizon, and optional limits on its end and tags."""

    groups: Booleans
    """By group code: which groups are selected."""
    horizon: Horizon
    ended_from: Integers | None = None
    """By group code: the first instant of the end."""
    ended_before: int | None = None
    tags: Booleans | None = None
    """By code of tags: which tags are selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows that satisfy a condition."""

    columns: Columns
    table: GroupTable
    groups: Booleans
    """Which groups are selected."""
    whole: Booleans
    """The blocks in which every row of a selected group is selected."""
    picked: Mapping[int, Integers]
    """The selected rows of the other blocks, as far as there are any."""
    counts: Integers
    """The number of selected rows by block."""

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    def rows(self, block: int) -> RowSelection:
        """The selected rows of a block."""
        if block in self.picked:
            return self.picked[block]
        start = block * self.columns.blocks.size
        end = min(start + self.columns.blocks.size, len(self.columns.known_at))
        if self.counts[block] == end - start:
            return slice(start, end)
        return np.flatnonzero(self.groups.take(self.columns.group[start:end])) + start

    def all_rows(self) -> Integers:
        """All selected rows."""
        blocks = [self.rows(block) for block in np.flatnonzero(self.counts).tolist()]
        rows = [np.arange(each.start, each.stop) if isinstance(each, slice) else each for each in blocks]
        return np.concatenate([np.empty(0, np.int64), *rows])

    def group_counts(self) -> Integers:
        """The number of selected rows by group."""
        blocks = self.columns.blocks
        parts = self.whole_parts
        counts = np.bincount(blocks.part_group[parts], blocks.part_count[parts], minlength=len(self.table))
        counts = counts.astype(np.int64)
        for rows in self.picked.values():
            counts += np.bincount(self.columns.group[rows], minlength=len(self.table))
        return counts

    @property
    def whole_parts(self) -> Booleans:
        """The parts of blocks that are selected as a whole, so that their sums in the block summaries count."""
        blocks = self.columns.blocks
        return self.whole[blocks.part_block] & self.groups[blocks.part_group]


def known_rows(columns: Columns, as_of: datetime) -> int:
    """The number of rows known as of an instant; they are the first rows."""
    return int(np.searchsorted(columns.known_at, micros(as_of), "right"))


def select_rows(columns: Columns, table: GroupTable, condition: RowCondition) -> Selection:
    """Select the rows that satisfy a condition."""
    blocks, stop = columns.blocks, known_rows(columns, condition.horizon.as_of)
    whole, empty = _coverage(columns, condition, stop)
    # Blocks without a row of the selected groups are skipped; in whole blocks the group decides alone.
    parts = condition.groups[blocks.part_group]
    counts = np.bincount(blocks.part_block[parts], blocks.part_count[parts], minlength=len(blocks)).astype(np.int64)
    unclear = np.flatnonzero(~whole & ~empty & (counts > 0)).tolist()
    picked = {block: _pick(columns, condition, block, stop) for block in unclear}
    counts[~whole] = 0
    for block, rows in picked.items():
        counts[block] = len(rows)
    return Selection(columns=columns, table=table, groups=condition.groups, whole=whole, picked=picked, counts=counts)


def _coverage(columns: Columns, condition: RowCondition, stop: int) -> tuple[Booleans, Booleans]:
    """For each block: whether all of its rows satisfy the condition, groups aside, and whether none does."""
    blocks, seen_at = columns.blocks, condition.horizon.seen_at
    first = np.arange(len(blocks)) * blocks.size
    whole, empty = np.minimum(first + blocks.size, len(columns.known_at)) <= stop, first >= stop
    if condition.ended_from is not None:
        whole &= blocks.ended_range[:, 0] >= condition.ended_from.max()
        empty |= blocks.ended_range[:, 1] < condition.ended_from.min()
    if condition.ended_before is not None:
        whole &= blocks.ended_range[:, 1] < condition.ended_before
        empty |= blocks.ended_range[:, 0] >= condition.ended_before
    if seen_at is not None:
        whole &= blocks.recorded_range[:, 1] <= micros(seen_at)
        empty |= blocks.recorded_range[:, 0] > micros(seen_at)
    return whole & (condition.tags is None), empty


def _pick(columns: Columns, condition: RowCondition, block: int, stop: int) -> Integers:
    """The rows of a block that satisfy the condition, checked row by row."""
    start = block * columns.blocks.size
    rows = slice(start, min(start + columns.blocks.size, stop))
    groups = columns.group[rows]
    matches = condition.groups.take(groups)
    if condition.ended_from is not None:
        matches &= columns.ended_at[rows] >= condition.ended_from.take(groups)
    if condition.ended_before is not None:
        matches &= columns.ended_at[rows] < condition.ended_before
    if condition.horizon.seen_at is not None:
        matches &= columns.recorded_at[rows] <= micros(condition.horizon.seen_at)
    if condition.tags is not None:
        matches &= condition.tags.take(columns.tagged[rows])
    return np.flatnonzero(matches) + start


# Closed trades


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeFilter:
    """Whose closed trades count as evidence; None matches every trade."""

    strategy_name: str | None = None
    mode: Mode | None = None
    with_calls: bool = False
    """Whether calls and cards with an outcome count as if they were trades."""
    falling_since: Mapping[tuple[str, str | None], datetime] = field(default_factory=dict)
    """Since when the results of a (strategy, symbol) have been falling, or, without a symbol, of a strategy as a whole:
    its trades that ended before are left out."""


def select_trades(columns: Columns, trade_filter: TradeFilter, horizon: Horizon) -> tuple[Selection, int]:
    """Select closed trades, archived or not, and count those left out because they ended before a decline."""
    table = columns.vocabulary.table()
    groups = table.trades_with(strategy_name=trade_filter.strategy_name, mode=trade_filter.mode)
    if trade_filter.with_calls:
        groups |= table.judged_calls_with(strategy_name=trade_filter.strategy_name, mode=trade_filter.mode)
    every = select_rows(columns, table, RowCondition(groups=groups, horizon=horizon))
    if not trade_filter.falling_since:
        return every, 0
    ended_from = np.full(len(table), LONG_AGO)
    for (strategy_name, symbol), at in trade_filter.falling_since.items():
        declined = table.trades_with(strategy_name=strategy_name, symbol=symbol)
        ended_from[declined] = np.maximum(ended_from[declined], micros(at))
    recent = select_rows(columns, table, RowCondition(groups=groups, horizon=horizon, ended_from=ended_from))
    return recent, every.count - recent.count
