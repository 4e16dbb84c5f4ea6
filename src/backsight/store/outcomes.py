"""Stored outcomes of decisions: appended states, which late bars and owners revise."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, and_, exists, func, select

from backsight.core.agents.outcomes import DecisionOutcome
from backsight.core.agents.run import AgentRun
from backsight.store.agents import RUNS
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, fetch, in_batches, matching, owned, parameters
from backsight.store.unchanged import unchanged
from backsight.store.view import View

OUTCOMES = noun(
    DecisionOutcome,
    "decision_outcomes",
    key=("run_id", "revision", "step"),
    within={"agent_runs": ("run_id",)},
)
_O, _R = OUTCOMES.table.c, RUNS.table.c
FINAL = ("resolved", "expired", "not_applicable")
_HAS_CARD = and_(
    _R.kind != "re_examination", _R.status == "succeeded", _R.card_type.is_not(None), _R.result.is_not(None)
)


def outcomes_of(connection: Connection, owner: str, run_id: str) -> list[DecisionOutcome]:
    """All states of a decision, of all revisions."""
    statement = owned(OUTCOMES, owner, _O.run_id == run_id).order_by(_O.revision, _O.step)
    return fetch(connection, OUTCOMES, statement)


def outcomes_by_run(view: View, ids: Collection[str]) -> dict[str, list[DecisionOutcome]]:
    """The states of some decisions that were recorded by the view's `seen_at`, by run.

    States that became known after the view are among them: `state_at` picks the state of an instant.
    """
    by_run: defaultdict[str, list[DecisionOutcome]] = defaultdict(list)
    for batch in in_batches(ids):
        recorded = [] if view.seen_at is None else [_O.recorded_at <= view.seen_at]
        statement = owned(OUTCOMES, view.owner, _O.run_id.in_(batch), *recorded)
        for row in fetch(view.connection, OUTCOMES, statement.order_by(_O.revision, _O.step)):
            by_run[row.run_id].append(row)
    return dict(by_run)


_NEWEST = (
    select(func.max(_O.revision))
    .where(_O.owner_id == _R.owner_id, _O.run_id == _R.id)
    .correlate(RUNS.table)
    .scalar_subquery()
)
_IS_FINAL = exists().where(_O.owner_id == _R.owner_id, _O.run_id == _R.id, _O.status.in_(FINAL), _O.revision == _NEWEST)
_OPEN_CARDS = select(RUNS.table).where(_R.owner_id == OWNED, _HAS_CARD, ~_IS_FINAL).order_by(_R.started_at, _R.id)


def open_cards(connection: Connection, owner: str) -> list[AgentRun]:
    """The runs whose decision may still change by new bars, oldest first; not read again until one changes."""
    return unchanged(
        connection,
        owner,
        "open cards",
        (RUNS, OUTCOMES),
        lambda: fetch(connection, RUNS, _OPEN_CARDS, parameters(owner)),
    )


def cards_since(
    connection: Connection, owner: str, *, since: datetime | None = None, deployment_id: str | None = None
) -> list[AgentRun]:
    """The runs with a card that started at or after an instant, oldest first."""
    where = [_HAS_CARD, *matching(RUNS, deployment_id=deployment_id)]
    if since is not None:
        where.append(_R.started_at >= since)
    return fetch(connection, RUNS, owned(RUNS, owner, *where).order_by(_R.started_at, _R.id))


def card_ids(view: View, deployment_id: str) -> list[str]:
    """The ids of a deployment's runs with a card that had ended by then."""
    known = [_R.known_at <= view.as_of, *([] if view.seen_at is None else [_R.recorded_at <= view.seen_at])]
    statement = select(_R.id).where(_R.owner_id == view.owner, _R.deployment_id == deployment_id, _HAS_CARD, *known)
    return list(view.connection.execute(statement).scalars())
