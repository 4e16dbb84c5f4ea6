"""Operations on documents: index and search a workspace, add notes, and propose edits of the rules."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal, get_args

from backsight.arguments import AnyText, AsOf, Instant, Key, Limit, LongProse, Name, Reason, SeenAt, Whole
from backsight.core.documents.chunk import lines_of
from backsight.core.documents.citation import Citation, Source
from backsight.core.documents.document import IndexState, content_hash
from backsight.core.documents.query import DocumentQuery, read_query
from backsight.core.documents.write_policy import (
    NoteKind,
    appendable_path,
    format_entry,
    note_path,
    proposable_path,
)
from backsight.core.documents.writing import Writing, WritingStatus, decide, diff_of
from backsight.core.errors import Conflict, Invalid, NotFound, Unavailable
from backsight.core.ids import derive_id
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.document_check import FileComparison, compare_paths, compare_with_files
from backsight.services.document_search import NO_WORDS, cite_matches, has_matches, library_of, search_remarks
from backsight.services.document_writes import (
    edit_named,
    known_run,
    new_writing,
    proposed_edit,
    replayed_note,
    whole_run_id,
    write_pending,
)
from backsight.services.embedding import embed_missing
from backsight.services.indexing import EMPTIED, ROOT, contradicted_files, sync_index
from backsight.services.library import Library
from backsight.services.protocol import protocol_warnings
from backsight.services.traces import TRACE_SOURCES
from backsight.services.withheld_memory import READ_ANYWAY, WITHHELD, withholds_everywhere
from backsight.store import documents as stored
from backsight.store.documents import Scope
from backsight.store.search.hybrid import QueryVector, hybrid_search, vectors_compared_in
from backsight.store.search.slot import Slot

MAX_LINES = 2_000
NOT_INDEXED = "nothing is indexed yet; run reindex"
NO_VECTORS = "Searched by words only: no document has a vector yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialFiles:
    """The files of a new workspace: those that were created, and those that existed and were left unchanged."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file that is not in the index, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexResult:
    """The state of the index after reindexing, and how much work that was."""

    generation: int
    documents: int
    chunks: int
    read: int
    """Files that were read; unchanged files are not read."""
    changed: int
    removed: int
    embedded: int
    """Texts that were embedded."""
    waiting: int
    """Texts without a vector yet; until they have one, only keyword search finds them."""
    skipped: tuple[SkippedFile, ...]


EXPERIENCE: frozenset[Source] = frozenset({"journal", "memory", "run", "decision", "review"})
"""The documents that agents write, or that are written from their decisions and results."""
WITHHELD_NOTES = f"{WITHHELD} Notes, decisions, runs and reviews are left out. {READ_ANYWAY}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The citations that answer a query, best first."""

    citations: tuple[Citation, ...]
    message: str
    """Why nothing was found, what is missing from the answer, or how the query was read; otherwise empty."""
    missing: tuple[str, ...]
    """Words of the query that no document contains."""
    words: tuple[str, ...]
    """The words that were searched for."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines of a document."""

    path: str
    source: Source
    start_line: int
    end_line: int
    lines: int
    """Lines of the whole document."""
    text: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHealth:
    """The state of the index, and problems with it."""

    slot: Slot
    last_sync: datetime | None
    """When the index was last brought up to date or, as of an instant, last changed; None if nothing was indexed."""
    generation: int
    documents: int
    chunks: int
    embedding_model: str | None
    embedded: int
    """Chunks with a vector of this model."""
    embedding: bool
    """Whether this process is embedding in the background; false as of an instant."""
    compared_in: Literal["database", "memory"] | None
    """Where vectors are compared now: by the database's extension, or in this process; None as of an instant."""
    skipped: tuple[SkippedFile, ...]
    warnings: tuple[str, ...]
    """Rules of SOUL and manual that agents do not always see, because the files are too long."""
    healthy: bool
    message: str
    """The problem and its remedy; empty if the index is healthy."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNote:
    """The lines of a note in its file, and whether an earlier call had already written it."""

    id: str
    path: str
    start_line: int
    end_line: int
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedEdit:
    """A proposed edit, and whether an earlier call had already proposed it."""

    edit: Writing
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditList:
    """Notes and edits of agents, newest first."""

    edits: tuple[Writing, ...]
    total: int
    """All notes and edits of the query, including those beyond the limit."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedEdit:
    """An edit with the owner's decision."""

    edit: Writing


@command()
def init_documents(ctx: Context) -> InitialFiles:
    """Create the files of a new workspace; existing files are left unchanged."""
    created, existing = library_of(ctx).workspace.lay_out()
    return InitialFiles(created=tuple(created), existing=tuple(existing))


@command()
def reindex(
    ctx: Context,
    *,
    background: Annotated[bool, "Answer as soon as keyword search is up to date, and embed in the background."] = False,
    accept_empty: Annotated[bool, "Drop the former files from the index although none of them is left."] = False,
) -> ReindexResult:
    """Bring the index up to date with the workspace and the store.

    Unchanged files are not read again, and embedded texts are not embedded again. Searches see the previous index until
    the new one is published; writers do not wait for it.
    """
    library = library_of(ctx)
    write_pending(ctx, library.workspace)
    synced = sync_index(ctx, library.workspace, accept_empty=accept_empty)
    embedder = library.embedder
    embedded = embed_missing(ctx, embedder) if embedder is not None and not background else 0
    with ctx.reading() as connection:
        waiting = 0 if embedder is None else stored.count_texts_to_embed(connection, ctx.owner, embedder.model)
    if waiting:
        start_embedding(ctx)
    return ReindexResult(
        generation=synced.index.generation,
        documents=synced.index.documents,
        chunks=synced.index.chunks,
        read=synced.read,
        changed=synced.changed,
        removed=synced.removed,
        embedded=embedded,
        waiting=waiting,
        skipped=_skipped_files(synced.index),
    )


@query(audience=("trader", "coach"))
def search_memory(
    ctx: Context,
    *,
    query: Annotated[AnyText, "The question: words, names such as 'BTC/USDT', or \"a phrase\" in quotes."],
    limit: Annotated[Limit, "The most citations to return."] = 10,
    agent: Annotated[Name | None, "Only documents of this agent and documents for all agents."] = None,
    source: Annotated[list[Source] | None, "Only documents of these sources."] = None,
    path_prefix: Annotated[Key | None, "Only documents whose path begins with this text."] = None,
    since: Annotated[Instant | None, "Only documents written at this instant or later."] = None,
    until: Annotated[Instant | None, "Only documents written at this instant or earlier."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> SearchAnswer:
    """Search the indexed documents, with citations to the line."""
    parsed = read_query(query)
    at = _indexed_at(as_of, seen_at)
    now = at or ctx.now
    scope = Scope(
        at=at,
        agents=() if agent is None else (agent,),
        sources=tuple(source or ()),
        path_prefix=path_prefix,
        since=since,
        until=until,
    )
    library = library_of(ctx)
    vector, limitation = _query_vector(library, query)
    with ctx.reading() as connection:
        index = stored.index_state(connection, ctx.owner, at)
        if index is None or not parsed.text.strip():
            return _answer(parsed, (), _why_no_search(parsed, index), now)
        if at is None and withholds_everywhere(ctx.view(connection)):
            scope = replace(scope, sources=tuple(each for each in source or get_args(Source) if each not in EXPERIENCE))
            limitation = " ".join(filter(None, (limitation, WITHHELD_NOTES)))
            if not scope.sources:
                return _answer(parsed, (), limitation, now)
        matches = hybrid_search(connection, index, parsed, scope, vector)
        # The caps keep frequent sources from crowding out others; a query for certain sources wants all of them.
        ranking = library.ranking if source is None else replace(library.ranking, per_source={})
        citations = cite_matches(connection, ctx.owner, matches, ranking, now=now, limit=limit)
        comparison = FileComparison()
        if at is None:
            comparison = compare_paths(ctx, connection, {each.path for each in citations})
            citations = tuple(each for each in citations if each.path not in comparison.left_out)
        elsewhere = not citations and has_matches(connection, index, parsed, replace(scope, at=at), ranking, vector)
    if vector is not None and index.chunks and not matches.vector:
        limitation = " ".join(filter(None, (limitation, NO_VECTORS)))
    remarks = search_remarks(parsed, matches, citations, index, ranking, outside_filters=elsewhere)
    message = " ".join(filter(None, (limitation, "; ".join(filter(None, (*comparison.notes, remarks))))))
    return replace(_answer(parsed, citations, message, now), missing=matches.missing)


@query(audience=("trader", "coach"))
def read_memory(
    ctx: Context,
    *,
    path: Annotated[Key, "The path of the document, as in a citation."],
    start_line: Annotated[Whole, "The first line, counted from 1."] = 1,
    end_line: Annotated[Whole | None, f"The last line; if left out, up to {MAX_LINES} lines are read."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Passage:
    """Read lines of a document as it is indexed, or was indexed at an earlier instant."""
    at = _indexed_at(as_of, seen_at)
    with ctx.reading() as connection:
        document = stored.document(connection, ctx.owner, path, at)
        if document is None:
            raise NotFound(f"there is no document {path!r}; search_memory gives the paths of documents", field="path")
        text = stored.document_text(connection, ctx.owner, path, at)
        comparison = FileComparison() if at is not None else compare_with_files(ctx, connection, {path: text})
    if path in comparison.left_out:
        raise Unavailable(f"the document cannot be shown: {comparison.notes[0]}", field="path")
    lines = lines_of(text)
    if start_line < 1 or start_line > max(len(lines), 1):
        raise Invalid(f"{path} has no line {start_line}; give 1 to {max(len(lines), 1)}", field="start_line")
    last = min(end_line or len(lines), len(lines), start_line + MAX_LINES - 1)
    if end_line is not None and end_line < start_line:
        raise Invalid(f"{end_line} is before the first line; give {start_line} or more", field="end_line")
    return Passage(
        path=path,
        source=document.source,
        start_line=start_line,
        end_line=last,
        lines=len(lines),
        text="".join(lines[start_line - 1 : last]),
        as_of=at or ctx.now,
    )


@query(audience=("trader",))
def index_health(ctx: Context, *, as_of: AsOf = None, seen_at: SeenAt = None) -> IndexHealth:
    """Show the state of the index: the last sync, its size, its embeddings, and the files that were skipped.

    As of an earlier instant, texts count as embedded if they have a vector by now: embedding only takes time.
    """
    library, at = library_of(ctx), _indexed_at(as_of, seen_at)
    is_now = at is None
    model = None if library.embedder is None else library.embedder.model
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        index = stored.index_state(connection, ctx.owner, at)
        embedded = None if model is None else stored.count_embedded(connection, ctx.owner, model, at)
        compared_in = vectors_compared_in(connection, ctx.owner, model) if is_now and model is not None else None
        warnings = [] if index is None else protocol_warnings(view, at)
        spoilt = stored.spoilt_paths(connection, ctx.owner) if is_now else []
        indexed = stored.documents(connection, ctx.owner, without=TRACE_SOURCES) if is_now else {}
    if library.folder is not None:
        spoilt += [path for path in contradicted_files(library.workspace, indexed) if path not in spoilt]
    problem = _spoilt(spoilt) or _problem(index, embedded, library.background.last_error if is_now else None)
    return IndexHealth(
        slot=library.slot,
        last_sync=None if index is None else index.synced_at if is_now else index.changed_at,
        generation=0 if index is None else index.generation,
        documents=0 if index is None else index.documents,
        chunks=0 if index is None else index.chunks,
        embedding_model=model,
        embedded=embedded or 0,
        embedding=is_now and model is not None and library.background.is_running,
        compared_in=compared_in,
        skipped=() if index is None else _skipped_files(index),
        warnings=tuple(warnings),
        healthy=not problem,
        message=problem,
        as_of=view.as_of,
    )


@command(audience=("trader",))
def append_note(
    ctx: Context,
    *,
    text: Annotated[LongProse, "The note, in Markdown."],
    agent: Annotated[Name, "The agent that writes the note."],
    run: Annotated[Key, "The id of the recorded run, tick, call or trade."],
    note: Annotated[NoteKind, "The kind of note: 'journal' is added to today's journal file."] = "journal",
    path: Annotated[Key | None, "Another file of the journal, the notes or `agents/AGENT/` to add the note to."] = None,
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> WrittenNote:
    """Add a note to the journal, the learnings or the notes, with its author and time."""
    if not text.strip():
        raise Invalid("the note is blank; give some text", field="text")
    file = appendable_path(path, agent=agent) if path is not None else note_path(note, now=ctx.now)
    workspace = library_of(ctx).workspace
    with ctx.reading() as connection:
        run = known_run(connection, ctx, run)
    entry = format_entry(text, at=ctx.now, agent=agent, run=run)
    new = new_writing(ctx, kind="note", path=file, text=entry, agent=agent, run=run, status="pending")
    if idempotency_key is not None:
        new = replace(new, id=derive_id("note", ctx.owner, idempotency_key))
    with ctx.writing() as transaction:
        former = stored.writing(transaction.connection, ctx.owner, new.id)
        writing = new if former is None else replayed_note(former, new, ctx.now)
        is_written = former is not None and writing.text in (workspace.text(writing.path) or "")
        if not is_written:
            transaction.revise(stored.WRITINGS, writing.with_status("pending", now=ctx.now))
    errors = write_pending(ctx, workspace)
    if writing.id in errors:
        raise errors[writing.id]
    _index_written_files(ctx)
    before, _, _ = (workspace.text(writing.path) or "").rpartition(writing.text)
    first = before.count("\n") + 1
    last = first + len(lines_of(writing.text.rstrip("\n"))) - 1
    return WrittenNote(id=writing.id, path=writing.path, start_line=first, end_line=last, replayed=is_written)


@command(audience=("trader",))
def propose_edit(
    ctx: Context,
    *,
    path: Annotated[Key, "The file to edit: SOUL.md or TRADING_MANUAL.md."],
    text: Annotated[LongProse, "The whole text of the file after the edit."],
    reason: Annotated[Reason, "Why the file should change."],
    agent: Annotated[Name, "The agent that proposes the edit."],
    run: Annotated[Key | None, "The run in which the edit is proposed."] = None,
) -> ProposedEdit:
    """Propose an edit of SOUL.md or TRADING_MANUAL.md, which the owner approves or rejects."""
    file = proposable_path(path)
    before = library_of(ctx).workspace.text(file)
    if before == text:
        raise Invalid(f"the text is the same as in {file}; change something", field="text")
    base = None if before is None else content_hash(before)
    new = new_writing(ctx, kind="edit", path=file, text=text, agent=agent, run=run, status="proposed", base_hash=base)
    with ctx.writing() as transaction:
        edit = replace(new, diff=diff_of(before or "", text, file), reason=reason)
        writing, is_proposed = proposed_edit(transaction.connection, edit)
        if not is_proposed:
            transaction.add(stored.WRITINGS, writing)
    return ProposedEdit(edit=writing, replayed=is_proposed)


@query(audience=("trader",))
def list_edits(
    ctx: Context,
    *,
    run: Annotated[Key | None, "Only notes and edits of this run."] = None,
    status: Annotated[WritingStatus | None, "Only notes or edits with this status."] = None,
    limit: Annotated[Limit, "The most notes and edits to return."] = 50,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> EditList:
    """List the notes that agents wrote and the edits that they proposed, newest first."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        run = None if run is None else whole_run_id(connection, ctx, run)
        edits = [edit for edit in stored.writings(view, run_id=run) if status in (None, edit.status)]
    return EditList(edits=tuple(edits[:limit]), total=len(edits), as_of=view.as_of)


@command()
def approve_edit(
    ctx: Context,
    *,
    edit_id: Annotated[Key, "The id of the edit, from list_edits."],
    reason: Annotated[Reason | None, "Why the edit is approved."] = None,
) -> DecidedEdit:
    """Approve an edit and write it to its file; Conflict if the file has changed since the edit was proposed."""
    workspace = library_of(ctx).workspace
    with ctx.writing() as transaction:
        writing = edit_named(transaction.connection, ctx, edit_id)
        approved = decide(writing, "approved", reason=reason, now=ctx.now)
        before = workspace.text(writing.path)
        is_applied = before == writing.text  # by an approval that was killed before its commit
        if not is_applied and (None if before is None else content_hash(before)) != writing.base_hash:
            raise Conflict(
                f"{writing.path} has changed since the edit was proposed; reject the edit and have it proposed again",
                field="edit_id",
            )
        transaction.revise(stored.WRITINGS, approved)
        if not is_applied:
            workspace.write(writing.path, writing.text)
    _index_written_files(ctx)
    return DecidedEdit(edit=approved)


@command()
def reject_edit(
    ctx: Context,
    *,
    edit_id: Annotated[Key, "The id of the edit, from list_edits."],
    reason: Annotated[Reason | None, "Why the edit is rejected."] = None,
) -> DecidedEdit:
    """Reject an edit; its file is not changed."""
    with ctx.writing() as transaction:
        writing = edit_named(transaction.connection, ctx, edit_id)
        rejected = decide(writing, "rejected", reason=reason, now=ctx.now)
        transaction.revise(stored.WRITINGS, rejected)
    return DecidedEdit(edit=rejected)


def start_embedding(ctx: Context) -> None:
    """Embed texts without a vector in the background, if the library has an embedder."""
    library = library_of(ctx)
    embedder = library.embedder
    if embedder is not None:
        library.background.start(lambda stop: embed_missing(ctx, embedder, stop=stop))


def _index_written_files(ctx: Context) -> None:
    sync_index(ctx, library_of(ctx).workspace, files_only=True)
    start_embedding(ctx)


def _indexed_at(as_of: datetime | None, seen_at: datetime | None) -> datetime | None:
    """The instant to read the index as of; None for now. A document is known from when it was indexed."""
    return min((at for at in (as_of, seen_at) if at is not None), default=None)


def _skipped_files(index: IndexState) -> tuple[SkippedFile, ...]:
    return tuple(SkippedFile(path=path, reason=reason) for path, reason in sorted(index.skipped.items()))


def _query_vector(library: Library, text: str) -> tuple[QueryVector | None, str]:
    """The embedding of the query; if the embedder is unavailable, None and what the answer lacks."""
    if library.embedder is None or not text.strip():
        return None, ""
    try:
        values = library.query_vectors.embed(library.embedder, text)
    except Unavailable as error:
        return None, f"searched by words only, not by meaning: {error.message}"
    return QueryVector(values, library.embedder.model, library.vectors, library.embedder.language), ""


def _answer(parsed: DocumentQuery, citations: tuple[Citation, ...], message: str, at: datetime) -> SearchAnswer:
    words = tuple(sorted(parsed.words))
    return SearchAnswer(citations=citations, message=message, missing=(), words=words, as_of=at)


def _why_no_search(parsed: DocumentQuery, index: IndexState | None) -> str:
    return NOT_INDEXED if index is None else NO_WORDS


def _spoilt(paths: list[str]) -> str:
    """What is wrong if rows of the index were changed by somebody."""
    if not paths:
        return ""
    names = f"{', '.join(paths[:3])}{' and more' if len(paths) > 3 else ''}"
    return f"the index of {names} is not what its file says: somebody changed it; run reindex"


def _problem(index: IndexState | None, embedded: int | None, error: str | None) -> str:
    """What is wrong with the index and what to do; `embedded` is None without an embedder."""
    if index is None:
        return NOT_INDEXED
    problems = [EMPTIED] if index.skipped.get(ROOT) == EMPTIED else []
    if files := index.skipped.keys() - {ROOT}:
        problems.append(f"not in the index: {count_of(len(files), 'file')}; `skipped` gives the reason for each")
    if embedded is not None and embedded < index.chunks:
        problems.append(
            f"{index.chunks - embedded} of {index.chunks} chunks have no vector yet; only keyword search finds them"
        )
        problems += [f"embedding stopped: {error}"] if error else []
    return "; ".join(problems)
