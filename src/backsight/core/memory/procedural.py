"""Habits: how an agent trades one strategy in one symbol, measured over its last trades.

Every figure has the number of trades behind it, and is None for fewer than ten. Habits are a fold over trades in the
order in which they became known: `learn` adds one trade, `learn_all` any number, and both ways end in equal states.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from backsight.core.errors import Invalid
from backsight.core.memory.drift import Alarm, Detector, watch
from backsight.core.statistics import Moments, moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit

FEWEST = 10
"""How many trades a figure needs."""
SHORTEST_WINDOW, LONGEST_WINDOW = 20, 100
NEUTRAL_STABILITY = 0.5
UNITS: tuple[OutcomeUnit, ...] = get_args(OutcomeUnit)

Reaction = Literal["size", "confidence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeFigures:
    """The figures of one closed trade that habits are computed from; None where a figure is not known."""

    episode_id: str
    strategy_name: str
    symbol: str
    known_at: datetime
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value and the number of trades behind it; the value is None for fewer than ten."""

    value: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Count, wins and outcomes of trades up to an instant."""

    n: int = 0
    wins: int = 0
    outcomes: Mapping[OutcomeUnit, Moments] = field(default_factory=dict)

    def add(self, trade: TradeFigures) -> "Record":
        """The record with one more trade."""
        outcomes = self.outcomes
        if (outcome := trade.outcome) is not None:
            outcomes = {**outcomes, outcome.unit: (outcomes.get(outcome.unit) or Moments()).add(outcome.value)}
        return Record(n=self.n + (trade.win is not None), wins=self.wins + (trade.win is True), outcomes=outcomes)

    def win_rate(self) -> Figure:
        return Figure(value=self.wins / self.n if self.n >= FEWEST else None, n=self.n)

    def means(self) -> dict[OutcomeUnit, Figure]:
        """The mean outcome by unit."""
        return {unit: Figure(value=m.mean if m.n >= FEWEST else None, n=m.n) for unit, m in self.outcomes.items()}


NOTHING = Record()
_Pairs = Sequence[tuple[TradeFigures, TradeFigures]]
"""Pairs of a previous trade and a trade, as `pairs` yields them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an agent trades one strategy in one symbol, over its last trades."""

    window: int
    """The number of trades that habits are computed from; `n` is smaller while there are fewer."""
    n: int
    win_rate: Figure
    outcomes: Mapping[OutcomeUnit, Figure]
    """Mean outcome by unit."""
    expected_win_rate: Figure
    """Win rate of all trades of the strategy before the window, in any symbol."""
    expected_outcomes: Mapping[OutcomeUnit, Figure]
    """Mean outcome of the same trades, by unit."""
    hold_seconds: Figure
    exit_timing: Figure
    """From −1 (left at the best price) to +1 (the whole gain was given back)."""
    entry_timing: Figure
    """Share of trades whose worst price came before their best price."""
    size_against_recommended: Figure
    """Share of equity risked over the share that was recommended, where one was: above 1 is more than recommended."""
    size_variation: Figure
    """Coefficient of variation of size as a share of equity."""
    disposition_effect: Figure
    """Above 0: losers are held longer than winners."""
    loss_aversion: Figure
    """Below 0: sizes are smaller after a loss than after a win; above 0: larger."""
    recency_bias: Figure
    """Correlation of the last outcome with the next size, or with the next confidence."""
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
    trade_pairs = list(pairs(recent))
    recency_bias, recency_bias_of = _recency_bias(trade_pairs)
    return Habits(
        window=window,
        n=len(recent),
        win_rate=record.win_rate(),
        outcomes=record.means(),
        expected_win_rate=earlier.win_rate(),
        expected_outcomes=earlier.means(),
        hold_seconds=_mean([each.hold_seconds for each in recent]),
        exit_timing=_mean([exit_timing(each) for each in recent]),
        entry_timing=_mean([entry_timing(each) for each in recent]),
        size_against_recommended=_mean([_against_recommended(each) for each in recent]),
        size_variation=size_variation,
        disposition_effect=_disposition_effect(recent),
        loss_aversion=_loss_aversion(trade_pairs),
        recency_bias=recency_bias,
        recency_bias_of=recency_bias_of,
        stability=stability_of(size_variation.value),
    )


def exit_timing(trade: TradeFigures) -> float | None:
    """1 − 2c, where c = realised / MFE, clipped to 0 … 1; None for a trade that was never in profit.

    −1: the trade was left at its best price. 0: half of the best gain was given back. +1: all of it was given back.

    >>> from datetime import UTC
    >>> known_at = datetime(2026, 6, 4, tzinfo=UTC)
    >>> trade = {"episode_id": "e", "strategy_name": "IM", "symbol": "BTC", "known_at": known_at}
    >>> [exit_timing(TradeFigures(gain=gain, mfe=100.0, **trade)) for gain in (100.0, 50.0, -20.0)]
    [-1.0, 0.0, 1.0]
    >>> exit_timing(TradeFigures(gain=-20.0, mfe=0.0, **trade)) is None
    True
    """
    gain, mfe = trade.gain, trade.mfe
    if gain is None or mfe is None or mfe <= 0:
        return None
    return 1.0 - 2.0 * max(0.0, min(1.0, gain / mfe))


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


def pairs(trades: Sequence[TradeFigures]) -> Iterator[tuple[TradeFigures, TradeFigures]]:
    """Pairs of a previous trade and a trade.

    The previous trade is the trade whose result was the last known when the trade was opened. If the opening time is
    not known, it is the trade before. A trade opened before any result was known is in no pair.
    """
    known = [each.known_at for each in trades]
    for position, trade in enumerate(trades):
        before = position if trade.opened_at is None else min(position, bisect_right(known, trade.opened_at))
        if before:
            yield trades[before - 1], trade


def correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's r; None where either variable is constant.

    >>> correlation([(0.0, 2.0), (2.0, 4.0), (0.0, 2.0), (2.0, 4.0)]), correlation([(1.0, 2.0), (2.0, 2.0)])
    (1.0, None)
    """
    xs, ys = moments_of([x for x, _ in points]), moments_of([y for _, y in points])
    if not (xs.squares > 0 and ys.squares > 0):
        return None
    mean_x, mean_y = xs.mean, ys.mean
    products = math.fsum([(x - mean_x) * (y - mean_y) for x, y in points])
    return max(-1.0, min(1.0, products / math.sqrt(xs.squares) / math.sqrt(ys.squares)))


def record_of(trades: Sequence[TradeFigures]) -> Record:
    """The record of trades, equal to adding them one by one with `Record.add`."""
    wins = [each.win is True for each in trades if each.win is not None]
    values: dict[OutcomeUnit, list[float]] = {}
    for each in trades:
        if (outcome := each.outcome) is not None:
            values.setdefault(outcome.unit, []).append(outcome.value)
    outcomes = {unit: moments_of(unit_values) for unit, unit_values in values.items()}
    return Record(n=len(wins), wins=sum(wins), outcomes=outcomes)


def _mean(values: Iterable[float | None]) -> Figure:
    known = [value for value in values if value is not None]
    return Figure(value=math.fsum(known) / len(known) if len(known) >= FEWEST else None, n=len(known))


def _against_recommended(trade: TradeFigures) -> float | None:
    """The share of equity risked over the share that was recommended; None if nothing was recommended."""
    if trade.risk_share is None or not trade.recommended_share:
        return None
    ratio = trade.risk_share / trade.recommended_share
    return ratio if math.isfinite(ratio) else None


def _excess(numerators: Sequence[float], denominators: Sequence[float]) -> Figure:
    """mean(numerators) / mean(denominators) − 1; None if either is empty or the divisor is not above zero."""
    n = len(numerators) + len(denominators)
    if n < FEWEST or not numerators or not math.fsum(denominators) > 0:
        return Figure(value=None, n=n)
    mean, divisor = math.fsum(numerators) / len(numerators), math.fsum(denominators) / len(denominators)
    return Figure(value=mean / divisor - 1.0, n=n)


def _disposition_effect(trades: Iterable[TradeFigures]) -> Figure:
    """Mean hold of losers / mean hold of winners − 1 (Shefrin & Statman 1985)."""
    holds = [(each.win, each.hold_seconds) for each in trades if each.hold_seconds is not None]
    return _excess([hold for win, hold in holds if win is False], [hold for win, hold in holds if win])


def _loss_aversion(trade_pairs: _Pairs) -> Figure:
    """Mean size after a loss / mean size after a win − 1."""
    sizes = [(before.win, after.size_share) for before, after in trade_pairs if after.size_share is not None]
    return _excess([size for win, size in sizes if win is False], [size for win, size in sizes if win])


def _recency_bias(trade_pairs: _Pairs) -> tuple[Figure, Reaction | None]:
    """Correlation of the last outcome with the next size; with the next confidence if sizes are few or constant."""
    by_size = _reaction([(before.outcome, after.size_share) for before, after in trade_pairs])
    if by_size.value is not None:
        return by_size, "size"
    by_confidence = _reaction([(before.outcome, after.confidence) for before, after in trade_pairs])
    return (by_confidence, "confidence") if by_confidence.value is not None else (by_size, None)


def _reaction(answers: Iterable[tuple[Outcome | None, float | None]]) -> Figure:
    """The correlation of the last outcome, in its most frequent unit, with the next size or confidence."""
    reactions = [(outcome, value) for outcome, value in answers if outcome is not None and value is not None]
    units = Counter([outcome.unit for outcome, _ in reactions])
    usual = max(UNITS, key=lambda unit: units[unit])
    points = [(outcome.value, value) for outcome, value in reactions if outcome.unit == usual]
    return Figure(value=correlation(points) if len(points) >= FEWEST else None, n=len(points))


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
    symbols: Mapping[str, Practice] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAlarm:
    """An alarm, and the series that raised it."""

    symbol: str
    series: Literal["outcome", "size"]
    unit: OutcomeUnit | None
    alarm: Alarm


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitUpdate:
    """The habits of a strategy after more trades, and the alarms that the trades raised."""

    skill: Skill
    alarms: tuple[DriftAlarm, ...] = ()
    earlier: tuple[Record, ...] = ()
    """The record of the strategy before each of the trades."""


def learn(skill: Skill, trade: TradeFigures) -> HabitUpdate:
    """The habits after one more trade; trades come in the order in which they become known."""
    return learn_all((trade,), skill=skill)


def learn_all(trades: Iterable[TradeFigures], *, skill: Skill) -> HabitUpdate:
    """The habits after more trades, given in the order in which they became known."""
    record, alarms, earlier = skill.record, list[DriftAlarm](), list[Record]()
    opened: dict[str, _OpenPractice] = {}
    for trade in trades:
        if trade.strategy_name != skill.strategy_name:
            message = (
                f"episode {trade.episode_id!r} is of strategy {trade.strategy_name!r}, not {skill.strategy_name!r}"
            )
            raise Invalid(f"{message}; learn each strategy by itself", field="strategy_name")
        practice = opened.get(trade.symbol)
        if practice is None:
            practice = opened[trade.symbol] = _OpenPractice(skill.symbols.get(trade.symbol) or _NO_PRACTICE)
        alarms += practice.add(trade, earlier=record)
        earlier.append(record)
        record = record.add(trade)
    symbols = {**skill.symbols, **{symbol: practice.practice() for symbol, practice in opened.items()}}
    learned = Skill(strategy_name=skill.strategy_name, record=record, symbols=symbols)
    return HabitUpdate(skill=learned, alarms=tuple(alarms), earlier=tuple(earlier))


class _OpenPractice:
    """A `Practice` to which trades are added in place."""

    __slots__ = ("outcome_drift", "previous_stability", "recent", "size_drift", "sizes", "stability")

    def __init__(self, practice: Practice) -> None:
        self.recent, self.sizes = list(practice.recent), [each.trade.size_share for each in practice.recent]
        self.stability, self.previous_stability = practice.stability, practice.previous_stability
        self.outcome_drift, self.size_drift = dict(practice.outcome_drift), practice.size_drift

    def add(self, trade: TradeFigures, *, earlier: Record) -> list[DriftAlarm]:
        """Add a trade and return the drift alarms that its outcome and size raise."""
        if self.recent and trade.known_at < self.recent[-1].trade.known_at:
            late = f"episode {trade.episode_id!r} became known before the last episode learned"
            raise Invalid(f"{late}; learn all episodes again in order", field="known_at")
        self.recent = [*self.recent[1 - LONGEST_WINDOW :], WindowTrade(trade=trade, earlier=earlier)]
        self.sizes = [*self.sizes[1 - LONGEST_WINDOW :], trade.size_share]
        window = self.sizes[-window_of(self.stability) :]
        self.previous_stability = self.stability
        self.stability = stability_of(_variation([size for size in window if size is not None]).value)
        return [*self._watch_outcome(trade), *self._watch_size(trade)]

    def practice(self) -> Practice:
        return Practice(
            recent=tuple(self.recent),
            stability=self.stability,
            previous_stability=self.previous_stability,
            outcome_drift=self.outcome_drift,
            size_drift=self.size_drift,
        )

    def _watch_outcome(self, trade: TradeFigures) -> Iterator[DriftAlarm]:
        """Pass the outcome of a trade to the detector of its unit."""
        outcome = trade.outcome
        if outcome is not None:
            update = watch(self.outcome_drift.get(outcome.unit) or Detector(), outcome.value, at=trade.known_at)
            self.outcome_drift[outcome.unit] = update.detector
            for alarm in update.alarms:
                yield DriftAlarm(symbol=trade.symbol, series="outcome", unit=outcome.unit, alarm=alarm)

    def _watch_size(self, trade: TradeFigures) -> Iterator[DriftAlarm]:
        if trade.size_share is not None:
            update = watch(self.size_drift, trade.size_share, at=trade.known_at)
            self.size_drift = update.detector
            for alarm in update.alarms:
                yield DriftAlarm(symbol=trade.symbol, series="size", unit=None, alarm=alarm)
