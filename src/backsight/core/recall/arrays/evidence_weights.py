"""The weights of trades as evidence for a base rate: K · Rec of many rows, as `score` defines both for one.

K is `score.number_similarity`. The computation runs in reused buffers and in single or double precision, which makes it
several times faster than `Similarity`. It is less exact for numbers that are close to the limits of the precision.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from backsight.core.recall.arrays.columns import NUMBERS, Booleans, Columns, Integers, RowSelection, values_at
from backsight.core.recall.score import DRAWDOWN_WEIGHT, DRAWDOWN_WIDTH, FARTHEST, PRICED, TAU_DAYS, Situation
from backsight.core.recall.score import NUMBERS as RELATIVE

Numbers = NDArray[np.floating]

WEIGHTS = {"drawdown_pct": DRAWDOWN_WEIGHT} | {name: w for name, (w, _) in RELATIVE.items() if name != "price"}
BUFFERS = len(WEIGHTS) + 1
TAU_MICROS = timedelta(days=TAU_DAYS) // timedelta(microseconds=1)
FAR = 75.0
"""Single precision clips squared distances here: e^−75 is still above 0, which means unknown."""


def positions_of(truths: Booleans) -> RowSelection:
    """The positions that are true; a full slice if all are."""
    positions = np.flatnonzero(truths)
    return slice(None) if len(positions) == len(truths) else positions


class EvidenceWeights:
    """K · Rec for one situation, computed in `BUFFERS` buffers and in their precision.

    Closeness is e^(−d²) with the distance d in units of √2 widths. The weight of a field enters as the logarithm of its
    share, e^(log share − d²), which saves a multiplication.
    """

    def __init__(self, columns: Columns, situation: Situation, buffers: Numbers) -> None:
        context, kind = situation.context, buffers.dtype
        values = {name: x for name in NUMBERS if (x := getattr(context, name)) is not None and name in WEIGHTS}
        self.columns = columns
        self.names = tuple(values)
        self.drawdown = context.drawdown_pct
        self.price = context.price
        total, (weight, bandwidth) = sum(WEIGHTS[name] for name in values), RELATIVE["price"]
        self.log_shares = _column((math.log(WEIGHTS[name] / total) for name in values), kind)
        """The logarithm of each number's share of K, price aside."""
        self.relative = RelativeDistance(
            [(x, RELATIVE[name][1]) for name, x in values.items() if name in RELATIVE], kind
        )
        self.price_distance = None
        """None if prices do not count."""
        if self.price is not None and situation.symbol is not None:
            self.price_distance = RelativeDistance([(self.price, bandwidth)], kind)
        self.price_share = weight / (total + weight)
        self.buffers = buffers[: max(1, len(values)) + 1]

    def of(self, rows: RowSelection, age: Integers, *, offset: int, same_symbol: RowSelection) -> Numbers:
        """The weight of each row, in a buffer that the next call overwrites.

        The age of a row in microseconds is `age + offset`; `same_symbol` are the positions of the rows with the
        situation's symbol.
        """
        buffers = self.buffers[:, : len(age)]
        weights: Numbers = buffers[0]
        scratch: Numbers = buffers[-1]
        # K: the sum of the closeness of all numbers, each times its share.
        if self.names:
            write_closeness(buffers[:-1], self.log_shares, complete=self._write_distances(buffers[:-1], rows, scratch))
            for more in buffers[1:-1]:
                weights += more
        else:
            weights.fill(1.0)
        if self.price_distance is not None:
            self._blend_price(weights, self.price_distance, rows, same_symbol)
        # Rec: 1 / √(1 + age/τ), with no negative ages.
        np.copyto(scratch, age, casting="same_kind")
        scratch *= 1.0 / TAU_MICROS
        scratch += 1.0 + offset / TAU_MICROS
        if offset < 0:
            np.maximum(scratch, 1.0, out=scratch)
        np.divide(weights, np.sqrt(scratch, out=scratch), out=weights)
        return weights

    def _write_distances(self, distances: Numbers, rows: RowSelection, scratch: Numbers) -> bool:
        """Write the distance of every number, and return whether no number is unknown."""
        for y, name in zip(distances, self.names, strict=True):
            np.copyto(y, values_at(getattr(self.columns, name), rows), casting="same_kind")
        # Numbers in price units, which come first, are scaled to the situation's price.
        priced = sum(name in PRICED for name in self.names)
        if priced and self.price:
            self._write_price_ratio(scratch, rows, abs(self.price))
            distances[:priced] *= scratch
        complete = self.relative.write(distances[: len(self.relative)])
        if self.drawdown is None:
            return complete
        return write_distance(distances[-1], self.drawdown, width=DRAWDOWN_WIDTH) and complete

    def _write_price_ratio(self, ratio: Numbers, rows: RowSelection, price: float) -> None:
        """Write the situation's price over the price of each row; 1 for rows without a price."""
        np.copyto(ratio, values_at(self.columns.price, rows), casting="same_kind")
        if not ratio.min() > 0.0:
            np.abs(ratio, out=ratio)
            ratio[~(ratio > 0.0)] = price
        np.divide(price, ratio, out=ratio)

    def _blend_price(
        self, weights: Numbers, distance: "RelativeDistance", rows: RowSelection, same_symbol: RowSelection
    ) -> None:
        """For rows of the same symbol, average the closeness of the price into K."""
        y = values_at(values_at(self.columns.price, rows), same_symbol).astype(weights.dtype)
        if len(y):
            write_closeness(y, math.log(self.price_share), complete=distance.write(y[None]))
            y += values_at(weights, same_symbol) * (1.0 - self.price_share)
            weights[same_symbol] = y


def _column(values: Iterable[float], kind: "np.dtype[np.floating]") -> Numbers:
    return np.array([[value] for value in values], kind)


class RelativeDistance:
    """Distances from some numbers, at widths that are a share of the mean absolute value of the two numbers.

    (x − y) / (|x| + |y|) is 2x / (x + y) − 1 for two numbers of one sign, and for others as if y were 0.
    """

    def __init__(self, numbers: Sequence[tuple[float, float]], kind: "np.dtype[np.floating]") -> None:
        """`numbers` are pairs of a number and its bandwidth."""
        self.zeros = [place for place, (x, _) in enumerate(numbers) if x == 0.0]
        self.negative = [place for place, (x, _) in enumerate(numbers) if x < 0.0]
        sizes = [abs(x) or 1.0 for x, _ in numbers]
        self.size = _column(sizes, kind)
        self.farthest = _column((math.sqrt(2.0) / bandwidth for _, bandwidth in numbers), kind)
        self.twice = _column((2.0 * math.sqrt(2.0) / b * x for x, (_, b) in zip(sizes, numbers, strict=True)), kind)

    def __len__(self) -> int:
        return len(self.size)

    def write(self, y: Numbers) -> bool:
        """Overwrite values, a row for each number, with their distances; return whether no value is unknown.

        >>> y = np.array([[50.0, 60.0, -50.0, np.nan]])
        >>> RelativeDistance([(50.0, 0.5)], y.dtype).write(y), y.round(3).tolist()
        (False, [[0.0, -0.257, 2.828, nan]])
        """
        if not len(y):
            return True
        for place in self.zeros:  # as if the number were 1: a value of 0 becomes 1, every other value becomes 0
            np.copyto(y[place], y[place] == 0.0, where=~np.isnan(y[place]))
        for place in self.negative:
            np.negative(y[place], out=y[place])
        complete = bool(y.min() >= 0.0)
        if not complete:
            np.maximum(y, 0.0, out=y)
        y += self.size
        np.divide(self.twice, y, out=y)
        y -= self.farthest
        return complete


def write_distance(y: Numbers, x: float, *, width: float) -> bool:
    """Overwrite values with their distance from x in units of √2 widths; return whether no value is unknown.

    >>> y = np.array([0.0, 0.05, np.nan, 2.0])
    >>> write_distance(y, 0.0, width=0.05), y.round(3).tolist()
    (False, [0.0, 0.707, nan, inf])
    """
    y -= x
    y *= 1.0 / (math.sqrt(2.0) * width)
    limit = math.sqrt(FAR)
    # The usual case: all values are known and near.
    if -limit <= y.min() and y.max() <= limit:
        return True
    if -limit <= np.fmin.reduce(y) and np.fmax.reduce(y) <= limit:
        return False
    beyond = np.abs(y) >= FARTHEST / math.sqrt(2.0)
    if y.dtype == np.float32:
        y.clip(-limit, limit, out=y)
    y[beyond] = np.inf
    return False


def write_closeness(distances: Numbers, log_share: Numbers | float, *, complete: bool) -> None:
    """Overwrite distances d with e^(log share − d²); unknown ones, if not complete, with 0."""
    np.square(distances, out=distances)
    np.subtract(log_share, distances, out=distances)
    np.exp(distances, out=distances)
    if not complete:
        np.fmax(distances, 0.0, out=distances)
