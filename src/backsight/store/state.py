"""The facts in the store that an account's mood follows from: equity and transfers."""

from sqlalchemy import Connection, select

from backsight.core.memory.affective import EquityFact, EquityPoint, TransferFact, equity_fact
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import OWNER, noun
from backsight.store.reading import fetch, fetch_one, known, owned, within
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
