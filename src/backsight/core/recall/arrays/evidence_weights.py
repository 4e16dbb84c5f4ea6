"""Weights: how much each of many trades has to say about what is asked, K · Rec, in arrays.

K is the part of Sim that is over numbers: the weighted mean closeness over those that the query gives. A number that a
trade lacks scores 0; price counts for the query's own symbol only. Where nothing can be compared, K is 1.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from backsight.core.context import ContextVector
from backsight.core.recall.arrays.columns import NUMBERS, Array, Columns, Truths, Whole
from backsight.core.recall.score import DRAWDOWN_WEIGHT, DRAWDOWN_WIDTH, FARTHEST, PRICED, Situation, similarity
from backsight.core.recall.score import NUMBERS as RELATIVE

Rows = slice | Whole
Numbers = NDArray[np.floating]

WEIGHTS = {"drawdown_pct": DRAWDOWN_WEIGHT} | {name: w for name, (w, _) in RELATIVE.items() if name != "price"}
BUFFERS = len(WEIGHTS) + 1
TAU = timedelta(days=30) // timedelta(microseconds=1)
HARDLY_ALIKE = 75.0
"""Single precision goes no further down than e to the minus this, lest what is hardly alike be taken for missing."""


def likeness(query: Situation, *, symbol: str, context: ContextVector) -> float:
    """K of a single trade, by the plain definition.

    >>> now, then = ContextVector(price=5000.0, atr_d1=50.0), ContextVector(price=2000.0, atr_d1=20.0)
    >>> [likeness(Situation(context=asked), symbol="XAUUSD", context=then) for asked in (now, ContextVector())]
    [1.0, 1.0]
    """
    given = {name: getattr(query.context, name) for name in NUMBERS}
    if all(x is None or (name == "price" and symbol != query.symbol) for name, x in given.items()):
        return 1.0
    asked = Situation(symbol=query.symbol, context=ContextVector(**given))
    return similarity(asked, symbol=symbol, direction=None, context=context)


def held(column: Array, rows: Rows) -> Array:
    """A column's values in some rows."""
    return column[rows] if isinstance(rows, slice) else column.take(rows)


def places_of(truths: Truths) -> Rows:
    """Where it is so: everywhere, or in these places."""
    places = np.flatnonzero(truths)
    return slice(None) if len(places) == len(truths) else places


class Weights:
    """K · Rec for one query, worked out in buffers of `BUFFERS` rows, in their precision."""

    def __init__(self, columns: Columns, query: Situation, buffers: Numbers) -> None:
        context, kind = query.context, buffers.dtype
        asked = {name: x for name in NUMBERS if (x := getattr(context, name)) is not None and name in WEIGHTS}
        self.columns = columns
        self.names = tuple(asked)
        self.drawdown = context.drawdown_pct
        self.price = context.price
        total, (weight, bandwidth) = sum(WEIGHTS[name] for name in asked), RELATIVE["price"]
        self.shares = _column((math.log(WEIGHTS[name] / total) for name in asked), kind)
        """Of each number but the price: the logarithm of the share of K that it makes."""
        self.relative = Relative([(x, RELATIVE[name][1]) for name, x in asked.items() if name in RELATIVE], kind)
        self.own_price = None
        """How far a price is; None where prices do not count."""
        if self.price is not None and query.symbol is not None:
            self.own_price = Relative([(self.price, bandwidth)], kind)
        self.price_share = weight / (total + weight)
        self.buffers = buffers[: max(1, len(asked)) + 1]

    def of(self, rows: Rows, back: Whole, *, ahead: int, same: Rows) -> Numbers:
        """The weight of each row; the next call writes over it.

        Rows ended so many microseconds back from an instant that the one asked is `ahead` of; `same` are those of the
        symbol asked for.
        """
        buffers = self.buffers[:, : len(back)]
        found: Numbers = buffers[0]
        other: Numbers = buffers[-1]
        if self.names:
            bell(buffers[:-1], self.shares, whole=self._measure(buffers[:-1], rows, other))
            for more in buffers[1:-1]:
                found += more
        else:
            found.fill(1.0)
        if self.own_price is not None:
            self._add_price(found, self.own_price, rows, same)
        np.copyto(other, back, casting="same_kind")
        other *= 1.0 / TAU
        other += 1.0 + ahead / TAU
        if ahead < 0:
            np.maximum(other, 1.0, out=other)
        np.divide(found, np.sqrt(other, out=other), out=found)
        return found

    def _measure(self, apart: Numbers, rows: Rows, ratio: Numbers) -> bool:
        """Write how far each number is from what is asked for, and say whether none is missing."""
        for y, name in zip(apart, self.names, strict=True):
            np.copyto(y, held(getattr(self.columns, name), rows), casting="same_kind")
        priced = sum(name in PRICED for name in self.names)  # which come first
        if priced and self.price:
            self._fill_price_ratio(ratio, rows, abs(self.price))
            apart[:priced] *= ratio
        whole = self.relative.measure(apart[: len(self.relative)])
        return whole if self.drawdown is None else measure(apart[-1], self.drawdown, width=DRAWDOWN_WIDTH) and whole

    def _fill_price_ratio(self, ratio: Numbers, rows: Rows, price: float) -> None:
        """What the price asked for is in prices of the rows; 1 where they have none."""
        np.copyto(ratio, held(self.columns.price, rows), casting="same_kind")
        if not ratio.min() > 0.0:
            np.abs(ratio, out=ratio)
            ratio[~(ratio > 0.0)] = price
        np.divide(price, ratio, out=ratio)

    def _add_price(self, found: Numbers, price: "Relative", rows: Rows, same: Rows) -> None:
        y = held(held(self.columns.price, rows), same).astype(found.dtype)
        if len(y):
            bell(y, math.log(self.price_share), whole=price.measure(y[None]))
            y += held(found, same) * (1.0 - self.price_share)
            found[same] = y


def _column(values: Iterable[float], kind: "np.dtype[np.floating]") -> Numbers:
    return np.array([[value] for value in values], kind)


class Relative:
    """Distances at widths that are a share of the mean size of the two values, for some numbers asked for.

    (x − y) / (|x| + |y|) is 2x / (x + y) − 1 for two values of one sign, and for others as if y were 0.
    """

    def __init__(self, asked: Sequence[tuple[float, float]], kind: "np.dtype[np.floating]") -> None:
        self.zeros = [place for place, (x, _) in enumerate(asked) if x == 0.0]
        self.negative = [place for place, (x, _) in enumerate(asked) if x < 0.0]
        sizes = [abs(x) or 1.0 for x, _ in asked]
        self.size = _column(sizes, kind)
        self.farthest = _column((math.sqrt(2.0) / bandwidth for _, bandwidth in asked), kind)
        self.twice = _column((2.0 * math.sqrt(2.0) / b * x for x, (_, b) in zip(sizes, asked, strict=True)), kind)

    def __len__(self) -> int:
        return len(self.size)

    def measure(self, y: Numbers) -> bool:
        """Write over values, a row for each number, how far they are in √2 widths; and say whether none is missing.

        >>> y = np.array([[50.0, 60.0, -50.0, np.nan]])
        >>> Relative([(50.0, 0.5)], y.dtype).measure(y), y.round(3).tolist()
        (False, [[0.0, -0.257, 2.828, nan]])
        """
        if not len(y):
            return True
        for place in self.zeros:
            np.copyto(y[place], y[place] == 0.0, where=~np.isnan(y[place]))  # as if 1 were asked for
        for place in self.negative:
            np.negative(y[place], out=y[place])
        whole = bool(y.min() >= 0.0)
        if not whole:
            np.maximum(y, 0.0, out=y)
        y += self.size
        np.divide(self.twice, y, out=y)
        y -= self.farthest
        return whole


def measure(y: Numbers, x: float, *, width: float) -> bool:
    """Write over values how far they are from one, in √2 widths, and say whether none is missing.

    >>> y = np.array([0.0, 0.05, np.nan, 2.0])
    >>> measure(y, 0.0, width=0.05), y.round(3).tolist()
    (False, [0.0, 0.707, nan, inf])
    """
    y -= x
    y *= 1.0 / (math.sqrt(2.0) * width)
    limit = math.sqrt(HARDLY_ALIKE)
    if -limit <= y.min() and y.max() <= limit:
        return True
    if -limit <= np.fmin.reduce(y) and np.fmax.reduce(y) <= limit:
        return False
    beyond = np.abs(y) >= FARTHEST / math.sqrt(2.0)
    if y.dtype == np.float32:
        y.clip(-limit, limit, out=y)
    y[beyond] = np.inf
    return False


def bell(apart: Numbers, share: Numbers | float, *, whole: bool) -> None:
    """Write e^(share − apart²) over distances; 0 for what is missing, if not the whole is there."""
    np.square(apart, out=apart)
    np.subtract(share, apart, out=apart)
    np.exp(apart, out=apart)
    if not whole:
        np.fmax(apart, 0.0, out=apart)
