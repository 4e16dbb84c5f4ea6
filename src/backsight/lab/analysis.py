"""The analysis of a replay: metrics with intervals, the comparison with the recorded sizes, and the verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np

from backsight.core.errors import Invalid
from backsight.lab.arms import AgentArm, AgentWithoutMemory, Arm, RandomSkip, SkipWarned
from backsight.lab.bootstrap import (
    RESAMPLES,
    SharpeComparison,
    compare_sharpe,
    day_counts,
    interval,
    resampled,
    resampled_days,
)
from backsight.lab.equity import DailyResults, Floats, TradeTimes, daily_results, trade_times
from backsight.lab.metrics import (
    Metric,
    brier_score,
    change_point,
    metrics_of,
    rank_correlation,
    sharpe,
    trades_until_halved,
    weights_of_trades,
)
from backsight.lab.null import NullDistribution, null_of, size_multiples
from backsight.lab.overfitting import daily_sharpe, deflated_sharpe, overfitting_probability, probabilistic_sharpe
from backsight.lab.power import Power, power_of
from backsight.lab.replay import Replay
from backsight.lab.split import Fold, validation_start, walk_forward
from backsight.lab.trades import LabTrade, LabTrades

Call = Literal["better", "worse", "no difference"]
Bounds = tuple[float, float]
SHUFFLES = 500
CHANGE_LEVEL = 0.05
LEAST_DIFFERENCE = 0.1
"""A smaller difference of the yearly Sharpe ratio is none, however certain: compounding alone makes one."""
CHOSEN = 0.95
"""The place in its null from which on an arm is said to choose its trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisTerms:
    """How a replay is scored. Nothing here is tuned: every default is written into the report."""

    training: float | datetime = 0.5
    """The share of the trades, or the date, up to which memory only learns."""
    folds: int = 8
    embargo_days: float = 1.0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A value and its 90% interval; None where there is none."""

    value: float | None
    interval: Bounds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """What one arm did with the trades of the validation period."""

    name: str
    meaning: str
    taken: int
    """Trades with a share above 0."""
    mean_share: float
    metrics: Mapping[Metric, Measure]
    differences: Mapping[Metric, Measure]
    """Metrics less those of the recorded sizes, on the same resampled days; empty for the baseline and for draws."""
    sharpe_difference: Measure | None
    """The difference of the yearly Sharpe ratio; its interval holds together with those of all other arms (95%)."""
    call: Call | None
    """None for the baseline, for draws, and where there is too little to say."""
    probabilistic_sharpe: float | None
    deflated_sharpe: float | None
    place_in_null: float | None
    rank_correlation: Measure
    """Of sizes, as multiples of the recorded ones, and outcomes."""
    brier: Measure
    halved_after: int | None
    """Trades after the change until the size was halved; None without a change, or if it never was."""
    folds: tuple[float, ...]
    """The Sharpe ratio in each fold."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabAnalysis:
    """Everything that a report shows."""

    power: Power
    arms: tuple[ArmResult, ...]
    verdict: str
    overfitting_probability: float | None
    with_and_without: Measure | None
    """The Sharpe ratio of the agent with memory less that without, if both were asked; the interval is 95%."""
    change_at: datetime | None
    change_is_planted: bool
    validation_start: datetime
    replayed: int
    """All trades, those of the training period included."""
    scored: tuple[LabTrade, ...]
    folds: tuple[Fold, ...]
    times: TradeTimes
    shares: Floats
    daily: DailyResults
    nulls: Mapping[str, NullDistribution]


def analyse(data: LabTrades, replay: Replay, arms: Sequence[Arm], terms: AnalysisTerms) -> LabAnalysis:
    """Score the decisions of a replay on the trades that were opened in the validation period."""
    start = validation_start(data.trades, training=terms.training)
    first = next((place for place, trade in enumerate(data.trades) if trade.entry.at >= start), len(data.trades))
    scored = data.trades[first:]
    if not scored:
        raise Invalid("no trade was opened in the validation period; give an earlier date", field="training")
    times, shares = trade_times(scored), replay.shares[:, first:]
    recorded = shares[0]
    # The power is computed first, from outcomes, dates and recorded sizes alone.
    tested = [row for row, name in enumerate(replay.arms) if row and name != RandomSkip.name]
    power = power_of(times, recorded, arms=len(tested), rng=_rng(terms, 0))
    folds = tuple(walk_forward(data.trades, since=start, folds=terms.folds, embargo=timedelta(days=terms.embargo_days)))
    daily = daily_results(shares, times)
    days = resampled_days(times.days, _rng(terms, 1))
    comparison = compare_sharpe(daily.returns[tested], daily.returns[0], days)
    nulls = {replay.arms[row]: null_of(shares[row], recorded, times, _rng(terms, 2 + row)) for row in tested}
    change, is_planted = _change(data, first, times, _rng(terms, 99))
    blocks = _fold_returns(data, replay, folds)
    judged = [row for row, name in enumerate(replay.arms) if name != RandomSkip.name]
    scoring = _Scoring(
        replay=replay, times=times, shares=shares, first=first, daily=daily, days=days, change=change, blocks=blocks,
        tried=[daily_sharpe(daily.returns[row]) for row in judged],
    )  # fmt: skip
    results = []
    for row, arm in enumerate(arms):
        if arm.name == RandomSkip.name:
            results.append(_draws_result(arm, nulls[SkipWarned.name], shares[replay.arms.index(SkipWarned.name)]))
            continue
        place = tested.index(row) if row in tested else None
        results.append(scoring.result(row, arm, _compared(comparison, place, power), nulls.get(arm.name)))
    results = [_confirmed(result, results[0]) for result in results]
    return LabAnalysis(
        power=power,
        arms=tuple(results),
        verdict=verdict_of(results, power),
        overfitting_probability=overfitting_probability([block[judged] for block in blocks]),
        with_and_without=_with_and_without(replay, daily, days),
        change_at=None if change is None else data.trades[change].entry.at,
        change_is_planted=is_planted,
        validation_start=start,
        replayed=len(data.trades),
        scored=tuple(scored),
        folds=folds,
        times=times,
        shares=shares,
        daily=daily,
        nulls=nulls,
    )


def _rng(terms: AnalysisTerms, stream: int) -> np.random.Generator:
    """The random numbers of one part of the analysis, so that more arms do not change the numbers of other parts."""
    return np.random.default_rng([terms.seed, stream])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """The difference of an arm to the recorded sizes, and what it is called."""

    difference: Measure | None = None
    call: Call | None = None


def _compared(comparison: SharpeComparison, place: int | None, power: Power) -> _Compared:
    if place is None:
        return _Compared()
    low, high = float(comparison.low[place]), float(comparison.high[place])
    is_large = abs(float(comparison.difference[place])) >= LEAST_DIFFERENCE
    call: Call = "better" if is_large and low > 0.0 else "worse" if is_large and high < 0.0 else "no difference"
    bounds = (low, high) if math.isfinite(low) and math.isfinite(high) else None
    difference = Measure(value=float(comparison.difference[place]), interval=bounds)
    return _Compared(difference=difference, call=call if power.is_enough else None)


def _confirmed(result: ArmResult, baseline: ArmResult) -> ArmResult:
    """A result that is called better only if it also earns no less per unit of drawdown.

    A Sharpe ratio does not see the level of the sizes: an arm may have a higher one and lose the account.
    """
    calmar, base = result.metrics["calmar"].value, baseline.metrics["calmar"].value
    falls_behind = calmar is not None and base is not None and calmar < base
    return replace(result, call="no difference") if result.call == "better" and falls_behind else result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scoring:
    """What the results of all arms are computed from."""

    replay: Replay
    times: TradeTimes
    shares: Floats
    first: int
    daily: DailyResults
    days: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    change: int | None
    blocks: Sequence[Floats]
    tried: Sequence[float]

    def result(self, row: int, arm: Arm, compared: _Compared, null: NullDistribution | None) -> ArmResult:
        one = DailyResults(
            returns=self.daily.returns[row : row + 1],
            wins=self.daily.wins[row : row + 1],
            losses=self.daily.losses[row : row + 1],
            trades=self.daily.trades[row : row + 1],
        )
        values, draws = metrics_of(one), metrics_of(resampled(self.daily, row, self.days))
        differences: dict[Metric, Measure] = {}
        if row:
            base_draws = metrics_of(resampled(self.daily, 0, self.days))
            base = metrics_of(
                DailyResults(
                    returns=self.daily.returns[:1],
                    wins=self.daily.wins[:1],
                    losses=self.daily.losses[:1],
                    trades=self.daily.trades[:1],
                )
            )
            differences = {name: _measure(values[name] - base[name], draws[name] - base_draws[name]) for name in values}
        multiples = size_multiples(self.shares[row], self.shares[0])
        weights = weights_of_trades(day_counts(self.days, self.times.days), self.times.day)
        all_once = np.ones((1, self.times.count))
        confidence = self.replay.confidence[row, self.first :]
        won = (self.times.outcome_r > 0.0).astype(np.float64)
        return ArmResult(
            name=arm.name,
            meaning=arm.meaning,
            taken=int(np.count_nonzero(self.shares[row])),
            mean_share=float(self.shares[row].mean()),
            metrics={name: _measure(values[name], draws[name]) for name in values},
            differences=differences,
            sharpe_difference=compared.difference,
            call=compared.call,
            probabilistic_sharpe=probabilistic_sharpe(self.daily.returns[row]),
            deflated_sharpe=deflated_sharpe(self.daily.returns[row], tried=self.tried),
            place_in_null=None if null is None else null.place,
            rank_correlation=_measure(
                rank_correlation(multiples, self.times.outcome_r, all_once),
                rank_correlation(multiples, self.times.outcome_r, weights),
            ),
            brier=_measure(brier_score(confidence, won, all_once), brier_score(confidence, won, weights)),
            halved_after=None if self.change is None else trades_until_halved(self._all_multiples(row), self.change),
            folds=tuple(float(sharpe(block[row])) if block.shape[1] else 0.0 for block in self.blocks),
        )

    def _all_multiples(self, row: int) -> Floats:
        return size_multiples(self.replay.shares[row], self.replay.shares[0])


def _measure(value: Floats, draws: Floats) -> Measure:
    single = float(value[0])
    return Measure(value=single if math.isfinite(single) else None, interval=interval(draws))


def _draws_result(arm: Arm, null: NullDistribution, shares: Floats) -> ArmResult:
    """The row of the random skips: means over the draws, and the interval that nine tenths of the draws lie in."""
    metrics = metrics_of(null.daily)
    return ArmResult(
        name=arm.name,
        meaning=arm.meaning,
        taken=int(np.count_nonzero(shares)),
        mean_share=float(shares.mean()),
        metrics={
            name: Measure(value=_finite_mean(values), interval=interval(values)) for name, values in metrics.items()
        },
        differences={},
        sharpe_difference=None,
        call=None,
        probabilistic_sharpe=None,
        deflated_sharpe=None,
        place_in_null=None,
        rank_correlation=Measure(value=None),
        brier=Measure(value=None),
        halved_after=None,
        folds=(),
    )


def _finite_mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _fold_returns(data: LabTrades, replay: Replay, folds: Sequence[Fold]) -> list[Floats]:
    """Daily returns in each fold by its own trades alone: one row an arm; folds without trades are left out."""
    blocks = []
    for fold in folds:
        if len(fold.test):
            trades = [data.trades[place] for place in fold.test.tolist()]
            blocks.append(daily_results(replay.shares[:, fold.test], trade_times(trades)).returns)
    return blocks


def _change(data: LabTrades, first: int, times: TradeTimes, rng: np.random.Generator) -> tuple[int | None, bool]:
    """The place of a planted change among all trades, else of a significant one in the validation period."""
    if data.change_at is not None:
        return data.change_at, True
    observed = change_point(times.outcome_r)
    if observed is None:
        return None, False
    place, statistic = observed
    shuffled = (change_point(rng.permutation(times.outcome_r)) for _ in range(SHUFFLES))
    as_large = sum(other is not None and other[1] >= statistic for other in shuffled)
    return (first + place, False) if (as_large + 1) / (SHUFFLES + 1) <= CHANGE_LEVEL else (None, False)


def _with_and_without(
    replay: Replay, daily: DailyResults, days: np.ndarray[tuple[int, int], np.dtype[np.int64]]
) -> Measure | None:
    if AgentArm.name not in replay.arms or AgentWithoutMemory.name not in replay.arms:
        return None
    row, base = replay.arms.index(AgentArm.name), replay.arms.index(AgentWithoutMemory.name)
    comparison = compare_sharpe(daily.returns[row : row + 1], daily.returns[base], days)
    low, high = float(comparison.low[0]), float(comparison.high[0])
    bounds = (low, high) if math.isfinite(low) and math.isfinite(high) else None
    return Measure(value=float(comparison.difference[0]), interval=bounds)


def verdict_of(results: Sequence[ArmResult], power: Power) -> str:
    """The answer of the lab in one sentence."""
    if not power.is_enough:
        return f"Too little to say: {power.sentence[0].lower()}{power.sentence[1:]}"
    better = [result for result in results if result.call == "better"]
    worse = [result.name for result in results if result.call == "worse"]
    tail = f"; worse: {', '.join(worse)}" if worse else ""
    if better:
        return f"Better than the recorded sizes: {', '.join(map(_in_words, better))}{tail}."
    missed = "any advantage" if power.detectable is None else f"a gain below {power.detectable.gain:.1f}"
    compared = [result.name for result in results if result.call is not None]
    subject = f"{compared[0]} is not" if len(compared) == 1 else f"none of {len(compared)} arms is"
    return (
        f"No: {subject} better than the recorded sizes beyond chance{tail}; "
        f"{missed} in the yearly Sharpe ratio would mostly have been missed."
    )


def _in_words(result: ArmResult) -> str:
    difference = result.sharpe_difference
    if difference is None or difference.value is None:
        return result.name
    bounds = "" if difference.interval is None else "; {:+.1f} to {:+.1f}".format(*difference.interval)
    chooses = result.place_in_null is not None and result.place_in_null >= CHOSEN
    how = "by choosing its trades" if chooses else "by the level of its sizes, not by choosing trades"
    return f"{result.name} ({difference.value:+.1f} in the yearly Sharpe ratio{bounds}), {how}"


__all__ = [
    "LEAST_DIFFERENCE",
    "RESAMPLES",
    "AnalysisTerms",
    "ArmResult",
    "LabAnalysis",
    "Measure",
    "analyse",
    "verdict_of",
]
