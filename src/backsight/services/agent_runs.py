"""Carry out runs of agents: claim the agent, ask it outside any transaction, and record how the run ended.

A run is claimed and recorded in two transactions, and the agent is asked between them. If the process ends in between,
the run is failed from the end of its lease on.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from backsight.core.agents.agent_settings import NO_TOOLS, AgentSettings
from backsight.core.agents.card import CardType
from backsight.core.agents.request import AgentAnswer, AgentRequest, Exchange, RunCancelled, SessionGone, no_text
from backsight.core.agents.review import line_of
from backsight.core.agents.run import (
    LONGEST_ERROR,
    AgentRun,
    RunKind,
    RunStatus,
    json_object_in,
    lease_of,
    shortened_text,
)
from backsight.core.errors import BacksightError, Conflict, Invalid, Refused, Unavailable, shortened
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import format_instant
from backsight.core.prompts.decisions import decisions_under_review
from backsight.core.prompts.system import Identity, system_segments
from backsight.core.secret_text import without_secrets
from backsight.core.strategies import Deployment
from backsight.ports import AgentRunner
from backsight.services.agent_cards import CheckedCard, card_in_output, known_card_type, re_examination_card
from backsight.services.agent_settings import refuse_stopped, session_of, settings_of, write_back
from backsight.services.card_outcomes import resolve_run
from backsight.services.context import Context
from backsight.services.decision_review import review_decisions
from backsight.services.deployments import deployed_strategy, deployment_named, unsaved_strategy
from backsight.services.withheld_memory import withholds_memory
from backsight.store import agent_sessions as stored_sessions
from backsight.store import agents as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything

LOG = logging.getLogger("backsight")
POLL = 0.1
"""Seconds between looks at an agent that is busy."""
REVIEWED = 5
"""Decisions in the review of a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """A run that somebody wants."""

    deployment: str
    kind: RunKind
    prompt: str | None
    """None: the agent's default prompt."""
    parent: AgentRun | None = None
    patience_seconds: float = 0.0
    """How long to wait for an agent that is running."""


def start_run(ctx: Context, order: RunOrder) -> AgentRun:
    """Claim the agent and start the run in a thread; `Conflict` if the agent is still running after the patience."""
    with ctx.reading() as connection:
        deployment = deployment_named(connection, ctx.owner, order.deployment)
        refuse_stopped(ctx.view(connection), deployment)
        settings = settings_of(ctx.view(connection), deployment)
    runner = runner_of(ctx, deployment, settings)
    run = _claim(ctx, order, deployment, settings, runner)
    later = ctx.at_one_instant(operation=ctx.operation, request={})
    try:
        with ctx.reading() as connection:
            request = _request(ctx, connection, deployment, settings, runner, run)
        ctx.in_progress.start(run.id, lambda is_cancelled: _carry_out(later, run, runner, request, is_cancelled))
    except Exception:
        _end(later, run, "failed", "the run could not be started", None)  # else the agent is taken until its lease ends
        raise
    return run


def runner_of(ctx: Context, deployment: Deployment, settings: AgentSettings) -> AgentRunner:
    """The runner of a deployment's agent; `Refused` if it has none, `Unavailable` if it is not installed."""
    if settings.runner is None:
        message = f"{deployment.name!r} has no runner, so Backsight cannot run it; configure_deployment sets one"
        raise Refused(message, field="deployment")
    runner = ctx.runners(settings)
    runner.check()
    return runner


def _claim(
    ctx: Context, order: RunOrder, deployment: Deployment, settings: AgentSettings, runner: AgentRunner
) -> AgentRun:
    """The run, recorded as running. One run of an agent at a time: others wait their turn, for a bounded time."""
    deadline = time.monotonic() + order.patience_seconds
    while True:
        busy = None
        with ctx.writing() as transaction:
            release_interrupted(transaction, ctx, deployment.id)
            busy = stored.running(transaction.connection, ctx.owner, deployment.id)
            if busy is None:
                run = _new_run(transaction, ctx, order, deployment, settings, runner)
                transaction.add(stored.RUNS, run)
                return run
        if time.monotonic() >= deadline:
            until = "" if busy.expires_at is None else f", at the latest until {format_instant(busy.expires_at)}"
            message = f"{deployment.name!r} is running ({busy.kind} {busy.id[:8]}){until}"
            raise Conflict(f"{message}; wait for it, or give more patience_seconds", field="deployment")
        time.sleep(min(POLL, max(0.0, deadline - time.monotonic())))


def release_interrupted(transaction: Transaction, ctx: Context, deployment_id: str | None = None) -> int:
    """Record as failed the runs whose lease is over; how many there were."""
    connection = transaction.connection
    if deployment_id is None:
        left = stored.runs_left_running(connection, ctx.owner)
    else:
        run = stored.running(connection, ctx.owner, deployment_id)
        left = [] if run is None else [run]
    interrupted = [run.at(ctx.now) for run in left if run.at(ctx.now) != run]
    for run in interrupted:
        transaction.revise(stored.RUNS, replace(run, known_at=run.ended_at or ctx.now, recorded_at=ctx.now))
    return len(interrupted)


def _new_run(
    transaction: Transaction,
    ctx: Context,
    order: RunOrder,
    deployment: Deployment,
    settings: AgentSettings,
    runner: AgentRunner,
) -> AgentRun:
    view = everything(transaction.connection, ctx.owner)
    prompt = order.prompt or settings.default_prompt
    if prompt is None:
        raise Invalid(f"{deployment.name!r} has no default prompt; give one, or configure_deployment", field="prompt")
    session = session_of(view, deployment.id)
    uses_session = session.is_shared and order.kind != "re_examination"
    return AgentRun(
        owner_id=ctx.owner,
        id=derive_id("run", deployment.id, order.kind, format_instant(ctx.now), ctx.request_digest),
        deployment_id=deployment.id,
        kind=order.kind,
        parent_id=None if order.parent is None else order.parent.id,
        runner=runner.name,
        session_before=session.session_id if uses_session else None,
        prompt=shortened_text(_whole_prompt(ctx, view, order, prompt, deployment, settings)),
        status="running",
        started_at=ctx.now,
        expires_at=ctx.now + lease_of(settings.timeout_seconds),
        model=settings.model,
        request_digest=ctx.request_digest,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )


def _whole_prompt(
    ctx: Context, view: View, order: RunOrder, prompt: str, deployment: Deployment, settings: AgentSettings
) -> str:
    """The prompt, with the review of decisions and the shape of the result where a run is to conclude something."""
    if order.kind in ("chat", "re_examination"):
        return prompt
    parts = [prompt]
    if settings.review_decisions and not withholds_memory(deployment, ctx.now):
        parts.append(review_section(ctx.view(view.connection), deployment))
    card_type = known_card_type(view, settings.card_type)
    if card_type is not None:
        parts.append(card_instructions(card_type))
    return "\n\n".join(part for part in parts if part)


def review_section(view: View, deployment: Deployment) -> str:
    """The section of the prompt that shows the agent its previous decisions; empty if there are none."""
    review = review_decisions(view, deployment, limit=REVIEWED)
    lines = [line_of(each, now=view.as_of) for each in review.decisions]
    return decisions_under_review(lines, tally=review.tally.sentence if review.tally.resolved else "").text


def card_instructions(card_type: CardType) -> str:
    """How an agent is to give its result."""
    shape = {
        field.name: " | ".join(field.choices) or field.type + ("" if field.required else ", optional")
        for field in card_type.fields
    }
    return f"End your answer with one JSON object ({card_type.name}):\n{canonical_json(shape)}"


def _request(
    ctx: Context,
    connection: Connection,
    deployment: Deployment,
    settings: AgentSettings,
    runner: AgentRunner,
    run: AgentRun,
) -> AgentRequest:
    strategy = deployed_strategy(connection, deployment) or unsaved_strategy(deployment)
    identity = Identity(money=deployment.mode, tools=(), has_memory=True)
    segments = system_segments(identity, strategy, protocol="", lessons=None)
    about = f"You are the agent of the deployment {deployment.name}. This is run {run.id}: name it in notes."
    history: tuple[Exchange, ...] = ()
    if run.session_before is not None and not runner.keeps_sessions:
        history = _history(ctx, connection, deployment)
    names = () if settings.tools == NO_TOOLS else settings.tools or None
    return AgentRequest(
        run_id=run.id,
        prompt=run.prompt,
        system="\n\n".join([*(segment.text for segment in segments), about]),
        session=run.session_before,
        history=history,
        timeout=float(settings.timeout_seconds),
        tools=ctx.agent_tools(names),
        environment={**ctx.environment, "BACKSIGHT_OWNER": ctx.owner},
        on_text=ctx.on_text or no_text,
    )


def _history(ctx: Context, connection: Connection, deployment: Deployment) -> tuple[Exchange, ...]:
    """The runs that advanced the shared session since its last fresh start, oldest first."""
    view = everything(connection, ctx.owner)
    ids: list[str] = []
    for event in stored_sessions.session_events(view, deployment.id):
        if event.kind != "advanced":
            ids.clear()
        elif event.run_id is not None:
            ids.append(event.run_id)
    runs = stored.runs_by_id(view, ids)
    return tuple(
        Exchange(prompt=run.prompt, output=run.output or "", transcript=run.transcript)
        for run in (runs[each] for each in ids if each in runs)
    )


def _carry_out(
    ctx: Context, run: AgentRun, runner: AgentRunner, request: AgentRequest, is_cancelled: Callable[[], bool]
) -> None:
    """Ask the agent and record the end of the run; a session that is gone is replaced by a fresh one."""
    note = None
    request = replace(request, is_cancelled=is_cancelled)
    try:
        try:
            answer = runner.invoke(request)
        except SessionGone as gone:
            note = f"A fresh session was started: {gone.message}."
            answer = runner.invoke(replace(request, session=None, history=()))
        _finish(ctx, run, answer=answer, note=note)
    except RunCancelled as cancelled:
        _end(ctx, run, "cancelled", cancelled.message, note)
    except BacksightError as error:
        _end(ctx, run, "failed", error.message, note)
    except Exception:
        LOG.exception("the run %s failed", run.id)
        _end(ctx, run, "failed", "the runner broke off; the log has the traceback", note)


def _end(ctx: Context, run: AgentRun, status: RunStatus, error: str, note: str | None) -> None:
    """Record the end of a run without an answer; a store that cannot be written leaves the end to the lease."""
    try:
        _finish(ctx, run, status=status, error=error, note=note)
    except Unavailable:
        LOG.exception("the end of the run %s could not be recorded", run.id)


def _finish(
    ctx: Context,
    run: AgentRun,
    *,
    answer: AgentAnswer | None = None,
    status: RunStatus = "succeeded",
    error: str | None = None,
    note: str | None = None,
) -> None:
    """Record the end of a run, its result and its session in one transaction, unless its lease is over."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        current = stored.run(connection, ctx.owner, run.id)
        if current is None or current.at(ctx.now).status != "running":
            LOG.warning("the run %s ended after its lease was over; its answer is dropped", run.id)
            return
        result = replace(current, status=status, error=error and shortened(error, LONGEST_ERROR), note=note)
        if answer is not None:
            result = _with_answer(connection, ctx, result, answer)
        result = replace(result, ended_at=ctx.now, known_at=ctx.now, recorded_at=ctx.now)
        dropped = write_back(transaction, ctx, result)
        result = replace(result, note=" ".join(filter(None, (result.note, dropped))) or None)
        transaction.revise(stored.RUNS, result)
        resolve_run(transaction, result, by=ctx.now)


def _storable(text: str) -> str:
    """A text that a database can store: without NUL, and with a question mark for half a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", errors="replace").decode()


def _with_answer(connection: Connection, ctx: Context, run: AgentRun, answer: AgentAnswer) -> AgentRun:
    view = everything(connection, ctx.owner)
    text = without_secrets(_storable(answer.text))
    card, error = _result_of(connection, view, run, text)
    return replace(
        run,
        status="succeeded" if error is None else "failed",
        error=error,
        output=shortened_text(text),
        transcript=answer.transcript and without_secrets(_storable(answer.transcript)),
        session_after=answer.session,
        model=answer.model or run.model,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost=answer.cost,
        card_type=card.card_type,
        result=card.result,
        fits=card.fits,
        misfit=card.misfit,
    )


def _result_of(connection: Connection, view: View, run: AgentRun, text: str) -> tuple[CheckedCard, str | None]:
    """The card in an answer; a re-examination that is malformed has the error that fails its run."""
    if run.kind != "re_examination":
        deployment = deployment_named(connection, run.owner_id, run.deployment_id)
        wants_card = run.kind != "chat"
        card_type = known_card_type(view, settings_of(view, deployment).card_type if wants_card else None)
        return card_in_output(card_type, text), None
    parent = None if run.parent_id is None else stored.run(connection, run.owner_id, run.parent_id)
    card_type = None if parent is None else known_card_type(view, parent.card_type)
    if parent is None or card_type is None:
        raise AssertionError("a re-examination has a parent with a card")
    card = re_examination_card(card_type, parent, json_object_in(text))
    return card, None if card.fits else f"the answer is malformed: {card.misfit}"
