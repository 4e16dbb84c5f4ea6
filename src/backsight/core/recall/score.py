"""The recall score, one function a factor: Score = Q · Sim · Rec · Conf · Aff, and · Period on request.

This is the plain definition, one episode at a time. `arrays` computes the same score for many episodes at once.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.instants import days_between
from backsight.core.numbers import sigmoid
from backsight.core.portfolio import Direction
from backsight.core.text.stems import TEXT_WEIGHT
from backsight.core.trades.trade import Outcome, OutcomeUnit

CATEGORIES = {"regime": 0.25, "volatility_regime": 0.15, "session": 0.10}
NUMBERS = {"atr_d1": (0.15, 0.3), "atr_h1": (0.10, 0.3), "spread_as_atr_pct": (0.05, 0.5), "price": (0.10, 0.2)}
"""Field: its weight, and its bandwidth as a share of the mean absolute value of the two numbers."""
DRAWDOWN_WEIGHT, DRAWDOWN_WIDTH = 0.10, 0.05
DIRECTION_WEIGHT = 0.10
NO_CONTEXT = 0.5
"""Sim if there is no field to compare."""
FARTHEST = 30.0
"""Distance in widths from which closeness counts as 0: e^−450 is still well above the smallest double."""
PRICED = ("atr_d1", "atr_h1")
"""Fields in price units: they are compared as a share of price if both prices are known."""

SIGMA_WITHOUT_OUTCOMES = 1.5
SIGMA_FLOOR_R = 0.5
OUTCOME_CLIP_R = 5.0
"""σ is the root mean square of the candidates' outcomes in one unit; for R, outcomes are clipped and σ has a floor."""

TAU_DAYS, DECAY = 30.0, 0.5

DRAWDOWN_MOOD = 0.5
"""Drawdown state above which large losses and large wins are favoured."""
LARGE_LOSS_R, LARGE_LOSS_AFFECT = -1.5, 1.15
LARGE_WIN_R, LARGE_WIN_AFFECT = 2.0, 1.09
LOSING_STREAK = 3
"""Consecutive losses from which wins are favoured."""
STREAK_WIN_AFFECT, STREAK_LOSS_AFFECT = 1.09, 0.94


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The situation that memories are compared with; a field that is None is not compared."""

    symbol: str | None = None
    joined: tuple[str, ...] = ()
    """Other symbols with the same underlying: their trades count as those of the symbol, but their prices do not."""
    direction: Direction | None = None
    context: ContextVector = field(default_factory=ContextVector)
    words: frozenset[str] = frozenset()
    """The stems of a description of the market."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbol and those joined with it; empty without a symbol.

        >>> Situation(symbol="BTC", joined=("BTC-PERP",)).symbols, Situation().symbols
        (('BTC', 'BTC-PERP'), ())
        """
        return () if self.symbol is None else (self.symbol, *self.joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMood:
    """The part of the agent's mood that the factor Aff depends on."""

    drawdown_state: float = 0.0
    consecutive_losses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreFactors:
    """The factors of one memory's score."""

    Q: float
    Sim: float
    Rec: float
    Conf: float
    Aff: float
    Period: float = 1.0

    @property
    def score(self) -> float:
        """The product of all factors.

        >>> ScoreFactors(Q=0.5, Sim=1.0, Rec=1.0, Conf=0.75, Aff=1.0).score
        0.375
        """
        return self.Q * self.Sim * self.Rec * self.Conf * self.Aff * self.Period

    @property
    def nearness(self) -> float:
        """Similarity and recency, whatever the outcome.

        >>> ScoreFactors(Q=0.1, Sim=0.8, Rec=0.5, Conf=0.75, Aff=1.0, Period=2.0).nearness
        0.4
        """
        return self.Sim * self.Rec

    @property
    def dread(self) -> float:
        """The rank value of a loss as a warning: 1 − Q, which is sigmoid(−2x/σ), in place of Q; no Aff and no Period.

        >>> ScoreFactors(Q=0.0, Sim=0.8, Rec=0.5, Conf=0.75, Aff=1.15).dread
        0.30000000000000004
        """
        return (1.0 - self.Q) * self.Sim * self.Rec * self.Conf


def quality(outcome: Outcome | None, *, sigma: Mapping[OutcomeUnit, float]) -> float:
    """Q: sigmoid(2·x/σ) with the σ of the outcome's unit; .5 without an outcome.

    >>> [round(quality(Outcome(value=r, unit="R"), sigma={"R": 1.5}), 3) for r in (3, 0.5, -1, -3)]
    [0.982, 0.661, 0.209, 0.018]
    >>> quality(None, sigma={})
    0.5
    """
    if outcome is None or outcome.value == 0:
        return 0.5
    return sigmoid(2.0 * outcome.value / sigma.get(outcome.unit, SIGMA_WITHOUT_OUTCOMES))


def closeness(x: float, y: float, *, width: float) -> float:
    """exp(−½((x−y)/h)²); 1 for equal values, zeros included.

    >>> closeness(2.0, 2.0, width=0.6), closeness(0.0, 0.0, width=0.0), round(closeness(2.0, 2.6, width=0.6), 3)
    (1.0, 1.0, 0.607)
    """
    if x == y:
        return 1.0
    if width == 0:
        return 0.0
    z = (x - y) / width
    return math.exp(-0.5 * z * z) if abs(z) < FARTHEST else 0.0


def similarity(
    situation: Situation,
    *,
    symbol: str,
    direction: Direction | None,
    context: ContextVector,
    text: float | None = None,
) -> float:
    """Sim: weighted mean closeness over the fields that the situation gives; a field that the memory lacks scores 0.

    `text` is the share of the situation's words that the memory has, as one more field; None without words.

    A context has similarity 1 to itself, and similarity is symmetric if both contexts give the same fields:

    >>> calm = ContextVector(regime="ranging", atr_d1=50.0, drawdown_pct=0.0)
    >>> similarity(Situation(context=calm), symbol="XAUUSD", direction="long", context=calm)
    1.0
    >>> wild = ContextVector(regime="ranging", atr_d1=60.0, drawdown_pct=0.05)
    >>> there = similarity(Situation(context=calm), symbol="XAUUSD", direction="long", context=wild)
    >>> back = similarity(Situation(context=wild), symbol="XAUUSD", direction="long", context=calm)
    >>> round(there, 6) == round(back, 6), round(there, 3)
    (True, 0.871)

    Without a context there is nothing to compare:

    >>> similarity(Situation(symbol="XAUUSD"), symbol="XAUUSD", direction="long", context=calm)
    0.5
    """
    return mean_closeness(compare_fields(situation, symbol=symbol, direction=direction, context=context, text=text))


def compare_fields(
    situation: Situation, *, symbol: str, direction: Direction | None, context: ContextVector, text: float | None
) -> Iterator[tuple[str, float, float]]:
    """Each field that the situation gives: its name, its weight, and how close the memory is, from 0 to 1."""
    current = situation.context
    for name, weight in CATEGORIES.items():
        label = getattr(current, name)
        if label is not None:
            yield name, weight, float(getattr(context, name) == label)
    for name, (weight, bandwidth) in NUMBERS.items():
        if getattr(current, name) is not None and (name != "price" or situation.symbol == symbol):
            yield name, weight, _number_closeness(name, current, context, bandwidth)
    if current.drawdown_pct is not None:
        drawdown = context.drawdown_pct
        near = 0.0 if drawdown is None else closeness(current.drawdown_pct, drawdown, width=DRAWDOWN_WIDTH)
        yield "drawdown_pct", DRAWDOWN_WEIGHT, near
    if situation.direction is not None:
        yield "direction", DIRECTION_WEIGHT, float(direction == situation.direction)
    if text is not None:
        yield "text", TEXT_WEIGHT, text


def compared_fields(
    situation: Situation, *, symbol: str, direction: Direction | None, context: ContextVector
) -> tuple[str, ...]:
    """The fields, text aside, that both the situation and a memory give; a field that the memory lacks is not compared.

    >>> here = Situation(symbol="BTC", direction="long", context=ContextVector(regime="ranging", atr_d1=50.0))
    >>> compared_fields(here, symbol="BTC", direction="short", context=ContextVector(regime="volatile"))
    ('regime', 'direction')
    """
    given = compare_fields(situation, symbol=symbol, direction=direction, context=context, text=None)
    return tuple(
        name for name, _, _ in given if (direction if name == "direction" else getattr(context, name)) is not None
    )


def mean_closeness(fields: Iterable[tuple[str, float, float]]) -> float:
    """The weighted mean closeness of fields, each a (name, weight, closeness); .5 without fields.

    >>> mean_closeness([("regime", 0.25, 1.0), ("other", 0.75, 0.0)]), mean_closeness([])
    (0.25, 0.5)
    """
    total = score = 0.0
    for _, weight, near in fields:
        total += weight
        score += weight * near
    return min(1.0, score / total) if total else NO_CONTEXT


def _number_closeness(name: str, current: ContextVector, memory: ContextVector, bandwidth: float) -> float:
    x, y = getattr(current, name), getattr(memory, name)
    if y is None:
        return 0.0
    if name in PRICED and current.price and memory.price:
        x, y = x / abs(current.price), y / abs(memory.price)
    return closeness(x, y, width=bandwidth * (abs(x) + abs(y)) / 2)


def number_similarity(situation: Situation, *, symbol: str, context: ContextVector) -> float:
    """K: Sim over the numeric fields alone; 1 if there is none to compare.

    >>> now, then = ContextVector(price=5000.0, atr_d1=50.0), ContextVector(price=2000.0, atr_d1=20.0)
    >>> [number_similarity(Situation(context=each), symbol="XAUUSD", context=then) for each in (now, ContextVector())]
    [1.0, 1.0]
    """
    numbers = {name: getattr(situation.context, name) for name in (*NUMBERS, "drawdown_pct")}
    if all(x is None or (name == "price" and symbol != situation.symbol) for name, x in numbers.items()):
        return 1.0
    numeric = Situation(symbol=situation.symbol, context=ContextVector(**numbers))
    return similarity(numeric, symbol=symbol, direction=None, context=context)


def recency(at: datetime, *, now: datetime, tau_days: float = TAU_DAYS, decay: float = DECAY) -> float:
    """Rec: power-law forgetting, (1 + age/τ)^−d (Wixted & Ebbesen 1991); never more than 1.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [round(recency(t0, now=t0 + timedelta(days=days)), 3) for days in (1, 7, 30, 90, 365)]
    [0.984, 0.9, 0.707, 0.5, 0.276]
    """
    return float((1.0 + days_between(at, now) / tau_days) ** -decay)


def conviction(confidence: float | None) -> float:
    """Conf: .5 + .5·confidence; an unknown confidence counts as .5.

    >>> conviction(0.0), conviction(0.8), conviction(None)
    (0.5, 0.9, 0.75)
    """
    return 0.5 + 0.5 * (0.5 if confidence is None else confidence)


def affect(outcome: Outcome | None, mood: RecallMood) -> float:
    """Aff: a drawdown favours large losses and large wins; a losing streak favours wins.

    >>> down, streak = RecallMood(drawdown_state=0.6), RecallMood(consecutive_losses=3)
    >>> [affect(Outcome(value=r, unit="R"), down) for r in (-1.6, 2.1, 1.0)]
    [1.15, 1.09, 1.0]
    >>> [affect(Outcome(value=r, unit="R"), streak) for r in (1.0, -1.0)]
    [1.09, 0.94]
    >>> affect(Outcome(value=-3.0, unit="R"), RecallMood())
    1.0
    """
    if outcome is None:
        return 1.0
    if mood.drawdown_state > DRAWDOWN_MOOD:
        if outcome.unit != "R":
            return 1.0
        if outcome.value < LARGE_LOSS_R:
            return LARGE_LOSS_AFFECT
        return LARGE_WIN_AFFECT if outcome.value > LARGE_WIN_R else 1.0
    if mood.consecutive_losses >= LOSING_STREAK:
        return STREAK_WIN_AFFECT if outcome.value > 0 else STREAK_LOSS_AFFECT
    return 1.0
