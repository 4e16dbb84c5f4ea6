"""The facts in the store that an account's mood follows from: equity and transfers."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from backsight.core.memory.affective import EquityFact, EquityPoint, TransferFact, equity_fact
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import OWNER, Noun, noun
from backsight.store.reading import (
    OWNED,
    fetch,
    fetch_one,
    known,
    owned,
    parameters,
    prepared_known,
    prepared_within,
    within,
)
from backsight.store.trades import FILLS
from backsight.store.view import View

EQUITY = noun(
    EquityPoint,
    "equity_points",
    within={"accounts": ("account_id",)},
    indexes=[("account_id", "at")],
)


def equity_point(connection: Connection, owner: str, point_id: str) -> EquityPoint | None:
    """The recorded equity with this id."""
    return fetch_one(connection, EQUITY, owned(EQUITY, owner, EQUITY.table.c.id == point_id))


def equity_facts(view: View, account_id: str) -> list[EquityFact | TransferFact]:
    """What an account was worth and what was paid in or out: at each tick, and as `record_equity` recorded it."""
    c = DECISIONS.table.c
    ticks = view.connection.execute(
        select(c.id, c.at, c.sequence, c.equity)
        .where(c[OWNER] == view.owner, c.account_id == account_id, *within(DECISIONS, view.horizon))
        .order_by(c.at, c.sequence)
    )
    transfers = _transfers(view, account_id)
    facts: list[EquityFact | TransferFact] = []
    for tick_id, at, sequence, equity in ticks:
        facts.append(equity_fact(tick_id, at, sequence, equity, transfers.get(tick_id, 0.0)))
    of_account = (EQUITY.table.c.account_id == account_id, *within(EQUITY, view.horizon))
    points = fetch(view.connection, EQUITY, owned(EQUITY, view.owner, *of_account))
    return facts + [point.fact for point in points]


def first_reading(view: View, account_id: str) -> tuple[datetime, float] | None:
    """The first known equity of an account, and its instant: of a tick, or as `record_equity` recorded it."""
    rows = [
        view.connection.execute(_readings(source, view, account_id).order_by(source.table.c.at, order).limit(1)).first()
        for source, order in ((DECISIONS, DECISIONS.table.c.sequence), (EQUITY, EQUITY.table.c.id))
    ]
    return min(((row.at, row.equity) for row in rows if row is not None), default=None)


_P = EQUITY.table.c
_TRANSFERS = (
    prepared_known(FILLS, ("at", "amount"), lambda c: [c.account_id == bindparam("account"), c.kind == "transfer"]),
    select(_P.at, _P.transfer).where(
        _P.owner_id == OWNED, _P.account_id == bindparam("account"), _P.transfer != 0.0, *prepared_within(EQUITY)
    ),
)


def transfers(view: View, account_id: str) -> list[tuple[datetime, float]]:
    """The instants and amounts of all money paid in and out, in order."""
    values = parameters(view.owner, view.horizon, account=account_id)
    rows = (row for statement in _TRANSFERS for row in view.connection.execute(statement, values))
    return sorted((at, amount) for at, amount in rows)


def readings(view: View, account_id: str, *, since: datetime, until: datetime) -> list[tuple[datetime, float]]:
    """The instants and amounts of the equity that was recorded from `since` until before `until`, in order."""
    rows: list[tuple[datetime, float]] = []
    for source in (DECISIONS, EQUITY):
        at = source.table.c.at
        statement = _readings(source, view, account_id).where(at >= since, at < until)
        rows += [(row.at, row.equity) for row in view.connection.execute(statement)]
    return sorted(rows)


def _readings(source: Noun[Any], view: View, account_id: str) -> Select[Any]:
    """The instants and amounts of an account's equity in one of the tables that record it."""
    c = source.table.c
    return select(c.at, c.equity).where(
        c[OWNER] == view.owner, c.account_id == account_id, *within(source, view.horizon)
    )


def _transfers(view: View, account_id: str) -> dict[str, float]:
    """What was paid in and out, by the decision of the tick that reported it."""
    fills = known(
        FILLS, view.owner, view.horizon, lambda c: [c.account_id == account_id, c.kind == "transfer"]
    ).subquery()
    rows = view.connection.execute(select(fills.c.decision_id, fills.c.amount).order_by(fills.c.at, fills.c.id))
    totals: dict[str, float] = {}
    for decision_id, amount in rows:
        totals[decision_id] = totals.get(decision_id, 0.0) + amount
    return totals
