"""The mood of an agent: confidence from its recent results, appetite for risk from its drawdown.

A mood is not a probability: it does not say how likely the next trade is to win. The confidence that an agent states
has no influence on the mood. Equity, peak and drawdown belong to the account (`AccountMood`). Confidence and streaks
belong to a strategy on the account (`StrategyMood`). A `Mood` combines both.

Facts are folded in the order (known_at, sequence, id), one at a time, by `advance`. `mood_series.py` makes the stored
rows.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import repeat
from operator import truediv
from typing import Literal, assert_never

from backsight.core.context import ContextVector
from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import positive_zero, sigmoid
from backsight.core.portfolio import Direction
from backsight.core.quick_init import quick_init
from backsight.core.regime import Regime
from backsight.core.trades.trade import Outcome, OutcomeUnit

MoodCause = Literal["close", "correction", "equity", "transfer"]
Trend = Literal[-1, 0, 1]
"""Whether an entry goes with the trend (+1), against it (−1) or neither (0)."""

DECAY = 0.9
"""λ of both exponential moving averages: the last ten trades make up two thirds of the average."""
NEW_WEIGHT = 0.1
"""1 − λ: the weight of the newest trade."""
WINDOW = 50
"""How many outcomes of a unit before a trade make up its usual outcome."""
FEWEST_OUTCOMES = 10
"""How many outcomes a usual outcome needs."""
SMALLEST_USUAL_R = 0.5
USUAL_R_AT_FIRST = 1.0
"""The usual outcome in R before there are enough trades."""
MAX_DRAWDOWN = 0.2
"""The largest acceptable drawdown, as a share of the peak."""
SMALLEST_APPETITE = 0.1
DEEP_DRAWDOWN = 0.5
"""The share of the acceptable drawdown above which a mood is in drawdown."""
ROUNDING = 1e-12
"""Tolerance, as a share of the money moved, within which the equity before a transfer equals the last known equity."""
NOTHING_LEFT = 1e-12
"""An account at or below this share of its peak has lost everything."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountMood:
    """Equity, peak and drawdown of an account; the default is an account without any reading."""

    equity: float | None = None
    peak: float | None = None
    """Highest equity, scaled by every deposit and withdrawal since. 0 while all money is withdrawn."""
    drawdown: float = 0.0
    """A share of the peak, 0 to 1."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyMood:
    """Confidence and streaks after the closes of a strategy on an account; the default is neutral."""

    confidence: float = 0.5
    momentum_bias: float = 0.0
    """From −1 (every entry against the trend) to +1 (every entry with it)."""
    consecutive_wins: int = 0
    consecutive_losses: int = 0
    recent: Mapping[OutcomeUnit, tuple[float, ...]] = field(default_factory=dict)
    """The last outcomes of each unit, oldest first, at most `WINDOW`. They set the usual outcome."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class MoodState:
    """Both halves of a mood, which `advance` carries from fact to fact."""

    account: AccountMood = field(default_factory=AccountMood)
    strategy: StrategyMood = field(default_factory=StrategyMood)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """The mood of a strategy on an account; the default is the neutral start, before any fact.

    >>> start = Mood()
    >>> start.confidence, start.risk_appetite, start.drawdown_state, start.momentum_bias
    (0.5, 1.0, 0.0, 0.0)
    """

    confidence: float = 0.5
    risk_appetite: float = 1.0
    drawdown_state: float = 0.0
    momentum_bias: float = 0.0
    consecutive_wins: int = 0
    consecutive_losses: int = 0
    equity: float | None = None
    peak: float | None = None
    drawdown: float = 0.0
    at: datetime | None = None
    """When the latest fact happened; None before any fact."""
    known_at: datetime | None = None
    cause: MoodCause | None = None

    @property
    def in_drawdown(self) -> bool:
        """Whether more than half of the acceptable drawdown is used up."""
        return self.drawdown_state > DEEP_DRAWDOWN


def with_agent_state(context: ContextVector, mood: Mood) -> ContextVector:
    """A context vector with the agent's state by its mood; fields that the vector has already are left alone.

    The drawdown is unknown as long as the account's equity is.

    >>> with_agent_state(ContextVector(confidence=0.7), Mood(consecutive_losses=2)).known
    ('consecutive_losses', 'confidence')
    """
    state = {
        "drawdown_pct": None if mood.equity is None else mood.drawdown,
        "consecutive_losses": mood.consecutive_losses,
        "confidence": mood.confidence,
    }
    return copy_with(context, **{name: value for name, value in state.items() if getattr(context, name) is None})


def without_agent_state(context: ContextVector) -> ContextVector:
    """A context vector of the market alone.

    >>> without_agent_state(ContextVector(regime="ranging", consecutive_losses=2)).known
    ('regime',)
    """
    return copy_with(context, drawdown_pct=None, consecutive_losses=None, confidence=None)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class CloseFact:
    """The close of a trade, as far as it changes the mood."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    net: float
    outcome: Outcome | None
    trend: Trend


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityFact:
    """The equity of an account at an instant."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    equity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFact:
    """Money paid in (positive) or out (negative), and the equity right after."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    amount: float
    equity_after: float


MoodFact = CloseFact | EquityFact | TransferFact


def equity_fact(fact_id: str, at: datetime, sequence: int, equity: float, transfer: float) -> EquityFact | TransferFact:
    """The fact in an equity reading: a transfer where money was paid in or out, else the equity alone."""
    if transfer:
        return TransferFact(id=fact_id, at=at, known_at=at, sequence=sequence, amount=transfer, equity_after=equity)
    return EquityFact(id=fact_id, at=at, known_at=at, sequence=sequence, equity=equity)


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityPoint:
    """The equity of an account, recorded by hand rather than by a tick."""

    owner_id: str
    id: str
    account_id: str
    at: datetime
    equity: float
    transfer: float | None
    """Money paid in (positive) or out (negative) right before the reading."""
    known_at: datetime
    recorded_at: datetime

    @property
    def fact(self) -> EquityFact | TransferFact:
        """The reading as a fact of the mood."""
        return equity_fact(self.id, self.at, 0, self.equity, self.transfer or 0.0)


def trend_of(direction: Direction | None, regime: Regime | None) -> Trend:
    """+1 for an entry with the trend, −1 for an entry against it, 0 where there is no trend or no known regime.

    >>> trend_of("long", "trending_up"), trend_of("long", "trending_down"), trend_of("short", "ranging")
    (1, -1, 0)
    """
    if direction is None or regime not in ("trending_up", "trending_down"):
        return 0
    return 1 if (direction == "long") == (regime == "trending_up") else -1


def close_fact(episode: Episode) -> CloseFact | None:
    """The close in the episode of a trade; None for calls and inactions.

    A corrected close keeps its place in the order of facts.
    """
    if episode.kind != "trade" or episode.pnl is None:
        return None
    return CloseFact(
        id=episode.id,
        at=episode.ended_at,
        known_at=episode.first_known_at,
        sequence=episode.sequence,
        net=episode.pnl,
        outcome=episode.outcome,
        trend=trend_of(episode.direction, episode.context.regime),
    )


def usual_outcome(unit: OutcomeUnit, recent: tuple[float, ...]) -> float | None:
    """e: the mean absolute outcome of the window.

    In R it is at least .5, and 1 before ten trades. In other units it is None before ten trades, and None where every
    outcome is zero.

    >>> usual_outcome("R", (-3.0,) * 9), usual_outcome("R", (-3.0,) * 10), usual_outcome("R", (0.1,) * 10)
    (1.0, 3.0, 0.5)
    >>> usual_outcome("pct", (0.02,) * 9), usual_outcome("pct", (0.02,) * 10)
    (None, 0.02)
    """
    if len(recent) < FEWEST_OUTCOMES:
        return USUAL_R_AT_FIRST if unit == "R" else None
    n = len(recent)
    mean = math.fsum(map(truediv, map(abs, recent), repeat(n)))  # divided first, so that no sum overflows
    return max(SMALLEST_USUAL_R, mean) if unit == "R" else mean or None


def signal_of(outcome: Outcome, *, usual: float | None) -> float:
    """sigmoid(outcome / e): the signal of one close, from 0 to 1; .5 where the usual outcome is not known.

    >>> [round(signal_of(Outcome(value=r, unit="R"), usual=1.0), 2) for r in (3.0, -1.0, 0.0)]
    [0.95, 0.27, 0.5]
    >>> signal_of(Outcome(value=0.08, unit="pct"), usual=None)
    0.5
    """
    if usual is None or outcome.value == 0:
        return 0.5
    return sigmoid(outcome.value / usual)


def after_close(mood: StrategyMood, *, net: float, outcome: Outcome | None, trend: Trend = 0) -> StrategyMood:
    """The mood after one more close: confidence = .9·confidence + .1·signal; a net of 0 or less is a loss.

    The outcome is divided by the usual outcome of the trades before it. A close without an outcome counts for the
    streak and leaves the confidence unchanged.

    >>> lost = after_close(StrategyMood(), net=-100.0, outcome=Outcome(value=-1.0, unit="R"), trend=-1)
    >>> round(lost.confidence, 4), lost.consecutive_losses, round(lost.momentum_bias, 2)
    (0.4769, 1, -0.1)
    >>> after_close(lost, net=0.0, outcome=None).consecutive_losses
    2

    Twenty-three losses of 1R in a row:

    >>> for _ in range(22):
    ...     lost = after_close(lost, net=-100.0, outcome=Outcome(value=-1.0, unit="R"))
    >>> round(lost.confidence, 3), lost.consecutive_losses
    (0.289, 23)
    """
    won = net > 0
    return StrategyMood(
        confidence=mood.confidence if outcome is None else _moving_average(mood.confidence, _signal(mood, outcome)),
        momentum_bias=_moving_average(mood.momentum_bias, trend),
        consecutive_wins=mood.consecutive_wins + 1 if won else 0,
        consecutive_losses=0 if won else mood.consecutive_losses + 1,
        recent=mood.recent if outcome is None else _with_outcome(mood.recent, outcome),
    )


def after_equity(mood: AccountMood, equity: float) -> AccountMood:
    """The account after an equity reading; an equity of 0 or less is a drawdown of 1.

    >>> account = after_equity(AccountMood(), 10_000.0)
    >>> [after_equity(account, equity).drawdown for equity in (9_000.0, 8_500.0, 12_000.0, 0.0, -50.0)]
    [0.1, 0.15, 0.0, 1.0, 1.0]
    """
    equity = _finite("equity", equity)
    if equity == mood.equity:
        return mood
    if mood.peak == 0:
        return _with_scaled_peak(mood, equity) if equity > 0 else replace(mood, equity=equity)
    if equity <= 0:
        return AccountMood(equity=equity, peak=mood.peak, drawdown=1.0)
    peak = equity if mood.peak is None else max(mood.peak, equity)
    return AccountMood(equity=equity, peak=peak, drawdown=(peak - equity) / peak)


def after_transfer(mood: AccountMood, *, amount: float, equity_after: float) -> AccountMood:
    """The account after a deposit or withdrawal, which multiplies the peak by equity after / equity before.

    The equity before is `equity_after` − `amount`. It is applied first, as a reading, so that profit and loss since the
    last reading count.

    >>> down = after_equity(after_equity(AccountMood(), 10_000.0), 9_000.0)
    >>> after_transfer(down, amount=9_000.0, equity_after=18_000.0)
    AccountMood(equity=18000.0, peak=20000.0, drawdown=0.1)
    >>> after_transfer(down, amount=-4_500.0, equity_after=4_500.0)
    AccountMood(equity=4500.0, peak=5000.0, drawdown=0.1)

    After a withdrawal of everything, the drawdown applies to the next deposit. An account that lost everything starts
    anew with a deposit, since no finite peak gives a drawdown of 1:

    >>> emptied = after_transfer(down, amount=-9_000.0, equity_after=0.0)
    >>> emptied, after_transfer(emptied, amount=900.0, equity_after=900.0)
    (AccountMood(equity=0.0, peak=0.0, drawdown=0.1), AccountMood(equity=900.0, peak=1000.0, drawdown=0.1))
    >>> after_transfer(after_equity(down, 0.0), amount=900.0, equity_after=900.0)
    AccountMood(equity=900.0, peak=900.0, drawdown=0.0)
    """
    after = _finite("equity_after", equity_after)
    before = _finite("equity before the transfer", after - _finite("amount", amount))
    is_new = mood.equity is None or abs(before - mood.equity) > ROUNDING * max(abs(after), abs(amount))
    account = after_equity(mood, before) if is_new else mood
    if after > 0:
        return _with_scaled_peak(account, after)
    had_money = account.equity is not None and account.equity > 0
    return replace(account, equity=after, peak=0.0 if had_money else account.peak)


def risk_appetite(drawdown: float, *, max_drawdown: float = MAX_DRAWDOWN) -> float:
    """The share of the usual risk to take: max(.1, 1 − (dd / max_dd)²) (Grossman & Zhou 1993).

    >>> [round(risk_appetite(drawdown), 4) for drawdown in (0.0, 0.10, 0.15, 0.20, 1.0)]
    [1.0, 0.75, 0.4375, 0.1, 0.1]
    """
    return max(SMALLEST_APPETITE, 1.0 - drawdown_state(drawdown, max_drawdown=max_drawdown) ** 2)


def drawdown_state(drawdown: float, *, max_drawdown: float = MAX_DRAWDOWN) -> float:
    """The share of the acceptable drawdown that is used up: min(1, dd / max_dd), to twelve digits.

    >>> [drawdown_state(drawdown) for drawdown in (0.0, 0.10, 0.15, 0.20, 0.35)]
    [0.0, 0.5, 0.75, 1.0, 1.0]
    """
    if not 0 < max_drawdown <= 1:
        raise Invalid(f"{max_drawdown} is not a share; give one above 0, up to 1", field="max_drawdown")
    return min(1.0, round(drawdown / max_drawdown, 12))


def advance(state: MoodState, fact: MoodFact) -> MoodState:
    """The state after one more fact."""
    match fact:
        case CloseFact():
            strategy = after_close(state.strategy, net=fact.net, outcome=fact.outcome, trend=fact.trend)
            return replace(state, strategy=strategy)
        case EquityFact():
            return replace(state, account=after_equity(state.account, fact.equity))
        case TransferFact():
            account = after_transfer(state.account, amount=fact.amount, equity_after=fact.equity_after)
            return replace(state, account=account)
    assert_never(fact)


def mood_of(state: MoodState, fact: MoodFact | None = None, *, max_drawdown: float = MAX_DRAWDOWN) -> Mood:
    """The mood of a state, dated by the fact that led to it."""
    if fact is None:
        return dated_mood(state, max_drawdown=max_drawdown)
    return dated_mood(state, at=fact.at, known_at=fact.known_at, cause=cause_of(fact), max_drawdown=max_drawdown)


def dated_mood(
    state: MoodState,
    *,
    at: datetime | None = None,
    known_at: datetime | None = None,
    cause: MoodCause | None = None,
    max_drawdown: float = MAX_DRAWDOWN,
) -> Mood:
    """The mood of a state, with the instants and the kind of the fact that led to it."""
    account, strategy = state.account, state.strategy
    return Mood(
        confidence=strategy.confidence,
        risk_appetite=risk_appetite(account.drawdown, max_drawdown=max_drawdown),
        drawdown_state=drawdown_state(account.drawdown, max_drawdown=max_drawdown),
        momentum_bias=strategy.momentum_bias,
        consecutive_wins=strategy.consecutive_wins,
        consecutive_losses=strategy.consecutive_losses,
        equity=account.equity,
        peak=account.peak,
        drawdown=account.drawdown,
        at=at,
        known_at=known_at,
        cause=cause,
    )


def fact_order(fact: MoodFact) -> tuple[datetime, int, str]:
    """The sort key of facts: the order in which they became known."""
    return fact.known_at, fact.sequence, fact.id


def cause_of(fact: MoodFact) -> MoodCause:
    """The name of a kind of fact in the stored series."""
    match fact:
        case CloseFact():
            return "close"
        case EquityFact():
            return "equity"
        case TransferFact():
            return "transfer"
    assert_never(fact)


def _moving_average(average: float, value: float) -> float:
    return DECAY * average + NEW_WEIGHT * value


def _signal(mood: StrategyMood, outcome: Outcome) -> float:
    return signal_of(outcome, usual=usual_outcome(outcome.unit, mood.recent.get(outcome.unit, ())))


def _with_outcome(
    recent: Mapping[OutcomeUnit, tuple[float, ...]], outcome: Outcome
) -> Mapping[OutcomeUnit, tuple[float, ...]]:
    values = (*recent.get(outcome.unit, ()), outcome.value)
    return {**recent, outcome.unit: values[-WINDOW:]}


def _with_scaled_peak(mood: AccountMood, equity: float) -> AccountMood:
    """The account with another equity and the same drawdown; without drawdown if it had lost everything."""
    share_of_peak = 1.0 - mood.drawdown
    if mood.equity is not None and mood.peak and mood.equity > 0:
        share_of_peak = mood.equity / mood.peak
    if share_of_peak <= NOTHING_LEFT:
        return AccountMood(equity=equity, peak=equity, drawdown=0.0)
    peak = min(equity / share_of_peak, sys.float_info.max)
    return AccountMood(equity=equity, peak=peak, drawdown=mood.drawdown)


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise Invalid(f"{value} is not an amount; give a finite number", field=name)
    return positive_zero(value)
