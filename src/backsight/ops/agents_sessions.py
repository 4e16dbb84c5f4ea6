"""Active memory: whether chats and heartbeats of an agent share one session, and how long that session is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Key, SeenAt
from backsight.core.agents.session import MANY_RUNS, SessionContext, SessionState, age_in_words
from backsight.core.errors import Conflict
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.agent_settings import add_event, session_of, share
from backsight.services.context import Context
from backsight.services.deployments import chosen_deployment, deployment_named
from backsight.store.view import everything

DEPLOYMENT = "The deployment, by name or id."


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """The shared session of a deployment."""

    deployment: str
    context: SessionContext
    """`off`, `fresh` or `carrying context`."""
    session_id: str | None
    runs_since_reset: int
    since: datetime | None
    """The last fresh start."""
    last_advanced_at: datetime | None
    age_seconds: float | None
    is_long: bool
    message: str
    as_of: datetime


@command()
def share_session(ctx: Context, *, deployment: Annotated[Key, DEPLOYMENT]) -> SessionStatus:
    """Let chats and heartbeats of an agent share one session from now on; it begins empty."""
    with ctx.writing() as transaction:
        target = deployment_named(transaction.connection, ctx.owner, deployment)
        share(transaction, ctx, target)
        return _status(target, session_of(everything(transaction.connection, ctx.owner), target.id), at=ctx.now)


@command()
def unshare_session(ctx: Context, *, deployment: Annotated[Key, DEPLOYMENT]) -> SessionStatus:
    """Stop sharing the session: every run and chat message starts afresh; recorded runs stay."""
    with ctx.writing() as transaction:
        target = deployment_named(transaction.connection, ctx.owner, deployment)
        if session_of(everything(transaction.connection, ctx.owner), target.id).is_shared:
            add_event(transaction, ctx, target.id, "unshared")
        return _status(target, session_of(everything(transaction.connection, ctx.owner), target.id), at=ctx.now)


@command()
def reset_session(ctx: Context, *, deployment: Annotated[Key, DEPLOYMENT]) -> SessionStatus:
    """Empty the shared session; recorded runs and chat messages stay visible in list_runs."""
    with ctx.writing() as transaction:
        target = deployment_named(transaction.connection, ctx.owner, deployment)
        if not session_of(everything(transaction.connection, ctx.owner), target.id).is_shared:
            raise Conflict(
                f"the session of {target.name!r} is not shared; share_session starts one", field="deployment"
            )
        add_event(transaction, ctx, target.id, "reset")
        return _status(target, session_of(everything(transaction.connection, ctx.owner), target.id), at=ctx.now)


@query(audience=("trader",))
def session_status(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> SessionStatus:
    """See whether an agent carries context from run to run, for how many runs, and how old its session is."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, _ = chosen_deployment(view, deployment)
        return _status(target, session_of(view, target.id), at=view.as_of)


def _status(deployment: Deployment, state: SessionState, *, at: datetime) -> SessionStatus:
    age = state.age(at)
    match state.context:
        case "off":
            message = "The session is not shared: every run and every chat message starts afresh."
        case "fresh":
            message = "Fresh: no run has written the session back yet."
        case "carrying context":
            age_text = "" if age is None else f", last written {age_in_words(age)} ago"
            message = f"Carrying context of {count_of(state.runs, 'run')}{age_text}."
    if state.is_long:
        message += f" More than {MANY_RUNS} runs make each run slower and dearer; reset_session starts afresh."
    return SessionStatus(
        deployment=deployment.name,
        context=state.context,
        session_id=state.session_id,
        runs_since_reset=state.runs,
        since=state.since,
        last_advanced_at=state.advanced_at,
        age_seconds=None if age is None else age.total_seconds(),
        is_long=state.is_long,
        message=message,
        as_of=at,
    )
