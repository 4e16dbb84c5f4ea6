"""Verifications that are remembered: when the store was last verified, up to which link, and with which result."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Flag, SeenAt
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.text.counts import count_of
from backsight.core.verification import VerificationRecord
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.verification import Verification, verify_everything, verify_later
from backsight.store import audit
from backsight.store import verifications as stored


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerification:
    """The result of a verification, as it is remembered and with every difference."""

    record: VerificationRecord
    verification: Verification

    @property
    def passed(self) -> bool:
        """Whether the check found nothing wrong."""
        return self.verification.intact


@dataclass(frozen=True, slots=True, kw_only=True)
class LastVerification:
    """The last verification, the last one of everything, and how many links were written since."""

    last: VerificationRecord | None
    last_of_everything: VerificationRecord | None
    head: str | None
    """The head of the audit chain; None as of an earlier instant."""
    links_since: int | None
    """Links after the last verification, its own included; None as of an earlier instant, and before any."""
    message: str
    as_of: datetime


@command(idempotent=False)
def record_verification(
    ctx: Context,
    *,
    everything: Annotated[Flag, "Verify every row again, not only those since the last verification."] = False,
) -> RecordedVerification:
    """Verify the audit chain as verify_audit does, and remember the result for last_verification.

    Without `everything` it goes on from the last verification that found nothing.
    """
    with ctx.reading() as connection:
        last = stored.last_verification(ctx.view(connection))
    checkpoint = None if everything or last is None else last.checkpoint
    verification = verify_everything(ctx) if checkpoint is None else verify_later(ctx, checkpoint)
    with ctx.writing() as transaction:
        record = VerificationRecord(
            owner_id=ctx.owner,
            id=derive_id("verification", ctx.owner, str(verification.links), format_instant(ctx.now)),
            intact=verification.intact,
            links=verification.links,
            rows=verification.rows,
            findings=len(verification.findings),
            head=verification.head,
            checkpoint=verification.checkpoint,
            since=verification.since,
            note=verification.note,
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        transaction.add(stored.VERIFICATIONS, record)
    return RecordedVerification(record=record, verification=verification)


@query()
def last_verification(ctx: Context, *, as_of: AsOf = None, seen_at: SeenAt = None) -> LastVerification:
    """See when the store was last verified, with which result, and how much was written since."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        last = stored.last_verification(view)
        whole = stored.last_verification(view, whole=True)
        is_now = as_of is None and seen_at is None
        head = audit.head(connection, ctx.owner) if is_now else None
    return LastVerification(
        last=last,
        last_of_everything=whole,
        head=None if head is None else str(head),
        links_since=None if head is None or last is None else head.sequence - last.links,
        message=_message(last),
        as_of=view.as_of,
    )


def _message(last: VerificationRecord | None) -> str:
    if last is None:
        return "The store was not verified yet; record_verification verifies it and remembers the result."
    result = "nothing was changed" if last.intact else count_of(last.findings, "difference")
    return f"Verified {format_instant(last.known_at)} up to link {last.links:,}: {result}. {last.note}"
