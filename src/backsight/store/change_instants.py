"""The instants at which something of an owner became known: ticks, closes, lessons, plans and readings of equity."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, select

from backsight.core.recall.arrays.columns import micros
from backsight.core.strategies import Deployment
from backsight.core.trades.columns import ClosedTradeColumns, known_trades
from backsight.store.columns_build import micros_of, undecoded
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import OWNER, Noun
from backsight.store.notes import NOTES
from backsight.store.plans import PLANS
from backsight.store.reading import Columns, within
from backsight.store.state import EQUITY
from backsight.store.unchanged import unchanged
from backsight.store.view import View

ChangeKind = Literal["tick", "close", "lessons", "plan", "equity"]
Micros = NDArray[np.int64]


def change_instants(
    view: View, columns: ClosedTradeColumns, deployment: Deployment | None
) -> Mapping[ChangeKind, Micros]:
    """Microseconds since 1970 of every change known in a view, by kind; of one deployment, or of all."""
    rows = known_trades(columns, view.horizon, lambda group: deployment is None or group.deployment_id == deployment.id)
    deployment_id, account_id = (None, None) if deployment is None else (deployment.id, deployment.account_id)
    of_deployment = _equals("deployment_id", deployment_id)
    return {
        "tick": _instants(view, DECISIONS, "at", of_deployment, key=("tick", deployment_id)),
        "close": np.unique(columns.known_at[rows]),
        "lessons": _instants(view, NOTES, "generated_at", of_deployment),
        "plan": _instants(view, PLANS, "known_at", of_deployment),
        "equity": _instants(view, EQUITY, "known_at", _equals("account_id", account_id)),
    }


Condition = Callable[[Columns], list[ColumnElement[bool]]]


def _equals(name: str, value: str | None) -> Condition:
    return lambda c: [] if value is None else [c[name] == value]


def _instants(
    view: View, noun: Noun[Any], column: str, condition: Condition, *, key: tuple[str, str | None] | None = None
) -> Micros:
    """The instants of one table, sorted; with a key they are read once for all views, by an index on the instant.

    A tick is known at its own instant, so that a view needs no other column of it.
    """
    c = noun.table.c
    own = select(*undecoded(c, [column])).where(c[OWNER] == view.owner, *condition(c))
    if key is None or view.seen_at is not None:
        return _read(view, own.where(*within(noun, view.horizon)))
    every = unchanged(view.connection, view.owner, ("instants", *key), (noun,), lambda: _read(view, own))
    return every[: np.searchsorted(every, micros(view.as_of), side="right")]


def _read(view: View, statement: Any) -> Micros:
    values = [row[0] for row in view.connection.execute(statement) if row[0] is not None]
    return np.unique(micros_of(values)) if values else np.empty(0, np.int64)
