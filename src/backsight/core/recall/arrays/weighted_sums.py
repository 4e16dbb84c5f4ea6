"""The weighted sums that a base rate is computed from: closed trades, summed by level and day.

Every selected row is read once, in chunks that stay in the processor's cache. The *depth* of a row is the number of
levels that it reaches, from the broadest on; its *cell* says its depth, its unit and whether it won. Rows are summed by
cell and day. A level is then the sum of all cells that reach its depth or deeper.

Base rates of several directions come from the same reading: every trade has one direction, so cells also tell the
direction, and the levels below the strategy are summed for each direction alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.core.instants import Horizon
from backsight.core.portfolio import Direction
from backsight.core.recall.arrays.columns import (
    DAY_MICROS,
    NUMBERS,
    SETTING_LABELS,
    UNITS,
    Array,
    Booleans,
    Columns,
    Floats,
    Integers,
    RowSelection,
    micros,
    values_at,
)
from backsight.core.recall.arrays.evidence_weights import BUFFERS, EvidenceWeights, positions_of
from backsight.core.recall.arrays.selection import Selection, TradeFilter, select_trades
from backsight.core.recall.base_rate import LevelName
from backsight.core.recall.score import Situation
from backsight.core.trades.trade import OutcomeUnit

CHUNK_ROWS = 32_768
"""Rows summed at a time: few enough for the processor's cache, and enough to make the cost of a call small."""
MAX_DOUBLE_TRADES = 8_192
"""Up to this many trades K is in double precision; of more trades, the rounding errors of single precision cancel."""
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
SINGLE_RANGE = (1e-30, 1e30)
"""Sizes of numbers for which single precision is used; outside of it values overflow or underflow."""
FAINT_WEIGHT = 1e-4
"""A level with a lower mean weight consists of dissimilar trades, for which single precision is too coarse."""
MAX_DAY_SPAN = 100_000
"""Days between the first and the last trade up to which every day has a column, with trades or not."""
NO_WEIGHT = 1e-150
"""Below this total weight there are no similar trades; the squares of such weights underflow."""
SETTINGS = len(SETTING_LABELS["regime"])

LevelKey = tuple[LevelName, str | None]
"""A level and the value of its category; None for the strategy."""
Indices = NDArray[np.intp]


class UnitSums(NamedTuple):
    """The outcomes in one unit: their number by level, and by level and day their weight and weight × outcome."""

    n: Integers
    n_won: Integers
    """The number of trades that won."""
    weight: Floats
    product: Floats
    swing: float = 0.0
    """How far the strategy's mean win is from its mean loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSums:
    """The sums of all levels: a row a level, from broad to narrow, and in two-dimensional arrays a column a day."""

    n: Integers
    n_won: Integers
    """The number of trades that won."""
    weight: Floats
    won: Floats
    """The weight of the trades that won."""
    squares: Floats
    """The sum of the squared weights."""
    by_unit: Mapping[OutcomeUnit, UnitSums]
    today: int
    """The column of the day of the horizon."""
    left_out: int
    in_symbol: int
    """The number of trades in the symbols of the situation, in any direction; of all trades if it has none."""

    @property
    def has_faint_level(self) -> bool:
        total = self.weight.sum(axis=1)
        return bool(np.any((total > 0.0) & (total < FAINT_WEIGHT * self.n)))


def sum_levels(
    columns: Columns,
    situation: Situation,
    levels: Sequence[LevelKey],
    *,
    trade_filter: TradeFilter,
    horizon: Horizon,
    directions: Sequence[Direction] = (),
) -> list[LevelSums]:
    """Sum the weighted trades of each level, for each of the directions.

    The levels must then have a direction, whose value is replaced by each of the directions in turn. Without directions
    the answer has one element, for the levels as they are.
    """
    selection, left_out = select_trades(columns, trade_filter, horizon)
    chunks, group_counts, now = _chunks(selection), selection.group_counts(), micros(horizon.as_of)
    cells = _Cells(selection, group_counts, levels, symbols=situation.symbols, directions=directions)
    days = _DayColumns(columns, chunks)

    def summed(kind: "np.dtype[np.floating]") -> list[LevelSums]:
        sums = _CellSums(columns, cells, days, room=max(map(_length, chunks), default=0), kind=kind, now=now)
        weights = EvidenceWeights(columns, situation, sums.weight_buffers)
        for rows, span in zip(chunks, days.spans, strict=True):
            sums.add(rows, span, weights)
        return sums.level_sums(left_out)

    with np.errstate(all="ignore"):
        if not _fits_single(int(group_counts.sum()), situation):
            return summed(DOUBLE)
        single = summed(SINGLE)
        return summed(DOUBLE) if any(sums.has_faint_level for sums in single) else single


def _fits_single(trades: int, situation: Situation) -> bool:
    """Whether K can be computed in single precision."""
    sizes = [abs(x) for name in NUMBERS if (x := getattr(situation.context, name))]
    return trades > MAX_DOUBLE_TRADES and all(SINGLE_RANGE[0] <= size <= SINGLE_RANGE[1] for size in sizes)


# Chunks of rows


def _chunks(selection: Selection) -> list[RowSelection]:
    """The selected rows in chunks: runs of blocks that are selected entirely, then row numbers."""
    blocks = [selection.rows(block) for block in np.flatnonzero(selection.counts).tolist()]
    entire = [rows for rows in blocks if isinstance(rows, slice)]
    numbers = np.concatenate([np.empty(0, np.int64), *(rows for rows in blocks if not isinstance(rows, slice))])
    single = [numbers[start : start + CHUNK_ROWS] for start in range(0, len(numbers), CHUNK_ROWS)]
    return [*_joined(entire), *single]


def _joined(blocks: Iterable[slice]) -> Iterator[slice]:
    """Join neighbouring blocks into runs of at most `CHUNK_ROWS` rows.

    >>> list(_joined([slice(0, 16384), slice(16384, 32768), slice(32768, 49152), slice(65536, 70000)]))
    [slice(0, 32768, None), slice(32768, 49152, None), slice(65536, 70000, None)]
    """
    run: slice | None = None
    for block in blocks:
        if run is not None and run.stop == block.start and block.stop - run.start <= CHUNK_ROWS:
            run = slice(run.start, block.stop)
            continue
        if run is not None:
            yield run
        run = block
    if run is not None:
        yield run


def _length(rows: RowSelection) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


class _DayColumns:
    """The days on which trades ended, counted back from the last one, and their columns in the sums."""

    def __init__(self, columns: Columns, chunks: Sequence[RowSelection]) -> None:
        ranges = [_end_range(columns, rows) for rows in chunks]
        self.last = max((last for _, last in ranges), default=0) // DAY_MICROS
        self.end = (self.last + 1) * DAY_MICROS - 1
        """The last microsecond of the last day, from which time is counted back."""
        self.count = self.last - min((first for first, _ in ranges), default=0) // DAY_MICROS + 1
        self.spans = [
            slice((self.end - last) // DAY_MICROS, (self.end - first) // DAY_MICROS + 1) for first, last in ranges
        ]
        """The columns of the days of each chunk."""
        self.traded: Integers | None = None
        """The days with trades, counted back; None if every day has a column."""
        if self.count > MAX_DAY_SPAN:
            by_chunk = [np.unique((self.end - values_at(columns.ended_at, rows)) // DAY_MICROS) for rows in chunks]
            self.traded = np.unique(np.concatenate(by_chunk))
            self.count = len(self.traded)
            self.spans = [slice(0, self.count)] * len(chunks)

    def column(self, day: int) -> int:
        """The column of a day; a day without one has the extra column after the last."""
        back = self.last - day
        if self.traded is None:
            return back if 0 <= back < self.count else self.count
        columns = np.flatnonzero(self.traded == back)
        return int(columns[0]) if len(columns) else self.count

    def columns(self, back: Integers) -> Integers:
        """The columns of rows that ended this many microseconds back; may overwrite the argument."""
        np.floor_divide(back, DAY_MICROS, out=back)
        return back if self.traded is None else np.searchsorted(self.traded, back)


def _end_range(columns: Columns, rows: RowSelection) -> tuple[int, int]:
    """The first and the last end of some rows; of whole blocks from their summaries."""
    if isinstance(rows, slice):
        size = columns.blocks.size
        ranges = columns.blocks.ended_range[rows.start // size : -(-rows.stop // size)]
        return int(ranges[:, 0].min()), int(ranges[:, 1].max())
    ends = columns.ended_at.take(rows)
    return int(ends.min()), int(ends.max())


# Summing


class _Cells:
    """The cells, numbered by depth, then by direction, then by unit, then by whether a trade won."""

    def __init__(
        self,
        selection: Selection,
        group_counts: Integers,
        levels: Sequence[LevelKey],
        *,
        symbols: tuple[str, ...] = (),
        directions: Sequence[Direction] = (),
    ) -> None:
        """`symbols` are those of the symbol's level, the situation's own first; empty without such a level."""
        table = selection.table
        conditions = {name: table.fields[name] == value for name, value in levels if name in table.fields}
        of_symbols = table.with_label("symbol", symbols) if symbols else np.ones(len(table), np.bool_)
        if "symbol" in conditions:
            conditions["symbol"] = of_symbols
        # The place of a group's direction among the directions; other groups reach no level that asks for one.
        self.directions = max(1, len(directions))
        place = np.zeros(len(table), np.intp)
        if directions:
            matches = table.fields["direction"] == np.array(directions)[:, None]
            place, conditions["direction"] = matches.argmax(axis=0), matches.any(axis=0)
        group_levels = list(conditions.values())
        setting_levels = [SETTING_LABELS[name] == value for name, value in levels if name in SETTING_LABELS]
        # Only units that occur get cells; −1 is no unit.
        units = np.flatnonzero(np.bincount(table.unit + 1, group_counts)) - 1
        width = 2 * len(units) * self.directions
        self.units = [UNITS[unit] if unit >= 0 else None for unit in units.tolist()]
        self.shape = (len(levels), self.directions, len(units), 2)
        self.count = len(levels) * width
        in_level = (place * len(units) + np.searchsorted(units, table.unit)) * 2 + table.won
        self.by_group = _depth(group_levels, len(table)) * width + in_level
        """The cell of a row by its group, as if no level depended on the setting."""
        self.inner = len(group_levels) * width
        """The first cell of the rows whose group matches all levels; the setting decides how much deeper they go."""
        self.outer_counts = np.bincount(self.by_group, group_counts, minlength=self.count)[: self.count].astype(
            np.float64
        )
        """The number of rows by cell; inner cells have 0, since `_CellSums` counts their rows."""
        self.outer_counts[self.inner :] = 0.0
        self.deeper = _depth(setting_levels, SETTINGS) * width
        """By setting code: the number of cells that an inner row goes deeper."""
        self.in_symbol = int(group_counts[of_symbols].sum())
        self.marked = self.by_group + self.count * of_symbols
        """The cell by group, plus `count` for groups of the symbols: one lookup gives both."""
        self.same_symbol = table.with_label("symbol", symbols[:1]) if len(symbols) > 1 else None
        """Which groups have the situation's own symbol; None if those are all groups of the symbols."""


def _swing(weight: Floats, product: Floats) -> float:
    """The mean win less the mean loss, from sums by result and day; a side without trades mirrors the other.

    >>> _swing(np.array([[3.0, 1.0], [1.0, 0.0]]), np.array([[-3.0, -1.0], [12.0, 0.0]]))
    13.0
    >>> _swing(np.array([[0.0], [2.0]]), np.array([[0.0], [3.0]]))
    3.0
    """
    lost, won = (
        float(total / weight) if weight > NO_WEIGHT else None
        for weight, total in zip(weight.sum(axis=1), product.sum(axis=1), strict=True)
    )
    if won is None or lost is None:
        return 2.0 * abs(won or lost or 0.0)
    return max(0.0, won - lost)


def _depth(conditions: Iterable[Booleans], count: int) -> Indices:
    """How many of the conditions hold before the first one that does not."""
    depth, holds = np.zeros(count, np.intp), np.ones(count, np.bool_)
    for condition in conditions:
        holds &= condition
        depth += holds
    return depth


class _CellSums:
    """The sums by cell and day. All scratch memory is allocated once."""

    def __init__(
        self,
        columns: Columns,
        cells: _Cells,
        days: _DayColumns,
        *,
        room: int,
        kind: "np.dtype[np.floating]",
        now: int,
    ) -> None:
        """`room` is the length of the longest chunk, `kind` the precision of K."""
        self.columns, self.cells, self.days, self.now = columns, cells, days, now
        self.weight, self.product = np.zeros((2, cells.count, days.count + 1))
        self.squares = np.zeros(cells.count)
        self.n = cells.outer_counts.copy()
        scratch = np.empty((5 + BUFFERS, room))
        self.buffers = scratch[:5]
        self.weight_buffers = scratch[5:].view(kind)[:, :room]

    def add(self, rows: RowSelection, span: slice, weights: EvidenceWeights) -> None:
        """Add a chunk of rows whose days are the columns of a span."""
        columns, cells, groups = self.columns, self.cells, values_at(self.columns.group, rows)
        weight, product = self.buffers[:2, : len(groups)]
        index, cell, back = self.buffers[2:, : len(groups)].view(np.intp)
        # Find the cell of each row: by its group, and for rows of the symbols by its setting, too.
        np.copyto(index, groups)
        cells.marked.take(index, out=cell, mode="clip")
        of_symbols = positions_of(cell >= cells.count)
        same_symbol = of_symbols if cells.same_symbol is None else positions_of(cells.same_symbol.take(index))
        settings = values_at(values_at(columns.setting, rows), of_symbols)
        cell[of_symbols] = self._deepen(values_at(cell, of_symbols) - cells.count, settings)
        # Weigh the rows by K · Rec. Ages are counted back from the end of the chunk's last day.
        end = self.days.end - span.start * DAY_MICROS
        np.subtract(end, values_at(columns.ended_at, rows), out=back)
        np.copyto(weight, weights.of(rows, back, offset=self.now - end, same_symbol=same_symbol))
        self.squares += np.bincount(cell, np.square(weight, out=product), minlength=cells.count)
        # Sum weight and weight × outcome by cell and day with one index for both.
        width = span.stop - span.start
        np.multiply(cell, width, out=index)
        index += self.days.columns(back)
        np.multiply(weight, values_at(columns.outcome, rows), out=product)
        for sums, values in ((self.weight, weight), (self.product, product)):
            sums[:, span] += np.bincount(index, values, minlength=cells.count * width).reshape(-1, width)

    def _deepen(self, cell: Indices, settings: Array) -> Indices:
        """Move inner rows deeper by their settings, and count them."""
        cell += self.cells.deeper.take(settings) * (cell >= self.cells.inner)
        self.n[self.cells.inner :] += np.bincount(cell, minlength=self.cells.count)[self.cells.inner :]
        return cell

    def level_sums(self, left_out: int) -> list[LevelSums]:
        """The sums of each direction: all trades at the strategy's level, and the direction's at the narrower ones."""
        by_level = [self._by_level(sums) for sums in (self.weight, self.product, self.squares, self.n)]
        if self.cells.directions == 1:
            return [self._sums_of([sums[:, 0] for sums in by_level], left_out)]
        return [
            self._sums_of([np.concatenate([sums[:1].sum(axis=1), sums[1:, place]]) for sums in by_level], left_out)
            for place in range(self.cells.directions)
        ]

    def _sums_of(self, by_level: Sequence[Floats], left_out: int) -> LevelSums:
        weight, product, squares, n = by_level
        counts = n.sum(axis=2).astype(np.int64)
        weights, products = weight.sum(axis=2), product.sum(axis=2)
        return LevelSums(
            n=counts.sum(axis=1),
            n_won=n[:, :, 1].sum(axis=1).astype(np.int64),
            weight=weights.sum(axis=1),
            won=weight[:, :, 1].sum(axis=1),
            squares=squares.sum(axis=(1, 2)),
            by_unit={
                unit: UnitSums(
                    counts[:, number],
                    n[:, number, 1].astype(np.int64),
                    weights[:, number],
                    products[:, number],
                    _swing(weight[0, number], product[0, number]),
                )
                for number, unit in enumerate(self.cells.units)
                if unit is not None
            },
            today=self.days.column(self.now // DAY_MICROS),
            left_out=left_out,
            in_symbol=self.cells.in_symbol,
        )

    def _by_level(self, sums: Floats) -> Floats:
        """Turn sums by cell, in place, into sums by level, direction, unit and result.

        A level includes all deeper cells.
        """
        levels = sums.reshape(*self.cells.shape, *sums.shape[1:])
        for depth in reversed(range(len(levels) - 1)):
            levels[depth] += levels[depth + 1]
        return levels
