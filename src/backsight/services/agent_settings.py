"""The settings and the shared session of an agent: read, changed and written with their history."""

from collections.abc import Sequence

from backsight.audience import OFFERED
from backsight.core.agents.agent_settings import NO_TOOLS, AgentSettings
from backsight.core.agents.run import AgentRun
from backsight.core.agents.session import SessionEvent, SessionEventKind, SessionState, may_advance, session_state
from backsight.core.errors import Conflict, Invalid, Refused, did_you_mean
from backsight.core.instants import format_instant
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.store import agent_sessions as stored
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything


def settings_of(view: View, deployment: Deployment) -> AgentSettings:
    """The settings of a deployment's agent; the defaults if none were ever changed."""
    return stored.agent_settings(view, deployment.id) or AgentSettings(
        owner_id=deployment.owner_id,
        deployment_id=deployment.id,
        known_at=deployment.known_at,
        recorded_at=deployment.recorded_at,
    )


def refuse_stopped(view: View, deployment: Deployment) -> None:
    """Refuse to begin something on a deployment that was stopped by the view's horizon."""
    settings = settings_of(view, deployment)
    if settings.stopped_at is not None and settings.stopped_at <= view.as_of:
        reason = "" if settings.stop_reason is None else f" ({settings.stop_reason})"
        message = f"{deployment.name!r} was stopped at {format_instant(settings.stopped_at)}{reason}"
        raise Conflict(f"{message}; configure_deployment with resume starts it again", field="deployment")


def session_of(view: View, deployment_id: str) -> SessionState:
    """The shared session of a deployment."""
    return session_state(stored.session_events(view, deployment_id))


def add_event(
    transaction: Transaction,
    ctx: Context,
    deployment_id: str,
    kind: SessionEventKind,
    *,
    session_id: str | None = None,
    run_id: str | None = None,
) -> None:
    """Append an event to the session of a deployment."""
    event = SessionEvent(
        owner_id=ctx.owner,
        deployment_id=deployment_id,
        sequence=stored.next_sequence(transaction.connection, ctx.owner, deployment_id),
        kind=kind,
        session_id=session_id,
        run_id=run_id,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )
    transaction.add(stored.SESSION_EVENTS, event)


def share(transaction: Transaction, ctx: Context, deployment: Deployment) -> None:
    """Share the session from now on; always a fresh start. Refused where memory is withheld on some days."""
    if deployment.memory.holdout > 0:
        raise Refused(
            f"{deployment.name!r} withholds memory on {deployment.memory.holdout:.0%} of days to measure whether it"
            " helps, and a shared session would carry memory into those days; deploy it without memory.holdout",
            field="deployment",
        )
    add_event(transaction, ctx, deployment.id, "shared")


def write_back(transaction: Transaction, ctx: Context, run: AgentRun) -> str | None:
    """Make the session of a run that succeeded the newest one, if it is shared; a sentence if that was not done."""
    if run.status != "succeeded" or run.session_after is None or run.kind == "re_examination":
        return None
    state = session_of(everything(transaction.connection, ctx.owner), run.deployment_id)
    if not state.is_shared:
        return None
    if not may_advance(state, started_at=run.started_at):
        return "The session was started afresh while the run was on its way, so it is not carried on."
    add_event(transaction, ctx, run.deployment_id, "advanced", session_id=run.session_after, run_id=run.id)
    return None


def checked_tools(names: Sequence[str]) -> tuple[str, ...]:
    """The operations that a model may call; `Invalid` names one that a trader may not call."""
    if tuple(names) == NO_TOOLS:
        return NO_TOOLS
    known = OFFERED["trader"] or ()
    for number, name in enumerate(names):
        if name not in known:
            raise Invalid(f"{name!r} is no tool of a trader; {did_you_mean(name, known)}", field=f"tools.{number}")
    return tuple(dict.fromkeys(names))


def refuse_incomplete(ctx: Context, deployment: Deployment, settings: AgentSettings) -> None:
    """Refuse settings with which a heartbeat could not run."""
    if settings.runner == "model" and settings.model is None:
        raise Invalid("missing; name the model that is to run, like 'openai:gpt-5'", field="model")
    if settings.runner is not None:
        ctx.runners(settings).check()
    if settings.schedule is not None and settings.runner is None:
        raise Invalid(f"{deployment.name!r} has no runner that a schedule could use; set one", field="schedule")
    if settings.schedule is not None and settings.default_prompt is None:
        raise Invalid("a schedule needs a default prompt; give one", field="default_prompt")
