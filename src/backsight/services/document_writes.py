"""Notes and edits on their way to the files: each stands once, whoever is cut off."""

from dataclasses import replace
from datetime import datetime

from backsight.core.documents.document import content_hash
from backsight.core.documents.writing import Writing, WritingKind, WritingStatus
from backsight.core.errors import BacksightError, Conflict, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.importers.workspace import Workspace
from backsight.services.context import Context
from backsight.store import documents as stored
from backsight.store.database import Connection


def writing_of(
    ctx: Context, *, kind: WritingKind, path: str, text: str, agent: str, run: str | None, status: WritingStatus
) -> Writing:
    """A note or an edit as it is kept; told again with the same words at the same instant, it is the same."""
    return Writing(
        owner_id=ctx.owner,
        id=derive_id("writing", ctx.owner, kind, path, agent, run, content_hash(text)),
        kind=kind,
        path=path,
        text=text,
        diff="",
        base_hash=None,
        reason=None,
        agent=agent,
        run_id=run,
        status=status,
        decided_at=None,
        decided_reason=None,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )


def same_note(former: Writing, told: Writing, now: datetime) -> Writing:
    """The note that a key already stands for; one that says something else is a conflict."""
    again = told.text.replace(format_instant(now), format_instant(former.known_at))
    if (former.kind, former.agent, former.run_id, former.text) != ("note", told.agent, told.run_id, again):
        raise Conflict("already used for another note; use a new key for a new one", field="idempotency_key")
    return former


def write_pending(ctx: Context, workspace: Workspace) -> dict[str, BacksightError]:
    """Write every note that was told and is not in its file, also those of whoever was cut off; those that failed."""
    failed: dict[str, BacksightError] = {}
    with ctx.writing() as transaction:
        for writing in stored.pending_writings(transaction.connection, ctx.owner):
            try:
                before = workspace.text(writing.path) or ""
                if writing.text not in before:
                    workspace.write(writing.path, _appended(before, writing.text))
            except BacksightError as error:
                failed[writing.id] = error
            status: WritingStatus = "failed" if writing.id in failed else "written"
            transaction.put(stored.WRITINGS, replace(writing, status=status))
    return failed


def _appended(before: str, made: str) -> str:
    """A file with an entry at its end, after a blank line."""
    if not before:
        return made
    return before.rstrip("\n") + "\n\n" + made


def edit_named(connection: Connection, ctx: Context, edit_id: str) -> Writing:
    """The edit of this id; an error where there is none."""
    writing = stored.writing(connection, ctx.owner, edit_id)
    if writing is None:
        raise NotFound(f"there is no edit {edit_id!r}; list_edits names those there are", field="edit_id")
    return writing
