"""Recall by the plain definition, one episode at a time: the oracle for tests and the baseline for benchmarks."""

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Mode
from backsight.core.recall.period import KINDS, PERIOD, sharpe_weight
from backsight.core.recall.rank import WARNINGS, RecalledMemory, sentence
from backsight.core.recall.score import (
    OUTCOME_CLIP_R,
    SIGMA_FLOOR_R,
    RecallMood,
    ScoreFactors,
    Situation,
    affect,
    conviction,
    quality,
    recency,
    similarity,
)
from backsight.core.text.stems import stems, text_likeness
from backsight.core.trades.trade import Outcome, OutcomeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMemories:
    """The three rankings of a recall."""

    memories: tuple[RecalledMemory, ...]
    """By score, which depends on the outcome."""
    nearest: tuple[RecalledMemory, ...]
    """By Sim · Rec, whatever the outcome."""
    warnings: tuple[RecalledMemory, ...]
    """Losses by sigmoid(−2x/σ) · Sim · Rec · Conf."""


def rank_plainly(
    episodes: Sequence[Episode],
    situation: Situation,
    *,
    now: datetime,
    limit: int,
    mood: RecallMood | None = None,
    period_weight: bool = False,
    company: Sequence[Episode] | None = None,
) -> RankedMemories:
    """Score every episode and rank them; ties are ranked by id.

    With `period_weight`, the factor Period is computed from `company`: every episode known now, whatever the filters;
    by default the episodes themselves.
    """
    sigma = sigmas(e.outcome for e in episodes if e.outcome is not None)
    periods = period_weights(episodes, episodes if company is None else company) if period_weight else {}
    scored = [
        (
            score_factors(e, situation, now=now, sigma=sigma, mood=mood or RecallMood(), period=periods.get(e.id, 1.0)),
            e,
        )
        for e in episodes
    ]
    losses = [(f, e) for f, e in scored if e.outcome is not None and e.outcome.value < 0]
    return RankedMemories(
        memories=_best(scored, lambda f: f.score, situation=situation, now=now, limit=limit),
        nearest=_best(scored, lambda f: f.nearness, situation=situation, now=now, limit=limit),
        warnings=_best(losses, lambda f: f.dread, situation=situation, now=now, limit=WARNINGS),
    )


def _best(
    scored: Iterable[tuple[ScoreFactors, Episode]],
    by: Callable[[ScoreFactors], float],
    *,
    situation: Situation,
    now: datetime,
    limit: int,
) -> tuple[RecalledMemory, ...]:
    best = heapq.nsmallest(limit, scored, key=lambda pair: (-by(pair[0]), pair[1].id))
    return tuple(
        RecalledMemory(
            id=e.id,
            score=by(f),
            factors=f,
            sentence=sentence(e, situation=situation, sim=f.Sim, now=now),
            episode=e,
        )
        for f, e in best
    )


def score_factors(
    episode: Episode,
    situation: Situation,
    *,
    now: datetime,
    sigma: Mapping[OutcomeUnit, float],
    mood: RecallMood,
    period: float = 1.0,
) -> ScoreFactors:
    """All factors of one episode."""
    text = text_likeness(situation.words, stems(episode.market_context)) if situation.words else None
    return ScoreFactors(
        Q=quality(episode.outcome, sigma=sigma),
        Sim=similarity(
            situation, symbol=episode.symbol, direction=episode.direction, context=episode.context, text=text
        ),
        Rec=recency(episode.ended_at, now=now),
        Conf=conviction(episode.confidence),
        Aff=affect(episode.outcome, mood),
        Period=period,
    )


def sigmas(outcomes: Iterable[Outcome]) -> dict[OutcomeUnit, float]:
    """σ by unit: the root mean square of the outcomes; R is clipped at ±5, and its σ is at least .5.

    >>> sigmas([Outcome(value=3.0, unit="R"), Outcome(value=-3.0, unit="R"), Outcome(value=0.02, unit="pct")])
    {'R': 3.0, 'pct': 0.02}
    >>> sigmas([Outcome(value=90.0, unit="R")]), sigmas([Outcome(value=0.1, unit="R")])
    ({'R': 5.0}, {'R': 0.5})
    """
    by_unit: dict[OutcomeUnit, list[float]] = {}
    for outcome in outcomes:
        x = outcome.value
        if outcome.unit == "R":
            x = max(-OUTCOME_CLIP_R, min(OUTCOME_CLIP_R, x))
        by_unit.setdefault(outcome.unit, []).append(x)
    sigma = {unit: _root_mean_square(values) for unit, values in by_unit.items()}
    if "R" in sigma:
        sigma["R"] = max(SIGMA_FLOOR_R, sigma["R"])
    return sigma


def _root_mean_square(values: list[float]) -> float:
    largest = max(map(abs, values))  # scale, so that no square overflows
    return largest * math.sqrt(math.fsum((x / largest) ** 2 for x in values) / len(values)) if largest else 0.0


def period_weights(episodes: Iterable[Episode], company: Iterable[Episode]) -> dict[str, float]:
    """The factor Period of each episode by id, from the outcomes in R of the company in the 30 days up to its end.

    >>> from backsight.testing import T0, an_episode
    >>> days = [an_episode(n, pnl_r=1.0 + n % 2, ended_at=T0 + timedelta(days=n)) for n in range(6)]
    >>> [weight for weight in period_weights(days, days).values()]
    [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
    """
    outcomes: dict[tuple[str, Mode], list[tuple[datetime, float]]] = {}
    for e in company:
        if e.kind in KINDS and e.outcome is not None and e.outcome.unit == "R":
            outcomes.setdefault((e.strategy_name, e.mode), []).append((e.ended_at, e.outcome.value))
    for dated in outcomes.values():
        dated.sort()
    return {e.id: _weight(outcomes.get((e.strategy_name, e.mode), []), e.ended_at) for e in episodes}


def _weight(dated: Sequence[tuple[datetime, float]], until: datetime) -> float:
    """The weight of the 30 days up to and including an instant."""
    first = bisect_right(dated, -PERIOD, key=lambda pair: pair[0] - until)
    stop = bisect_right(dated, timedelta(0), key=lambda pair: pair[0] - until)
    return sharpe_weight([x for _, x in dated[first:stop]])
