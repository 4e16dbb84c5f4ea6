"""The scan: every candidate scored at once, in arrays; the same ids, order and factors as `score` gives one by one.

Blocks are looked at newest first, and one is passed over only if the best it can hold would not be among the best
found so far. Arrays select, a hair too many; the few that are left are scored by `score` itself, which has the last
word on factors and order. What is like nothing asked with is no matter of a hair: its score is 0 in both.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from backsight.core.portfolio import Direction, Mode
from backsight.core.recall import score as plain
from backsight.core.recall.columns import NUMBERS as HELD_NUMBERS
from backsight.core.recall.columns import (
    UNITS,
    Array,
    Columns,
    Floats,
    GroupTable,
    Truths,
    Whole,
    micros,
    parts,
)
from backsight.core.recall.period import BEST_SHARPE, KINDS, LEAST_COMPANY, PERIOD, UNWEIGHTED, YEARLY, sharpe_weight
from backsight.core.recall.score import Factors, Query, Temper, affect, quality, recency, similarity
from backsight.core.recall.words import TEXT_WEIGHT, text_likeness
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.trades.trade import Outcome, OutcomeUnit

Rows = slice | Whole
WARNINGS = 3
HAIR = 1e-9
"""Share by which array arithmetic may differ from the plain one, with much to spare."""
LEAST = 1e-190
"""Below this arrays may differ from the plain arithmetic by more: it takes what is farther than `FARTHEST` for 0."""
SAFE_SQUARES = (1e-280, 1e300)
"""Sums of squares beyond these may have lost or overflown something."""
DAY = timedelta(days=1) / timedelta(microseconds=1)
MONTH = PERIOD // timedelta(microseconds=1)
FEW = 128
"""Up to so many rows are judged one by one, without a look for equal ones."""


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
class Hit:
    """One episode that came to mind."""

    id: str
    row: int
    value: float
    """What it was ranked by."""
    factors: Factors


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What came to mind, of how many candidates."""

    memories: tuple[Hit, ...]
    """By Score."""
    nearest: tuple[Hit, ...]
    """By Sim · Rec, blind to the outcome."""
    warnings: tuple[Hit, ...]
    """Losing episodes by sigmoid(−2x/σ) · Sim · Rec · Conf."""
    candidates: int
    sigma: Mapping[OutcomeUnit, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query at an instant."""

    query: Query
    temper: Temper
    now: datetime


def scan(
    columns: Columns,
    query: Query,
    filters: Filters | None = None,
    *,
    as_of: datetime,
    seen_at: datetime | None = None,
    limit: int = 10,
    temper: Temper | None = None,
    period_weight: bool = False,
    after: tuple[float, str] | None = None,
) -> Scan:
    """The best memories, the nearest and the warnings among all that was known; ties by id.

    `after` is score and id of the last memory of the page before. Episodes without an end, or put away, are no
    candidates. With `period_weight` scores are weighted by how the strategy fared at the time.

    >>> from backsight.core.recall.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=r) for n, r in enumerate((3.0, -1.0, 0.5)))
    >>> found = scan(columns, Query(symbol="XAUUSD"), as_of=T0, limit=2)
    >>> [(hit.id, round(hit.value, 3)) for hit in found.memories]
    [('episode-000000', 0.361), ('episode-000002', 0.237)]
    >>> [hit.id for hit in found.nearest], [hit.id for hit in found.warnings], found.candidates
    (['episode-000000', 'episode-000001'], ['episode-000001'], 3)
    """
    asked = Asked(query=query, temper=temper or Temper(), now=as_of)
    with np.errstate(all="ignore"):
        among = candidates_of(columns, filters or Filters(), as_of=as_of, seen_at=seen_at)
        if period_weight:
            among = with_periods(among, as_of=as_of, seen_at=seen_at)
        lists = Lists.empty(among, asked, limit=limit, after=after)
        _sweep(among, asked, lists)
    judge = Judge(among, asked)
    return Scan(
        memories=judge.ranked(lists.memories, by_score),
        nearest=judge.ranked(lists.nearest, by_nearness),
        warnings=judge.ranked(lists.warnings, by_dread),
        candidates=int(among.counts.sum()),
        sigma=among.sigma,
    )


def by_score(factors: Factors) -> float:
    return factors.score


def by_nearness(factors: Factors) -> float:
    return factors.nearness


def by_dread(factors: Factors) -> float:
    return factors.dread


# Candidates


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


# Likeness


@dataclass(frozen=True, slots=True)
class Likeness:
    """Sim of many rows for one query: what does not depend on the row is worked out once."""

    columns: Columns
    asked: Asked
    settings: Floats | None
    """What regime, volatility regime and session add, by setting."""
    groups: Floats | None
    """What the direction adds, by group."""
    total: float
    """The weight of the fields asked with, but for the price."""
    numbers: float
    """The weight of those of them that are neither labels nor the price."""
    priced: Floats | None
    """The weight of the price by group; None where it does not count."""
    texts: NDArray[np.uint8] | None
    """Which words are asked with."""

    def at_most(self, rows: Rows) -> Floats:
        """What Sim of each row can be, if its numbers and its text are as alike as can be."""
        priced = 0.0 if self.priced is None else plain.NUMBERS["price"][0]
        total = self.total + priced
        if total == 0:
            return np.full(len(self.columns.group[rows]), plain.NO_CONTEXT)
        rest = (self.numbers + priced) / total
        if self.settings is None:
            found = np.full(len(self.columns.group[rows]), rest)
        else:
            found = (self.settings / total + rest).take(self.columns.setting[rows])
        if self.groups is not None:
            found += (self.groups / total).take(self.columns.group[rows])
        return found if self.priced is None else np.maximum(found, plain.NO_CONTEXT, out=found)

    def of(self, rows: Rows) -> Floats:
        """Sim of each row."""
        columns, context = self.columns, self.asked.query.context
        groups = columns.group[rows]
        found = np.zeros(len(groups)) if self.settings is None else self.settings.take(columns.setting[rows])
        if self.groups is not None:
            found += self.groups.take(groups)
        self._add_numbers(found, rows)
        if context.drawdown_pct is not None:
            held = columns.drawdown_pct[rows]
            found += plain.DRAWDOWN_WEIGHT * _closeness(held, context.drawdown_pct, width=plain.DRAWDOWN_WIDTH)
        if self.texts is not None:
            found += (TEXT_WEIGHT / len(self.asked.query.words)) * self._said(self.texts, rows)
        if self.priced is not None and context.price is not None:
            weight = self.priced.take(groups)
            bandwidth = plain.NUMBERS["price"][1]
            found += weight * _closeness(columns.price[rows], context.price, bandwidth=bandwidth)
            return _share(found, self.total + weight)
        return _share(found, self.total)

    def _add_numbers(self, found: Floats, rows: Rows) -> None:
        context = self.asked.query.context
        price = np.abs(self.columns.price[rows]) if context.price else None
        known = None if price is None else price > 0
        everywhere = known is not None and bool(known.all())
        for name, (weight, bandwidth) in plain.NUMBERS.items():
            x = getattr(context, name)
            if x is None or name == "price":
                continue
            y: Floats = getattr(self.columns, name)[rows]
            if name in plain.PRICED and price is not None and known is not None and context.price:
                share = x / abs(context.price)
                y = y / price if everywhere else np.where(known, y / price, y)
                x = share if everywhere else np.where(known, share, x)
            found += weight * _closeness(y, x, bandwidth=bandwidth)

    def _said(self, texts: NDArray[np.uint8], rows: Rows) -> Whole:
        """How many of the words asked with each row has."""
        held, ends = self.columns.words, self.columns.word_ends[rows].astype(np.int64)
        if isinstance(rows, slice):
            first = int(self.columns.word_ends[rows.start - 1]) if rows.start else 0
            held = held[first : ends[-1]]
            ends -= first
        else:
            starts = np.where(rows > 0, self.columns.word_ends[rows - 1], 0).astype(np.int64)
            lengths = ends - starts
            ends = np.cumsum(lengths)
            held = held[np.arange(int(lengths.sum())) + np.repeat(starts - ends + lengths, lengths)]
        said = np.zeros(len(held) + 1, np.int64)
        np.cumsum(texts.take(held), out=said[1:])
        upto = said[ends]
        upto[1:] -= upto[:-1].copy()
        return upto


def likeness_of(among: Candidates, asked: Asked) -> Likeness:
    columns, context, direction = among.columns, asked.query.context, asked.query.direction
    labels = sum(weight for name, weight in plain.CATEGORIES.items() if getattr(context, name) is not None)
    numbers = sum(w for name, (w, _) in plain.NUMBERS.items() if name != "price" and getattr(context, name) is not None)
    numbers += plain.DRAWDOWN_WEIGHT * (context.drawdown_pct is not None) + TEXT_WEIGHT * bool(asked.query.words)
    groups = priced = texts = None
    if direction is not None:
        labels += plain.DIRECTION_WEIGHT
        groups = plain.DIRECTION_WEIGHT * (among.table.fields["direction"] == direction)
    if context.price is not None:
        priced = plain.NUMBERS["price"][0] * (among.table.fields["symbol"] == (asked.query.symbol or ""))
    if asked.query.words:
        texts = np.zeros(len(columns.vocabulary.words.values), np.uint8)
        codes = map(columns.vocabulary.words.codes.get, asked.query.words)
        texts[[code for code in codes if code is not None]] = 1
    return Likeness(columns, asked, _settings(asked), groups, labels + numbers, numbers, priced, texts)


def _settings(asked: Asked) -> Floats | None:
    context = asked.query.context
    if context.regime is None and context.volatility_regime is None and context.session is None:
        return None
    axes = ((REGIMES, context.regime), (VOLATILITY_REGIMES, context.volatility_regime), (SESSIONS, context.session))
    hits = (
        [weight * (value is not None and value == wanted) for value in (None, *values)]
        for weight, (values, wanted) in zip(plain.CATEGORIES.values(), axes, strict=True)
    )
    regime, volatility, session = (np.array(hit) for hit in hits)
    added: Floats = regime[:, None, None] + volatility[None, :, None] + session[None, None, :]
    return added.ravel()


def _closeness(y: Floats, x: float | Floats, *, width: float | None = None, bandwidth: float = 0.0) -> Floats:
    """`score.closeness` of many values; 0 where the value is not known."""
    z: Floats = np.subtract(y, x)
    scale = -0.5
    careful = not isinstance(x, float | int) or abs(x) < LEAST
    if width is not None:
        scale /= width * width
    else:
        h = np.abs(y)
        h += np.abs(x)
        if careful:
            h *= bandwidth
            h *= 0.5
        else:
            scale /= bandwidth * bandwidth / 4.0
        z /= h
    np.square(z, out=z)
    z *= scale
    np.exp(z, out=z)
    if careful:
        z[y == x] = 1.0
    return np.fmax(z, 0.0, out=z)


def _share(found: Floats, total: float | Floats) -> Floats:
    if isinstance(total, np.ndarray):
        found = np.where(total > 0, found / total, plain.NO_CONTEXT)
    elif total > 0:
        found /= total
    else:
        found.fill(plain.NO_CONTEXT)
    return np.minimum(found, 1.0, out=found)


# Sweeping


class Best:
    """Rows that may be among the k with the highest values: those, and what is within a hair of the last."""

    def __init__(self, k: int, *, ids: Array, after: tuple[float, str] | None = None) -> None:
        self.k = k
        self.ids = ids
        self.after = after
        self.floor = 0.0 if k else math.inf
        """What a value must have; nothing is below 0 but what does not count."""
        self.values: Floats = np.empty(0)
        self.rows: Whole = np.empty(0, np.int64)
        self.unlike: Whole = np.empty(0, np.int64)
        """Of the rows that are like nothing asked with, whose value is 0, those with the first ids."""

    def may_take(self, bound: float) -> bool:
        """Whether rows with values up to a bound can matter."""
        return bound * (1.0 + HAIR) >= self.floor

    def offer(self, values: Floats, rows: Rows, *, unlike: Truths | None, only: Truths | None = None) -> None:
        """Take of these rows what may matter; of those that are like nothing asked with, few do."""
        kept = values >= self.floor
        if only is not None:
            kept &= only
        if unlike is not None:
            self._take_unlike(_at(rows, np.flatnonzero(kept & unlike)))
            kept &= ~unlike
        if self.after is not None:
            kept &= values <= self.after[0] * (1.0 + HAIR) + LEAST
        places = np.flatnonzero(kept)
        if len(places):
            self.values = np.concatenate([self.values, values[places]])
            self.rows = np.concatenate([self.rows, _at(rows, places)])
            self._raise_floor()

    def _take_unlike(self, rows: Whole) -> None:
        """Keep the first ids: of equals they are the best."""
        if self.after is not None and self.after[0] == 0:
            rows = rows[self.ids[rows] > self.after[1].encode()]
        if len(rows) and len(self.unlike) == self.k:
            rows = rows[self.ids[rows] < self.ids[self.unlike[-1]]]
        if len(rows):
            rows = np.concatenate([self.unlike, rows])
            self.unlike = rows[np.argsort(self.ids[rows], kind="stable")[: self.k]]

    def _raise_floor(self) -> None:
        sure = self.values
        if self.after is not None:  # about the score of the page's start only the id decides, later
            sure = sure[sure < self.after[0] * (1.0 - HAIR) - LEAST]
        if len(sure) < self.k:
            return
        last = float(np.partition(sure, len(sure) - self.k)[len(sure) - self.k])
        self.floor = max(0.0, last * (1.0 - HAIR) - LEAST)
        kept = self.values >= self.floor
        self.values, self.rows = self.values[kept], self.rows[kept]


def _at(rows: Rows, places: Whole) -> Whole:
    return places + rows.start if isinstance(rows, slice) else rows[places]


@dataclass(frozen=True, slots=True)
class Lists:
    """The three parts of an answer."""

    memories: Best
    nearest: Best
    warnings: Best
    most: float
    """The most that Aff and Period can be together."""

    @classmethod
    def empty(cls, among: Candidates, asked: Asked, *, limit: int, after: tuple[float, str] | None) -> "Lists":
        ids, most = among.columns.ids, most_affect(asked.temper)
        if among.periods is not None:
            most *= float(among.periods.best.max(initial=UNWEIGHTED))
        return cls(Best(limit, ids=ids, after=after), Best(limit, ids=ids), Best(WARNINGS, ids=ids), most)

    @property
    def floor(self) -> float:
        """What Sim · Rec must have for a row to matter to any of them; 0 as long as everything does."""
        return (1.0 - HAIR) * min(self.memories.floor / self.most, self.nearest.floor, self.warnings.floor)


def _sweep(among: Candidates, asked: Asked, lists: Lists) -> None:
    """Offer what every block has, newest first, but for what cannot be good enough."""
    likeness, now = likeness_of(among, asked), micros(asked.now)
    best, near, worst = (bound.tolist() for bound in _bounds(among, asked))
    for block in np.flatnonzero(among.counts)[::-1].tolist():
        remembers, warns = lists.memories.may_take(best[block]), lists.warnings.may_take(worst[block])
        if not (remembers or warns or lists.nearest.may_take(near[block])):
            continue
        rows = among.rows(block)
        if lists.floor > 0:
            rows = _hopeful(among, likeness, lists, rows, now)
            if not len(rows):
                continue
        values = likeness.of(rows)
        fade(values, among.columns.ended_at[rows], now)
        unlike = None if lists.floor > 0 or values.all() else values == 0
        lists.nearest.offer(values, rows, unlike=unlike)
        if remembers or warns:
            scores, dread, lost = products(among, asked, rows, values)
            lists.warnings.offer(dread, rows, unlike=unlike, only=lost)
            lists.memories.offer(scores, rows, unlike=unlike)


def _hopeful(among: Candidates, likeness: Likeness, lists: Lists, rows: Rows, now: int) -> Whole:
    """The rows that some list would take if their numbers were as alike as can be."""
    columns = among.columns
    bound = likeness.at_most(rows)
    fade(bound, columns.ended_at[rows], now)
    places = np.flatnonzero(bound >= lists.floor)
    rows = _at(rows, places)
    bound = bound[places] * (1.0 + HAIR)
    x = columns.outcome[rows]
    good = _quality(x, among.table.unit.take(columns.group[rows]), among.sigma)
    sure = bound * columns.conviction[rows]
    kept = bound >= lists.nearest.floor
    kept |= sure * good * lists.most >= lists.memories.floor
    kept |= (sure * (1.0 - good) >= lists.warnings.floor) & (x < 0)
    return rows[kept]


def products(among: Candidates, asked: Asked, rows: Rows, values: Floats) -> tuple[Floats, Floats, Truths]:
    """Of rows with their Sim · Rec, which is used up: scores, what they rank by as warnings, and which of them lost."""
    columns = among.columns
    x, units = columns.outcome[rows], among.table.unit.take(columns.group[rows])
    good = _quality(x, units, among.sigma)
    values *= columns.conviction[rows]
    dread = (1.0 - good) * values
    good *= values
    if asked.temper.drawdown_state > 0.5:
        in_r = units == 0
        good *= np.where(in_r & (x < -1.5), 1.15, np.where(in_r & (x > 2.0), 1.09, 1.0))
    elif asked.temper.consecutive_losses >= 3:
        good *= np.where(units < 0, 1.0, np.where(x > 0, 1.09, 0.94))
    if among.periods is not None:
        good *= among.periods.weights[rows]
    return good, dread, x < 0


def fade(values: Floats, ended: Whole, now: int) -> None:
    """Multiply values by Rec, 1 / √(1 + age/τ)."""
    age = (now - ended) * (1.0 / (DAY * 30.0))
    np.maximum(age, 0.0, out=age)
    age += 1.0
    values /= np.sqrt(age, out=age)


def _quality(x: Floats, units: NDArray[np.int8], sigma: Mapping[OutcomeUnit, float]) -> Floats:
    """Q of many outcomes; NaN is none."""
    by_unit = np.array([*(sigma.get(unit, np.nan) for unit in UNITS), np.nan])
    q: Floats = -2.0 * x
    q /= by_unit.take(units, mode="wrap") if len(sigma) != 1 else next(iter(sigma.values()))
    np.exp(q, out=q)
    q += 1.0
    np.reciprocal(q, out=q)
    missing = np.isnan(q)
    if missing.any():
        q[missing] = 0.5
    return q


def _bounds(among: Candidates, asked: Asked) -> tuple[Floats, Floats, Floats]:
    """What Score, Sim · Rec and the rank of a warning can be at most in each block, were all as alike as can be."""
    blocks = among.columns.blocks
    rec = np.ones(len(blocks.each))
    fade(rec, blocks.ended[:, 1], micros(asked.now))
    good = np.full(len(rec), 0.5)
    dread = np.full(len(rec), -1.0)
    for number, unit in enumerate(UNITS):
        if unit in among.sigma:
            highest, lowest = blocks.highest[:, number], blocks.lowest[:, number]
            good = np.fmax(good, 1.0 / (1.0 + np.exp(-2.0 * highest / among.sigma[unit])))
            losing = 1.0 / (1.0 + np.exp(2.0 * lowest / among.sigma[unit]))
            dread = np.where(lowest < 0, np.fmax(dread, losing), dread)
    good *= most_affect(asked.temper)
    if among.periods is not None:
        good *= among.periods.best
    alone = rec * blocks.conviction
    return good * alone, rec, dread * alone


def most_affect(temper: Temper) -> float:
    """The most that Aff can be in a mood.

    >>> [most_affect(Temper(drawdown_state=d, consecutive_losses=3 * n)) for d, n in ((0, 0), (0, 1), (1, 0))]
    [1.0, 1.09, 1.15]
    """
    return max(affect(Outcome(value=x, unit="R"), temper) for x in (-2.0, 0.5, 3.0))


# Judging


@dataclass(frozen=True, slots=True)
class Judge:
    """The plain score of the few rows that are left."""

    among: Candidates
    asked: Asked
    known: dict[int, Factors] = field(default_factory=dict)

    def ranked(self, best: Best, by: Callable[[Factors], float]) -> tuple[Hit, ...]:
        """The k best in order, ties by id."""
        rows = np.concatenate([best.rows, best.unlike])
        alike = self.alike(rows)
        values = {row: by(self.factors(row)) for row in set(alike)}
        names = map(self.among.columns.id, rows.tolist())
        ranked = [(-values[like], name, row, like) for name, row, like in zip(names, rows.tolist(), alike, strict=True)]
        if best.after is not None:
            start = (-best.after[0], best.after[1])
            ranked = [each for each in ranked if each[:2] > start]
        return tuple(
            Hit(id=name, row=row, value=-value, factors=self.factors(like))
            for value, name, row, like in heapq.nsmallest(best.k, ranked)
        )

    def factors(self, row: int) -> Factors:
        """The factors of a row."""
        if row not in self.known:
            self.known[row] = self._judged(row)
        return self.known[row]

    def _judged(self, row: int) -> Factors:
        columns, asked, periods = self.among.columns, self.asked, self.among.periods
        outcome = columns.outcome_of(row)
        return Factors(
            Q=quality(outcome, sigma=self.among.sigma),
            Sim=self._sim(row),
            Rec=recency(columns.ended(row), now=asked.now),
            Conf=float(columns.conviction[row]),
            Aff=affect(outcome, asked.temper),
            Period=UNWEIGHTED if periods is None else periods.exactly(columns, row),
        )

    def _sim(self, row: int) -> float:
        columns, query = self.among.columns, self.asked.query
        group, context = columns.group_of(row), columns.context(row)
        share = text_likeness(query.words, columns.words_of(row)) if query.words else None
        return similarity(query, symbol=group.symbol, direction=group.direction, context=context, text=share)

    def alike(self, rows: Whole) -> list[int]:
        """For each row one that scores the same, so that of a thousand equal ones a single one is scored."""
        if len(rows) <= FEW:
            return [int(row) for row in rows]
        columns, words = self.among.columns, self.asked.query.words
        names = ("ended_at", "outcome", "conviction", *HELD_NUMBERS)
        profile = [getattr(columns, name)[rows].view(np.int64) for name in names]
        profile += [getattr(columns, name)[rows].astype(np.int64) for name in ("group", "setting")]
        if words:
            profile.append(np.array([len(words.intersection(columns.words_of(int(row)))) for row in rows]))
        keys = np.stack(profile, axis=1).view(f"V{8 * len(profile)}").ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return [int(row) for row in rows[first[inverse]]]
