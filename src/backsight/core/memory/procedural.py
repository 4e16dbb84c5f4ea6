"""Habits: how an agent trades one strategy in one symbol, measured over its last trades.

Every figure has the number of trades behind it, and is None for fewer than ten. Habits are a fold over trades in the
order in which they became known: `learn` adds one trade, `learn_all` any number, and both ways end in equal states.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, get_args

from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.memory.checkpoints import is_checkpoint
from backsight.core.memory.drift import Alarm, Detector, watch
from backsight.core.memory.estimates import FEWEST, Estimate, correlation_estimate, mean_estimate, ratio_estimate
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.quick_init import quick_init
from backsight.core.statistics import Moments, moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit

SHORTEST_WINDOW, LONGEST_WINDOW = 20, 100
NEUTRAL_STABILITY = 0.5
UNITS: tuple[OutcomeUnit, ...] = get_args(OutcomeUnit)

Reaction = Literal["size", "confidence"]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class TradeFigures:
    """The figures of one closed trade that habits are computed from; None where a figure is not known."""

    episode_id: str
    strategy_name: str
    symbol: str
    known_at: datetime
    deployment_id: str = ""
    """The agent that made the trade."""
    opened_at: datetime | None = None
    win: bool | None = None
    outcome: Outcome | None = None
    gain: float | None = None
    """The realised result in the currency of `mfe`: gross where it is known, else net."""
    hold_seconds: float | None = None
    size_share: float | None = None
    """Size as a share of equity at entry."""
    risk_share: float | None = None
    """Risk as a share of equity at entry."""
    recommended_share: float | None = None
    """The share of equity to risk that was recommended at entry."""
    confidence: float | None = None
    mfe: float | None = None
    mae: float | None = None
    mfe_at: datetime | None = None
    mae_at: datetime | None = None
    previous_win: bool | None = None
    """Whether the agent's last trade that was closed before this entry was won, whatever its symbol."""
    previous_outcome: Outcome | None = None
    """The outcome of that trade."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class PastClose:
    """A closed trade as the next trade of its agent sees it."""

    known_at: datetime
    win: bool | None
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value and the number of trades behind it; the value is None for fewer than ten."""

    value: float | None
    n: int


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Count, wins and outcomes of trades up to an instant."""

    n: int = 0
    wins: int = 0
    in_r: int = 0
    """Trades, of those that won or lost, whose outcome in R is known."""
    wins_in_r: int = 0
    outcomes: Mapping[OutcomeUnit, Moments] = field(default_factory=dict)

    def add(self, trade: TradeFigures) -> "Record":
        """The record with one more trade."""
        outcomes = self.outcomes
        if (outcome := trade.outcome) is not None:
            outcomes = {**outcomes, outcome.unit: (outcomes.get(outcome.unit) or Moments()).add(outcome.value)}
        in_r = outcome is not None and outcome.unit == "R"
        return Record(
            n=self.n + (trade.win is not None),
            wins=self.wins + (trade.win is True),
            in_r=self.in_r + (in_r and trade.win is not None),
            wins_in_r=self.wins_in_r + (in_r and trade.win is True),
            outcomes=outcomes,
        )

    @property
    def known(self) -> KnownOutcomes:
        """Of how many won and lost trades the outcome in R is known."""
        return KnownOutcomes(
            won=self.wins, lost=self.n - self.wins, known_won=self.wins_in_r, known_lost=self.in_r - self.wins_in_r
        )

    def win_rate(self) -> Figure:
        return Figure(value=self.wins / self.n if self.n >= FEWEST else None, n=self.n)

    def means(self) -> dict[OutcomeUnit, Figure]:
        """The mean outcome by unit; no mean in R where R is missing more often among losers than among winners."""
        hidden = {"R"} if self.known.hides_losers else set()
        return {
            unit: Figure(value=m.mean if m.n >= FEWEST and unit not in hidden else None, n=m.n)
            for unit, m in self.outcomes.items()
        }


NOTHING = Record()


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an agent trades one strategy in one symbol, over its last trades."""

    window: int
    """The number of trades that habits are computed from; `n` is smaller while there are fewer."""
    n: int
    win_rate: Figure
    outcomes: Mapping[OutcomeUnit, Figure]
    """Mean outcome by unit; without a value in R where R is missing more often among losers than among winners."""
    expected_win_rate: Figure
    """Win rate of all trades of the strategy before the window, in any symbol."""
    expected_outcomes: Mapping[OutcomeUnit, Figure]
    """Mean outcome of the same trades, by unit."""
    hold_seconds: Figure
    captured_share: Figure
    """Realised result as a share of the best one, of trades that were in profit at any time."""
    entry_timing: Estimate
    """Share of trades whose worst price came before their best price."""
    size_against_recommended: Estimate
    """Share of equity risked over the share that was recommended, where one was: above 1 is more than recommended."""
    size_variation: Figure
    """Coefficient of variation of size as a share of equity."""
    disposition_effect: Estimate
    """Above 0: losers are held longer than winners."""
    loss_aversion: Estimate
    """Below 0: sizes are smaller after a loss than after a win; above 0: larger. The agent's last trade counts,
    whatever its symbol."""
    recency_bias: Estimate
    """Correlation of the agent's last outcome with its next size, or with its next confidence."""
    recency_bias_of: Reaction | None
    stability: float
    """1 / (1 + variation of size); it sets the next window."""


def window_of(stability: float) -> int:
    """How many trades habits are computed from: more where sizes are stable.

    >>> [window_of(stability) for stability in (0.0, 0.5, 1.0)]
    [50, 75, 100]
    """
    return max(SHORTEST_WINDOW, min(LONGEST_WINDOW, round(50 * (1.0 + stability))))


def stability_of(variation: float | None) -> float:
    """1 / (1 + coefficient of variation of size); .5 where the variation is not known.

    >>> stability_of(0.0), stability_of(1.0), stability_of(None)
    (1.0, 0.5, 0.5)
    """
    return NEUTRAL_STABILITY if variation is None else 1.0 / (1.0 + variation)


def habits(
    trades: Sequence[TradeFigures], *, stability: float = NEUTRAL_STABILITY, earlier: Record = NOTHING
) -> Habits:
    """The habits in the last trades of one strategy and symbol, given in the order in which they became known.

    `stability` is the stability before the last trade and sets the window. `earlier` is the record of the strategy
    before the window.
    """
    window = window_of(stability)
    recent = trades[-window:]
    record = record_of(recent)
    size_variation = variation_of_size(recent)
    recency_bias, recency_bias_of = _recency_bias(recent)
    return Habits(
        window=window,
        n=len(recent),
        win_rate=record.win_rate(),
        outcomes=record.means(),
        expected_win_rate=earlier.win_rate(),
        expected_outcomes=earlier.means(),
        hold_seconds=_mean([each.hold_seconds for each in recent]),
        captured_share=_mean([captured_share(each) for each in recent]),
        entry_timing=mean_estimate(_known(map(entry_timing, recent)), neutral=0.5),
        size_against_recommended=mean_estimate(_known(map(_against_recommended, recent)), neutral=1.0),
        size_variation=size_variation,
        disposition_effect=_disposition_effect(recent),
        loss_aversion=_loss_aversion(recent),
        recency_bias=recency_bias,
        recency_bias_of=recency_bias_of,
        stability=stability_of(size_variation.value),
    )


def captured_share(trade: TradeFigures) -> float | None:
    """Realised / MFE, clipped to 0 … 1; None for a trade that was never in profit.

    >>> from datetime import UTC
    >>> known_at = datetime(2026, 6, 4, tzinfo=UTC)
    >>> trade = {"episode_id": "e", "strategy_name": "IM", "symbol": "BTC", "known_at": known_at}
    >>> [captured_share(TradeFigures(gain=gain, mfe=100.0, **trade)) for gain in (100.0, 50.0, -20.0)]
    [1.0, 0.5, 0.0]
    >>> captured_share(TradeFigures(gain=-20.0, mfe=0.0, **trade)) is None
    True
    """
    gain, mfe = trade.gain, trade.mfe
    if gain is None or mfe is None or mfe <= 0:
        return None
    return max(0.0, min(1.0, gain / mfe))


def entry_timing(trade: TradeFigures) -> float | None:
    """1 if the worst price came before the best, 0 if after; None if either is not known or both are of one bar."""
    if not trade.mfe or not trade.mae or trade.mfe_at is None or trade.mae_at is None or trade.mfe_at == trade.mae_at:
        return None
    return 1.0 if trade.mae_at < trade.mfe_at else 0.0


def variation_of_size(trades: Iterable[TradeFigures]) -> Figure:
    """The coefficient of variation of size as a share of equity: sample standard deviation / mean."""
    return _variation([each.size_share for each in trades if each.size_share is not None])


def _variation(values: Sequence[float]) -> Figure:
    sizes = moments_of(values)
    known = sizes.n >= FEWEST and sizes.mean > 0 and sizes.deviation is not None
    return Figure(value=(sizes.deviation or 0.0) / sizes.mean if known else None, n=sizes.n)


def record_of(trades: Sequence[TradeFigures]) -> Record:
    """The record of trades, equal to adding them one by one with `Record.add`."""
    wins = [each.win is True for each in trades if each.win is not None]
    wins_in_r = [
        each.win for each in trades if each.win is not None and each.outcome is not None and each.outcome.unit == "R"
    ]
    values: dict[OutcomeUnit, list[float]] = {}
    for each in trades:
        if (outcome := each.outcome) is not None:
            values.setdefault(outcome.unit, []).append(outcome.value)
    outcomes = {unit: moments_of(unit_values) for unit, unit_values in values.items()}
    return Record(n=len(wins), wins=sum(wins), in_r=len(wins_in_r), wins_in_r=sum(wins_in_r), outcomes=outcomes)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> Figure:
    known = _known(values)
    return Figure(value=math.fsum(known) / len(known) if len(known) >= FEWEST else None, n=len(known))


def _against_recommended(trade: TradeFigures) -> float | None:
    """The share of equity risked over the share that was recommended; None without a recommendation, and if that was to
    risk nothing."""
    if trade.risk_share is None or not trade.recommended_share:
        return None
    ratio = trade.risk_share / trade.recommended_share
    return ratio if math.isfinite(ratio) else None


def _disposition_effect(trades: Iterable[TradeFigures]) -> Estimate:
    """Mean hold of losers / mean hold of winners − 1 (Shefrin & Statman 1985)."""
    return _excess((each.hold_seconds, each.win) for each in trades)


def _loss_aversion(trades: Iterable[TradeFigures]) -> Estimate:
    """Mean size after a loss / mean size after a win − 1."""
    return _excess((each.size_share, each.previous_win) for each in trades)


def _excess(values: Iterable[tuple[float | None, bool | None]]) -> Estimate:
    """Mean of the values that go with a loss / mean of those that go with a win − 1."""
    known = [(value, won) for value, won in values if value is not None and won is not None]
    return ratio_estimate([value for value, _ in known], [not won for _, won in known])


def _recency_bias(trades: Sequence[TradeFigures]) -> tuple[Estimate, Reaction | None]:
    """Correlation of the last outcome with the next size; with the next confidence if sizes are few or constant."""
    by_size = _reaction((each.previous_outcome, each.size_share) for each in trades)
    if by_size.value is not None:
        return by_size, "size"
    by_confidence = _reaction((each.previous_outcome, each.confidence) for each in trades)
    return (by_confidence, "confidence") if by_confidence.value is not None else (by_size, None)


def _reaction(answers: Iterable[tuple[Outcome | None, float | None]]) -> Estimate:
    """The correlation of the last outcome, in its most frequent unit, with the next size or confidence."""
    reactions = [(outcome, value) for outcome, value in answers if outcome is not None and value is not None]
    units = Counter([outcome.unit for outcome, _ in reactions])
    usual = max(UNITS, key=lambda unit: units[unit])
    return correlation_estimate([(outcome.value, value) for outcome, value in reactions if outcome.unit == usual])


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTrade:
    """A trade that may be in the next window, with the record of the strategy before the trade."""

    trade: TradeFigures
    earlier: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """The state of one strategy in one symbol: its last hundred trades and its drift detectors."""

    recent: tuple[WindowTrade, ...] = ()
    stability: float = NEUTRAL_STABILITY
    """Stability after the last trade, which sets the window of the next habits."""
    previous_stability: float = NEUTRAL_STABILITY
    """Stability before the last trade, which set the window of the current habits."""
    outcome_drift: Mapping[OutcomeUnit, Detector] = field(default_factory=dict)
    size_drift: Detector = field(default_factory=Detector)
    trades: int = 0
    """How many trades there were in all."""

    @property
    def habits(self) -> Habits:
        """The habits after the last trade."""
        window = window_of(self.previous_stability)
        earlier = self.recent[-window:][0].earlier if self.recent else NOTHING
        return habits([each.trade for each in self.recent], stability=self.previous_stability, earlier=earlier)


_NO_PRACTICE = Practice()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """The habits of one strategy in one mode, over all symbols: the state that `learn` carries on."""

    strategy_name: str
    record: Record = NOTHING
    outcome_drift: Mapping[OutcomeUnit, Detector] = field(default_factory=dict)
    """The drift detectors of the strategy as a whole, over the outcomes in all symbols."""
    trades: int = 0
    """How many trades there were in all symbols."""
    symbols: Mapping[str, Practice] = field(default_factory=dict)
    closes: Mapping[str, tuple[PastClose, ...]] = field(default_factory=dict)
    """The closed trades that a later trade may follow, by deployment, in the order in which they became known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAlarm:
    """An alarm, and the series that raised it."""

    symbol: str | None
    """None for the strategy as a whole."""
    series: Literal["outcome", "size"]
    unit: OutcomeUnit | None
    alarm: Alarm


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillCheckpoint:
    """The strategy in one symbol, or as a whole, right after one of its trades."""

    trade: TradeFigures
    symbol: str | None
    """None for the strategy as a whole."""
    practice: Practice
    """Without its recent trades; of the strategy as a whole it has only the trades and the drift of outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitUpdate:
    """The habits of a strategy after more trades, and the alarms that the trades raised."""

    skill: Skill
    alarms: tuple[DriftAlarm, ...] = ()
    trades: tuple[TradeFigures, ...] = ()
    """The trades, each with the result of the agent's last trade before it."""
    earlier: tuple[Record, ...] = ()
    """The record of the strategy before each of the trades."""
    checkpoints: tuple[SkillCheckpoint, ...] = ()


def learn(skill: Skill, trade: TradeFigures) -> HabitUpdate:
    """The habits after one more trade; trades come in the order in which they become known."""
    return learn_all((trade,), skill=skill)


def learn_all(trades: Iterable[TradeFigures], *, skill: Skill) -> HabitUpdate:
    """The habits after more trades, given in the order in which they became known."""
    record, alarms, earlier = skill.record, list[DriftAlarm](), list[Record]()
    outcome_drift = dict(skill.outcome_drift)
    opened: dict[str, _OpenPractice] = {}
    closes = {deployment: list(past) for deployment, past in skill.closes.items()}
    learned, checkpoints, count = list[TradeFigures](), list[SkillCheckpoint](), skill.trades
    for each in trades:
        own = closes.setdefault(each.deployment_id, [])
        trade = after_last_close(each, own)
        if trade.strategy_name != skill.strategy_name:
            message = (
                f"episode {trade.episode_id!r} is of strategy {trade.strategy_name!r}, not {skill.strategy_name!r}"
            )
            raise Invalid(f"{message}; learn each strategy by itself", field="strategy_name")
        practice = opened.get(trade.symbol)
        if practice is None:
            practice = opened[trade.symbol] = _OpenPractice(skill.symbols.get(trade.symbol) or _NO_PRACTICE)
        alarms += practice.add(trade, earlier=record)
        alarms += _watch_outcome(outcome_drift, trade, symbol=None)
        earlier.append(record)
        learned.append(trade)
        own.append(PastClose(known_at=trade.known_at, win=trade.win, outcome=trade.outcome))
        record = record.add(trade)
        count += 1
        if is_checkpoint(practice.trades):
            checkpoints.append(SkillCheckpoint(trade=trade, symbol=trade.symbol, practice=practice.state()))
        if is_checkpoint(count):
            whole = Practice(outcome_drift=dict(outcome_drift), trades=count)
            checkpoints.append(SkillCheckpoint(trade=trade, symbol=None, practice=whole))
    symbols = {**skill.symbols, **{symbol: practice.practice() for symbol, practice in opened.items()}}
    past_closes = {deployment: tuple(past) for deployment, past in closes.items()}
    return HabitUpdate(
        skill=Skill(
            strategy_name=skill.strategy_name,
            record=record,
            outcome_drift=outcome_drift,
            trades=count,
            symbols=symbols,
            closes=past_closes,
        ),
        alarms=tuple(alarms),
        trades=tuple(learned),
        earlier=tuple(earlier),
        checkpoints=tuple(checkpoints),
    )


def practise(practice: Practice, trades: Iterable[TradeFigures]) -> Practice:
    """The practice after more trades in its symbol, which already know the agent's trade before them."""
    builder = _OpenPractice(practice)
    for trade in trades:
        builder.add(trade, earlier=NOTHING)
    return builder.practice()


def watch_outcomes(
    detectors: Mapping[OutcomeUnit, Detector], outcomes: Iterable[tuple[datetime, Outcome | None]]
) -> dict[OutcomeUnit, Detector]:
    """The detectors after more outcomes, each with the instant at which it became known."""
    after = dict(detectors)
    for known_at, outcome in outcomes:
        _watch(after, outcome, at=known_at)
    return after


def after_last_close(trade: TradeFigures, closes: Sequence[PastClose]) -> TradeFigures:
    """The trade with the result of the last of its agent's closes that was known when the trade was opened.

    If the opening time is not known, that is the last close. A trade that was opened before any close follows none.
    """
    before = len(closes)
    if trade.opened_at is not None:
        before = bisect_right(closes, trade.opened_at, key=lambda close: close.known_at)
    if not before:
        return trade
    last = closes[before - 1]
    return copy_with(trade, previous_win=last.win, previous_outcome=last.outcome)


class _OpenPractice:
    """A `Practice` to which trades are added in place."""

    __slots__ = ("outcome_drift", "previous_stability", "recent", "size_drift", "sizes", "stability", "trades")

    def __init__(self, practice: Practice) -> None:
        self.recent, self.sizes = list(practice.recent), [each.trade.size_share for each in practice.recent]
        self.stability, self.previous_stability = practice.stability, practice.previous_stability
        self.outcome_drift, self.size_drift = dict(practice.outcome_drift), practice.size_drift
        self.trades = practice.trades

    def add(self, trade: TradeFigures, *, earlier: Record) -> list[DriftAlarm]:
        """Add a trade and return the drift alarms that its outcome and size raise."""
        if self.recent and trade.known_at < self.recent[-1].trade.known_at:
            late = f"episode {trade.episode_id!r} became known before the last episode learned"
            raise Invalid(f"{late}; learn all episodes again in order", field="known_at")
        self.trades += 1
        self.recent = [*self.recent[1 - LONGEST_WINDOW :], WindowTrade(trade=trade, earlier=earlier)]
        self.sizes = [*self.sizes[1 - LONGEST_WINDOW :], trade.size_share]
        window = self.sizes[-window_of(self.stability) :]
        self.previous_stability = self.stability
        self.stability = stability_of(_variation([size for size in window if size is not None]).value)
        return [*_watch_outcome(self.outcome_drift, trade, symbol=trade.symbol), *self._watch_size(trade)]

    def practice(self) -> Practice:
        return replace(self.state(), recent=tuple(self.recent))

    def state(self) -> Practice:
        """The practice without its recent trades."""
        return Practice(
            stability=self.stability,
            previous_stability=self.previous_stability,
            outcome_drift=dict(self.outcome_drift),
            size_drift=self.size_drift,
            trades=self.trades,
        )

    def _watch_size(self, trade: TradeFigures) -> Iterator[DriftAlarm]:
        if trade.size_share is not None:
            update = watch(self.size_drift, trade.size_share, at=trade.known_at)
            self.size_drift = update.detector
            for alarm in update.alarms:
                yield DriftAlarm(symbol=trade.symbol, series="size", unit=None, alarm=alarm)


def _watch_outcome(
    detectors: dict[OutcomeUnit, Detector], trade: TradeFigures, *, symbol: str | None
) -> Iterator[DriftAlarm]:
    """Pass the outcome of a trade to the detector of its unit."""
    outcome = trade.outcome
    for alarm in _watch(detectors, outcome, at=trade.known_at):
        yield DriftAlarm(symbol=symbol, series="outcome", unit=None if outcome is None else outcome.unit, alarm=alarm)


def _watch(detectors: dict[OutcomeUnit, Detector], outcome: Outcome | None, *, at: datetime) -> tuple[Alarm, ...]:
    if outcome is None:
        return ()
    update = watch(detectors.get(outcome.unit) or Detector(), outcome.value, at=at)
    detectors[outcome.unit] = update.detector
    return update.alarms
