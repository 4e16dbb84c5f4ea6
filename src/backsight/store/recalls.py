"""The recalls that decisions were based on, and how often each episode was retrieved."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import BigInteger, ColumnElement, Connection, bindparam, cast, exists, func, or_, select

from backsight.core.ids import canonical_json, plain
from backsight.core.memory.episodic import Retrieval, retrieved_set
from backsight.core.recall.record import RecallRecord, RecallResult
from backsight.store.decisions import DECISIONS
from backsight.store.memories import RECALLS, RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, fetch, fetch_one, owned, parameters, within
from backsight.store.transaction import Transaction
from backsight.store.unchanged import remember_stored, stored_hashes
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
    """Store the recalls of a decision, and the retrieval of every episode in them or in `recalled`."""
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
    sets = [retrieved_set(owner, ids) for ids in _disjoint_sets(results, recalled)]
    retrievals = [
        Retrieval(owner_id=owner, episodes_hash=episodes[0].episodes_hash, decision_id=decision_id, known_at=known_at)
        for episodes in sets
    ]
    transaction.add_all(RETRIEVALS, retrievals)
    stored = stored_hashes(transaction.connection, owner, RETRIEVED_EPISODES)
    new = [episode for episodes in sets for episode in episodes if episode.episodes_hash not in stored]
    if new:
        transaction.add_missing(RETRIEVED_EPISODES, new)
        hashes = stored | {episode.episodes_hash for episode in new}
        remember_stored(transaction.connection, owner, RETRIEVED_EPISODES, hashes)


def _disjoint_sets(results: Sequence[RecallResult], recalled: Sequence[str]) -> Iterable[set[str]]:
    """The ids that each recall ranked, then the others of `recalled`; an id that an earlier set has is left out.

    There is a set for each recall, because the recall of one symbol often stays the same while another changes. An
    episode is in one set only, so that the retrievals of sets count the decisions that recalled it.
    """
    ranked = [{each.id for ranking in result.found.values() for each in ranking} for result in results]
    earlier: set[str] = set()
    for ids in (*ranked, set(recalled)):
        if ids - earlier:
            yield ids - earlier
        earlier |= ids


_T, _D, _E = RETRIEVALS.table.c, DECISIONS.table.c, RETRIEVED_EPISODES.table.c
_RECORDED = (
    select(_D.recorded_at).where(_D.owner_id == _T.owner_id, _D.id == _T.decision_id).correlate(RETRIEVALS.table)
).scalar_subquery()
"""When the decision of a retrieval was recorded; NULL for a call, which is recorded when it becomes known."""
_OF_EPISODES = (_E.owner_id == OWNED, _E.episode_id.in_(bindparam("ids", expanding=True)))
_RETRIEVED_SETS = (
    select(_T.episodes_hash, func.count().label("times"))
    .where(_T.owner_id == OWNED, _T.episodes_hash.in_(select(_E.episodes_hash).where(*_OF_EPISODES)))
    .where(_T.known_at <= AS_OF, or_(SEEN_AT.is_(None), func.coalesce(_RECORDED, _T.known_at) <= SEEN_AT))
    .group_by(_T.episodes_hash)
).subquery()
_RETRIEVED = (
    select(_E.episode_id, cast(func.sum(_RETRIEVED_SETS.c.times), BigInteger))
    .join_from(RETRIEVED_EPISODES.table, _RETRIEVED_SETS, _RETRIEVED_SETS.c.episodes_hash == _E.episodes_hash)
    .where(*_OF_EPISODES)
    .group_by(_E.episode_id)
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


def may_be_first_retrieved_since(owner: str, instant: datetime) -> ColumnElement[bool]:
    """A condition that every set of episodes recorded since an instant meets; some earlier ones meet it too."""
    return _E.episodes_hash.in_(
        select(_T.episodes_hash).where(_T.owner_id == owner, may_be_recorded_since(owner, instant))
    )


def sets_of_one_decision(connection: Connection, owner: str, decision_id: str) -> list[str]:
    """The hashes of the sets of episodes that were recalled for this decision and for no other."""
    other = RETRIEVALS.table.alias()
    elsewhere = exists().where(
        other.c.owner_id == owner, other.c.episodes_hash == _T.episodes_hash, other.c.decision_id != decision_id
    )
    own = select(_T.episodes_hash).where(_T.owner_id == owner, _T.decision_id == decision_id, ~elsewhere)
    return list(connection.execute(own).scalars())


def recalls_of(view: View, decision_id: str) -> list[tuple[RecallResult, datetime]]:
    """The recalls that a decision was based on, each with the instant at which it became known."""
    c = RECALLS.table.c
    own = owned(RECALLS, view.owner, c.decision_id == decision_id, *within(RECALLS, view.horizon))
    records = fetch(view.connection, RECALLS, own.order_by(c.nth))
    return [(RESULT.validate_json(record.made), record.known_at) for record in records]


def last_recalls(connection: Connection, owner: str, *, most: int) -> Iterator[RecallResult]:
    """The recalls that decisions were based on lately, newest first."""
    c = RECALLS.table.c
    keys = select(c.decision_id, c.nth).where(c.owner_id == owner)
    newest = connection.execute(keys.order_by(c.known_at.desc(), c.decision_id, c.nth).limit(most)).all()
    for decision_id, nth in newest:
        record = fetch_one(connection, RECALLS, owned(RECALLS, owner, c.decision_id == decision_id, c.nth == nth))
        if record is not None:
            yield RESULT.validate_json(record.made)


def old_recalls(connection: Connection, owner: str, *, before: datetime) -> Counter[str]:
    """The recalls of before an instant, counted by decision, except where memory was withheld.

    Those show that a comparison of decisions with and without memory must leave these decisions out.
    """
    c, d = RECALLS.table.c, DECISIONS.table.c
    withheld = exists().where(d.owner_id == c.owner_id, d.id == c.decision_id, d.memory_arm == "withheld")
    old = select(c.decision_id).where(c.owner_id == owner, c.known_at < before, ~withheld).order_by(c.decision_id)
    return Counter(connection.execute(old).scalars())
