"""Run agents and talk to them; re-examine their decisions. A run is started at once and followed with get_run."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from backsight.arguments import AsOf, Flag, Key, Question, SeenAt
from backsight.core.agents.card import CardType
from backsight.core.agents.outcomes import state_at
from backsight.core.agents.re_examination import re_examination_prompt
from backsight.core.agents.run import AgentRun, RunKind, RunStatus
from backsight.core.errors import NotFound, Refused
from backsight.operation import command, query
from backsight.services.agent_cards import known_card_type, run_named
from backsight.services.agent_runs import RunOrder, start_run
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.store import agents as stored
from backsight.store import outcomes as stored_outcomes
from backsight.store.view import View

Patience = Annotated[float, Field(allow_inf_nan=False, ge=0, le=600)]
Wait = Annotated[float, Field(allow_inf_nan=False, ge=0, le=7_200)]
STEP = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    """A run that was started; it may have ended within the time that the caller waited."""

    deployment: str
    run: AgentRun
    message: str

    @property
    def passed(self) -> bool:
        """Whether the run has not failed; a shell is told so by its exit code."""
        return self.run.status in ("running", "succeeded")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedReExamination:
    """The prompt with which an agent can re-examine a decision in its own loop."""

    deployment: str
    parent_id: str
    card_type: str
    actions: tuple[str, ...]
    prompt: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conviction:
    """One re-examination of a decision."""

    run_id: str
    at: datetime
    status: RunStatus
    conviction_score: int | None
    notes: str | None
    suggested_action: str | None
    error: str | None
    """Why the run failed, or why its answer is malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvictionHistory:
    """The re-examinations of a decision, oldest first."""

    parent_id: str
    re_examinations: tuple[Conviction, ...]
    as_of: datetime
    message: str


@command()
def run_agent(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment whose agent is to run, by name or id."],
    prompt: Annotated[Question | None, "What to ask; the agent's default prompt if left out."] = None,
    heartbeat: Annotated[Flag, "Whether a schedule asked for the run."] = False,
    patience_seconds: Annotated[Patience, "How long to wait while the agent is running."] = 5.0,
    wait_seconds: Annotated[Wait, "How long to wait for the answer; the run goes on after it."] = 0.0,
) -> StartedRun:
    """Run the agent of a deployment.

    The command line waits for the answer; MCP and REST return the run at once, and get_run follows it.
    """
    kind: RunKind = "heartbeat" if heartbeat else "manual"
    order = RunOrder(deployment=deployment, kind=kind, prompt=prompt, patience_seconds=patience_seconds)
    return _started(ctx, order, wait_seconds)


@command()
def chat_with_agent(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment whose agent is asked, by name or id."],
    text: Annotated[Question, "The message to the agent."],
    patience_seconds: Annotated[Patience, "How long to wait while the agent is running."] = 5.0,
    wait_seconds: Annotated[Wait, "How long to wait for the answer; the run goes on after it."] = 0.0,
) -> StartedRun:
    """Send one message to the agent of a deployment.

    The command line waits for the answer; MCP and REST return the run at once, and get_run follows it.

    The agent remembers the conversation only while its session is shared; see share_session.
    """
    order = RunOrder(deployment=deployment, kind="chat", prompt=text, patience_seconds=patience_seconds)
    return _started(ctx, order, wait_seconds)


@query()
def prepare_re_examination(
    ctx: Context,
    *,
    run: Annotated[Key, "The run whose decision is to be re-examined, by its id or the beginning of it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> PreparedReExamination:
    """Return the prompt that re-examines a decision; refused, with the reason, where it may not be re-examined."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        parent, card_type = _examinable(view, run)
        deployment = deployment_named(connection, ctx.owner, parent.deployment_id)
    return PreparedReExamination(
        deployment=deployment.name,
        parent_id=parent.id,
        card_type=card_type.name,
        actions=card_type.actions,
        prompt=re_examination_prompt(parent, card_type, now=view.as_of),
        as_of=view.as_of,
    )


@command()
def re_examine(
    ctx: Context,
    *,
    run: Annotated[Key, "The run whose decision is to be re-examined, by its id or the beginning of it."],
    wait_seconds: Annotated[Wait, "How long to wait for the answer; the run goes on after it."] = 0.0,
) -> StartedRun:
    """Let the agent analyse one of its earlier decisions again, in a new run; the decision is not changed.

    The command line waits for the answer; MCP and REST return the run at once, and get_run follows it.
    """
    with ctx.reading() as connection:
        view = ctx.view(connection)
        parent, card_type = _examinable(view, run)
        busy = stored.running(connection, ctx.owner, parent.deployment_id)
        deployment = deployment_named(connection, ctx.owner, parent.deployment_id)
    if busy is not None and busy.at(ctx.now).status == "running":
        raise Refused(f"the agent of {deployment.name!r} is running ({busy.kind} {busy.id[:8]}); wait", field="run")
    prompt = re_examination_prompt(parent, card_type, now=ctx.now)
    order = RunOrder(deployment=deployment.id, kind="re_examination", prompt=prompt, parent=parent)
    return _started(ctx, order, wait_seconds)


@query(audience=("trader",))
def conviction_history(
    ctx: Context,
    *,
    run: Annotated[Key, "The run whose decision was re-examined, by its id or the beginning of it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ConvictionHistory:
    """List the re-examinations of a decision, oldest first: the conviction, the reason and the advice of each."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        parent = _known_run(view, run)
        children = stored.children(view, parent.id)
    history = tuple(_conviction(child) for child in children)
    message = "" if history else "The decision was not re-examined yet; re_examine does so."
    return ConvictionHistory(parent_id=parent.id, re_examinations=history, as_of=view.as_of, message=message)


def _conviction(child: AgentRun) -> Conviction:
    card = child.card if child.fits else {}
    return Conviction(
        run_id=child.id,
        at=child.started_at,
        status=child.status,
        conviction_score=card.get("conviction_score"),
        notes=card.get("notes"),
        suggested_action=card.get("suggested_action"),
        error=child.error or child.misfit,
    )


def _known_run(view: View, key: str) -> AgentRun:
    """The run with an id, if it was known then."""
    current = run_named(view.connection, view.owner, key)
    run = stored.run_then(view, current.id)
    if run is None:
        raise NotFound(f"no run {key[:40]!r} was known then; list_runs shows their ids", field="run")
    return run


def _examinable(view: View, key: str) -> tuple[AgentRun, CardType]:
    """The run and its card type, if its decision may be re-examined; `Refused` with the reason otherwise."""
    run = _known_run(view, key)
    if run.kind == "re_examination":
        raise Refused("this run is a re-examination itself; name the run that it examines", field="run")
    card_type = None if run.result is None else known_card_type(view, run.card_type)
    if card_type is None:
        raise Refused("the run has no card, so there is no decision to re-examine", field="run")
    if card_type.re_examinable == "never":
        raise Refused(f"decisions of the type {card_type.name!r} are not re-examined", field="run")
    if card_type.re_examinable == "until_resolved":
        rows = stored_outcomes.outcomes_by_run(view, [run.id]).get(run.id, [])
        state = state_at(rows, view.as_of)
        if state is not None and state.status in ("resolved", "expired"):
            raise Refused(f"the decision is {state.status}; it is re-examined only before that", field="run")
    return run, card_type


def _started(ctx: Context, order: RunOrder, wait_seconds: float) -> StartedRun:
    """Start a run, and wait for its end as long as the caller wants to."""
    run = start_run(ctx, order)
    waited = 0.0
    while waited < wait_seconds and not ctx.in_progress.wait(run.id, min(STEP, wait_seconds - waited)):
        waited += STEP
        ctx.progress("running", int(waited), int(wait_seconds))
    with ctx.reading() as connection:
        run = stored.run(connection, ctx.owner, run.id) or run
        deployment = deployment_named(connection, ctx.owner, run.deployment_id)
    if run.status == "running":
        message = f"Running; get_run follows {run.id[:8]}, which ends at the latest in {_limit(run)}."
    else:
        message = " ".join(filter(None, (run.ending, run.note)))
    return StartedRun(deployment=deployment.name, run=run, message=message)


def _limit(run: AgentRun) -> str:
    left = timedelta(0) if run.expires_at is None else run.expires_at - run.started_at
    return f"{left.total_seconds() / 60:.0f} min"
