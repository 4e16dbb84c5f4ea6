"""What the mood is made of at rest: equity that was seen, transfers, and closes."""

from datetime import datetime

from sqlalchemy import Connection, select

from backsight.core.instants import Horizon
from backsight.core.memory.affective import EquityFact, EquityPoint, TransferFact, equity_fact
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import OWNER, noun
from backsight.store.reading import fetch, fetch_one, known, owned, within
from backsight.store.trades import FILLS

EQUITY = noun(
    EquityPoint,
    "equity_points",
    within={"accounts": ("account_id",)},
    indexes=[("account_id", "at")],
)


def equity_point(connection: Connection, owner: str, point_id: str) -> EquityPoint | None:
    """The equity of this id."""
    return fetch_one(connection, EQUITY, owned(EQUITY, owner, EQUITY.table.c.id == point_id))


def equity_facts(
    connection: Connection, owner: str, horizon: Horizon, account_id: str
) -> list[EquityFact | TransferFact]:
    """What an account was seen to be worth, at its ticks and as it was recorded, and what was paid in and out."""
    c = DECISIONS.table.c
    ticks = connection.execute(
        select(c.id, c.at, c.sequence, c.equity)
        .where(c[OWNER] == owner, c.account_id == account_id, *within(DECISIONS, horizon))
        .order_by(c.at, c.sequence)
    )
    moved = _moved(connection, owner, horizon, account_id)
    facts: list[EquityFact | TransferFact] = []
    for tick_id, at, sequence, equity in ticks:
        facts.append(equity_fact(tick_id, at, sequence, equity, moved.pop(at, 0.0)))
    points = fetch(
        connection, EQUITY, owned(EQUITY, owner, EQUITY.table.c.account_id == account_id, *within(EQUITY, horizon))
    )
    return facts + [point.fact for point in points]


def _moved(connection: Connection, owner: str, horizon: Horizon, account_id: str) -> dict[datetime, float]:
    """What was paid in and out, by the instant of the tick that told of it."""
    rows = known(FILLS, owner, horizon, lambda c: [c.account_id == account_id, c.kind == "transfer"]).subquery()
    moved: dict[datetime, float] = {}
    for at, amount in connection.execute(select(rows.c.known_at, rows.c.amount).order_by(rows.c.at, rows.c.id)):
        moved[at] = moved.get(at, 0.0) + amount
    return moved
