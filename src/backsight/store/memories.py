"""The five memories at rest."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection

from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.store.mapping import noun
from backsight.store.reading import Columns, fetch, fetch_one, has_tags, known, matching, owned

EPISODES = noun(
    Episode,
    "episodic_memory",
    within={"deployments": ("deployment_id",), "trade_history": ("trade_id",)},
    indexes=[("known_at", "id"), ("deployment_id", "symbol", "known_at")],
    revised=True,
)


def episodes_with_outcome(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    tags: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    **equal: str | None,
) -> list[Episode]:
    """All episodes that ended, as far as the horizon goes; inactions without an outcome are no memories to act on."""

    def where(c: Columns) -> Iterator[ColumnElement[bool]]:
        yield from matching(c, **equal)
        yield c.pnl.is_not(None)
        if since is not None:
            yield c.ended_at >= since
        if until is not None:
            yield c.ended_at < until

    statement = known(EPISODES, owner, horizon, where)
    found = fetch(connection, EPISODES, statement.order_by("ended_at", "id"))
    return [episode for episode in found if has_tags(episode.tags, tags)]


def episode(connection: Connection, owner: str, episode_id: str, horizon: Horizon | None = None) -> Episode | None:
    """The episode of this id, as it stood then."""
    if horizon is None:
        return fetch_one(connection, EPISODES, owned(EPISODES, owner, EPISODES.table.c.id == episode_id))
    return fetch_one(connection, EPISODES, known(EPISODES, owner, horizon, lambda c: [c.id == episode_id]))


def latest_episode(connection: Connection, owner: str, deployment_id: str, symbol: str) -> Episode | None:
    """The newest episode of a deployment in a symbol."""
    c = EPISODES.table.c
    statement = owned(EPISODES, owner, c.deployment_id == deployment_id, c.symbol == symbol)
    return fetch_one(connection, EPISODES, statement.order_by(c.known_at.desc(), c.recorded_at.desc(), c.id))
