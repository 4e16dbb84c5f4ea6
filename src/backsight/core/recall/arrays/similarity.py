"""Likeness: Sim of many rows at once, as `score.similarity` has it for one."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from backsight.core.recall import score as plain
from backsight.core.recall.arrays.candidates import Candidates, Rows
from backsight.core.recall.arrays.columns import Columns, Floats, Whole
from backsight.core.recall.score import RecallMood, Situation
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.text.stems import TEXT_WEIGHT

LEAST = 1e-190
"""Below this arrays may differ from the plain arithmetic by more: it takes what is farther than `FARTHEST` for 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringContext:
    """A query at an instant."""

    query: Situation
    temper: RecallMood
    now: datetime


@dataclass(frozen=True, slots=True)
class Likeness:
    """Sim of many rows for one query: what does not depend on the row is worked out once."""

    columns: Columns
    asked: ScoringContext
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


def likeness_of(among: Candidates, asked: ScoringContext) -> Likeness:
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


def _settings(asked: ScoringContext) -> Floats | None:
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
