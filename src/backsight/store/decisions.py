"""Stored decisions, and the segments of the prompts that agents were shown."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
    type_coerce,
)

from backsight.core.decision import DecidedOrder, Decision, LastTick, Segment, ShownSegment, Verdict, as_last
from backsight.core.holdout import MemoryArm
from backsight.core.orders import PlacedOrder
from backsight.core.portfolio import Mode
from backsight.core.risk_state import Attempt
from backsight.core.strategies import Deployment
from backsight.store.mapping import noun
from backsight.store.memories import RECALLS
from backsight.store.reading import (
    OWNED,
    fetch,
    fetch_one,
    in_batches,
    matching,
    owned,
    parameters,
    prepared_within,
    within,
)
from backsight.store.unchanged import get, put_written, remember_stored, stored_hashes, unchanged
from backsight.store.view import View

if TYPE_CHECKING:  # the transaction imports the list of tables, which imports this module
    from backsight.store.transaction import Transaction

DECISIONS = noun(
    Decision,
    "decision_snapshots",
    names={"strategy_id": "skill_id", "strategy_version": "version"},
    as_json=("proposal", "further_proposals", "before", "after"),
    none_is_empty=("after",),
    compressed=("before", "after", "shown", "recalled"),
    within={"deployments": ("deployment_id",)},
    indexes=[("account_id", "at", "sequence"), ("deployment_id", "at", "sequence")],
    indexed_where={("deployment_id", "at", "sequence"): "verdict_kind <> 'noop'"},
)
SEGMENTS = noun(ShownSegment, "shown_segments", key=("hash",), compressed=("text",))
PLACED_ORDERS = noun(PlacedOrder, "placed_orders", key=("account_id", "order_id"))


_C = DECISIONS.table.c
_DECISION = select(DECISIONS.table).where(_C.owner_id == OWNED, _C.id == bindparam("id"))
_NEWEST_FIRST = _C.at.desc(), _C.sequence.desc()
_VERDICT = _C.verdict_kind, _C.verdict_rule, _C.verdict_detail
_LAST = select(*_VERDICT, *(_C[field.name] for field in fields(LastTick) if field.name != "verdict"))
_LAST_OF_ACCOUNT = (
    _LAST.where(_C.owner_id == OWNED, _C.account_id == bindparam("account")).order_by(*_NEWEST_FIRST).limit(1)
)
_LAST_OF_ACCOUNT_THEN = (
    _LAST.where(_C.owner_id == OWNED, _C.account_id == bindparam("account"), *prepared_within(DECISIONS))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_LAST_OF_DEPLOYMENT = (
    _LAST.where(_C.owner_id == OWNED, _C.deployment_id == bindparam("deployment"), *prepared_within(DECISIONS))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_LAST_DECISION = (
    select(DECISIONS.table)
    .where(_C.owner_id == OWNED, _C.deployment_id == bindparam("deployment"), *prepared_within(DECISIONS))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_LAST_DECISION_OF_ACCOUNT = (
    select(DECISIONS.table)
    .where(_C.owner_id == OWNED, _C.account_id == bindparam("account"))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_LAST_DECISION_OF_ACCOUNT_THEN = (
    select(DECISIONS.table)
    .where(_C.owner_id == OWNED, _C.account_id == bindparam("account"), *prepared_within(DECISIONS))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_MOVES_LEVELS = type_coerce(_C.proposal, Text).contains('"quantity":0.0,', autoescape=True)
"""Whether an order only moves a stop or a target. Quotes within its texts are escaped, so only the key matches."""
_ATTEMPTS = (
    select(
        _C.at,
        _C.verdict_kind,
        _C.verdict_rule,
        _MOVES_LEVELS.label("moves_levels"),
        _C.further_proposals,
        _C.known_at,
        _C.recorded_at,
    )
    .where(_C.owner_id == OWNED, _C.deployment_id == bindparam("deployment"), _C.at >= bindparam("since"))
    .where(_C.verdict_kind != literal_column("'noop'"))  # as the index has it
    .order_by(_C.at, _C.sequence)
)
_ATTEMPTS_KNOWN = _ATTEMPTS.where(*prepared_within(DECISIONS))


def decision(connection: Connection, owner: str, decision_id: str) -> Decision | None:
    """The decision with this id."""
    return fetch_one(connection, DECISIONS, _DECISION, parameters(owner, id=decision_id))


def decision_then(view: View, decision_id: str) -> Decision | None:
    """The decision with this id, if it was known then."""
    where = (_C.id == decision_id, *within(DECISIONS, view.horizon))
    return fetch_one(view.connection, DECISIONS, owned(DECISIONS, view.owner, *where))


def decisions_by_id(view: View, ids: Collection[str]) -> dict[str, Decision]:
    """Decisions by id, of those that were known then."""
    by_id: dict[str, Decision] = {}
    for batch in in_batches(ids):
        statement = owned(DECISIONS, view.owner, _C.id.in_(batch), *within(DECISIONS, view.horizon))
        by_id |= {each.id: each for each in fetch(view.connection, DECISIONS, statement)}
    return by_id


def last_of_account(connection: Connection, owner: str, account_id: str) -> LastTick | None:
    """The account's last tick."""
    written: LastTick | None = get(connection, owner, ("last tick", account_id), (DECISIONS,))
    if written is not None:
        return written
    decision: Decision | None = get(connection, owner, ("last decision", account_id), (DECISIONS,))
    if decision is not None:
        return as_last(decision)
    return _last(connection.execute(_LAST_OF_ACCOUNT, parameters(owner, account=account_id)).first())


def last_of_account_then(view: View, account_id: str) -> LastTick | None:
    """The account's last tick as of a view."""
    last = last_decision_of_account(view, account_id)
    if last is not None:
        return as_last(last)
    values = parameters(view.owner, view.horizon, account=account_id)
    return _last(view.connection.execute(_LAST_OF_ACCOUNT_THEN, values).first())


def last_decision_of_account_then(view: View, account_id: str) -> Decision | None:
    """The last decision on an account as of a view."""
    last = last_decision_of_account(view, account_id)
    if last is not None:
        return last
    values = parameters(view.owner, view.horizon, account=account_id)
    return fetch_one(view.connection, DECISIONS, _LAST_DECISION_OF_ACCOUNT_THEN, values)


def decisions_of_instant(
    connection: Connection, owner: str, account_id: str, at: datetime, before: int
) -> list[Decision]:
    """The decisions on an account at an instant with a lower sequence, in order."""
    where = _C.account_id == account_id, _C.at == at, _C.sequence < before
    return fetch(connection, DECISIONS, owned(DECISIONS, owner, *where).order_by(_C.sequence))


SNAPSHOTS_BEFORE = 3
"""An execution at the very instant of a snapshot may belong before it or after it, so one snapshot is not enough."""


def snapshot_instants(
    connection: Connection, owner: str, account_id: str, *, since: datetime, last: LastTick
) -> list[datetime]:
    """When the broker was asked for the last time at each tick of an account up to the last one, oldest first.

    The instants since the given one, and a few before it.
    """
    up_to_last = _C.owner_id == owner, _C.account_id == account_id, _C.at <= last.at, _C.broker_at <= last.broker_at
    newest_first = select(_C.broker_at).where(*up_to_last).order_by(*_NEWEST_FIRST)
    instants: list[datetime] = []
    for limit in (8, 512, None):
        instants = list(connection.execute(newest_first.limit(limit)).scalars())
        if sum(each < since for each in instants) >= SNAPSHOTS_BEFORE or limit is None or len(instants) < limit:
            break
    before = [each for each in instants if each < since][:SNAPSHOTS_BEFORE]
    return sorted({*before, *(each for each in instants if each >= since)})


def last_of_deployment(view: View, deployment_id: str) -> LastTick | None:
    """The deployment's last tick."""
    values = parameters(view.owner, view.horizon, deployment=deployment_id)
    return _last(view.connection.execute(_LAST_OF_DEPLOYMENT, values).first())


def _last(row: Row[Any] | None) -> LastTick | None:
    if row is None:
        return None
    columns = dict(row._mapping)
    verdict = Verdict(**{name: columns.pop(f"verdict_{name}") for name in ("kind", "rule", "detail")})
    return LastTick(**columns, verdict=verdict)


def last_decision(view: View, deployment: Deployment) -> Decision | None:
    """The deployment's last decision."""
    of_account = last_decision_of_account(view, deployment.account_id)
    if of_account is not None and of_account.deployment_id == deployment.id:
        return of_account
    values = parameters(view.owner, view.horizon, deployment=deployment.id)
    return fetch_one(view.connection, DECISIONS, _LAST_DECISION, values)


def last_decision_of_account(view: View, account_id: str) -> Decision | None:
    """The last decision on an account; None if there is none, or if it became known after the view."""
    last = unchanged(
        view.connection,
        view.owner,
        ("last decision", account_id),
        (DECISIONS,),
        lambda: fetch_one(
            view.connection, DECISIONS, _LAST_DECISION_OF_ACCOUNT, parameters(view.owner, account=account_id)
        ),
    )
    return last if last is not None and view.horizon.holds(last.known_at, last.recorded_at) else None


class _DecisionAttempts(NamedTuple):
    """The proposals of one decision with their verdicts."""

    known_at: datetime
    recorded_at: datetime
    attempts: tuple[Attempt, ...]


class _RecentAttempts(NamedTuple):
    """What a deployment proposed at or after an instant, oldest decision first."""

    since: datetime
    decisions: tuple[_DecisionAttempts, ...]


RECENT = timedelta(hours=25)
"""How long before the last decision of a deployment its attempts are remembered: a tick asks for those of its day."""


def attempts_since(view: View, deployment: Deployment, *, since: datetime) -> list[Attempt]:
    """The deployment's proposals at or after an instant with their verdicts, oldest first."""
    rows = _attempts_known(view, deployment, since)
    return [attempt for row in rows for attempt in row.attempts if attempt.at >= since]


def _attempts_known(view: View, deployment: Deployment, since: datetime) -> Iterable[_DecisionAttempts]:
    connection, values = view.connection, parameters(view.owner, view.horizon, deployment=deployment.id, since=since)
    if last_decision_of_account(view, deployment.account_id) is None:  # all since then could be very many
        return map(_attempts_of, connection.execute(_ATTEMPTS_KNOWN, values))
    recent = unchanged(
        connection,
        view.owner,
        ("attempts", deployment.id),
        (DECISIONS,),
        lambda: _RecentAttempts(since, tuple(map(_attempts_of, connection.execute(_ATTEMPTS, values)))),
    )
    if recent.since > since:
        return map(_attempts_of, connection.execute(_ATTEMPTS_KNOWN, values))
    return (row for row in recent.decisions if view.horizon.holds(row.known_at, row.recorded_at))


def _attempts_of(row: Row[Any]) -> _DecisionAttempts:
    first = Attempt(at=row.at, kind=row.verdict_kind, rule=row.verdict_rule, moves_levels=bool(row.moves_levels))
    return _DecisionAttempts(row.known_at, row.recorded_at, (first, *_further_attempts(row.at, row.further_proposals)))


def _further_attempts(at: datetime, proposals: Iterable[DecidedOrder]) -> Iterator[Attempt]:
    for proposal in proposals:
        verdict = proposal.verdict
        if verdict.kind != "noop":
            yield Attempt(at=at, kind=verdict.kind, rule=verdict.rule, moves_levels=proposal.order.quantity == 0)


def _with_decision(recent: _RecentAttempts, decision: Decision) -> _RecentAttempts:
    """Recent attempts with those of a newer decision, and without those that are no longer recent."""
    since = max(recent.since, decision.at - RECENT)
    decisions = tuple(row for row in recent.decisions if row.attempts[0].at >= since)
    verdict, proposal = decision.verdict, decision.proposal
    if verdict.kind == "noop":
        return _RecentAttempts(since, decisions)
    moves_levels = proposal is not None and proposal.quantity == 0
    first = Attempt(at=decision.at, kind=verdict.kind, rule=verdict.rule, moves_levels=moves_levels)
    attempts = (first, *_further_attempts(decision.at, decision.further_proposals))
    return _RecentAttempts(since, (*decisions, _DecisionAttempts(decision.known_at, decision.recorded_at, attempts)))


def decisions(
    view: View,
    *,
    deployment_id: str,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
    before: tuple[datetime, int] | None,
    limit: int,
) -> list[Decision]:
    """The decisions of a deployment, newest first; `before` continues after a page's last (at, sequence)."""
    where = [*within(DECISIONS, view.horizon), *matching(DECISIONS, deployment_id=deployment_id, verdict_kind=kind)]
    if since is not None:
        where.append(_C.at >= since)
    if until is not None:
        where.append(_C.at < until)
    if before is not None:
        at, sequence = before
        where.append(or_(_C.at < at, and_(_C.at == at, _C.sequence < sequence)))
    newest_first = owned(DECISIONS, view.owner, *where).order_by(*_NEWEST_FIRST)
    return fetch(view.connection, DECISIONS, newest_first.limit(limit))


class DecisionArm(NamedTuple):
    """The instant of a decision, and whether memory was shown for it."""

    deployment_id: str
    at: datetime
    arm: MemoryArm


def arms(view: View, *, strategy_id: str, mode: Mode) -> list[DecisionArm]:
    """The arm of every decision of a strategy in a mode."""
    where = _of_strategy(view, strategy_id, mode)
    rows = view.connection.execute(select(_C.deployment_id, _C.at, _C.memory_arm).where(*where))
    return [DecisionArm(*row) for row in rows]


def recalls_while_withheld(view: View, *, strategy_id: str, mode: Mode) -> list[tuple[str, datetime]]:
    """Deployment id and instant of the decisions that rest on a recall although memory was withheld."""
    r = RECALLS.table.c
    recalled = exists().where(r.owner_id == _C.owner_id, r.decision_id == _C.id, *within(RECALLS, view.horizon))
    where = (*_of_strategy(view, strategy_id, mode), _C.memory_arm == "withheld", recalled)
    return [(row[0], row[1]) for row in view.connection.execute(select(_C.deployment_id, _C.at).where(*where))]


def _of_strategy(view: View, strategy_id: str, mode: Mode) -> list[ColumnElement[bool]]:
    own = [_C.owner_id == view.owner, _C.skill_id == strategy_id, _C.mode == mode]
    return [*own, *within(DECISIONS, view.horizon)]


def marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Deployment id, instant and recording instant of every decision, oldest first."""
    statement = select(_C.deployment_id, _C.at, _C.recorded_at).where(_C.owner_id == owner)
    return [(row[0], row[1], row[2]) for row in connection.execute(statement.order_by(_C.at, _C.sequence))]


def decisions_between(
    connection: Connection, owner: str, deployment_id: str, since: datetime, until: datetime
) -> list[Decision]:
    """The deployment's decisions at or after `since` and before `until`, oldest first."""
    where = (_C.deployment_id == deployment_id, _C.at >= since, _C.at < until)
    return fetch(connection, DECISIONS, owned(DECISIONS, owner, *where).order_by(_C.at, _C.sequence))


def segments(connection: Connection, owner: str, hashes: Collection[str]) -> dict[str, Segment]:
    """Segments by hash, of those hashes that are stored."""
    c = SEGMENTS.table.c
    by_hash: dict[str, Segment] = {}
    for batch in in_batches(hashes):
        rows = connection.execute(select(c.hash, c.name, c.text).where(c.owner_id == owner, c.hash.in_(batch)))
        by_hash |= {row[0]: Segment(name=row[1], text=row[2]) for row in rows}
    return by_hash


def marks_at(connection: Connection, owner: str, account_id: str, at: datetime) -> dict[str, float]:
    """The prices that the broker told at a tick of an account; empty if there was no tick at that instant."""
    same = owned(DECISIONS, owner, _C.account_id == account_id, _C.at == at).order_by(_C.sequence.desc())
    decision = fetch_one(connection, DECISIONS, same)
    return {} if decision is None else {**decision.before.marks, **decision.last_snapshot.marks}


def unexplained_equity(connection: Connection, owner: str) -> list[tuple[datetime, datetime]]:
    """The ticks at which equity changed beyond what the ledger explains: at and recorded_at of each, oldest first."""
    gaps = select(_C.at, _C.recorded_at).where(_C.owner_id == owner, _C.equity_gap.is_not(None)).order_by(_C.at)
    return [(row.at, row.recorded_at) for row in connection.execute(gaps)]


def orders_placed(connection: Connection, owner: str, account_id: str, ids: Collection[str]) -> dict[str, PlacedOrder]:
    """The orders with these ids that decisions of an account placed, by id."""
    orders: dict[str, PlacedOrder] = {}
    for batch in in_batches(ids):
        c = PLACED_ORDERS.table.c
        statement = owned(PLACED_ORDERS, owner, c.account_id == account_id, c.order_id.in_(batch))
        orders |= {order.order_id: order for order in fetch(connection, PLACED_ORDERS, statement)}
    return orders


def decisions_of_account(connection: Connection, owner: str, account_id: str) -> list[Decision]:
    """Every decision of an account, oldest first."""
    rows = owned(DECISIONS, owner, _C.account_id == account_id)
    return fetch(connection, DECISIONS, rows.order_by(_C.at, _C.sequence))


def add_last(transaction: "Transaction", decision: Decision) -> None:
    """Store the decision of an account's newest tick."""
    connection, owner, of_deployment = transaction.connection, decision.owner_id, ("attempts", decision.deployment_id)
    recent: _RecentAttempts | None = get(connection, owner, of_deployment, (DECISIONS,))
    transaction.add_all(DECISIONS, [decision])
    for key, value in (("last tick", as_last(decision)), ("last decision", decision)):
        put_written(connection, owner, (key, decision.account_id), (DECISIONS,), value)
    if recent is not None:
        put_written(connection, owner, of_deployment, (DECISIONS,), _with_decision(recent, decision))


def add_segments(transaction: "Transaction", owner: str, segments: Iterable[ShownSegment]) -> None:
    """Store the text of those segments that are not stored yet."""
    connection = transaction.connection
    stored = stored_hashes(connection, owner, SEGMENTS)
    new = [each for each in segments if each.hash not in stored]
    if new:
        transaction.add_missing(SEGMENTS, new)
        remember_stored(connection, owner, SEGMENTS, stored | {each.hash for each in new})


def old_segments(connection: Connection, owner: str, *, before: datetime) -> list[str]:
    """The hashes of segments that were last shown before an instant."""
    statement = select(_C.shown, _C.response_hash).where(_C.owner_id == owner, _C.at >= before)
    used: set[str | None] = set()
    for shown, response in connection.execute(statement):
        used.update((*shown, response))
    c = SEGMENTS.table.c
    old = connection.execute(select(c.hash).where(c.owner_id == owner, c.known_at < before).order_by(c.hash))
    return [each for each in old.scalars() if each not in used]
