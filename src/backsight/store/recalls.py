"""The recalls that decisions were based on, and how often each episode was retrieved."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, bindparam, exists, func, or_, select

from backsight.core.ids import canonical_json, plain
from backsight.core.memory.episodic import Retrieval
from backsight.core.recall.record import RecallRecord, RecallResult
from backsight.store.decisions import DECISIONS
from backsight.store.memories import RECALLS, RETRIEVALS
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, fetch, owned, parameters, within
from backsight.store.transaction import Transaction
from backsight.store.view import View

RESULT: TypeAdapter[RecallResult] = TypeAdapter(RecallResult)


def store_recalls(
    transaction: Transaction,
    owner: str,
    decision_id: str,
    results: Sequence[RecallResult],
    recalled: Sequence[str],
    *,
    known_at: datetime,
    recorded_at: datetime,
) -> None:
    """Store the recalls of a decision, and one retrieval for each episode in them or in `recalled`."""
    records = [
        RecallRecord(
            owner_id=owner,
            decision_id=decision_id,
            nth=nth,
            made=canonical_json(plain(result)),
            known_at=known_at,
            recorded_at=recorded_at,
        )
        for nth, result in enumerate(results)
    ]
    transaction.add_all(RECALLS, records)
    ranked_ids = [ranked.id for result in results for ranking in result.found.values() for ranked in ranking]
    retrievals = [
        Retrieval(owner_id=owner, episode_id=each, decision_id=decision_id, known_at=known_at)
        for each in dict.fromkeys([*recalled, *ranked_ids])
    ]
    transaction.add_all(RETRIEVALS, retrievals)


_T, _D = RETRIEVALS.table.c, DECISIONS.table.c
_RECORDED = (
    select(_D.recorded_at).where(_D.owner_id == _T.owner_id, _D.id == _T.decision_id).correlate(RETRIEVALS.table)
).scalar_subquery()
"""When the decision of a retrieval was recorded; NULL for a call, which is recorded when it becomes known."""
_RETRIEVED = (
    select(_T.episode_id, func.count())
    .where(_T.owner_id == OWNED, _T.episode_id.in_(bindparam("ids", expanding=True)), _T.known_at <= AS_OF)
    .where(or_(SEEN_AT.is_(None), func.coalesce(_RECORDED, _T.known_at) <= SEEN_AT))
    .group_by(_T.episode_id)
)


def retrieval_counts(view: View, ids: Collection[str]) -> Counter[str]:
    """How often each of these episodes was recalled for a decision."""
    if not ids:
        return Counter()
    rows = view.connection.execute(_RETRIEVED, parameters(view.owner, view.horizon, ids=list(ids)))
    return Counter({row[0]: row[1] for row in rows})


def may_be_recorded_since(owner: str, instant: datetime) -> ColumnElement[bool]:
    """A condition that every retrieval recorded since an instant meets; some earlier ones meet it too."""
    decisions = select(_D.id).where(_D.owner_id == owner, _D.recorded_at >= instant)
    return or_(_T.known_at >= instant, _T.decision_id.in_(decisions))


def recalls_of(view: View, decision_id: str) -> list[tuple[RecallResult, datetime]]:
    """The recalls that a decision was based on, each with the instant at which it became known."""
    c = RECALLS.table.c
    own = owned(RECALLS, view.owner, c.decision_id == decision_id, *within(RECALLS, view.horizon))
    records = fetch(view.connection, RECALLS, own.order_by(c.nth))
    return [(RESULT.validate_json(record.made), record.known_at) for record in records]


def old_recalls(connection: Connection, owner: str, *, before: datetime) -> Counter[str]:
    """The recalls of before an instant, counted by decision, except where memory was withheld.

    Those show that a comparison of decisions with and without memory must leave these decisions out.
    """
    c, d = RECALLS.table.c, DECISIONS.table.c
    withheld = exists().where(d.owner_id == c.owner_id, d.id == c.decision_id, d.memory_arm == "withheld")
    old = select(c.decision_id).where(c.owner_id == owner, c.known_at < before, ~withheld).order_by(c.decision_id)
    return Counter(connection.execute(old).scalars())
