"""Documents: what is written down, found again to the line; and what agents may add to it."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from backsight.arguments import AnyText, AsOf, Instant, Key, Limit, LongProse, Name, Reason, SeenAt, Whole
from backsight.core.documents.chunk import lines_of
from backsight.core.documents.citation import Citation, Source
from backsight.core.documents.document import Index, content_hash
from backsight.core.documents.query import Query, read_query
from backsight.core.documents.write_policy import (
    Note,
    appendable,
    entry,
    home_of,
    proposable,
    refuse_secrets,
)
from backsight.core.documents.writing import Writing, WritingStatus, decided, diff_of
from backsight.core.errors import Conflict, Invalid, NotFound, Unavailable
from backsight.core.ids import derive_id
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.document_search import cited, library
from backsight.services.document_writes import edit_named, same_note, write_pending, writing_of
from backsight.services.embedding import embed_missing
from backsight.services.indexing import sync
from backsight.services.library import Library
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.documents import Scope
from backsight.store.search.hybrid import find
from backsight.store.search.postgres_vectors import meanings
from backsight.store.search.slot import Slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LINES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """The files of a new workspace that were made, and those that were there and are left alone."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file that is not in the index, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """How the index stands, and what it took."""

    generation: int
    documents: int
    chunks: int
    read: int
    """Files that were read; one that is as it was is not."""
    changed: int
    removed: int
    embedded: int
    """Texts that were given a vector."""
    waiting: int
    """Texts that have none yet; they are found by words."""
    skipped: tuple[SkippedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What is written about a question, the best first."""

    citations: tuple[Citation, ...]
    message: str
    """Why nothing was found, or what the answer lacks; empty where there is nothing to say."""
    words: tuple[str, ...]
    """What was looked for."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines of a document as they stand or stood."""

    path: str
    source: Source
    start_line: int
    end_line: int
    lines: int
    """Of the whole document."""
    text: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHealth:
    """How the index stands."""

    slot: Slot
    last_sync: datetime | None
    """None: nothing was ever indexed."""
    generation: int
    documents: int
    chunks: int
    embedding_model: str | None
    embedded: int
    """Chunks that have a vector of this model."""
    embedding: bool
    """Whether this process is giving vectors to the rest."""
    compared_in: Literal["database", "memory"] | None
    """Where vectors are compared: by the database's own extension, or in this process."""
    skipped: tuple[SkippedFile, ...]
    healthy: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNote:
    """Where a note stands now, and whether it did before."""

    id: str
    path: str
    start_line: int
    end_line: int
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedEdit:
    """An edit as the owner will see it, and whether it was proposed before."""

    edit: Writing
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditList:
    """What agents wrote or proposed, newest first."""

    edits: tuple[Writing, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedEdit:
    """An edit and what the owner said to it."""

    edit: Writing


@command()
def init_documents(ctx: Context) -> LaidOut:
    """Lay out the workspace that is set; what is there already is left alone."""
    made, kept = library(ctx).workspace.lay_out()
    return LaidOut(made=tuple(made), kept=tuple(kept))


@command()
def reindex(
    ctx: Context,
    *,
    background: Annotated[bool, "Answer when words are indexed; vectors come while you go on."] = False,
) -> Reindexed:
    """Bring the index up to what the workspace holds.

    A file that is as it was is not read, and a text that was embedded is not embedded again. A search meanwhile finds
    what there was before.
    """
    held = library(ctx)
    write_pending(ctx, held.workspace)
    synced = sync(ctx, held.workspace)
    embedded = 0
    if held.embedder is not None and not background:
        embedded = embed_missing(ctx, held.embedder)
    with ctx.reading() as connection:
        waiting = 0 if held.embedder is None else stored.without_vector(connection, ctx.owner, held.embedder.model)
    if waiting:
        start_embedding(ctx)
    return Reindexed(
        generation=synced.stands.generation,
        documents=synced.stands.documents,
        chunks=synced.stands.chunks,
        read=synced.read,
        changed=synced.changed,
        removed=synced.removed,
        embedded=embedded,
        waiting=waiting,
        skipped=_skipped(synced.stands),
    )


@query(audience=("trader", "coach"))
def search_memory(
    ctx: Context,
    *,
    query: Annotated[AnyText, "What you want to know; any words, names such as 'BTC/USDT' or \"a phrase\"."],
    limit: Annotated[Limit, "How many citations at most."] = 10,
    agent: Annotated[Name | None, "Only what is this agent's, or everybody's."] = None,
    source: Annotated[list[Source] | None, "Only documents of these kinds."] = None,
    path_prefix: Annotated[Key | None, "Only documents whose path begins so."] = None,
    since: Annotated[Instant | None, "Only what was written from this instant on."] = None,
    until: Annotated[Instant | None, "Only what was written up to this instant."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> SearchAnswer:
    """Search what is written down, with citations to the line."""
    asked = read_query(query)
    at = _instant(ctx, as_of, seen_at)
    scope = Scope(at=at, agent=agent, sources=tuple(source or ()), path_prefix=path_prefix, since=since, until=until)
    held = library(ctx)
    vector, lacking = _vector(held, query)
    with ctx.reading() as connection:
        stands = stored.index(connection, ctx.owner)
        if stands is None or not asked.text.strip():
            return _answer(asked, (), _nothing(asked, stands), at or ctx.now)
        model = "" if held.embedder is None else held.embedder.model
        matrices = None if vector is None else held.matrices
        found = find(connection, stands, asked, scope, matrices=matrices, model=model, asked=vector)
        rules = held.rules if source is None else replace(held.rules, per_source={})  # who asks for them wants them
        citations = cited(connection, ctx.owner, found, rules, now=at or ctx.now, limit=limit)
    return _answer(asked, citations, lacking or ("" if citations else _nothing(asked, stands)), at or ctx.now)


@query(audience=("trader", "coach"))
def read_memory(
    ctx: Context,
    *,
    path: Annotated[Key, "The document, as a citation names it."],
    start_line: Annotated[Whole, "The first line, counted from 1."] = 1,
    end_line: Annotated[Whole | None, "The last line; as many as may be read at once if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Passage:
    """Read lines of a document as they are indexed, or as they stood then."""
    at = _instant(ctx, as_of, seen_at)
    with ctx.reading() as connection:
        known = stored.document(connection, ctx.owner, path, at)
        if known is None:
            raise NotFound(f"there is no document {path!r}; search_memory names those there are", field="path")
        lines = lines_of("".join(piece.text for piece in stored.chunks(connection, ctx.owner, path, at)))
    if start_line < 1 or start_line > max(len(lines), 1):
        raise Invalid(f"{start_line} is no line of it; it has {len(lines)}", field="start_line")
    last = min(end_line or len(lines), len(lines), start_line + MOST_LINES - 1)
    if end_line is not None and end_line < start_line:
        raise Invalid(f"{end_line} is before the first line; give {start_line} or more", field="end_line")
    return Passage(
        path=path,
        source=known.source,
        start_line=start_line,
        end_line=last,
        lines=len(lines),
        text="".join(lines[start_line - 1 : last]),
        as_of=at or ctx.now,
    )


@query(audience=("trader",))
def index_health(ctx: Context) -> IndexHealth:
    """See how the index stands: when it was brought up to date, what is in it, and what could not be."""
    held = library(ctx)
    model = None if held.embedder is None else held.embedder.model
    with ctx.reading() as connection:
        stands = stored.index(connection, ctx.owner)
        embedded = 0 if model is None else stored.embedded(connection, ctx.owner, model)
        compared_in = None if model is None else _compared_in(connection, ctx.owner, model)
    if stands is None:
        told = "nothing is indexed yet; run reindex"
    elif stands.skipped:
        told = f"{len(stands.skipped)} files are not in the index"
    elif model is not None and embedded < stands.chunks:
        told = f"{stands.chunks - embedded} of {stands.chunks} chunks have no vector yet; they are found by words"
        told += f"; embedding stopped: {held.background.trouble}" if held.background.trouble else ""
    else:
        told = ""
    return IndexHealth(
        slot=held.slot,
        last_sync=None if stands is None else stands.synced_at,
        generation=0 if stands is None else stands.generation,
        documents=0 if stands is None else stands.documents,
        chunks=0 if stands is None else stands.chunks,
        embedding_model=model,
        embedded=embedded,
        embedding=model is not None and held.background.works,
        compared_in=compared_in,
        skipped=() if stands is None else _skipped(stands),
        healthy=not told,
        message=told,
    )


@command(audience=("trader",))
def append_note(
    ctx: Context,
    *,
    text: Annotated[LongProse, "What to remember, in Markdown."],
    agent: Annotated[Name, "Who writes."],
    run: Annotated[Key | None, "In which run."] = None,
    note: Annotated[Note, "What it is: it goes to today's journal, the learnings, or the notes."] = "journal",
    path: Annotated[Key | None, "Another file of the journal or the notes."] = None,
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless: the same key is the same note."] = None,
) -> WrittenNote:
    """Add a note to the journal, the learnings or the notes, with who wrote it and when."""
    refuse_secrets(text)
    if not text.strip():
        raise Invalid("is blank; give some text", field="text")
    home = appendable(path) if path is not None else home_of(note, now=ctx.now)
    workspace = library(ctx).workspace
    made = entry(text, at=ctx.now, agent=agent, run=run)
    told = writing_of(ctx, kind="note", path=home, text=made, agent=agent, run=run, status="pending")
    if idempotency_key is not None:
        told = replace(told, id=derive_id("note", ctx.owner, idempotency_key))
    with ctx.writing() as transaction:
        former = stored.writing(transaction.connection, ctx.owner, told.id)
        writing = told if former is None else same_note(former, told, ctx.now)
        stands = writing.text in (workspace.text(writing.path) or "") and former is not None
        if not stands:
            transaction.put(stored.WRITINGS, replace(writing, status="pending"))
    failed = write_pending(ctx, workspace)
    if writing.id in failed:
        raise failed[writing.id]
    _follow(ctx)
    before, _, _ = (workspace.text(writing.path) or "").rpartition(writing.text)
    first = before.count("\n") + 1
    last = first + len(lines_of(writing.text.rstrip("\n"))) - 1
    return WrittenNote(id=writing.id, path=writing.path, start_line=first, end_line=last, replayed=stands)


@command(audience=("trader",))
def propose_edit(
    ctx: Context,
    *,
    path: Annotated[Key, "SOUL.md or TRADING_MANUAL.md."],
    text: Annotated[LongProse, "The whole file as it should be."],
    reason: Annotated[Reason, "Why."],
    agent: Annotated[Name, "Who proposes."],
    run: Annotated[Key | None, "In which run."] = None,
) -> ProposedEdit:
    """Propose an edit of the rules, which the owner approves or rejects."""
    refuse_secrets(text)
    home = proposable(path)
    before = library(ctx).workspace.text(home)
    if before == text:
        raise Invalid("is what the file says already; change something", field="text")
    with ctx.writing() as transaction:
        writing = replace(
            writing_of(ctx, kind="edit", path=home, text=text, agent=agent, run=run, status="proposed"),
            diff=diff_of(before or "", text, home),
            base_hash=None if before is None else content_hash(before),
            reason=reason,
        )
        former = stored.writing(transaction.connection, ctx.owner, writing.id)
        if former is None:
            transaction.add(stored.WRITINGS, writing)
    return ProposedEdit(edit=former or writing, replayed=former is not None)


@query(audience=("trader",))
def list_edits(
    ctx: Context,
    *,
    run: Annotated[Key | None, "Only what this run wrote."] = None,
    status: Annotated[
        WritingStatus | None, "Only what stands so: notes are written, edits proposed and decided."
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> EditList:
    """List what agents wrote and proposed to write, newest first."""
    horizon = ctx.horizon(as_of, seen_at)
    until = horizon.as_of if seen_at is None else min(horizon.as_of, seen_at)
    with ctx.reading() as connection:
        found = stored.writings(connection, ctx.owner, replace(horizon, as_of=until), run_id=run)
    standing = (writing.at(until) for writing in found)
    return EditList(
        edits=tuple(each for each in standing if status is None or each.status == status), as_of=horizon.as_of
    )


@command()
def approve_edit(ctx: Context, *, edit_id: Annotated[Key, "The edit, as list_edits names it."]) -> DecidedEdit:
    """Approve an edit and apply it, if the file is still what it was proposed for."""
    workspace = library(ctx).workspace
    with ctx.writing() as transaction:
        writing = edit_named(transaction.connection, ctx, edit_id)
        after = decided(writing, "approved", reason=None, now=ctx.now)
        before = workspace.text(writing.path)
        is_applied = before == writing.text  # by one that was ended before it could say so
        if not is_applied and (None if before is None else content_hash(before)) != writing.base_hash:
            raise Conflict(f"{writing.path} has changed since; have the edit proposed again", field="edit_id")
        transaction.put(stored.WRITINGS, after)
        if not is_applied:
            workspace.write(writing.path, writing.text)
    _follow(ctx)
    return DecidedEdit(edit=after)


@command()
def reject_edit(
    ctx: Context,
    *,
    edit_id: Annotated[Key, "The edit, as list_edits names it."],
    reason: Annotated[Reason | None, "Why not."] = None,
) -> DecidedEdit:
    """Reject an edit; the file stays as it is."""
    with ctx.writing() as transaction:
        writing = edit_named(transaction.connection, ctx, edit_id)
        after = decided(writing, "rejected", reason=reason, now=ctx.now)
        transaction.put(stored.WRITINGS, after)
    return DecidedEdit(edit=after)


def start_embedding(ctx: Context) -> None:
    """Give vectors to what has none in the background, where search goes by meaning."""
    documents = library(ctx)
    embedder = documents.embedder
    if embedder is not None:
        documents.background.start(lambda stop: embed_missing(ctx, embedder, stop=stop))


def _follow(ctx: Context) -> None:
    """Bring the index to what was just written."""
    sync(ctx, library(ctx).workspace, files_only=True)
    start_embedding(ctx)


def _instant(ctx: Context, as_of: datetime | None, seen_at: datetime | None) -> datetime | None:
    """The instant to read as of; None for now. What is known of a document is what was recorded of it."""
    given = [at for at in (as_of, seen_at) if at is not None]
    return min(given) if given and min(given) < ctx.now else None


def _compared_in(connection: Connection, owner: str, model: str) -> Literal["database", "memory"]:
    return "memory" if meanings(connection, owner, model) is None else "database"


def _skipped(stands: Index) -> tuple[SkippedFile, ...]:
    return tuple(SkippedFile(path=path, reason=reason) for path, reason in sorted(stands.skipped.items()))


def _vector(held: Library, text: str) -> "tuple[NDArray[np.float32] | None, str]":
    """The query's vector; where there can be none now, what the answer lacks."""
    if held.embedder is None or not text.strip():
        return None, ""
    try:
        return held.embedder.embed([text])[0], ""
    except Unavailable as error:
        return None, f"found by words only, not by meaning: {error.message}"


def _answer(asked: Query, citations: tuple[Citation, ...], message: str, at: datetime) -> SearchAnswer:
    return SearchAnswer(citations=citations, message=message, words=tuple(sorted(asked.words)), as_of=at)


def _nothing(asked: Query, stands: Index | None) -> str:
    """Why nothing was found."""
    if stands is None:
        return "nothing is indexed yet; run reindex"
    if not asked.terms:
        return "the query has no word in it; ask with words, names or numbers"
    if not stands.chunks:
        return "the index is empty: the workspace has no documents"
    words = ", ".join(sorted(asked.words)[:8])
    return f"nothing in {stands.documents} documents has any of: {words}; try other words, or fewer filters"
