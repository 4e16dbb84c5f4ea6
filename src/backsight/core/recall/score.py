"""The recall score, one factor a function: Score = Q · Sim · Rec · Conf · Aff, × Period where it is asked for.

This is the plain definition. Whatever scans faster must agree with it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.instants import days_between
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import sigmoid
from backsight.core.portfolio import Direction
from backsight.core.text.stems import TEXT_WEIGHT, stems, text_likeness
from backsight.core.trades.trade import Outcome, OutcomeUnit

CATEGORIES = {"regime": 0.25, "volatility_regime": 0.15, "session": 0.10}
NUMBERS = {"atr_d1": (0.15, 0.3), "atr_h1": (0.10, 0.3), "spread_as_atr_pct": (0.05, 0.5), "price": (0.10, 0.2)}
"""Field: its weight, and its bandwidth as a share of the mean size of the two values."""
DRAWDOWN_WEIGHT, DRAWDOWN_WIDTH = 0.10, 0.05
DIRECTION_WEIGHT = 0.10
NO_CONTEXT = 0.5
FARTHEST = 30.0
"""Widths beyond which a value is not close at all: e^−450, long before doubles run out of small numbers."""
PRICED = ("atr_d1", "atr_h1")
"""Fields in price units, compared as a share of price where both prices are known."""

SIGMA_WITHOUT_OUTCOMES = 1.5
SIGMA_FLOOR_R = 0.5
OUTCOME_CLIP_R = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a recall asks with; a field left None is not asked about."""

    symbol: str | None = None
    direction: Direction | None = None
    context: ContextVector = field(default_factory=ContextVector)
    words: frozenset[str] = frozenset()
    """The stems of the market in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMood:
    """The part of the agent's mood that colours recall."""

    drawdown_state: float = 0.0
    consecutive_losses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreFactors:
    """Why a memory scored what it did."""

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
        """How alike and how fresh, blind to the outcome.

        >>> ScoreFactors(Q=0.1, Sim=0.8, Rec=0.5, Conf=0.75, Aff=1.0, Period=2.0).nearness
        0.4
        """
        return self.Sim * self.Rec

    @property
    def dread(self) -> float:
        """What a loss ranks by as a warning: sigmoid(−2x/σ), which is 1 − Q, in place of Q; no Aff and no Period.

        >>> ScoreFactors(Q=0.0, Sim=0.8, Rec=0.5, Conf=0.75, Aff=1.15).dread
        0.30000000000000004
        """
        return (1.0 - self.Q) * self.Sim * self.Rec * self.Conf


def sigmas(outcomes: Iterable[Outcome]) -> dict[OutcomeUnit, float]:
    """The root mean square of the outcomes of each unit; R is clipped at ±5 and at least .5.

    >>> sigmas([Outcome(value=3.0, unit="R"), Outcome(value=-3.0, unit="R"), Outcome(value=0.02, unit="pct")])
    {'R': 3.0, 'pct': 0.02}
    >>> sigmas([Outcome(value=90.0, unit="R")]), sigmas([Outcome(value=0.1, unit="R")])
    ({'R': 5.0}, {'R': 0.5})
    """
    held: dict[OutcomeUnit, list[float]] = {}
    for outcome in outcomes:
        x = outcome.value
        if outcome.unit == "R":
            x = max(-OUTCOME_CLIP_R, min(OUTCOME_CLIP_R, x))
        held.setdefault(outcome.unit, []).append(x)
    found = {unit: _root_mean_square(values) for unit, values in held.items()}
    if "R" in found:
        found["R"] = max(SIGMA_FLOOR_R, found["R"])
    return found


def _root_mean_square(values: list[float]) -> float:
    largest = max(map(abs, values))  # scaled by it, so that no square overflows
    return largest * math.sqrt(math.fsum((x / largest) ** 2 for x in values) / len(values)) if largest else 0.0


def quality(outcome: Outcome | None, *, sigma: Mapping[OutcomeUnit, float]) -> float:
    """Q: sigmoid(2·x/σ); .5 without an outcome.

    >>> [round(quality(Outcome(value=r, unit="R"), sigma={"R": 1.5}), 3) for r in (3, 0.5, -1, -3)]
    [0.982, 0.661, 0.209, 0.018]
    >>> quality(None, sigma={})
    0.5
    """
    if outcome is None or outcome.value == 0:
        return 0.5
    return sigmoid(2.0 * outcome.value / sigma.get(outcome.unit, SIGMA_WITHOUT_OUTCOMES))


def closeness(x: float, y: float, *, width: float) -> float:
    """exp(−½((x−y)/h)²); equal values score 1, zeros too.

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
    query: Situation,
    *,
    symbol: str,
    direction: Direction | None,
    context: ContextVector,
    text: float | None = None,
) -> float:
    """Sim: weighted mean closeness over the fields the query gives; a field the memory lacks scores 0.

    `text` is the share of the query's words that the memory has, one more field; None where no words were asked.

    A context is like itself, drawdown or not, and likeness is mutual where both give the same fields:

    >>> calm = ContextVector(regime="ranging", atr_d1=50.0, drawdown_pct=0.0)
    >>> similarity(Situation(context=calm), symbol="XAUUSD", direction="long", context=calm)
    1.0
    >>> wild = ContextVector(regime="ranging", atr_d1=60.0, drawdown_pct=0.05)
    >>> there = similarity(Situation(context=calm), symbol="XAUUSD", direction="long", context=wild)
    >>> back = similarity(Situation(context=wild), symbol="XAUUSD", direction="long", context=calm)
    >>> round(there, 6) == round(back, 6), round(there, 3)
    (True, 0.871)

    Asked with no context at all, nothing can be said:

    >>> similarity(Situation(symbol="XAUUSD"), symbol="XAUUSD", direction="long", context=calm)
    0.5
    """
    return mean_closeness(compared(query, symbol=symbol, direction=direction, context=context, text=text))


def compared(
    query: Situation, *, symbol: str, direction: Direction | None, context: ContextVector, text: float | None
) -> Iterator[tuple[str, float, float]]:
    """Each field the query gives: its name, its weight, and how close the memory comes to it, 0 to 1."""
    asked = query.context
    for name, weight in CATEGORIES.items():
        wanted = getattr(asked, name)
        if wanted is not None:
            yield name, weight, float(getattr(context, name) == wanted)
    for name, (weight, bandwidth) in NUMBERS.items():
        if getattr(asked, name) is not None and (name != "price" or query.symbol == symbol):
            yield name, weight, _closeness_of(name, asked, context, bandwidth)
    if asked.drawdown_pct is not None:
        held = context.drawdown_pct
        near = 0.0 if held is None else closeness(asked.drawdown_pct, held, width=DRAWDOWN_WIDTH)
        yield "drawdown_pct", DRAWDOWN_WEIGHT, near
    if query.direction is not None:
        yield "direction", DIRECTION_WEIGHT, float(direction == query.direction)
    if text is not None:
        yield "text", TEXT_WEIGHT, text


def mean_closeness(fields: Iterable[tuple[str, float, float]]) -> float:
    """The weighted mean of how close fields are, each with its name and weight; .5 of none.

    >>> mean_closeness([("regime", 0.25, 1.0), ("other", 0.75, 0.0)]), mean_closeness([])
    (0.25, 0.5)
    """
    total = score = 0.0
    for _, weight, near in fields:
        total += weight
        score += weight * near
    return min(1.0, score / total) if total else NO_CONTEXT


def _closeness_of(name: str, asked: ContextVector, held: ContextVector, bandwidth: float) -> float:
    x, y = getattr(asked, name), getattr(held, name)
    if y is None:
        return 0.0
    if name in PRICED and asked.price and held.price:
        x, y = x / abs(asked.price), y / abs(held.price)
    return closeness(x, y, width=bandwidth * (abs(x) + abs(y)) / 2)


def recency(at: datetime, *, now: datetime, tau_days: float = 30.0, decay: float = 0.5) -> float:
    """Rec: power-law forgetting, (1 + age/τ)^−d (Wixted & Ebbesen 1991); never more than 1.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [round(recency(t0, now=t0 + timedelta(days=days)), 3) for days in (1, 7, 30, 90, 365)]
    [0.984, 0.9, 0.707, 0.5, 0.276]
    """
    return float((1.0 + days_between(at, now) / tau_days) ** -decay)


def conviction(confidence: float | None) -> float:
    """Conf: .5 + .5·confidence; half confident where it is not known.

    >>> conviction(0.0), conviction(0.8), conviction(None)
    (0.5, 0.9, 0.75)
    """
    return 0.5 + 0.5 * (0.5 if confidence is None else confidence)


def affect(outcome: Outcome | None, temper: RecallMood) -> float:
    """Aff: in drawdown large losses and large wins come to mind; in a losing streak, wins.

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
    if temper.drawdown_state > 0.5:
        if outcome.unit != "R":
            return 1.0
        return 1.15 if outcome.value < -1.5 else 1.09 if outcome.value > 2.0 else 1.0
    if temper.consecutive_losses >= 3:
        return 1.09 if outcome.value > 0 else 0.94
    return 1.0


def factors(
    episode: Episode,
    query: Situation,
    *,
    now: datetime,
    sigma: Mapping[OutcomeUnit, float],
    temper: RecallMood,
    period: float = 1.0,
) -> ScoreFactors:
    """All factors of one episode for one query at one instant."""
    told = text_likeness(query.words, stems(episode.market_context)) if query.words else None
    return ScoreFactors(
        Q=quality(episode.outcome, sigma=sigma),
        Sim=similarity(query, symbol=episode.symbol, direction=episode.direction, context=episode.context, text=told),
        Rec=recency(episode.ended_at, now=now),
        Conf=conviction(episode.confidence),
        Aff=affect(episode.outcome, temper),
        Period=period,
    )
