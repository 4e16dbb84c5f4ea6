"""Operations on the files of the store: back it up, restore it, erase an owner, remove what is old, and compact it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field

from backsight.arguments import FilePath, Flag, Name
from backsight.core.audit import Erasure, parse_head
from backsight.core.errors import Invalid
from backsight.operation import command
from backsight.services.backups import (
    BackupKind,
    BackupReport,
    owners_of,
    read_backup,
    refuse_other_owners,
    write_backup,
)
from backsight.services.context import Context
from backsight.store import audit
from backsight.store.decisions import SEGMENTS, old_segments
from backsight.store.erasure import erase_rows
from backsight.store.memories import RECALLS
from backsight.store.recalls import old_recalls


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBackup:
    """A backup, or a store that was restored from one: what it contains, and whether it is intact."""

    path: str
    kind: BackupKind
    head: str
    """The last link of the owner's audit chain in it."""
    owners: int
    """The number of owners whose rows it contains."""
    rows: int
    """The number of rows that were verified."""
    intact: bool
    """Whether every row agrees with the audit chain, and every page of a file can be read."""
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the check found nothing wrong."""
        return self.intact


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedOwner:
    """What was erased, and what may still be elsewhere."""

    owner: str
    erased_at: datetime
    rows: int
    """The number of rows that were deleted, links of the audit chain not counted."""
    links: int
    """The number of links of the audit chain that were deleted."""
    head: str
    """The link that says so: the chain begins with it from now on."""
    overwritten: bool
    """Whether the space of the deleted rows was overwritten; if not, their text may still be in the files."""
    notes: tuple[str, ...]


@command()
def backup(
    ctx: Context, *, path: Annotated[FilePath, "A new file on this machine; an existing one is never written to."]
) -> StoreBackup:
    """Back up the store while it is in use, and verify the backup.

    A SQLite store is copied by SQLite's online backup, and the copy is verified. A PostgreSQL store is dumped by
    pg_dump; where pg_dump cannot do it, everything of the owner is exported to a folder. The notes say so.
    """
    report = write_backup(ctx, Path(path))
    if not report.check.differences:
        ctx.record_head(parse_head(report.check.head))
    return _answer(path, report)


@command()
def restore(
    ctx: Context,
    *,
    path: Annotated[FilePath, "A file or folder that backup wrote, on this machine."],
    overwrite: Annotated[Flag, "Replace the rows that the store has; without it a store with rows is refused."] = False,
) -> StoreBackup:
    """Restore a backup into this store, and verify the store.

    A file replaces the rows of all owners, a folder the rows of this owner. A backup that is damaged or not intact is
    refused before anything is changed.
    """
    return _answer(path, read_backup(ctx, Path(path), overwrite=overwrite))


def _answer(path: str, report: BackupReport) -> StoreBackup:
    check = report.check
    return StoreBackup(
        path=path,
        kind=report.kind,
        head=check.head,
        owners=check.owners,
        rows=check.rows,
        intact=not check.differences,
        notes=report.notes,
    )


@command()
def erase_owner(
    ctx: Context, *, confirm: Annotated[Name, "The name of the owner, as confirmation: nothing can be undone."]
) -> ErasedOwner:
    """Erase everything of the owner from the store: rows, former versions, index, keys, cached files.

    One link of the audit chain remains, with the owner's name, the time, and the hash of the last link that was erased;
    verify_audit tells an erasure from rows that somebody removed. Backups and the documents workspace are other files,
    and stay.
    """
    if confirm != ctx.owner:
        raise Invalid(f"{confirm!r} is not the owner of this memory; repeat the name {ctx.owner!r}", field="confirm")
    with ctx.writing() as transaction:
        connection = transaction.connection
        links = audit.count_links(connection, ctx.owner)
        rows = erase_rows(connection, ctx.owner)
        transaction.changes.append(Erasure(rows=rows))
    ctx.database.images.forget(ctx.owner)
    ctx.database.trade_images.forget(ctx.owner)
    ctx.database.forget()
    overwritten = ctx.database.compact(seconds=LONGEST_LOCK)
    with ctx.reading() as connection:
        head = str(audit.head(connection, ctx.owner))
    return ErasedOwner(
        owner=ctx.owner,
        erased_at=ctx.now,
        rows=rows,
        links=links,
        head=head,
        overwritten=overwritten,
        notes=(*(() if overwritten else (_NOT_OVERWRITTEN,)), _ELSEWHERE, _RESTART),
    )


_NOT_OVERWRITTEN = (
    "The rows are deleted, but some of their space could not be overwritten: another process uses the store, a table of"
    " PostgreSQL is too large to lock others out of it, or this role does not own the tables. Erase again when nobody"
    " uses the store, or call vacuum as the owner of the tables: others wait while it runs."
)
LONGEST_LOCK = 5.0
"""Seconds for which an erasure may lock other owners out of a table of PostgreSQL."""
_ELSEWHERE = "Backups, exports, the documents workspace and the logs of a database server are not erased."
_RESTART = "Restart other processes that have the store open: they remember rows of before."


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinnedHistory:
    """How many old prompts and recalls were removed, or would be."""

    before: datetime
    """Rows of before this instant."""
    prompts: int
    """Texts of prompts and answers that no later decision was shown."""
    recalls: int
    """Records of recalls."""
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedStore:
    """Whether the space of removed rows was given up."""

    compacted: bool
    notes: tuple[str, ...]


@command()
def retention(
    ctx: Context,
    *,
    keep_days: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=36_500)], "Prompts and recalls of the last so many days are kept."
    ],
    dry_run: Annotated[Flag, "Count what would be removed, and remove nothing."] = False,
) -> ThinnedHistory:
    """Remove the texts of prompts, and the records of recalls, that are older than some days.

    Nothing is removed unless this is called. Trades, fills, decisions with their snapshots, memories and the chain
    stay: a link has the hash of each removed row, and verify_audit counts it as thinned. Only vacuum frees disk space.
    """
    before = ctx.now - timedelta(days=keep_days)
    with ctx.writing() as transaction:
        connection = transaction.connection
        prompts = old_segments(connection, ctx.owner, before=before)
        recalls = old_recalls(connection, ctx.owner, before=before)
        if not dry_run:
            transaction.remove_old(SEGMENTS, ctx.owner, prompts, before=before)
            transaction.remove_old(RECALLS, ctx.owner, list(recalls), before=before)
    if not dry_run:
        ctx.database.forget()
    return ThinnedHistory(before=before, prompts=len(prompts), recalls=recalls.total(), dry_run=dry_run)


@command()
def vacuum(ctx: Context) -> CompactedStore:
    """Give up the disk space of removed rows: the file of the store, or each table, is written anew.

    Others wait meanwhile. On PostgreSQL only the owner of the tables can do it.
    """
    refuse_other_owners(ctx, owners_of(ctx.database))
    compacted = ctx.database.compact()
    return CompactedStore(compacted=compacted, notes=() if compacted else (_NOT_COMPACTED,))


_NOT_COMPACTED = "Another process reads the store, or this role does not own the tables: call it again later, as owner."
