"""Ranking: the few memories that come to mind, each with its reasons."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.instants import days_between
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import short, signed
from backsight.core.recall.period import period_weights
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation, factors, sigmas
from backsight.core.trades.trade import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One recalled episode with its score, the factors of it, and a sentence that says why."""

    id: str
    score: float
    factors: ScoreFactors
    sentence: str
    episode: Episode
    strength: float | None = None
    """How fresh it is, and how often it was recalled for a decision; it ranks nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """What comes to mind three ways: by outcome, blind to it, and the losses."""

    memories: tuple[RecalledMemory, ...]
    """By Score: selected by outcome, so they flatter."""
    nearest: tuple[RecalledMemory, ...]
    """By Sim · Rec, whatever the outcome."""
    warnings: tuple[RecalledMemory, ...]
    """Losses by how bad, how alike, how fresh and how sure."""


WARNINGS = 3


def remind(
    episodes: Sequence[Episode],
    query: Situation,
    *,
    now: datetime,
    limit: int,
    temper: RecallMood | None = None,
    period_weight: bool = False,
    company: Sequence[Episode] | None = None,
) -> Ranked:
    """The episodes that come to mind, ties by id; every one of them is scored, not the newest few.

    Warnings are losses by sigmoid(−2x/σ) · Sim · Rec · Conf, which is 1 − Q in place of Q and no Aff. With
    `period_weight` scores are weighted by how the strategy fared at the time, told by `company`: all that was known
    by now, whatever is asked for; the episodes themselves where it is not given.
    """
    sigma = sigmas(e.outcome for e in episodes if e.outcome is not None)
    mood = temper or RecallMood()
    periods = period_weights(episodes, episodes if company is None else company) if period_weight else {}
    scored = [
        (factors(e, query, now=now, sigma=sigma, temper=mood, period=periods.get(e.id, 1.0)), e) for e in episodes
    ]
    losses = [(f, e) for f, e in scored if e.outcome is not None and e.outcome.value < 0]
    return Ranked(
        memories=_best(scored, lambda f: f.score, now=now, limit=limit),
        nearest=_best(scored, lambda f: f.nearness, now=now, limit=limit),
        warnings=_best(losses, lambda f: f.dread, now=now, limit=WARNINGS),
    )


def _best(
    scored: Iterable[tuple[ScoreFactors, Episode]], by: Callable[[ScoreFactors], float], *, now: datetime, limit: int
) -> tuple[RecalledMemory, ...]:
    best = heapq.nsmallest(limit, scored, key=lambda pair: (-by(pair[0]), pair[1].id))
    return tuple(
        RecalledMemory(id=e.id, score=by(f), factors=f, sentence=sentence(e, sim=f.Sim, now=now), episode=e)
        for f, e in best
    )


def sentence(episode: Episode, *, sim: float, now: datetime) -> str:
    """Why this memory, in one line: "+3.0R in a very similar context (Sim .91), 12 days old"."""
    return f"{ended(episode)} in a {likeness(sim)} context (Sim {short(sim)}), {age(episode.ended_at, now=now)} old"


def ended(episode: Episode) -> str:
    """The outcome in the trader's words."""
    if episode.outcome is not None:
        return in_words(episode.outcome)
    return "no outcome" if episode.pnl is None else f"{signed(episode.pnl, 2)} at a risk not known"


def in_words(outcome: Outcome) -> str:
    """An outcome with its unit.

    >>> [in_words(Outcome(value=0.0123, unit=unit)) for unit in ("R", "vol", "pct")]
    ['0.0R', '+0.01 daily ATR', '+1.23%']
    """
    match outcome.unit:
        case "R":
            return f"{signed(outcome.value)}R"
        case "vol":
            return f"{signed(outcome.value, 2)} daily ATR"
        case "pct":
            return f"{signed(outcome.value * 100, 2)}%"


def likeness(sim: float) -> str:
    """A word for a similarity.

    >>> [likeness(s) for s in (0.91, 0.6, 0.3, 0.1)]
    ['very similar', 'similar', 'loosely similar', 'different']
    """
    if sim >= 0.8:
        return "very similar"
    if sim >= 0.5:
        return "similar"
    return "loosely similar" if sim >= 0.2 else "different"


def age(at: datetime, *, now: datetime) -> str:
    """How long ago, in the unit one would say it in.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [age(t0, now=t0 + timedelta(hours=h)) for h in (0.5, 5, 24, 288)]
    ['under an hour', '5 hours', '1 day', '12 days']
    """
    days = days_between(at, now)
    if days < 1 / 24:
        return "under an hour"
    count, unit = (int(days), "day") if days >= 1 else (int(days * 24), "hour")
    return f"{count} {unit}{'' if count == 1 else 's'}"
