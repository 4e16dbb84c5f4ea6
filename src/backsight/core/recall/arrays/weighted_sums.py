"""Tallies: the closed trades that a base rate rests on, weighed, and summed by day at every level, out of columns.

A row is looked at once, among some thousand neighbours that stay in the processor's cache. Its *cell* says how deep
into the levels it reaches, its unit, and whether it was won. What is summed by cell and day gives every level, since a
level holds all that reaches as deep or deeper.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.core.portfolio import Mode
from backsight.core.recall.arrays.columns import (
    NUMBERS,
    UNITS,
    Array,
    Columns,
    Floats,
    GroupTable,
    Truths,
    Whole,
    micros,
)
from backsight.core.recall.arrays.evidence_weights import BUFFERS, Rows, Weights, held, places_of
from backsight.core.recall.base_rate import LevelName
from backsight.core.recall.score import Situation
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.trades.trade import OutcomeUnit

STEP = 32_768
"""Rows looked at together: few enough for the cache, and so many that calls cost little."""
EXACT = 8_192
"""Up to so many trades K is in double precision; of more, the roundings of single precision cancel each other out."""
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LEAST, MOST = 1e-30, 1e30
"""Sizes of numbers asked for that single precision takes: what it cannot hold is then as far from them as can be."""
HARDLY = 1e-4
"""A level whose mean weight is less is made of what is hardly alike, of which single precision is not sure."""
WIDEST = 100_000
"""Days from the first trade to the last up to which each has a place, traded on or not."""
DAY = timedelta(days=1) // timedelta(microseconds=1)
LONG_AGO, FAR_AHEAD = np.iinfo(np.int64).min, np.iinfo(np.int64).max
LABELS: Mapping[LevelName, Array] = dict(
    zip(
        ("regime", "volatility_regime", "session"),
        np.array(list(product(("", *REGIMES), ("", *VOLATILITY_REGIMES), ("", *SESSIONS)))).T,
        strict=True,
    )
)
"""The labels of each setting."""
SETTINGS = len(LABELS["regime"])

Asked = tuple[LevelName, str | None]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Whose closed trades tell what usually happens; None asks for nothing."""

    strategy_name: str | None = None
    mode: Mode | None = None
    fallen: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """Since when the results of a strategy in a symbol are falling: what ended before is left out."""


class Amount(NamedTuple):
    """The outcomes of one unit by level: how many, and by day their weight and weight × outcome."""

    n: Whole
    weight: Floats
    product: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """What levels are computed from, a row for each from broad to narrow, in some of them a column for each day."""

    n: Whole
    weight: Floats
    won: Floats
    """The weight of those won."""
    squares: Floats
    """The sum of the squared weights."""
    amounts: Mapping[OutcomeUnit, Amount]
    today: int
    """The column of the day of the instant asked."""
    left_out: int

    @property
    def hardly_alike(self) -> bool:
        """Whether a level is made of what is hardly alike, of which single precision is not sure."""
        total = self.weight.sum(axis=1)
        return bool(np.any((total > 0.0) & (total < HARDLY * self.n)))


def tallies(
    columns: Columns,
    query: Situation,
    asked: Sequence[Asked],
    *,
    among: Among,
    as_of: datetime,
    seen_at: datetime | None,
) -> Tallies:
    """The sums of each level asked for."""
    trades = _trades(columns, among, as_of=as_of, seen_at=seen_at)
    cells, days, instant = _Cells(trades, asked), _Days(trades), micros(as_of)

    def summed(kind: "np.dtype[np.floating]") -> Tallies:
        sums = _Sums(trades, cells, days, kind=kind, instant=instant)
        weights = Weights(columns, query, sums.for_weights)
        for rows, span in zip(trades.parts, days.spans, strict=True):
            sums.add(rows, span, weights)
        return sums.tallies()

    with np.errstate(all="ignore"):
        if not _is_single(trades, query):
            return summed(DOUBLE)
        found = summed(SINGLE)
        return summed(DOUBLE) if found.hardly_alike else found


def _is_single(trades: "_Trades", query: Situation) -> bool:
    """Whether K can be in single precision."""
    sizes = [abs(x) for name in NUMBERS if (x := getattr(query.context, name))]
    return bool(trades.by_group.sum() > EXACT and all(LEAST <= size <= MOST for size in sizes))


# Which trades


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trades:
    """The trades that count."""

    columns: Columns
    table: GroupTable
    parts: Sequence[Rows]
    by_group: Whole
    """How many there are of each group."""
    left_out: int

    @property
    def room(self) -> int:
        """How many rows the longest part has."""
        return max((rows.stop - rows.start if isinstance(rows, slice) else len(rows) for rows in self.parts), default=0)


def _trades(columns: Columns, among: Among, *, as_of: datetime, seen_at: datetime | None) -> _Trades:
    table, blocks = columns.vocabulary.table(), columns.blocks
    groups = table.trades(strategy_name=among.strategy_name, mode=among.mode)
    since = _since(table, among.fallen)
    stop = int(np.searchsorted(columns.known_at, micros(as_of), "right"))
    seen = FAR_AHEAD if seen_at is None else micros(seen_at)
    first = np.arange(len(blocks.each)) * blocks.size
    last = np.minimum(first + blocks.size, len(columns.known_at))
    present = groups[blocks.groups]
    counts = np.bincount(blocks.block[present], blocks.counts[present], minlength=len(first))
    timely = (last <= stop) & (blocks.recorded[:, 1] <= seen) & (blocks.ended[:, 0] >= since.max())
    whole = timely & (counts == last - first)
    known = present & timely[blocks.block]
    by_group = np.bincount(blocks.groups[known], blocks.counts[known], minlength=len(table)).astype(np.int64)
    some, left_out = [], 0
    for block in np.flatnonzero((counts > 0) & (first < stop) & ~whole).tolist():
        rows = slice(first[block], min(last[block], stop))
        kept = groups.take(columns.group[rows])
        if not timely[block]:
            kept &= columns.recorded_at[rows] <= seen
            fallen = kept & (columns.ended_at[rows] < since.take(columns.group[rows]))
            kept &= ~fallen
            left_out += int(np.count_nonzero(fallen))
            by_group += np.bincount(columns.group[rows][kept], minlength=len(table))
        some.append(np.flatnonzero(kept) + rows.start)
    parts: list[Rows] = [*_runs(first[whole], last[whole]), *_gathered(some)]
    return _Trades(columns=columns, table=table, parts=parts, by_group=by_group, left_out=left_out)


def _since(table: GroupTable, fallen: Mapping[tuple[str, str], datetime]) -> Whole:
    """From when on the trades of each group count."""
    since = np.full(len(table), LONG_AGO)
    for (strategy_name, symbol), at in fallen.items():
        since[table.trades(strategy_name=strategy_name, symbol=symbol)] = micros(at)
    return since


def _runs(first: Whole, last: Whole) -> Iterator[slice]:
    """Whole blocks, neighbours together as far as they are looked at together.

    >>> list(_runs(np.array([0, 16384, 32768, 65536]), np.array([16384, 32768, 49152, 70000])))
    [slice(0, 32768, None), slice(32768, 49152, None), slice(65536, 70000, None)]
    """
    run: slice | None = None
    for start, stop in zip(first.tolist(), last.tolist(), strict=True):
        if run is not None and run.stop == start and stop - run.start <= STEP:
            run = slice(run.start, stop)
            continue
        if run is not None:
            yield run
        run = slice(start, stop)
    if run is not None:
        yield run


def _gathered(some: Sequence[Whole]) -> list[Whole]:
    """Single rows, as many together as are looked at together."""
    rows = np.concatenate([np.empty(0, np.int64), *some])
    return [rows[start : start + STEP] for start in range(0, len(rows), STEP)]


class _Days:
    """The days on which trades ended, from the last one back, each with its place."""

    def __init__(self, trades: _Trades) -> None:
        columns = trades.columns
        ended = [_ended(columns, rows) for rows in trades.parts]
        self.last = max((last for _, last in ended), default=0) // DAY
        self.end = (self.last + 1) * DAY - 1
        """The last microsecond, from which time is counted back."""
        self.count = self.last - min((first for first, _ in ended), default=0) // DAY + 1
        self.spans = [slice((self.end - last) // DAY, (self.end - first) // DAY + 1) for first, last in ended]
        """Between which places the days of each part are."""
        self.traded: Whole | None = None
        """The days back that there are, where they are too far apart for each between them to have a place."""
        if self.count > WIDEST:
            each = [np.unique((self.end - held(columns.ended_at, rows)) // DAY) for rows in trades.parts]
            self.traded = np.unique(np.concatenate(each))
            self.count = len(self.traded)
            self.spans = [slice(0, self.count)] * len(each)

    def place(self, day: int) -> int:
        """Where a day is; after them all if it is not one of them."""
        back = self.last - day
        if self.traded is None:
            return back if 0 <= back < self.count else self.count
        places = np.flatnonzero(self.traded == back)
        return int(places[0]) if len(places) else self.count

    def places(self, back: Whole) -> Whole:
        """The places of what ended so many microseconds back; written over that."""
        np.floor_divide(back, DAY, out=back)
        return back if self.traded is None else np.searchsorted(self.traded, back)


def _ended(columns: Columns, rows: Rows) -> tuple[int, int]:
    """From when to when some rows ended."""
    if isinstance(rows, slice):
        size = columns.blocks.size
        ended = columns.blocks.ended[rows.start // size : -(-rows.stop // size)]
        return int(ended[:, 0].min()), int(ended[:, 1].max())
    single = columns.ended_at.take(rows)
    return int(single.min()), int(single.max())


# Summing


class _Cells:
    """Cells by depth, unit, and whether won."""

    def __init__(self, trades: _Trades, asked: Sequence[Asked]) -> None:
        table, symbol = trades.table, dict(asked).get("symbol")
        by_group = [table.fields[name] == value for name, value in asked if name in table.fields]
        by_setting = [LABELS[name] == value for name, value in asked if name in LABELS]
        codes = np.flatnonzero(np.bincount(table.unit + 1, trades.by_group)) - 1
        wide = 2 * len(codes)
        self.units = [UNITS[code] if code >= 0 else None for code in codes.tolist()]
        self.shape = (len(asked), len(codes), 2)
        self.count = len(asked) * wide
        self.of_group = _depth(by_group, len(table)) * wide + np.searchsorted(codes, table.unit) * 2 + table.won
        """The cell of a row, its setting aside."""
        self.inner = len(by_group) * wide
        """From this cell on, a row's group is all that is asked for."""
        self.deeper = _depth(by_setting, SETTINGS) * wide
        """How many cells further an inner row belongs, by its setting."""
        same = table.fields["symbol"] == symbol if symbol is not None else np.ones(len(table), np.bool_)
        self.marked = self.of_group + self.count * same
        """The cell of a row, and past them all if its symbol is the one asked for, or none is asked for."""


def _depth(conditions: Iterable[Truths], count: int) -> Places:
    """How many of these conditions hold one after the other."""
    depth, holds = np.zeros(count, np.intp), np.ones(count, np.bool_)
    for condition in conditions:
        holds &= condition
        depth += holds
    return depth


class _Sums:
    """What is summed, by cell and day."""

    def __init__(
        self, trades: _Trades, cells: _Cells, days: _Days, *, kind: "np.dtype[np.floating]", instant: int
    ) -> None:
        self.trades, self.cells, self.days, self.instant = trades, cells, days, instant
        self.weight, self.product = np.zeros((2, cells.count, days.count + 1))
        self.squares = np.zeros(cells.count)
        self.n = np.bincount(cells.of_group, trades.by_group, minlength=cells.count)[: cells.count].astype(np.float64)
        self.n[cells.inner :] = 0.0  # these are counted with their settings
        scratch = np.empty((5 + BUFFERS, trades.room))  # all at once, which keeps it from being given back every time
        self.buffers = scratch[:5]
        self.for_weights = scratch[5:].view(kind)[:, : trades.room]

    def add(self, rows: Rows, span: slice, weights: Weights) -> None:
        """Add some rows, which ended on days within a span."""
        columns, cells, groups = self.trades.columns, self.cells, held(self.trades.columns.group, rows)
        weight, value = self.buffers[:2, : len(groups)]
        place, cell, back = self.buffers[2:, : len(groups)].view(np.intp)
        np.copyto(place, groups)
        cells.marked.take(place, out=cell, mode="clip")
        same = places_of(cell >= cells.count)
        cell[same] = self._settled(held(cell, same) - cells.count, held(held(columns.setting, rows), same))
        end = self.days.end - span.start * DAY
        np.subtract(end, held(columns.ended_at, rows), out=back)
        np.copyto(weight, weights.of(rows, back, ahead=self.instant - end, same=same))
        self.squares += np.bincount(cell, np.square(weight, out=value), minlength=cells.count)
        days = span.stop - span.start
        np.multiply(cell, days, out=place)
        place += self.days.places(back)
        np.multiply(weight, held(columns.outcome, rows), out=value)
        for sums, values in ((self.weight, weight), (self.product, value)):
            sums[:, span] += np.bincount(place, values, minlength=cells.count * days).reshape(-1, days)

    def _settled(self, cell: Places, setting: Array) -> Places:
        """The cells of rows that may be inner ones, with regard to their settings; those that are get counted."""
        cell += self.cells.deeper.take(setting) * (cell >= self.cells.inner)
        self.n[self.cells.inner :] += np.bincount(cell, minlength=self.cells.count)[self.cells.inner :]
        return cell

    def tallies(self) -> Tallies:
        weight, product, squares, n = map(self._reaching, (self.weight, self.product, self.squares, self.n))
        counts = n.sum(axis=2).astype(np.int64)
        by_unit, brought = weight.sum(axis=2), product.sum(axis=2)
        amounts = (Amount(counts[:, u], by_unit[:, u], brought[:, u]) for u in range(len(self.cells.units)))
        return Tallies(
            n=counts.sum(axis=1),
            weight=by_unit.sum(axis=1),
            won=weight[:, :, 1].sum(axis=1),
            squares=squares.sum(axis=(1, 2)),
            amounts={unit: amount for unit, amount in zip(self.cells.units, amounts, strict=True) if unit is not None},
            today=self.days.place(self.instant // DAY),
            left_out=self.trades.left_out,
        )

    def _reaching(self, sums: Floats) -> Floats:
        """Sums by depth, unit, and whether won, of all that reaches a depth; written over those of what ends there."""
        found = sums.reshape(*self.cells.shape, *sums.shape[1:])
        for depth in reversed(range(len(found) - 1)):
            found[depth] += found[depth + 1]
        return found
