"""Claims: one live loop per account, and the orders of a tick recorded before they are submitted."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from backsight.arguments import Instant, Key, Whole
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.orders import BEGINNING, FillMark
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment
from backsight.core.tick_claim import TickClaim
from backsight.operation import command
from backsight.services.agent_settings import refuse_stopped
from backsight.services.context import Context
from backsight.services.deployments import account_of, deployment_named
from backsight.services.instant_bounds import check_instant
from backsight.store import decisions as stored_decisions
from backsight.store import tick_claims as stored
from backsight.store import trades as stored_trades
from backsight.store.transaction import Transaction

LEASE_SECONDS = 120
LONGEST_LEASE = 86_400
Holder = Annotated[Key, "The name of your loop; no other process may use it."]
Lease = Annotated[int, Field(strict=True, ge=1, le=LONGEST_LEASE)]
Intent = Annotated[str, Field(strict=True, min_length=2, max_length=10_000_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTick:
    """The tick that a loop may run now, and from where to ask the broker for fills."""

    account_id: str
    holder: str
    at: datetime
    sequence: int
    """Order among the ticks of one instant; pass it to open_tick and close_tick."""
    expires_at: datetime
    """Until then no other loop can claim the account."""
    since: FillMark
    """The last fill that the ledger has: ask the broker for the fills after it."""
    unfinished: str | None
    """The intent of a tick that was interrupted, if there is one: close that tick first, then claim again. `at` and
    `sequence` are then those of the interrupted tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedIntent:
    """The orders of a tick are recorded: they may be submitted until the lease expires."""

    account_id: str
    at: datetime
    sequence: int
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedClaim:
    """Whether there was a claim to release, and the intent that was given up with it."""

    account_id: str
    released: bool
    intent: str | None


@command()
def claim_tick(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment that is about to decide, by name or id."],
    at: Annotated[Instant, "The instant of the tick."],
    holder: Holder,
    lease_seconds: Annotated[Lease, "How long no other loop may claim the account."] = LEASE_SECONDS,
) -> ClaimedTick:
    """Claim the next tick of an account before you look at the broker; one loop at a time can.

    The store gives out the sequence of the tick. A second loop is refused until the first one releases its claim or
    its lease expires. The claim is renewed by every further claim of the same holder.
    """
    with ctx.writing() as transaction:
        target, account, claim = _claim_on(transaction, ctx, deployment)
        _check_holder(claim, account, holder, now=ctx.now)
        expires_at = ctx.now + timedelta(seconds=lease_seconds)
        if claim is not None and claim.intent is not None:
            renewed = replace(claim, holder=holder, claimed_at=ctx.now, expires_at=expires_at)
        else:
            refuse_stopped(ctx.view(transaction.connection), target)
            check_instant(ctx, at, field="at")
            renewed = TickClaim(
                owner_id=ctx.owner,
                account_id=account.id,
                deployment_id=target.id,
                holder=holder,
                at=at,
                sequence=_next_sequence(transaction, ctx, account, at),
                claimed_at=ctx.now,
                expires_at=expires_at,
                intent=None,
            )
        stored.save_claim(transaction.connection, renewed)
        newest = stored_trades.newest_reported_fill(transaction.connection, ctx.owner, account.id)
    return ClaimedTick(
        account_id=account.id,
        holder=holder,
        at=renewed.at,
        sequence=renewed.sequence,
        expires_at=expires_at,
        since=newest or BEGINNING,
        unfinished=renewed.intent,
    )


@command()
def record_intent(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment that decided, by name or id."],
    at: Annotated[Instant, "The instant of the claimed tick."],
    sequence: Annotated[Whole, "The sequence of the claimed tick."],
    holder: Holder,
    intent: Annotated[Intent, "The arguments that close_tick will get, as JSON; orders without a verdict are open."],
    lease_seconds: Annotated[Lease, "How long no other loop may claim the account."] = LEASE_SECONDS,
) -> RecordedIntent:
    """Record what a tick must close with, before its orders are submitted; refused if the claim was lost.

    If the loop is interrupted, the next claim returns the intent. close_tick forgets it in its own transaction.
    """
    with ctx.writing() as transaction:
        _, account, claim = _claim_on(transaction, ctx, deployment)
        _check_holder(claim, account, holder, now=ctx.now)
        if claim is None or (claim.holder, claim.at, claim.sequence) != (holder, at, sequence):
            message = f"the tick of {format_instant(at)} ({sequence}) is not claimed by {holder!r}"
            raise Conflict(f"{message}; submit nothing, and call claim_tick", field="holder")
        expires_at = ctx.now + timedelta(seconds=lease_seconds)
        stored.save_claim(transaction.connection, replace(claim, intent=intent, expires_at=expires_at))
    return RecordedIntent(account_id=account.id, at=at, sequence=sequence, expires_at=expires_at)


@command()
def release_claim(
    ctx: Context,
    *,
    deployment: Annotated[Key, "A deployment on the account, by name or id."],
    holder: Holder,
) -> ReleasedClaim:
    """Release the claim on an account, so that another loop can run at once; an unfinished intent is given up."""
    with ctx.writing() as transaction:
        _, account, claim = _claim_on(transaction, ctx, deployment)
        _check_holder(claim, account, holder, now=ctx.now)
        if claim is not None:
            stored.delete_claim(transaction.connection, ctx.owner, account.id)
    intent = None if claim is None else claim.intent
    return ReleasedClaim(account_id=account.id, released=claim is not None, intent=intent)


def _claim_on(transaction: Transaction, ctx: Context, deployment: str) -> tuple[Deployment, Account, TickClaim | None]:
    """The deployment, its account and the claim on the account."""
    connection = transaction.connection
    target = deployment_named(connection, ctx.owner, deployment)
    account = account_of(connection, target)
    return target, account, stored.claim_of(connection, ctx.owner, account.id)


def _check_holder(claim: TickClaim | None, account: Account, holder: str, *, now: datetime) -> None:
    if claim is not None and claim.belongs_to_other(holder, now=now):
        message = f"the account {account.name!r} is run by {claim.holder!r} until {format_instant(claim.expires_at)}"
        raise Conflict(f"{message}; stop that loop, or wait until its lease expires", field="holder")


def _next_sequence(transaction: Transaction, ctx: Context, account: Account, at: datetime) -> int:
    """The sequence of a new tick: 0, or one more than the last tick of the same instant."""
    last = stored_decisions.last_of_account(transaction.connection, ctx.owner, account.id)
    if last is None or last.at < at:
        return 0
    if last.at > at:
        message = f"{format_instant(at)} is before the account's last tick, {format_instant(last.at)}"
        raise Conflict(f"{message}; run ticks in order, or void_tick if the last one is wrong", field="at")
    return last.sequence + 1
