"""Writing notes and edits to the workspace: a note is written exactly once, even if a process is killed midway."""

from dataclasses import replace
from datetime import datetime

from backsight.core.documents.document import content_hash
from backsight.core.documents.writing import Writing, WritingKind, WritingStatus
from backsight.core.errors import BacksightError, Conflict, NotFound
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import episode_id_of
from backsight.importers.workspace import Workspace
from backsight.services.context import Context
from backsight.services.id_prefixes import whole_id
from backsight.store import agents as stored_agents
from backsight.store import decisions as stored_decisions
from backsight.store import documents as stored
from backsight.store.agents import RUNS
from backsight.store.database import Connection
from backsight.store.decisions import DECISIONS
from backsight.store.memories import EPISODES, current_episode
from backsight.store.trades import TRADES


def new_writing(
    ctx: Context,
    *,
    kind: WritingKind,
    path: str,
    text: str,
    agent: str,
    run: str | None,
    status: WritingStatus,
    base_hash: str | None = None,
) -> Writing:
    """A new note or edit; the id follows from the content, so that a repeated call names the same writing."""
    return Writing(
        owner_id=ctx.owner,
        id=derive_id("writing", ctx.owner, kind, path, agent, run, content_hash(text), base_hash),
        kind=kind,
        path=path,
        text=text,
        diff="",
        base_hash=base_hash,
        reason=None,
        agent=agent,
        run_id=run,
        status=status,
        decided_at=None,
        decided_reason=None,
        made_at=ctx.now,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )


def whole_run_id(connection: Connection, ctx: Context, run: str) -> str:
    """The id of the run, tick, call or trade that begins with a key; the key itself if no id does."""
    wholes = (whole_id(connection, ctx.owner, noun, run, field="run") for noun in (RUNS, DECISIONS, EPISODES, TRADES))
    return next((whole for whole in wholes if whole != run), run)


def known_run(connection: Connection, ctx: Context, run: str) -> str:
    """The id of a recorded run of an agent or of a tick, by its id or the beginning of it; NotFound otherwise.

    An agent that reports neither names a run by the call or the trade that it recorded in it.
    """
    whole = whole_run_id(connection, ctx, run)
    if stored_agents.run(connection, ctx.owner, whole) is not None:
        return whole
    if stored_decisions.decision(connection, ctx.owner, whole) is not None:
        return whole
    if any(current_episode(connection, ctx.owner, each) is not None for each in (whole, episode_id_of(whole))):
        return whole
    raise NotFound(
        f"no run {run[:40]!r} is recorded; give the id of a run, a tick, a call or a trade that is recorded",
        field="run",
    )


def proposed_edit(connection: Connection, edit: Writing) -> tuple[Writing, bool]:
    """The edit to propose, and whether it is already proposed; an edit that was decided can be proposed anew."""
    while (former := stored.writing(connection, edit.owner_id, edit.id)) is not None:
        if former.status == "proposed":
            return former, True
        edit = replace(edit, id=derive_id("writing", edit.id, "again"))
    return edit, False


def replayed_note(stored_note: Writing, note: Writing, now: datetime) -> Writing:
    """The stored note, if the new note repeats it; Conflict if the idempotency key was used for another note."""
    with_stored_instant = note.text.replace(format_instant(now), format_instant(stored_note.made_at))
    expected = ("note", note.agent, note.run_id, with_stored_instant)
    if (stored_note.kind, stored_note.agent, stored_note.run_id, stored_note.text) != expected:
        raise Conflict("this key was already used for another note; use a new key", field="idempotency_key")
    return stored_note


def write_pending(ctx: Context, workspace: Workspace) -> dict[str, BacksightError]:
    """Write all pending notes to their files, including notes of killed processes; returns the errors by note id."""
    errors: dict[str, BacksightError] = {}
    with ctx.writing() as transaction:
        for writing in stored.pending_writings(transaction.connection, ctx.owner):
            try:
                before = workspace.text(writing.path) or ""
                if writing.text not in before:
                    workspace.write(writing.path, _append(before, writing.text))
            except BacksightError as error:
                errors[writing.id] = error
            status: WritingStatus = "failed" if writing.id in errors else "written"
            transaction.revise(stored.WRITINGS, writing.with_status(status, now=ctx.now))
    return errors


def _append(before: str, entry: str) -> str:
    """A file's text with an entry at its end, after a blank line."""
    return before.rstrip("\n") + "\n\n" + entry if before else entry


def edit_named(connection: Connection, ctx: Context, edit_id: str) -> Writing:
    """The edit with this id; NotFound if there is none."""
    edit_id = whole_id(connection, ctx.owner, stored.WRITINGS, edit_id, field="edit_id")
    writing = stored.writing(connection, ctx.owner, edit_id)
    if writing is None:
        raise NotFound(f"there is no edit {edit_id!r}; list_edits lists all edits", field="edit_id")
    return writing
