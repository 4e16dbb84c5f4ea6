"""The mood of a deployment as of an instant."""

from datetime import datetime

from backsight.core.instants import Horizon
from backsight.core.memory.affective import (
    CloseVersion,
    Mood,
    MoodRow,
    account_rows,
    close_fact,
    mood_from,
    strategy_rows,
)
from backsight.core.memory.drift import settle
from backsight.core.memory.experience import learn_habits
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.store import experience as stored_experience
from backsight.store import memories as stored_memories
from backsight.store import state as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection


def falling_outcomes_since(
    connection: Connection, owner: str, mode: Mode, horizon: Horizon, *, strategy_name: str, symbol: str
) -> datetime | None:
    """Since when the outcomes in R of a strategy in a symbol have been falling, where a fall stood then."""
    if is_current(connection, owner, horizon):
        rows = stored_experience.habits(connection, owner, mode, strategy_name=strategy_name, symbol=symbol)
    else:
        named = {"mode": mode, "strategy_name": strategy_name, "symbol": symbol}
        episodes = stored_memories.teaching_trades(connection, owner, horizon, **named)
        rows = list(learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy_name).habits)
    settled = [settle(row.drift["R"], now=horizon.as_of).detector for row in rows if "R" in row.drift]
    falls = [each.latest.since for each in settled if each.degrading and each.latest is not None]
    return max(falls, default=None)


def mood_then(connection: Connection, home: Deployment, horizon: Horizon) -> Mood:
    """The mood of a deployment at a horizon."""
    return mood_from(*mood_rows(connection, home, horizon))


def mood_rows(connection: Connection, home: Deployment, horizon: Horizon) -> tuple[MoodRow | None, MoodRow | None]:
    """The last rows of an account and of a strategy on it; of an earlier record of the store, made from its facts."""
    if horizon.seen_at is None:
        return (
            stored_experience.mood_row(connection, home.owner_id, home.account_id, "", horizon.as_of),
            stored_experience.mood_row(connection, home.owner_id, home.account_id, home.strategy_name, horizon.as_of),
        )
    worth = stored.equity_facts(connection, home.owner_id, horizon, home.account_id)
    account = account_rows(worth, owner_id=home.owner_id, account_id=home.account_id)
    told = strategy_moods(connection, home, seen_at=horizon.seen_at)
    strategy = [row for row in told if row.known_at <= horizon.as_of]
    return account[-1] if account else None, strategy[-1] if strategy else None


def strategy_moods(connection: Connection, home: Deployment, *, seen_at: datetime | None = None) -> list[MoodRow]:
    """The rows of a strategy on an account, of what was recorded by an instant."""
    named = {"owner_id": home.owner_id, "account_id": home.account_id, "strategy_name": home.strategy_name}
    return strategy_rows(close_versions(connection, home, seen_at=seen_at), **named)


def close_versions(connection: Connection, home: Deployment, *, seen_at: datetime | None = None) -> list[CloseVersion]:
    """All that was ever known of the closes of a strategy on an account, of what was recorded by an instant."""
    siblings = stored_strategies.deployments_of(connection, home.owner_id, home.account_id)
    ids = [each.id for each in siblings if each.strategy_name == home.strategy_name]
    found = stored_memories.episode_versions(connection, home.owner_id, ids, seen_at=seen_at)
    begun = {(each.episode.id, each.episode.known_at) for each in found}
    told = [
        CloseVersion(
            close=close_fact(each.episode),
            id=each.episode.id,
            sequence=each.episode.sequence,
            known_at=each.episode.known_at,
            first=each.episode.known_at == each.episode.first_known_at,
        )
        for each in found
    ]
    return told + [
        CloseVersion(close=None, id=each.episode.id, sequence=each.episode.sequence, known_at=each.until, first=False)
        for each in found
        if each.until is not None and (each.episode.id, each.until) not in begun
    ]


def is_current(connection: Connection, owner: str, horizon: Horizon) -> bool:
    """Whether what is kept now is what was known at a horizon: nothing is known since, or recorded after it."""
    return horizon.seen_at is None and not stored_experience.known_after(connection, owner, horizon.as_of)


def mood_at(connection: Connection, home: Deployment, as_of: datetime) -> Mood:
    """The mood of a deployment as it was known at an instant."""
    account = stored_experience.mood_row(connection, home.owner_id, home.account_id, "", as_of)
    strategy = stored_experience.mood_row(connection, home.owner_id, home.account_id, home.strategy_name, as_of)
    return mood_from(account, strategy)
