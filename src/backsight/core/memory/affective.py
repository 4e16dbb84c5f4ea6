"""The mood: how the last results and the distance from the peak colour an agent's next decision.

It is a mood, never a probability: nothing here says how likely the next trade is to win, and the confidence that an
agent states does not enter. Equity, peak and drawdown belong to the account (`AccountMood`); confidence and streaks to
account × strategy (`StrategyMood`). A `Mood` is one row of the series that both make together.

Facts are folded in (known_at, sequence, id) order: `advance` takes one more, `moods` takes all of them again.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, assert_never

from backsight.core.errors import Invalid
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import positive_zero, sigmoid
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime
from backsight.core.trades.trade import Outcome, OutcomeUnit

MoodCause = Literal["close", "correction", "equity", "transfer"]
Trend = Literal[-1, 0, 1]
"""Of an entry: with the trend, against it, or neither."""

KEPT, ADDED = 0.9, 0.1
"""λ and 1 − λ of both moving averages: about ten trades change a mood for good."""
WINDOW = 50
"""Outcomes of one unit that say what is usual: the last 50 before the trade."""
FEWEST_OUTCOMES = 10
SMALLEST_USUAL_R = 0.5
USUAL_R_AT_FIRST = 1.0
MAX_DRAWDOWN = 0.2
SMALLEST_APPETITE = 0.1
DEEP = 0.5
ROUNDING = 1e-12
"""Equity before a transfer that is this near to the last one seen, as a share of the money moved, is that one."""
NOTHING_LEFT = 1e-12
"""An account that kept no more than this share of its peak has lost it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountMood:
    """Where an account stands against its peak; the default is that of an account never seen."""

    equity: float | None = None
    peak: float | None = None
    """As large as it would be had today's deposits been there all along. 0 while all was withdrawn."""
    drawdown: float = 0.0
    """A share of the peak, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyMood:
    """What the closes of one strategy on one account left behind; the default is neutral."""

    confidence: float = 0.5
    momentum_bias: float = 0.0
    """−1 always against the trend … +1 always with it."""
    consecutive_wins: int = 0
    consecutive_losses: int = 0
    recent: Mapping[OutcomeUnit, tuple[float, ...]] = field(default_factory=dict)
    """The last outcomes of each unit, oldest first, `WINDOW` at most: what the next close is held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoodState:
    """Both halves of a mood: all that one more fact needs."""

    account: AccountMood = field(default_factory=AccountMood)
    strategy: StrategyMood = field(default_factory=StrategyMood)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mood:
    """One row of the series; the default is the neutral start, before any fact.

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
    """When it happened; None before any fact."""
    known_at: datetime | None = None
    cause: MoodCause | None = None

    @property
    def in_drawdown(self) -> bool:
        """Whether more than half of the drawdown that is accepted is used up."""
        return self.drawdown_state > DEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseFact:
    """A close as the mood sees it."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    net: float
    outcome: Outcome | None
    trend: Trend


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityFact:
    """What an account was worth at an instant."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    equity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFact:
    """Money paid in (positive) or out (negative), and what the account was worth right after."""

    id: str
    at: datetime
    known_at: datetime
    sequence: int = 0
    amount: float
    equity_after: float


MoodFact = CloseFact | EquityFact | TransferFact


def equity_fact(name: str, at: datetime, sequence: int, equity: float, moved: float) -> EquityFact | TransferFact:
    """What a tick tells of an account: what it was worth, and what was paid in or out by then."""
    if moved:
        return TransferFact(id=name, at=at, known_at=at, sequence=sequence, amount=moved, equity_after=equity)
    return EquityFact(id=name, at=at, known_at=at, sequence=sequence, equity=equity)


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityPoint:
    """What an account was worth, as somebody recorded it."""

    owner_id: str
    id: str
    account_id: str
    at: datetime
    equity: float
    transfer: float | None
    """What was paid in (positive) or out (negative) right before."""
    known_at: datetime
    recorded_at: datetime

    @property
    def fact(self) -> EquityFact | TransferFact:
        """The fact that it is to the mood."""
        return equity_fact(self.id, self.at, 0, self.equity, self.transfer or 0.0)


def trend_of(direction: Direction | None, regime: Regime | None) -> Trend:
    """+1 for an entry with the trend, −1 for one against it, 0 where there is none or it is not known.

    >>> trend_of("long", "trending_up"), trend_of("long", "trending_down"), trend_of("short", "ranging")
    (1, -1, 0)
    """
    if direction is None or regime not in ("trending_up", "trending_down"):
        return 0
    return 1 if (direction == "long") == (regime == "trending_up") else -1


def close_fact(episode: Episode) -> CloseFact | None:
    """The close that an episode is to the mood, in its first place; None for calls and inactions."""
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
    """e: the mean |outcome| of the window; in R at least .5, and 1 before 10 trades; else None before 10 trades.

    None also where nothing was ever won or lost: there is then no measure.

    >>> usual_outcome("R", (-3.0,) * 9), usual_outcome("R", (-3.0,) * 10), usual_outcome("R", (0.1,) * 10)
    (1.0, 3.0, 0.5)
    >>> usual_outcome("pct", (0.02,) * 9), usual_outcome("pct", (0.02,) * 10)
    (None, 0.02)
    """
    if len(recent) < FEWEST_OUTCOMES:
        return USUAL_R_AT_FIRST if unit == "R" else None
    n = len(recent)
    mean = math.fsum([abs(value) / n for value in recent])  # divided first, so that no sum overflows
    return max(SMALLEST_USUAL_R, mean) if unit == "R" else mean or None


def signal_of(outcome: Outcome, *, usual: float | None) -> float:
    """sigmoid(outcome / e): what one close says, 0 to 1; .5 without a measure.

    >>> [round(signal_of(Outcome(value=r, unit="R"), usual=1.0), 2) for r in (3.0, -1.0, 0.0)]
    [0.95, 0.27, 0.5]
    >>> signal_of(Outcome(value=0.08, unit="pct"), usual=None)
    0.5
    """
    if usual is None or outcome.value == 0:
        return 0.5
    return sigmoid(outcome.value / usual)


def after_close(mood: StrategyMood, *, net: float, outcome: Outcome | None, trend: Trend = 0) -> StrategyMood:
    """The mood after one more close: confidence = .9·confidence + .1·signal, and a net of 0 or less is a loss.

    The outcome is held against those before it, not against itself. A close without an outcome counts for the streak
    and leaves the confidence alone.

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
        confidence=mood.confidence if outcome is None else _average(mood.confidence, _signal(mood, outcome)),
        momentum_bias=_average(mood.momentum_bias, trend),
        consecutive_wins=mood.consecutive_wins + 1 if won else 0,
        consecutive_losses=0 if won else mood.consecutive_losses + 1,
        recent=mood.recent if outcome is None else _with(mood.recent, outcome),
    )


def after_equity(mood: AccountMood, equity: float) -> AccountMood:
    """Where the account stands when it is worth this much; an equity of 0 or less is a drawdown of 1.

    >>> seen = after_equity(AccountMood(), 10_000.0)
    >>> [after_equity(seen, equity).drawdown for equity in (9_000.0, 8_500.0, 12_000.0, 0.0, -50.0)]
    [0.1, 0.15, 0.0, 1.0, 1.0]
    """
    equity = _finite("equity", equity)
    if equity == mood.equity:
        return mood
    if mood.peak == 0:
        return _refilled(mood, equity) if equity > 0 else replace(mood, equity=equity)
    if equity <= 0:
        return AccountMood(equity=equity, peak=mood.peak, drawdown=1.0)
    peak = equity if mood.peak is None else max(mood.peak, equity)
    return AccountMood(equity=equity, peak=peak, drawdown=(peak - equity) / peak)


def after_transfer(mood: AccountMood, *, amount: float, equity_after: float) -> AccountMood:
    """Where the account stands after a deposit or a withdrawal, which multiplies the peak by equity after / before.

    Before is `equity_after` − `amount`: what was won or lost since the last look is seen first, as any equity is.

    >>> down = after_equity(after_equity(AccountMood(), 10_000.0), 9_000.0)
    >>> after_transfer(down, amount=9_000.0, equity_after=18_000.0)
    AccountMood(equity=18000.0, peak=20000.0, drawdown=0.1)
    >>> after_transfer(down, amount=-4_500.0, equity_after=4_500.0)
    AccountMood(equity=4500.0, peak=5000.0, drawdown=0.1)

    A withdrawal of everything keeps the drawdown for what is paid in later. An account that had lost everything
    starts anew with a deposit, since no peak would keep a drawdown of 1:

    >>> emptied = after_transfer(down, amount=-9_000.0, equity_after=0.0)
    >>> emptied, after_transfer(emptied, amount=900.0, equity_after=900.0)
    (AccountMood(equity=0.0, peak=0.0, drawdown=0.1), AccountMood(equity=900.0, peak=1000.0, drawdown=0.1))
    >>> after_transfer(after_equity(down, 0.0), amount=900.0, equity_after=900.0)
    AccountMood(equity=900.0, peak=900.0, drawdown=0.0)
    """
    after = _finite("equity_after", equity_after)
    before = _finite("equity before the transfer", after - _finite("amount", amount))
    news = mood.equity is None or abs(before - mood.equity) > ROUNDING * max(abs(after), abs(amount))
    seen = after_equity(mood, before) if news else mood
    if after > 0:
        return _refilled(seen, after)
    was_worth_something = seen.equity is not None and seen.equity > 0
    return replace(seen, equity=after, peak=0.0 if was_worth_something else seen.peak)


def risk_appetite(drawdown: float, *, max_drawdown: float = MAX_DRAWDOWN) -> float:
    """How much of the usual risk to take: max(.1, 1 − (dd / max_dd)²) (Grossman & Zhou 1993).

    >>> [round(risk_appetite(drawdown), 4) for drawdown in (0.0, 0.10, 0.15, 0.20, 1.0)]
    [1.0, 0.75, 0.4375, 0.1, 0.1]
    """
    return max(SMALLEST_APPETITE, 1.0 - drawdown_state(drawdown, max_drawdown=max_drawdown) ** 2)


def drawdown_state(drawdown: float, *, max_drawdown: float = MAX_DRAWDOWN) -> float:
    """How much of the accepted drawdown is used up: min(1, dd / max_dd), to twelve digits.

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
    """Both halves as one row, with the fact that made it; without one, as things stand."""
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
        at=None if fact is None else fact.at,
        known_at=None if fact is None else fact.known_at,
        cause=None if fact is None else cause_of(fact),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoodRow:
    """One row of the series as it is kept: how an account stands, or what a strategy's closes on it left behind."""

    owner_id: str
    account_id: str
    strategy_name: str
    """Empty in the account's own rows."""
    known_at: datetime
    sequence: int
    id: str
    """Of the fact that made it."""
    at: datetime
    cause: MoodCause
    n: int
    """How many facts it rests on."""
    account: AccountMood | None = None
    risk_appetite: float | None = None
    drawdown_state: float | None = None
    strategy: StrategyMood | None = None
    """Its `recent` outcomes are in the last row only, since only the next row needs them."""

    @property
    def order(self) -> tuple[datetime, int, str]:
        """Where it stands in the series."""
        return self.known_at, self.sequence, self.id


def account_row(last: MoodRow | None, fact: EquityFact | TransferFact, *, owner_id: str, account_id: str) -> MoodRow:
    """The account's next row."""
    before = AccountMood() if last is None or last.account is None else last.account
    account = advance(MoodState(account=before), fact).account
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name="",
        known_at=fact.known_at,
        sequence=fact.sequence,
        id=fact.id,
        at=fact.at,
        cause=cause_of(fact),
        n=1 if last is None else last.n + 1,
        account=account,
        risk_appetite=risk_appetite(account.drawdown),
        drawdown_state=drawdown_state(account.drawdown),
    )


def account_rows(facts: Iterable[EquityFact | TransferFact], *, owner_id: str, account_id: str) -> list[MoodRow]:
    """The account's rows, one a fact, from facts in any order."""
    rows: list[MoodRow] = []
    for fact in sorted(facts, key=_order):
        rows.append(account_row(rows[-1] if rows else None, fact, owner_id=owner_id, account_id=account_id))
    return rows


def strategy_row(
    last: MoodRow | None, close: CloseFact, *, owner_id: str, account_id: str, strategy_name: str
) -> MoodRow:
    """The next row of a strategy on an account."""
    named = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    return _close_row(close, _after(_mood_of(last), close), n=1 if last is None else last.n + 1, **named)


def next_strategy_rows(
    last: MoodRow | None, closes: Sequence[CloseFact], *, owner_id: str, account_id: str, strategy_name: str
) -> list[MoodRow]:
    """The rows of a strategy on an account that change when it closes more: its last one, and the new ones."""
    named = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    mood, first = _mood_of(last), 1 if last is None else last.n + 1
    rows = [] if last is None else [replace(last, strategy=_without_recent(mood))]
    for n, close in enumerate(closes, start=first):
        mood = _after(mood, close)
        is_last = n - first == len(closes) - 1
        rows.append(_close_row(close, mood if is_last else _without_recent(mood), n=n, **named))
    return rows


def _mood_of(last: MoodRow | None) -> StrategyMood:
    return StrategyMood() if last is None or last.strategy is None else last.strategy


def _after(mood: StrategyMood, close: CloseFact) -> StrategyMood:
    return after_close(mood, net=close.net, outcome=close.outcome, trend=close.trend)


def _close_row(
    close: CloseFact, mood: StrategyMood, *, n: int, owner_id: str, account_id: str, strategy_name: str
) -> MoodRow:
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name=strategy_name,
        known_at=close.known_at,
        sequence=close.sequence,
        id=close.id,
        at=close.at,
        cause="close",
        n=n,
        strategy=mood,
    )


def _without_recent(mood: StrategyMood) -> StrategyMood:
    return replace(mood, recent={})


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseVersion:
    """A close as it stood from an instant on."""

    close: CloseFact | None
    """None where it was taken back."""
    id: str
    sequence: int
    known_at: datetime
    first: bool
    """Whether it is the first that was known of this close."""


def strategy_rows(
    versions: Iterable[CloseVersion], *, owner_id: str, account_id: str, strategy_name: str
) -> list[MoodRow]:
    """The rows of a strategy on an account: each the mood as it was known then.

    A close adds a row. A correction adds one too, made from all closes again as they stood from then on, since it may
    be of any of them.
    """
    named = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    standing: dict[str, CloseFact] = {}
    rows: list[MoodRow] = []
    for version in sorted(versions, key=lambda each: (each.known_at, each.sequence, each.id)):
        if standing.get(version.id) == version.close:
            continue  # a correction of something else
        standing.pop(version.id, None)
        if version.close is not None:
            standing[version.id] = version.close
        if version.first and version.close is not None:
            rows.append(strategy_row(rows[-1] if rows else None, version.close, **named))
        else:
            rows.append(_corrected(standing.values(), version, **named))
    return [*(replace(row, strategy=_without_recent(_mood_of(row))) for row in rows[:-1]), *rows[-1:]]


def _corrected(
    closes: Iterable[CloseFact], version: CloseVersion, *, owner_id: str, account_id: str, strategy_name: str
) -> MoodRow:
    """The row of a correction: what all closes come to, as they stand from then on."""
    row: MoodRow | None = None
    for close in sorted(closes, key=_order):
        row = strategy_row(row, close, owner_id=owner_id, account_id=account_id, strategy_name=strategy_name)
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name=strategy_name,
        known_at=version.known_at,
        sequence=version.sequence,
        id=version.id,
        at=version.known_at if row is None else row.at,
        cause="correction",
        n=0 if row is None else row.n,
        strategy=StrategyMood() if row is None else row.strategy,
    )


def mood_from(account: MoodRow | None, strategy: MoodRow | None, *, max_drawdown: float = MAX_DRAWDOWN) -> Mood:
    """The mood that the last rows of an account and of a strategy on it make together."""
    state = MoodState(
        account=AccountMood() if account is None or account.account is None else account.account,
        strategy=StrategyMood() if strategy is None or strategy.strategy is None else strategy.strategy,
    )
    told = max((row for row in (account, strategy) if row is not None), key=lambda row: row.order, default=None)
    mood = mood_of(state, max_drawdown=max_drawdown)
    return mood if told is None else replace(mood, at=told.at, known_at=told.known_at, cause=told.cause)


def moods(facts: Iterable[MoodFact], *, max_drawdown: float = MAX_DRAWDOWN) -> tuple[Mood, ...]:
    """The whole series, one row a fact, from the facts of one account × strategy in any order.

    >>> from datetime import UTC
    >>> t = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> later = EquityFact(id="b", at=t, known_at=t, sequence=1, equity=900.0)
    >>> [(row.cause, row.drawdown) for row in moods([later, EquityFact(id="a", at=t, known_at=t, equity=1000.0)])]
    [('equity', 0.0), ('equity', 0.1)]
    """
    state, rows = MoodState(), []
    for fact in in_order(facts):
        state = advance(state, fact)
        rows.append(mood_of(state, fact, max_drawdown=max_drawdown))
    return tuple(rows)


def state_after(facts: Iterable[MoodFact]) -> MoodState:
    """The state that all these facts lead to, whatever order they come in."""
    state = MoodState()
    for fact in in_order(facts):
        state = advance(state, fact)
    return state


def in_order(facts: Iterable[MoodFact]) -> list[MoodFact]:
    """The facts in the order in which they count."""
    return sorted(facts, key=_order)


def _order(fact: MoodFact) -> tuple[datetime, int, str]:
    return fact.known_at, fact.sequence, fact.id


def cause_of(fact: MoodFact) -> MoodCause:
    """The word for a fact in the series."""
    match fact:
        case CloseFact():
            return "close"
        case EquityFact():
            return "equity"
        case TransferFact():
            return "transfer"
    assert_never(fact)


def _average(held: float, new: float) -> float:
    return KEPT * held + ADDED * new


def _signal(mood: StrategyMood, outcome: Outcome) -> float:
    return signal_of(outcome, usual=usual_outcome(outcome.unit, mood.recent.get(outcome.unit, ())))


def _with(recent: Mapping[OutcomeUnit, tuple[float, ...]], outcome: Outcome) -> Mapping[OutcomeUnit, tuple[float, ...]]:
    values = (*recent.get(outcome.unit, ()), outcome.value)
    return {**recent, outcome.unit: values[-WINDOW:]}


def _refilled(mood: AccountMood, equity: float) -> AccountMood:
    """The account with other money in it, as far below its peak as before; at its peak where nothing was left."""
    kept = 1.0 - mood.drawdown
    if mood.equity is not None and mood.peak and mood.equity > 0:
        kept = mood.equity / mood.peak
    if kept <= NOTHING_LEFT:
        return AccountMood(equity=equity, peak=equity, drawdown=0.0)
    peak = min(equity / kept, sys.float_info.max)
    return AccountMood(equity=equity, peak=peak, drawdown=mood.drawdown)


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise Invalid(f"{value} is not an amount; give a finite number", field=name)
    return positive_zero(value)
