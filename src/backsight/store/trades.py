"""Trades at rest."""

from datetime import datetime

from sqlalchemy import Connection, and_, or_, select

from backsight.core.instants import Horizon
from backsight.core.trades.trade import Trade
from backsight.store.mapping import OWNER, noun
from backsight.store.reading import fetch, fetch_one, matching, owned, within

TRADES = noun(
    Trade,
    "trade_history",
    names={
        "strategy_id": "skill_id",
        "strategy_version": "version",
        "direction": "side",
        "opened_at": "entry_tick_at",
        "closed_at": "exit_tick_at",
    },
    within={"deployments": ("deployment_id",)},
    indexes=[("known_at", "id"), ("deployment_id", "known_at"), ("request_digest", "recorded_at")],
)


def trade(connection: Connection, owner: str, trade_id: str, horizon: Horizon | None = None) -> Trade | None:
    """The trade of this id, if it was known then."""
    known = [] if horizon is None else within(TRADES, horizon)
    return fetch_one(connection, TRADES, owned(TRADES, owner, TRADES.table.c.id == trade_id, *known))


def recent_equal(connection: Connection, owner: str, request_digest: str, since: datetime) -> Trade | None:
    """The latest trade that an equal request recorded at or after an instant."""
    c = TRADES.table.c
    statement = owned(TRADES, owner, c.request_digest == request_digest, c.recorded_at >= since)
    return fetch_one(connection, TRADES, statement.order_by(c.recorded_at.desc(), c.id))


def closed_trades(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    limit: int,
    before: tuple[datetime, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    **equal: str | None,
) -> list[Trade]:
    """Closed trades, newest first; `before` continues after a page's last (known_at, id)."""
    c = TRADES.table.c
    where = [*within(TRADES, horizon), *matching(TRADES, status="closed", **equal)]
    if since is not None:
        where.append(c.known_at >= since)
    if until is not None:
        where.append(c.known_at < until)
    if before is not None:
        at, last = before
        where.append(or_(c.known_at < at, and_(c.known_at == at, c.id > last)))
    return fetch(connection, TRADES, owned(TRADES, owner, *where).order_by(c.known_at.desc(), c.id).limit(limit))


def results(connection: Connection, owner: str, horizon: Horizon) -> list[tuple[str, float, datetime]]:
    """Deployment, net PnL and instant of every close known then, in order."""
    c = TRADES.table.c
    statement = (
        select(c.deployment_id, c.pnl, c.known_at)
        .where(c[OWNER] == owner, *within(TRADES, horizon), *matching(TRADES, status="closed"))
        .order_by(c.known_at, c.id)
    )
    return [(row.deployment_id, row.pnl, row.known_at) for row in connection.execute(statement)]
