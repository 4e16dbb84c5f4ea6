"""Runs of agents: record what an agent did, list runs and ticks as one, and define the types of result cards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from backsight.arguments import (
    AsOf,
    CardObject,
    Cursor,
    Instant,
    Key,
    Limit,
    Name,
    NotNegative,
    RecordedText,
    SeenAt,
    Whole,
    as_objects,
)
from backsight.core.agents.card import (
    MOST_FIELDS,
    RE_EXAMINATION,
    CardField,
    CardType,
    ReExaminable,
    checked_result,
    checked_type,
)
from backsight.core.agents.run import LONGEST_ERROR, AgentRun, RunKind, RunStatus
from backsight.core.decision import Decision
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.object_arguments import CardFieldArgument
from backsight.operation import command, query
from backsight.services.agent_cards import (
    CheckedCard,
    checked_card,
    headline_of,
    known_card_type,
    parent_of,
    re_examination_card,
)
from backsight.services.agent_settings import write_back
from backsight.services.card_outcomes import resolve_run
from backsight.services.context import Context
from backsight.services.deployments import deployment_at, deployment_named
from backsight.services.id_prefixes import whole_id
from backsight.services.instant_bounds import check_instant
from backsight.services.paging import cursor_after, instant_and_id, read_cursor
from backsight.store import agents as stored
from backsight.store import decisions as stored_decisions
from backsight.store import strategies as stored_strategies
from backsight.store.view import View

EndedStatus = Literal["succeeded", "failed", "cancelled"]
ListedKind = Literal["tick", "heartbeat", "manual", "chat", "re_examination"]
CardFields = Annotated[Sequence[CardFieldArgument], Field(max_length=MOST_FIELDS)]
Actions = Annotated[list[Name], Field(max_length=20)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """The run as it was recorded."""

    run: AgentRun
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One line of a list of runs and ticks."""

    id: str
    kind: ListedKind
    """`tick` for the run of a trading deployment; `get_decision` has all of it."""
    deployment: str
    at: datetime
    status: RunStatus
    headline: str
    card_type: str | None
    fits: bool | None
    parent_id: str | None
    model: str | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Runs and ticks, newest first."""

    runs: tuple[ListedRun, ...]
    next_cursor: str | None
    as_of: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """A run with everything that is known of it."""

    deployment: str
    run: AgentRun | None
    """None for a tick."""
    tick: Decision | None
    """The tick, if the id names one."""
    re_examinations: tuple[str, ...]
    """Ids of the runs that re-examine the run, oldest first."""
    as_of: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCardType:
    """The card type, and whether an equal call had saved it before."""

    card_type: CardType
    replayed: bool


@command(audience=("trader",))
def record_run(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment whose agent ran, by name or id."],
    prompt: Annotated[RecordedText, "What the agent was asked."],
    output: Annotated[RecordedText | None, "What the agent answered."] = None,
    kind: Annotated[RunKind, "Why the agent ran."] = "heartbeat",
    status: Annotated[EndedStatus, "How the run ended."] = "succeeded",
    error: Annotated[Annotated[RecordedText, Field(max_length=LONGEST_ERROR)] | None, "Why it failed."] = None,
    card_type: Annotated[Name | None, "The type of the result, like 'trade_decision'."] = None,
    result: Annotated[CardObject | None, "What the run concluded, by field; kept as given, flagged if unfit."] = None,
    parent: Annotated[Key | None, "The run that this run re-examines, by its id or the beginning of it."] = None,
    session_before: Annotated[Key | None, "The session that the run resumed."] = None,
    session_after: Annotated[Key | None, "The session that the run ended with."] = None,
    started_at: Annotated[Instant | None, "When the run began; now if left out."] = None,
    ended_at: Annotated[Instant | None, "When the run ended; now if left out."] = None,
    model: Annotated[Name | None, "The model that ran."] = None,
    input_tokens: Annotated[Whole | None, "Tokens that the model read."] = None,
    output_tokens: Annotated[Whole | None, "Tokens that the model wrote."] = None,
    cost: Annotated[NotNegative | None, "What the run cost, in dollars."] = None,
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> RecordedRun:
    """Record a run of an agent that has its own loop: what it was asked, what it answered and what it concluded.

    A run is never changed afterwards. What becomes of a decision is recorded beside it.
    """
    if (kind == "re_examination") != (parent is not None):
        raise Invalid("a re-examination has a parent, and no other run has one; give both or neither", field="parent")
    if (status == "succeeded") == (error is not None):
        raise Invalid("a run that did not succeed has an error, and no other run has one", field="error")
    with ctx.writing() as transaction:
        connection = transaction.connection
        target = deployment_named(connection, ctx.owner, deployment)
        end = ctx.now if ended_at is None else ended_at
        started = min(ctx.now, end) if started_at is None else started_at
        for field, at in (("started_at", started), ("ended_at", end)):
            check_instant(ctx, at, field=field)
        if end < started:
            raise Invalid(f"{format_instant(end)} is before the start, {format_instant(started)}", field="ended_at")
        examined = None if parent is None else parent_of(connection, ctx.owner, parent, target)
        card = _card(ctx.view(connection), card_type, result, examined=examined)
        named = (ctx.owner, idempotency_key) if idempotency_key else (target.id, format_instant(started))
        run_id = derive_id("run", *named, None if idempotency_key else ctx.request_digest)
        former = stored.run(connection, ctx.owner, run_id)
        if former is not None:
            if former.request_digest != ctx.request_digest:
                raise Conflict("this key already belongs to another run; use a new key", field="idempotency_key")
            message = "Already recorded: this call is a replay and changed nothing."
            return RecordedRun(run=former, replayed=True, message=message)
        run = AgentRun(
            owner_id=ctx.owner,
            id=run_id,
            deployment_id=target.id,
            kind=kind,
            parent_id=None if examined is None else examined.id,
            session_before=session_before,
            session_after=session_after,
            prompt=prompt,
            output=output,
            status=status,
            error=error,
            started_at=started,
            ended_at=end,
            model=model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost=cost,
            card_type=card.card_type,
            result=card.result,
            fits=card.fits,
            misfit=card.misfit,
            request_digest=ctx.request_digest,
            known_at=end,
            recorded_at=ctx.now,
        )
        transaction.add(stored.RUNS, run)
        resolve_run(transaction, run, by=ctx.now)
        dropped = write_back(transaction, ctx, run)
    return RecordedRun(
        run=run, replayed=False, message=" ".join(filter(None, (_fit_sentence(run, card_type), dropped)))
    )


def _card(
    view: View, card_type: str | None, result: Mapping[str, object] | None, *, examined: AgentRun | None
) -> CheckedCard:
    """The result of a run with its type; that of a re-examination has a type of its own."""
    if examined is None:
        return checked_card(known_card_type(view, card_type), result)
    if card_type not in (None, RE_EXAMINATION):
        raise Invalid(f"a re-examination has the card type {RE_EXAMINATION!r}; leave it out", field="card_type")
    parent_type = known_card_type(view, examined.card_type)
    if result is None or parent_type is None:
        return checked_card(None, None)
    return re_examination_card(parent_type, examined, checked_result(result))


def _fit_sentence(run: AgentRun, card_type: str | None) -> str:
    """What became of the result of a run."""
    if run.fits is False:
        return f"Recorded. The result does not fit {run.card_type}: {run.misfit}. It is kept as given."
    if run.result is not None and run.card_type is None:
        return "Recorded. The result has no card_type, so it is no decision: it is neither judged nor reviewed."
    if run.result is None and run.kind == "re_examination" and run.status == "succeeded":
        return "Recorded without a result, so it has no conviction; give the JSON of the answer as result."
    if run.result is None and card_type is not None:
        return f"Recorded without a card: no result of the type {card_type!r} was given."
    return "Recorded."


@query(audience=("trader",))
def list_runs(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only runs of this deployment, by name or id."] = None,
    kind: Annotated[ListedKind | None, "Only runs of this kind."] = None,
    limit: Annotated[Limit, "Most runs on a page."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the previous page."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> RunPage:
    """List the runs of agents and the ticks of trading deployments as one, newest first."""
    query_arguments = ctx.arguments(without=("cursor", "limit"))
    horizon, before = ctx.horizon(as_of, seen_at), None
    if cursor is not None:
        before, horizon = read_cursor(cursor, instant_and_id, query=query_arguments, ids_descend=True)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        target = None if deployment is None else deployment_at(view, deployment)
        places = stored.listed_runs(
            view,
            deployment_id=None if target is None else target.id,
            kind=kind,
            before=before,
            limit=limit + 1,
        )
        page = places[:limit]
        runs = stored.runs_by_id(view, [each.id for each in page if not each.is_tick])
        ticks = stored_decisions.decisions_by_id(view, [each.id for each in page if each.is_tick])
        names = {each.id: each.name for each in stored_strategies.deployments_recorded(view)}
        types = stored.card_types(view)
    lines = [
        _tick_line(ticks[each.id], names) if each.is_tick else _run_line(runs[each.id], names, types) for each in page
    ]
    next_cursor = None
    if len(places) > limit:
        next_cursor = cursor_after([page[-1].at, page[-1].id], horizon, now=ctx.now, query=query_arguments)
    of = "" if target is None else f" of {target.name}"
    message = "" if lines else f"No run{of} was known then; record_run, run_agent and close_tick make runs."
    return RunPage(runs=tuple(lines), next_cursor=next_cursor, as_of=view.as_of, message=message)


def _run_line(run: AgentRun, names: Mapping[str, str], types: Sequence[CardType]) -> ListedRun:
    return ListedRun(
        id=run.id,
        kind=run.kind,
        deployment=names[run.deployment_id],
        at=run.started_at,
        status=run.status,
        headline=headline_of(run, types),
        card_type=run.card_type,
        fits=run.fits,
        parent_id=run.parent_id,
        model=run.model,
        cost=run.cost,
    )


def _tick_line(tick: Decision, names: Mapping[str, str]) -> ListedRun:
    reason = tick.reason or tick.verdict.detail
    return ListedRun(
        id=tick.id,
        kind="tick",
        deployment=names[tick.deployment_id],
        at=tick.at,
        status="succeeded",
        headline=" · ".join(filter(None, (tick.verdict.kind, tick.symbol, tick.verdict.rule, reason))),
        card_type=None,
        fits=None,
        parent_id=None,
        model=tick.model,
        cost=tick.cost,
    )


@query(audience=("trader",))
def get_run(
    ctx: Context,
    *,
    run: Annotated[Key, "The run or tick, by its id or the beginning of it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> RunDetail:
    """Return a run: its prompt, its output, its result, and whether it is still running."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        run_id = whole_id(connection, ctx.owner, stored.RUNS, run, field="run")
        agent_run = stored.run_then(view, run_id)
        tick = None
        if agent_run is None:
            tick_id = whole_id(connection, ctx.owner, stored_decisions.DECISIONS, run, field="run")
            tick = stored_decisions.decision_then(view, tick_id)
        deployment_id = agent_run.deployment_id if agent_run else tick.deployment_id if tick else None
        if deployment_id is None:
            raise NotFound(f"no run {run[:40]!r} was known then; list_runs shows their ids", field="run")
        children = stored.children(view, run_id)
        deployment = deployment_named(connection, ctx.owner, deployment_id)
    return RunDetail(
        deployment=deployment.name,
        run=agent_run,
        tick=tick,
        re_examinations=tuple(each.id for each in children),
        as_of=view.as_of,
        message=_state_sentence(agent_run),
    )


def _state_sentence(run: AgentRun | None) -> str:
    if run is None:
        return "A tick of a trading deployment; get_decision shows its prompt."
    if run.status == "running":
        until = "" if run.expires_at is None else f", at the latest until {format_instant(run.expires_at)}"
        return f"Running since {format_instant(run.started_at)}{until}."
    return " ".join(filter(None, (run.ending, run.note)))


@command()
def save_card_type(
    ctx: Context,
    *,
    name: Annotated[Name, "The name of the card type."],
    fields: Annotated[CardFields, "The fields: name, type, whether required, and the role of each."],
    re_examinable: Annotated[ReExaminable, "Whether a decision of this type may be re-examined."] = "never",
    actions: Annotated[Actions, "The words that a re-examination may advise; any if left out."] = [],  # noqa: B006
) -> SavedCardType:
    """Save a type of result card: its fields, and which of them mean the entry, the target, the stop and so on.

    A type can be changed until a run has a card of it.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        card_type = checked_type(
            CardType(
                owner_id=ctx.owner,
                name=name,
                fields=tuple(as_objects(fields, CardField)),
                re_examinable=re_examinable,
                actions=tuple(actions),
                known_at=ctx.now,
                recorded_at=ctx.now,
            )
        )
        former = stored.card_type(connection, ctx.owner, name)
        if former is not None:
            same = replace(card_type, known_at=former.known_at, recorded_at=former.recorded_at)
            if same == former:
                return SavedCardType(card_type=former, replayed=True)
            if stored.is_used(connection, ctx.owner, name):
                raise Conflict(f"runs have cards of the type {name!r}, so it cannot change; choose another name")
        transaction.revise(stored.CARD_TYPES, card_type)
    return SavedCardType(card_type=card_type, replayed=False)
