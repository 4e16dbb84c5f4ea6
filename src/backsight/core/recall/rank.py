"""Recalled memories, each with its score and a sentence that says why it was recalled."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.instants import days_between
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import short, signed
from backsight.core.recall.score import ScoreFactors, Situation, compared_fields
from backsight.core.trades.trade import Outcome

FEWEST_FIELDS = 3
"""How many fields must be compared before a context is called very similar."""
FIELD_WORDS = {
    "regime": "regime",
    "volatility_regime": "volatility regime",
    "session": "session",
    "atr_d1": "daily ATR",
    "atr_h1": "hourly ATR",
    "spread_as_atr_pct": "spread",
    "price": "price",
    "drawdown_pct": "drawdown",
    "direction": "direction",
    "text": "description",
}
WARNINGS = 3
"""How many losses an answer warns of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """A recalled episode with its score, the factors of the score, and a sentence that explains it."""

    id: str
    score: float
    factors: ScoreFactors
    sentence: str
    episode: Episode
    strength: float | None = None
    """Retrieval strength, from recency and the number of decisions based on the episode; it does not affect ranks."""
    entry_reason: str | None = None
    """Why the trade was opened, in the words of its decision."""
    exit_reason: str | None = None
    """Why the trade was closed."""


def sentence(episode: Episode, *, situation: Situation, sim: float, now: datetime) -> str:
    """The outcome, the similarity with the fields that it rests on, and the age of a memory.

    "+3.0R in a very similar context (Sim .91 by regime, session, daily ATR), 12 days old"
    """
    names = compared_fields(situation, symbol=episode.symbol, direction=episode.direction, context=episode.context)
    if situation.words and episode.market_context:
        names = (*names, "text")
    age = age_in_words(episode.ended_at, now=now)
    if not names:
        return f"{_result_in_words(episode)}, no context to compare, {age} old"
    similar, fields = similarity_in_words(sim, compared=len(names)), ", ".join(FIELD_WORDS[name] for name in names)
    return f"{_result_in_words(episode)} in a {similar} context (Sim {short(sim)} by {fields}), {age} old"


def _result_in_words(episode: Episode) -> str:
    if episode.outcome is not None:
        return outcome_in_words(episode.outcome)
    return "no outcome" if episode.pnl is None else f"{signed(episode.pnl, 2)} at a risk not known"


def outcome_in_words(outcome: Outcome) -> str:
    """An outcome with its unit.

    >>> [outcome_in_words(Outcome(value=0.0123, unit=unit)) for unit in ("R", "vol", "pct")]
    ['0.0R', '+0.01 daily ATR', '+1.23%']
    """
    match outcome.unit:
        case "R":
            return f"{signed(outcome.value)}R"
        case "vol":
            return f"{signed(outcome.value, 2)} daily ATR"
        case "pct":
            return f"{signed(outcome.value * 100, 2)}%"


def similarity_in_words(sim: float, *, compared: int) -> str:
    """A word for a similarity in so many fields; fewer than three fields make no context very similar.

    >>> [similarity_in_words(s, compared=3) for s in (0.91, 0.6, 0.3, 0.1)]
    ['very similar', 'similar', 'loosely similar', 'different']
    >>> similarity_in_words(1.0, compared=2)
    'similar'
    """
    if sim >= 0.8 and compared >= FEWEST_FIELDS:
        return "very similar"
    if sim >= 0.5:
        return "similar"
    return "loosely similar" if sim >= 0.2 else "different"


def age_in_words(at: datetime, *, now: datetime) -> str:
    """An age in days, or in hours if it is under a day.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [age_in_words(t0, now=t0 + timedelta(hours=h)) for h in (0.5, 5, 24, 288)]
    ['under an hour', '5 hours', '1 day', '12 days']
    """
    days = days_between(at, now)
    if days < 1 / 24:
        return "under an hour"
    count, unit = (int(days), "day") if days >= 1 else (int(days * 24), "hour")
    return f"{count} {unit}{'' if count == 1 else 's'}"
