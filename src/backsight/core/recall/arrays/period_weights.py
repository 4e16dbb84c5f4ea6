"""The factor Period of many rows at once, as `period.sharpe_weight` defines it for one window."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import numpy as np

from backsight.core.instants import Horizon
from backsight.core.recall.arrays.columns import Array, Booleans, Columns, Floats, GroupTable, Integers
from backsight.core.recall.arrays.selection import RowCondition, select_rows
from backsight.core.recall.period import (
    BEST_SHARPE,
    FEWEST_OUTCOMES,
    KINDS,
    PERIOD,
    UNWEIGHTED,
    YEARLY,
    sharpe_weight,
)

SAFE_SQUARES = (1e-280, 1e300)
"""Outside of these limits a sum of squares may have lost digits or overflowed."""
MONTH = PERIOD // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeHistory:
    """The outcomes in R of one strategy in one mode, oldest first, with running sums over 30 days.

    Time is cut into months from the first end on, and sums run from both ends of a month. A window of 30 days is then
    the last part of one month plus the first part of the next. No sum is a difference of two others, so an extreme
    outcome does not spoil the sums of windows that it is not in.
    """

    ends: Integers
    x: Floats
    months: Integers
    from_start: tuple[Floats, Floats]
    """Sums of the outcomes, and of their squares, from the start of the month to each outcome."""
    to_end: tuple[Floats, Floats]
    """The same from each outcome to the end of the month."""
    changes: Integers
    """How often the outcome has changed from one trade to the next so far; equal numbers mean equal outcomes."""

    def window(self, until: Integers) -> tuple[Integers, Integers]:
        """The first index, and the index after the last, of the 30 days up to and including each instant."""
        return np.searchsorted(self.ends, until - MONTH, "right"), np.searchsorted(self.ends, until, "right")

    def exact_weight(self, until: int) -> float:
        """The weight of the 30 days up to an instant, by the plain definition."""
        first, stop = self.window(np.array(until))
        return sharpe_weight(self.x[first:stop].tolist())

    def weights(self, until: Integers) -> Floats:
        """The weight of the 30 days up to each instant, to about 12 digits.

        A variance that is tiny beside the mean is inexact, but then the weight is clipped anyway.
        """
        first, stop = self.window(until)
        enough = np.flatnonzero(stop - first >= FEWEST_OUTCOMES)
        weights = np.full(len(until), UNWEIGHTED)
        if not len(enough):
            return weights
        first, last, count = first[enough], stop[enough] - 1, (stop - first)[enough]
        # Add the part of the window in the previous month to the part in the current month.
        month = (until[enough] - self.ends[0]) // MONTH
        in_previous, in_current = self.months.take(first) < month, self.months.take(last) == month
        mean, square = (
            (to_end.take(first) * in_previous + from_start.take(last) * in_current) / count
            for from_start, to_end in zip(self.from_start, self.to_end, strict=True)
        )
        sharpe = mean / np.sqrt(np.maximum(square - mean * mean, 0.0)) * YEARLY
        windows = 0.5 + 0.5 * np.clip(sharpe, 0.0, BEST_SHARPE)
        # Windows of equal outcomes have no spread, whatever rounding says.
        windows[self.changes.take(first) == self.changes.take(last)] = UNWEIGHTED
        for place in np.flatnonzero(~((square > SAFE_SQUARES[0]) & (square < SAFE_SQUARES[1]))):
            windows[place] = sharpe_weight(self.x[first[place] : last[place] + 1].tolist())
        weights[enough] = windows
        return weights


def _history(ends: Integers, x: Floats) -> OutcomeHistory:
    months = (ends - ends[0]) // MONTH
    bounds = [0, *(np.flatnonzero(np.diff(months)) + 1).tolist(), len(months)]
    sums = [(values, np.empty_like(x), np.empty_like(x)) for values in (x, x * x)]
    for start, stop in pairwise(bounds):
        for values, from_start, to_end in sums:
            np.cumsum(values[start:stop], out=from_start[start:stop])
            np.cumsum(values[start:stop][::-1], out=to_end[start:stop][::-1])
    (_, from_start, to_end), (_, squares_from_start, squares_to_end) = sums
    changes = np.cumsum(np.append(False, x[1:] != x[:-1]))
    return OutcomeHistory(ends, x, months, (from_start, squares_from_start), (to_end, squares_to_end), changes)


@dataclass(frozen=True, slots=True)
class PeriodWeights:
    """The factor Period of the candidates, and the histories that it comes from."""

    histories: Mapping[int, OutcomeHistory]
    history_of: Array
    """The key of the history by group code: one key for each strategy and mode."""
    weights: Floats
    """The weight by row, to about 12 digits."""
    best: Floats
    """The highest weight by block."""

    def exact_weight(self, columns: Columns, row: int) -> float:
        """The weight of a row, by the plain definition."""
        history = self.histories.get(int(self.history_of[columns.group[row]]))
        return UNWEIGHTED if history is None else history.exact_weight(int(columns.ended_at[row]))


def period_weights(columns: Columns, table: GroupTable, groups: Booleans, horizon: Horizon) -> PeriodWeights:
    """The factor Period of the rows of these groups, from every outcome known at the horizon, whatever the filters."""
    size = columns.blocks.size
    # Number the pairs of strategy and mode; small numbers sort faster.
    _, strategies = np.unique(table.fields["strategy_name"], return_inverse=True)
    modes, mode = np.unique(table.fields["mode"], return_inverse=True)
    history_of = strategies * len(modes) + mode
    history_of = history_of.astype(np.min_scalar_type(int(history_of.max())))
    # Build the histories of the pairs that occur among the groups.
    has_r = (table.unit == 0) & np.isin(table.fields["kind"], KINDS) & np.isin(history_of, history_of[groups])
    company = select_rows(columns, table, RowCondition(groups=has_r, horizon=horizon)).all_rows()
    company = company[np.argsort(columns.ended_at[company], kind="stable")]
    histories = {
        key: _history(columns.ended_at[rows], columns.outcome[rows])
        for key, rows in _rows_by_history(columns, history_of, company)
    }
    # Weigh the rows, a block's worth at a time, which stays in the processor's cache.
    weights = np.full(len(columns.known_at), UNWEIGHTED)
    known = RowCondition(groups=groups, horizon=Horizon(as_of=horizon.as_of))
    for key, rows in _rows_by_history(columns, history_of, select_rows(columns, table, known).all_rows()):
        if key in histories:
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                weights[some] = histories[key].weights(columns.ended_at[some])
    starts = np.arange(len(columns.blocks)) * size
    best = np.maximum.reduceat(weights, starts) if len(starts) else weights
    return PeriodWeights(histories, history_of, weights, best)


def _rows_by_history(columns: Columns, history_of: Array, rows: Integers) -> Iterator[tuple[int, Integers]]:
    """The rows of each history, in their order."""
    keys = history_of.take(columns.group[rows])
    order = np.argsort(keys, kind="stable")
    present, first = np.unique(keys[order], return_index=True)
    for key, (start, stop) in zip(present.tolist(), pairwise([*first.tolist(), len(rows)]), strict=True):
        yield key, rows[order[start:stop]]
