"""Sim of many rows at once, as `score.similarity` defines it for one.

The values agree with the plain definition to a relative `TOLERANCE`, whatever the size of the numbers; `scan` relies on
that. `evidence_weights` computes the numeric part in a faster way that is less exact for extreme numbers.
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from backsight.core.recall import score as plain
from backsight.core.recall.arrays.columns import SETTING_LABELS, Columns, Floats, Integers, RowSelection
from backsight.core.recall.arrays.selection import Selection
from backsight.core.recall.score import RecallMood, Situation
from backsight.core.text.stems import TEXT_WEIGHT

TOLERANCE = 1e-9
"""Relative difference that array arithmetic may have from the plain definition; the real one is far smaller."""
LEAST = 1e-190
"""Absolute difference: plain closeness is 0 from the distance `FARTHEST` on, array closeness is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringContext:
    """What rows are scored against: a situation, a mood and the present instant."""

    situation: Situation
    mood: RecallMood
    now: datetime


@dataclass(frozen=True, slots=True)
class Similarity:
    """Sim of rows for one situation; what does not depend on the row is computed once."""

    columns: Columns
    situation: Situation
    by_setting: Floats | None
    """The weight of the matching market labels, by setting code; None if the situation has none."""
    by_group: Floats | None
    """The weight of a matching direction, by group code; None if the situation has none."""
    total: float
    """The weight of all fields of the situation except the price."""
    numbers: float
    """The part of the total that does not come from labels."""
    price_weight: Floats | None
    """The weight of the price by group code: it counts for the same symbol only. None without a price."""
    is_word: NDArray[np.uint8] | None
    """By word code, 1 if the situation has the word; None if it has no words."""

    def upper_bound(self, rows: RowSelection) -> Floats:
        """The highest Sim that each row can have: as if its numbers and its text matched fully."""
        price = 0.0 if self.price_weight is None else plain.NUMBERS["price"][0]
        total = self.total + price
        if total == 0:
            return np.full(len(self.columns.group[rows]), plain.NO_CONTEXT)
        rest = (self.numbers + price) / total
        if self.by_setting is None:
            bound = np.full(len(self.columns.group[rows]), rest)
        else:
            bound = (self.by_setting / total + rest).take(self.columns.setting[rows])
        if self.by_group is not None:
            bound += (self.by_group / total).take(self.columns.group[rows])
        return bound if self.price_weight is None else np.maximum(bound, plain.NO_CONTEXT, out=bound)

    def of(self, rows: RowSelection) -> Floats:
        """Sim of each row."""
        columns, context = self.columns, self.situation.context
        groups = columns.group[rows]
        # Sum the weighted closeness field by field: labels, numbers, drawdown, text, price.
        score = np.zeros(len(groups)) if self.by_setting is None else self.by_setting.take(columns.setting[rows])
        if self.by_group is not None:
            score += self.by_group.take(groups)
        self._add_numbers(score, rows)
        if context.drawdown_pct is not None:
            drawdown = columns.drawdown_pct[rows]
            score += plain.DRAWDOWN_WEIGHT * _closeness(drawdown, context.drawdown_pct, width=plain.DRAWDOWN_WIDTH)
        if self.is_word is not None:
            score += (TEXT_WEIGHT / len(self.situation.words)) * self._matching_words(self.is_word, rows)
        if self.price_weight is None or context.price is None:
            return _mean(score, self.total)
        weight = self.price_weight.take(groups)
        score += weight * _closeness(columns.price[rows], context.price, bandwidth=plain.NUMBERS["price"][1])
        return _mean(score, self.total + weight)

    def _add_numbers(self, score: Floats, rows: RowSelection) -> None:
        """Add the weighted closeness of the numbers other than drawdown and price."""
        context = self.situation.context
        price = np.abs(self.columns.price[rows]) if context.price else None
        has_price = None if price is None else price > 0
        all_priced = has_price is not None and bool(has_price.all())
        for name, (weight, bandwidth) in plain.NUMBERS.items():
            x = getattr(context, name)
            if x is None or name == "price":
                continue
            y: Floats = getattr(self.columns, name)[rows]
            if name in plain.PRICED and price is not None and has_price is not None and context.price:
                share = x / abs(context.price)
                y = y / price if all_priced else np.where(has_price, y / price, y)
                x = share if all_priced else np.where(has_price, share, x)
            score += weight * _closeness(y, x, bandwidth=bandwidth)

    def _matching_words(self, is_word: NDArray[np.uint8], rows: RowSelection) -> Integers:
        """The number of the situation's words in each row."""
        codes, ends = self.columns.words, self.columns.word_ends[rows].astype(np.int64)
        # Get the word codes of these rows one after the other, and the index at which each row's words end.
        if isinstance(rows, slice):
            first = int(self.columns.word_ends[rows.start - 1]) if rows.start else 0
            codes = codes[first : ends[-1]]
            ends -= first
        else:
            starts = np.where(rows > 0, self.columns.word_ends[rows - 1], 0).astype(np.int64)
            lengths = ends - starts
            ends = np.cumsum(lengths)
            codes = codes[np.arange(int(lengths.sum())) + np.repeat(starts - ends + lengths, lengths)]
        # Count the matches up to each row's end, and subtract the count up to the end of the row before.
        matches = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(is_word.take(codes), out=matches[1:])
        by_row = matches[ends]
        by_row[1:] -= by_row[:-1].copy()
        return by_row


def similarity_to(situation: Situation, selection: Selection) -> Similarity:
    """Prepare the similarity of the selected rows to a situation."""
    columns, context, fields = selection.columns, situation.context, selection.table.fields
    labels = sum(weight for name, weight in plain.CATEGORIES.items() if getattr(context, name) is not None)
    numbers = sum(w for name, (w, _) in plain.NUMBERS.items() if name != "price" and getattr(context, name) is not None)
    numbers += plain.DRAWDOWN_WEIGHT * (context.drawdown_pct is not None) + TEXT_WEIGHT * bool(situation.words)
    by_group = price_weight = is_word = None
    if situation.direction is not None:
        labels += plain.DIRECTION_WEIGHT
        by_group = plain.DIRECTION_WEIGHT * (fields["direction"] == situation.direction)
    if context.price is not None:
        price_weight = plain.NUMBERS["price"][0] * (fields["symbol"] == (situation.symbol or ""))
    if situation.words:
        vocabulary = columns.vocabulary.words
        codes = [code for word in situation.words if (code := vocabulary.codes.get(word)) is not None]
        is_word = np.zeros(len(vocabulary.values), np.uint8)
        is_word[codes] = 1
    by_setting = _setting_weights(situation)
    return Similarity(columns, situation, by_setting, by_group, labels + numbers, numbers, price_weight, is_word)


def _setting_weights(situation: Situation) -> Floats | None:
    """The weight of the labels that match the situation's, by setting code."""
    labels = {name: label for name in plain.CATEGORIES if (label := getattr(situation.context, name)) is not None}
    if not labels:
        return None
    matches = (plain.CATEGORIES[name] * (SETTING_LABELS[name] == label) for name, label in labels.items())
    return np.asarray(sum(matches, np.zeros(len(SETTING_LABELS["regime"]))))


def _closeness(y: Floats, x: float | Floats, *, width: float | None = None, bandwidth: float = 0.0) -> Floats:
    """`score.closeness` of many values, at one width or at a width relative to both values; 0 for unknown values."""
    z: Floats = np.subtract(y, x)
    scale = -0.5
    # Where squares or products of x could underflow, or x is infinite, scale first and set equal values to 1.
    careful = not isinstance(x, float | int) or not LEAST <= abs(x) < np.inf
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


def _mean(score: Floats, total: float | Floats) -> Floats:
    """The score over the total weight, at most 1; `NO_CONTEXT` without weight."""
    if isinstance(total, np.ndarray):
        score = np.where(total > 0, score / total, plain.NO_CONTEXT)
    elif total > 0:
        score /= total
    else:
        score.fill(plain.NO_CONTEXT)
    return np.minimum(score, 1.0, out=score)
