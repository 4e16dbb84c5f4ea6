"""Candidates: which rows of the columns a query is about, block by block, and how their outcomes spread."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from backsight.core.portfolio import Direction, Mode
from backsight.core.recall import score as plain
from backsight.core.recall.arrays.columns import UNITS, Array, Columns, Floats, GroupTable, Truths, Whole, micros, parts
from backsight.core.recall.period import BEST_SHARPE, KINDS, LEAST_COMPANY, PERIOD, UNWEIGHTED, YEARLY, sharpe_weight
from backsight.core.trades.trade import OutcomeUnit

Rows = slice | Whole
SAFE_SQUARES = (1e-280, 1e300)
"""Sums of squares beyond these may have lost or overflown something."""
MONTH = PERIOD // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which episodes are candidates; None asks for nothing."""

    symbol: str | None = None
    strategy_name: str | None = None
    direction: Direction | None = None
    deployment_id: str | None = None
    mode: Mode | None = None
    tags: tuple[str, ...] = ()
    """All of these."""
    since: datetime | None = None
    """Ended then or later, and before `until`."""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The rows that pass the filters, block by block."""

    columns: Columns
    table: GroupTable
    allowed: Truths
    """Which groups pass."""
    some: Mapping[int, Whole]
    """The rows of blocks of which more than the group decides."""
    counts: Whole
    """How many candidates each block has."""
    sigma: Mapping[OutcomeUnit, float]
    periods: "Periods | None" = None
    """None where scores are not weighted by them."""

    def rows(self, block: int) -> Rows:
        """The candidates of a block: all of it, or these."""
        return _rows(self.columns, block, self.allowed, self.some, int(self.counts[block]))


def candidates_of(columns: Columns, filters: Filters, *, as_of: datetime, seen_at: datetime | None) -> Candidates:
    stop = int(np.searchsorted(columns.known_at, micros(as_of), "right"))
    table, blocks = columns.vocabulary.table(), columns.blocks
    allowed = table.having(
        symbol=filters.symbol,
        strategy_name=filters.strategy_name,
        deployment_id=filters.deployment_id,
        mode=filters.mode,
        direction=filters.direction,
    )
    whole, none = _coverage(columns, filters, stop=stop, seen_at=seen_at)
    pick = _picker(columns, allowed, filters, stop=stop, seen_at=seen_at)
    some = {int(block): pick(int(block)) for block in np.flatnonzero(~whole & ~none)}
    kept = whole[blocks.block] & allowed[blocks.groups]
    counts = np.bincount(blocks.block[kept], blocks.counts[kept], minlength=len(whole)).astype(np.int64)
    figures = [(blocks.groups[kept], blocks.counts[kept], blocks.squares[kept])]
    for block, rows in some.items():
        counts[block] = len(rows)
        figures.append(parts(columns, table, rows))

    def outcomes() -> Iterator[tuple[Array, Array]]:
        for block in np.flatnonzero(counts):
            rows = _rows(columns, int(block), allowed, some, int(counts[block]))
            yield table.unit[columns.group[rows]], columns.outcome[rows]

    sigma = _sigmas(table, figures, outcomes)
    return Candidates(columns=columns, table=table, allowed=allowed, some=some, counts=counts, sigma=sigma)


def _rows(columns: Columns, block: int, allowed: Truths, some: Mapping[int, Whole], count: int) -> Rows:
    if block in some:
        return some[block]
    start = block * columns.blocks.size
    end = min(start + columns.blocks.size, len(columns.known_at))
    if count == end - start:
        return slice(start, end)
    return np.flatnonzero(allowed.take(columns.group[start:end])) + start


def _coverage(columns: Columns, filters: Filters, *, stop: int, seen_at: datetime | None) -> tuple[Truths, Truths]:
    """Of each block, whether time lets in all of its rows, and whether none."""
    blocks, rows = columns.blocks, len(columns.known_at)
    first = np.arange(len(blocks.each)) * blocks.size
    whole, none = np.minimum(first + blocks.size, rows) <= stop, first >= stop
    if filters.since is not None:
        since = micros(filters.since)
        whole, none = whole & (blocks.ended[:, 0] >= since), none | (blocks.ended[:, 1] < since)
    if filters.until is not None:
        until = micros(filters.until)
        whole, none = whole & (blocks.ended[:, 1] < until), none | (blocks.ended[:, 0] >= until)
    if seen_at is not None:
        seen = micros(seen_at)
        whole, none = whole & (blocks.recorded[:, 1] <= seen), none | (blocks.recorded[:, 0] > seen)
    return whole & (not filters.tags), none


def _picker(
    columns: Columns, allowed: Truths, filters: Filters, *, stop: int, seen_at: datetime | None
) -> Callable[[int], Whole]:
    """What finds the candidates of a block row by row."""
    wanted = set(filters.tags)
    tagged = np.array([wanted <= set(tags) for tags in columns.vocabulary.tags.values]) if wanted else None

    def pick(block: int) -> Whole:
        start = block * columns.blocks.size
        end = min(start + columns.blocks.size, stop)
        kept = allowed.take(columns.group[start:end])
        if filters.since is not None:
            kept &= columns.ended_at[start:end] >= micros(filters.since)
        if filters.until is not None:
            kept &= columns.ended_at[start:end] < micros(filters.until)
        if seen_at is not None:
            kept &= columns.recorded_at[start:end] <= micros(seen_at)
        if tagged is not None:
            kept &= tagged.take(columns.tagged[start:end])
        return np.flatnonzero(kept) + start

    return pick


def _sigmas(
    table: GroupTable,
    figures: list[tuple[Whole, Whole, Floats]],
    outcomes: Callable[[], Iterator[tuple[Array, Array]]],
) -> dict[OutcomeUnit, float]:
    """As `score.sigmas`, from the sums of each group."""
    groups, counts, squares = (np.concatenate(column) for column in zip(*figures, strict=True))
    units = table.unit[groups] + 1
    every = np.bincount(units, counts, minlength=len(UNITS) + 1)[1:].tolist()
    totals = np.bincount(units, squares, minlength=len(UNITS) + 1)[1:].tolist()
    found: dict[OutcomeUnit, float] = {}
    for number, unit in enumerate(UNITS):
        if every[number] and SAFE_SQUARES[0] < totals[number] < SAFE_SQUARES[1]:
            found[unit] = math.sqrt(totals[number] / every[number])
        elif every[number]:
            found[unit] = _scaled([x[held == number] for held, x in outcomes()])
    if "R" in found:
        found["R"] = max(plain.SIGMA_FLOOR_R, found["R"])
    return found


def _scaled(blocks: list[Array]) -> float:
    """The root mean square where squares are too large or too small to be summed as they are."""
    x = np.concatenate(blocks)
    largest = float(np.abs(x).max())
    return largest * math.sqrt(float(((x / largest) ** 2).sum()) / len(x)) if largest else 0.0


# Periods


@dataclass(frozen=True, slots=True, eq=False)
class Team:
    """The outcomes in R of a strategy in a mode, oldest end first, with what makes sums over 30 days quick.

    Sums run within months counted from the first end, forth and back, so that a window is the last part of one month
    and the first of the next: nothing is subtracted, and no outcome spoils the sums of windows it is not in.
    """

    ends: Whole
    x: Floats
    months: Whole
    forth: tuple[Floats, Floats]
    """Sums of the outcomes, and of their squares, from the start of the month."""
    back: tuple[Floats, Floats]
    """From the end of the month."""
    turns: Whole
    """How often the outcome has changed from one to the next."""

    def window(self, until: Whole) -> tuple[Whole, Whole]:
        """Where what ended in the 30 days up to and with each instant begins and stops."""
        return np.searchsorted(self.ends, until - MONTH, "right"), np.searchsorted(self.ends, until, "right")

    def exactly(self, until: int) -> float:
        """The plain weight of the 30 days up to an instant."""
        first, stop = self.window(np.array(until))
        return sharpe_weight(self.x[first:stop].tolist())

    def weights(self, until: Whole) -> Floats:
        """The weight of the 30 days up to each instant, to a hair.

        Where the variance is small beside the mean, and so not exact, the weight is cut anyway.
        """
        first, stop = self.window(until)
        places = np.flatnonzero(stop - first >= LEAST_COMPANY)
        weights = np.full(len(until), UNWEIGHTED)
        if not len(places):
            return weights
        first, last, count = first[places], stop[places] - 1, (stop - first)[places]
        month = (until[places] - self.ends[0]) // MONTH
        early, late = self.months.take(first) < month, self.months.take(last) == month
        mean, square = (
            (back.take(first) * early + forth.take(last) * late) / count
            for forth, back in zip(self.forth, self.back, strict=True)
        )
        sharpe = mean / np.sqrt(np.maximum(square - mean * mean, 0.0)) * YEARLY
        found = 0.5 + 0.5 * np.clip(sharpe, 0.0, BEST_SHARPE)
        found[self.turns.take(first) == self.turns.take(last)] = UNWEIGHTED
        for place in np.flatnonzero(~((square > SAFE_SQUARES[0]) & (square < SAFE_SQUARES[1]))):
            found[place] = sharpe_weight(self.x[first[place] : last[place] + 1].tolist())
        weights[places] = found
        return weights


def _team(ends: Whole, x: Floats) -> Team:
    months = (ends - ends[0]) // MONTH
    bounds = [0, *(np.flatnonzero(np.diff(months)) + 1).tolist(), len(months)]
    sums = [(values, np.empty_like(x), np.empty_like(x)) for values in (x, x * x)]
    for start, stop in pairwise(bounds):
        for values, forth, back in sums:
            np.cumsum(values[start:stop], out=forth[start:stop])
            np.cumsum(values[start:stop][::-1], out=back[start:stop][::-1])
    (_, forth, back), (_, forth_squared, back_squared) = sums
    turns = np.cumsum(np.append(False, x[1:] != x[:-1]))
    return Team(ends, x, months, (forth, forth_squared), (back, back_squared), turns)


@dataclass(frozen=True, slots=True)
class Periods:
    """Period weights, and what they are made of."""

    teams: Mapping[int, Team]
    team: Array
    """The team of each group."""
    weights: Floats
    """The weight of each candidate, to a hair."""
    best: Floats
    """The highest of each block."""

    def exactly(self, columns: Columns, row: int) -> float:
        """The plain weight of a row."""
        team = self.teams.get(int(self.team[columns.group[row]]))
        return UNWEIGHTED if team is None else team.exactly(int(columns.ended_at[row]))


def with_periods(among: Candidates, *, as_of: datetime, seen_at: datetime | None) -> Candidates:
    """The candidates with their period weights, from all that was known then, whatever the filters."""
    columns, table, size = among.columns, among.table, among.columns.blocks.size
    known = slice(0, int(np.searchsorted(columns.known_at, micros(as_of), "right")))
    _, strategies = np.unique(table.fields["strategy_name"], return_inverse=True)
    modes, mode = np.unique(table.fields["mode"], return_inverse=True)
    team = strategies * len(modes) + mode
    team = team.astype(np.min_scalar_type(int(team.max())))  # the smaller, the faster it is to sort by
    tells = (table.unit == 0) & np.isin(table.fields["kind"], KINDS) & np.isin(team, team[among.allowed])
    told = tells.take(columns.group[known])
    if seen_at is not None:
        told &= columns.recorded_at[known] <= micros(seen_at)
    company = np.flatnonzero(told)
    company = company[np.argsort(columns.ended_at[company], kind="stable")]
    teams = {
        number: _team(columns.ended_at[rows], columns.outcome[rows])
        for number, rows in _by_team(columns, team, company)
    }
    weights = np.full(len(columns.known_at), UNWEIGHTED)
    for number, rows in _by_team(columns, team, np.flatnonzero(among.allowed.take(columns.group[known]))):
        if number in teams:
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                weights[some] = teams[number].weights(columns.ended_at[some])
    starts = np.arange(len(columns.blocks.each)) * size
    best = np.maximum.reduceat(weights, starts) if len(starts) else weights
    return replace(among, periods=Periods(teams, team, weights, best))


def _by_team(columns: Columns, team: Array, rows: Whole) -> Iterator[tuple[int, Whole]]:
    """The rows of each team, in their order."""
    teams = team.take(columns.group[rows])
    order = np.argsort(teams, kind="stable")
    present, first = np.unique(teams[order], return_index=True)
    for number, (start, stop) in zip(present.tolist(), pairwise([*first.tolist(), len(rows)]), strict=True):
        yield number, rows[order[start:stop]]
