"""Verification of the audit chain: of everything, or of what was written since an earlier verification."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.audit import ChainHead, Checkpoint, Finding, parse_checkpoint
from backsight.core.chain_heads import RecordedChain
from backsight.core.errors import UNREADABLE
from backsight.core.garbage_collection import collection_paused
from backsight.core.instants import format_instant
from backsight.core.text.counts import count_of
from backsight.services.context import Context
from backsight.services.derivation import find_differences
from backsight.store import audit as stored
from backsight.store.database import Connection
from backsight.store.facts import count_erased
from backsight.store.verify import count_rows, spoilt_rows, verify, verify_since

VERIFIED = "Every link, every row and every derived row was verified."
DIFFERENCES = "Differences were found; derived rows are compared only if there are none in the others."


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every row is as the commands wrote it, and every difference."""

    intact: bool
    links: int
    rows: int
    """The number of rows that were compared."""
    head: str
    findings: tuple[Finding, ...]
    checkpoint: str | None
    """Save it outside the store: verify_audit with `since` then verifies what was written after it. None if a
    difference was found."""
    since: datetime | None
    """When the last link before this verification was written, if only later rows were verified; None: everything."""
    note: str
    """What was verified, in a sentence."""

    @property
    def passed(self) -> bool:
        """Whether the check found nothing wrong."""
        return self.intact


def verify_everything(ctx: Context, *, head: ChainHead | None = None) -> Verification:
    """Verify every link, every row and every derived row; a head that was saved elsewhere must be in the chain."""
    recorded = ctx.recorded_heads()
    with ctx.reading() as connection, collection_paused():
        removed = _removed(connection, ctx.owner)
        end, rows, findings = verify(connection, ctx.owner, saved_head=head, recorded=recorded, progress=ctx.progress)
        findings = findings or find_differences(connection, ctx.owner, progress=ctx.progress)
        findings = [*findings, *spoilt_file(ctx, connection)]
    return Verification(
        intact=not findings,
        links=end.sequence,
        rows=rows,
        head=str(end),
        findings=tuple(findings),
        checkpoint=None if findings else str(Checkpoint(head=end, rows=rows)),
        since=None,
        note=removed + (VERIFIED if not findings else DIFFERENCES) + _recorded_note(recorded, end),
    )


def differing_rows(connection: Connection, owner: str) -> tuple[Finding, ...]:
    """The rows that are not what the audit chain or the facts lead to, unreadable ones included."""
    _, _, findings = verify(connection, owner)
    try:
        return tuple(findings) or tuple(find_differences(connection, owner))
    except UNREADABLE as error:
        return spoilt_rows(connection, owner, error)


def verify_later(ctx: Context, since: str) -> Verification:
    """Verify what was written after a checkpoint; earlier rows are counted and not compared."""
    checkpoint, recorded = parse_checkpoint(since), ctx.recorded_heads()
    with ctx.reading() as connection, collection_paused():
        return _verified_since(connection, ctx.owner, checkpoint, recorded)


def spoilt_file(ctx: Context, connection: Connection) -> list[Finding]:
    """Rows that differ in a file of columns, which answers are made from; the file is removed and written anew."""
    detail = "the file of columns differs from the row; it was removed"
    return [
        Finding(kind="changed", table="columns file", key=key, detail=detail)
        for images in (ctx.database.images, ctx.database.trade_images)
        for key in images.drop_file_if_spoilt(connection, ctx.owner)
    ]


def _removed(connection: Connection, owner: str) -> str:
    """Sentences about what the owner's commands have removed for good; empty if there is nothing."""
    begins, removals = stored.beginning(connection, owner), stored.removals(connection, owner)
    sentences = ""
    if begins is not None:
        sentences += f"The owner erased everything before link {begins.sequence}, at {format_instant(begins.at)}. "
    if removals:
        rows, before = sum(count for _, count, _ in removals), max(before for _, _, before in removals)
        sentences += f"Thinned: retention removed {count_of(rows, 'row')} of before {format_instant(before)}. "
    if erased := count_erased(connection, owner):
        sentences += f"The owner erased the text of {count_of(erased, 'fact')}. "
    return sentences


def _recorded_note(recorded: RecordedChain | None, end: ChainHead) -> str:
    """What the heads file covers of a chain; empty without a heads file."""
    if recorded is None:
        return ""
    if recorded.newest is None:
        return " The heads file has no head of this chain yet: the next command records one."
    sentences = f" Compared with {count_of(len(recorded.hashes), 'head')} of the heads file, up to link {recorded.last}"
    sentences += "." if recorded.last >= end.sequence else f" of {end.sequence}; later links have no recorded head yet."
    if recorded.restored is not None:
        at, sequence = recorded.restored.at, recorded.restored.head.sequence
        sentences += f" A backup was restored at {format_instant(at)}: links after {sequence} were given up then."
    if recorded.unreadable:
        sentences += f" {count_of(recorded.unreadable, 'line')} of the file cannot be read."
    return sentences


def _verified_since(
    connection: Connection, owner: str, checkpoint: Checkpoint, recorded: RecordedChain | None
) -> Verification:
    end, rows, findings = verify_since(connection, owner, checkpoint, recorded=recorded)
    at = stored.instant_of(connection, owner, checkpoint.head)
    earlier = f"{_removed(connection, owner)}Rows up to link {checkpoint.head.sequence}"
    earlier += "" if at is None else f", of {format_instant(at)},"
    counted = count_rows(connection, owner)
    return Verification(
        intact=not findings,
        links=end.sequence,
        rows=rows,
        head=str(end),
        findings=tuple(findings),
        checkpoint=None if findings else str(Checkpoint(head=end, rows=counted)),
        since=at,
        note=f"{earlier} were counted and not compared, and derived rows were not derived again: verify everything"
        f" from time to time.{_recorded_note(recorded, end)}",
    )
