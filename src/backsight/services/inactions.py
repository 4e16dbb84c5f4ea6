"""Inactions in the store: the same reason again continues a run, and a repeated request changes nothing."""

from dataclasses import replace
from datetime import datetime

from backsight.core.errors import Conflict
from backsight.core.memory.episodic import Episode, continues
from backsight.store import memories as stored
from backsight.store.transaction import Transaction

SET_BY_STORE = (
    "series_id",
    "count",
    "ended_at",
    "first_known_at",
    "sequence",
    "archived_at",
    "known_at",
    "recorded_at",
)
"""Fields of an inaction that the clock or the row before set, not the caller."""


def add_inaction(transaction: Transaction, inaction: Episode) -> tuple[Episode, bool]:
    """Store an inaction and complete its context; the stored inaction, and whether an earlier request stored it."""
    connection, owner = transaction.connection, inaction.owner_id
    former = stored.current_episode(connection, owner, inaction.id)
    if former is not None:
        set_by_store = {name: getattr(former, name) for name in SET_BY_STORE}
        if replace(_completed(inaction, at=former.known_at), **set_by_store) != former:
            message = "already used for another inaction; use a new key for a new inaction"
            raise Conflict(message, field="idempotency_key")
        return former, True
    latest = stored.latest_episode(connection, owner, inaction.deployment_id, inaction.symbol)
    if latest is not None and continues(latest, reason=inaction.reason or ""):
        inaction = replace(inaction, series_id=latest.series_id, count=latest.count + 1)
    inaction = _completed(inaction, at=inaction.known_at)
    transaction.add(stored.EPISODES, inaction)
    return inaction, False


def _completed(inaction: Episode, *, at: datetime) -> Episode:
    return replace(inaction, context=inaction.context.completed(symbol=inaction.symbol, price=None, at=at))
