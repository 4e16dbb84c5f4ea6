"""Candidates: the rows that a recall scores, and how widely their outcomes spread."""

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from backsight.core.instants import Horizon
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.arrays.columns import UNITS, Columns, Floats, group_sums, micros
from backsight.core.recall.arrays.period_weights import SAFE_SQUARES, PeriodWeights, period_weights
from backsight.core.recall.arrays.selection import RowCondition, Selection, select_rows
from backsight.core.recall.score import SIGMA_FLOOR_R
from backsight.core.trades.trade import OutcomeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which episodes are candidates; None matches every episode."""

    symbol: str | None = None
    joined: tuple[str, ...] = ()
    """Other symbols that match, too, if there is a symbol."""
    strategy_name: str | None = None
    direction: Direction | None = None
    deployment_id: str | None = None
    mode: Mode | None = None
    tags: tuple[str, ...] = ()
    """An episode must have all of these tags."""
    since: datetime | None = None
    """An episode must have ended at this instant or later."""
    until: datetime | None = None
    """An episode must have ended before this instant."""

    @property
    def symbols(self) -> tuple[str, ...] | None:
        """The symbols that match; None for every symbol."""
        return None if self.symbol is None else (self.symbol, *self.joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates(Selection):
    """The rows that pass the filters."""

    sigma: dict[OutcomeUnit, float]
    """σ by unit."""
    periods: PeriodWeights | None
    """None if scores have no factor Period."""


def candidates_of(columns: Columns, filters: Filters, horizon: Horizon, *, period_weight: bool = False) -> Candidates:
    """The episodes that ended, are not archived, were known at the horizon and pass the filters."""
    table, tags = columns.vocabulary.table(), set(filters.tags)
    groups = table.recallable_with(
        symbol=filters.symbols,
        strategy_name=filters.strategy_name,
        deployment_id=filters.deployment_id,
        mode=filters.mode,
        direction=filters.direction,
    )
    condition = RowCondition(
        groups=groups,
        horizon=horizon,
        ended_from=None if filters.since is None else np.full(len(table), micros(filters.since)),
        ended_before=None if filters.until is None else micros(filters.until),
        tags=np.array([tags <= set(each) for each in columns.vocabulary.tags.values]) if tags else None,
    )
    selection = select_rows(columns, table, condition)
    return Candidates(
        columns=columns,
        table=table,
        groups=groups,
        whole=selection.whole,
        picked=selection.picked,
        counts=selection.counts,
        sigma=_sigmas(selection),
        periods=period_weights(columns, table, groups, horizon) if period_weight else None,
    )


def _sigmas(selection: Selection) -> dict[OutcomeUnit, float]:
    """σ by unit: the root mean square of the outcomes, R clipped, from the sums of each group."""
    columns, table, parts = selection.columns, selection.table, selection.whole_parts
    blocks = columns.blocks
    sums = [(blocks.part_group[parts], blocks.part_count[parts], blocks.part_squares[parts])]
    sums += [group_sums(columns, table, rows) for rows in selection.picked.values()]
    groups, counts, squares = (np.concatenate(column) for column in zip(*sums, strict=True))
    units = table.unit[groups] + 1  # 0 is no unit
    totals = np.bincount(units, counts, minlength=len(UNITS) + 1)[1:].tolist()
    squared = np.bincount(units, squares, minlength=len(UNITS) + 1)[1:].tolist()
    sigma: dict[OutcomeUnit, float] = {}
    for number, unit in enumerate(UNITS):
        if totals[number] and SAFE_SQUARES[0] < squared[number] < SAFE_SQUARES[1]:
            sigma[unit] = math.sqrt(squared[number] / totals[number])
        elif totals[number]:
            sigma[unit] = _root_mean_square(_outcomes(selection, number))
    if "R" in sigma:
        sigma["R"] = max(SIGMA_FLOOR_R, sigma["R"])
    return sigma


def _outcomes(selection: Selection, unit: int) -> Floats:
    """All selected outcomes in a unit."""
    rows = selection.all_rows()
    rows = rows[selection.table.unit[selection.columns.group[rows]] == unit]
    outcomes: Floats = selection.columns.outcome[rows]
    return outcomes


def _root_mean_square(x: Floats) -> float:
    """The root mean square of values whose squares are too large or too small to be summed."""
    largest = float(np.abs(x).max())
    return largest * math.sqrt(float(((x / largest) ** 2).sum()) / len(x)) if largest else 0.0
