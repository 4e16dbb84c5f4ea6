"""Stopping a deployment: no further ticks and runs begin; what has happened is still recorded."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import Key, Prose
from backsight.core.text.counts import count_of
from backsight.operation import command
from backsight.services.agent_settings import settings_of
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.store import agents as stored_agents
from backsight.store import tick_claims as stored_claims
from backsight.store import trades as stored_trades
from backsight.store.agent_sessions import AGENT_SETTINGS
from backsight.store.transaction import Transaction

POSITIONS_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedDeployment:
    """A deployment that was stopped, and what was still under way."""

    deployment: str
    stopped_at: datetime
    reason: str | None
    open_trades: tuple[str, ...]
    """The trades that the deployment has open, as symbol and direction; they are not closed by the stop."""
    unfinished: tuple[str, ...]
    """A tick or a run that had begun before the stop and may still end."""
    replayed: bool
    message: str


@command()
def stop_deployment(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment, by name or id."],
    reason: Annotated[Prose | None, "Why it is stopped."] = None,
) -> StoppedDeployment:
    """Stop a deployment: it opens no further ticks, and its agent is not run.

    Its memory stays, and what has happened is still recorded: a tick that was claimed before can be closed. Positions
    stay open at the broker; the answer names them. `configure_deployment` with `resume` starts the deployment again.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        target = deployment_named(connection, ctx.owner, deployment)
        former = settings_of(ctx.view(connection), target)
        settings = former
        if former.stopped_at is None:
            settings = replace(former, stopped_at=ctx.now, stop_reason=reason, known_at=ctx.now, recorded_at=ctx.now)
            transaction.revise(AGENT_SETTINGS, settings)
        open_trades = tuple(
            f"{trade.symbol} {trade.direction}"
            for trade in stored_trades.open_trades(connection, ctx.owner, target.account_id)
            if trade.deployment_id == target.id
        )
        unfinished = _unfinished(transaction, ctx, target.id, target.account_id)
    stopped_at = settings.stopped_at or ctx.now
    return StoppedDeployment(
        deployment=target.name,
        stopped_at=stopped_at,
        reason=settings.stop_reason,
        open_trades=open_trades,
        unfinished=unfinished,
        replayed=former.stopped_at is not None,
        message=_message(target.name, stopped_at, open_trades, unfinished, replayed=former.stopped_at is not None),
    )


def _unfinished(transaction: Transaction, ctx: Context, deployment_id: str, account_id: str) -> tuple[str, ...]:
    """The claimed tick and the run of a deployment that have begun and not ended."""
    connection = transaction.connection
    claim = stored_claims.claim_of(connection, ctx.owner, account_id)
    run = stored_agents.running(connection, ctx.owner, deployment_id)
    begun: list[str] = []
    if claim is not None and claim.deployment_id == deployment_id and claim.expires_at > ctx.now:
        begun.append(f"the loop {claim.holder!r} holds the account until {claim.expires_at:%Y-%m-%d %H:%M:%S}")
    if run is not None and run.at(ctx.now).status == "running":
        begun.append(f"the run {run.id[:8]} ({run.kind}) is going on")
    return tuple(begun)


def _message(
    name: str, stopped_at: datetime, open_trades: tuple[str, ...], unfinished: tuple[str, ...], *, replayed: bool
) -> str:
    sentences = [f"{name} was already stopped at {stopped_at:%Y-%m-%d %H:%M}." if replayed else f"Stopped {name}."]
    if open_trades:
        listed = ", ".join(open_trades[:POSITIONS_LISTED]) + (", …" if len(open_trades) > POSITIONS_LISTED else "")
        verb = "is" if len(open_trades) == 1 else "are"
        sentences.append(
            f"{count_of(len(open_trades), 'trade')} {verb} still open and must be closed at the broker: {listed}."
        )
    sentences += [f"{each[0].upper()}{each[1:]}." for each in unfinished]
    return " ".join(sentences)
