"""Documents as they are stored: versions of documents, their chunks and vectors, and the state of the index."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.documents.chunk import Chunk, chunks_of
from backsight.core.documents.citation import Source
from backsight.core.documents.dates import entry_instant
from backsight.core.documents.query import words_of
from backsight.core.documents.workspace import is_markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStamp:
    """Tells without reading a document whether it has changed: an equal stamp is an unchanged document."""

    size: int
    changed: int
    """When the file was changed, in nanoseconds of its file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One version of a document, valid from one reindexing to another."""

    owner_id: str
    path: str
    source: Source
    agent: str | None
    """The agent that the document belongs to; None if it is for all agents."""
    written_at: datetime
    """When the file was last written, by its file system."""
    content_hash: str
    lines: int
    stamp: ChangeStamp
    valid_from: datetime
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk of a document in the index, valid from one reindexing to another."""

    owner_id: str
    number: int
    """Identifies the chunk of an owner; a changed chunk gets a new number."""
    path: str
    source: Source
    agent: str | None
    written_at: datetime
    start_line: int
    end_line: int
    heading: tuple[str, ...]
    text: str
    text_hash: str
    """Hash of the headings and the text: equal texts under equal headings share their vectors."""
    valid_from: datetime
    valid_to: datetime | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for two chunks of successive versions if the chunk has not changed."""
        return (self.start_line, self.end_line, self.heading, self.text, self.source, self.agent)

    @property
    def is_sound(self) -> bool:
        """Whether text and headings have the hash that was stored with them; if not, somebody changed the row."""
        return self.text_hash == content_hash(embedded_text(self.heading, self.text))

    @property
    def shown_text(self) -> str:
        """The text, or as many empty lines if somebody changed it: a rule must not be changed in the index."""
        return self.text if self.is_sound else "\n" * (self.end_line - self.start_line + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDocument:
    """A document as it was just read from its file, or written from rows of the store."""

    path: str
    source: Source
    agent: str | None
    written_at: datetime
    stamp: ChangeStamp
    text: str


def content_hash(text: str) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def embedded_text(heading: Iterable[str], text: str) -> str:
    """The text that is embedded for a chunk or for one of its passages: the headings, then the text.

    >>> embedded_text(("Manual", "Risk"), "Never above 2%.")
    'Manual > Risk\\nNever above 2%.'
    """
    above = " > ".join(heading)
    return f"{above}\n{text}" if above else text


def indexed_words(heading: Iterable[str], text: str) -> list[str]:
    """The words that a chunk is found by: first the words that only its headings have, then those of its text."""
    text_words = list(words_of(text))
    in_text = set(text_words)
    return [word for word in words_of(" ".join(heading)) if word not in in_text] + text_words


def index_chunks(document: LoadedDocument, *, owner: str, now: datetime) -> list[IndexedChunk]:
    """The chunks of a loaded document; publishing them assigns their numbers.

    A chunk is as old as its entry says: a file is changed whenever an entry is added to it.
    """
    markdown = is_markdown(document.path)
    return [
        IndexedChunk(
            owner_id=owner,
            number=0,
            path=document.path,
            source=document.source,
            agent=document.agent,
            written_at=_written_at(document, chunk) if markdown else document.written_at,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            heading=chunk.heading,
            text=chunk.text,
            text_hash=content_hash(embedded_text(chunk.heading, chunk.text)),
            valid_from=now,
        )
        for chunk in chunks_of(document.text, markdown=markdown)
    ]


def _written_at(document: LoadedDocument, chunk: Chunk) -> datetime:
    return entry_instant(document.path, chunk.heading, chunk.text) or document.written_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkChanges:
    """The difference between the chunks of two versions of a document."""

    removed: tuple[IndexedChunk, ...]
    added: tuple[IndexedChunk, ...]


def compare_chunks(before: Iterable[IndexedChunk], after: Iterable[IndexedChunk]) -> ChunkChanges:
    """The smallest change between two versions; a chunk with the same text in the same lines stays."""
    remaining = {chunk.identity: chunk for chunk in before}
    added = [chunk for chunk in after if remaining.pop(chunk.identity, None) is None]
    return ChunkChanges(removed=tuple(remaining.values()), added=tuple(added))


def assign_numbers(chunks: Iterable[IndexedChunk], last_number: int, *, at: datetime) -> list[IndexedChunk]:
    """The chunks as they are published at an instant, with the numbers that follow the last assigned number."""
    return [replace(chunk, number=number, valid_from=at) for number, chunk in enumerate(chunks, start=last_number + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """One generation of an owner's index; each publication that changes the index is a new generation.

    Former generations are kept: a search as of an earlier instant weighs words by the documents of then.
    """

    owner_id: str
    generation: int
    last_number: int
    """The last chunk number that was assigned."""
    chunks: int
    documents: int
    words: int
    """Words in all current chunks; divided by the number of chunks, the mean chunk length of BM25."""
    embeddings: int
    """How often vectors were added; vectors are added between generations."""
    changed_at: datetime
    """When the generation was published."""
    synced_at: datetime
    """When the index was last found to be up to date."""
    skipped: Mapping[str, str]
    """Files that are not indexed, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """The embedding of one passage of a text by one model."""

    owner_id: str
    model: str
    text_hash: str
    passage: int
    """Which passage of the text, counted from 0."""
    values: bytes
    """Little-endian half-precision floats."""

    @property
    def dimensions(self) -> int:
        return len(self.values) // 2


def empty_index(owner: str, *, now: datetime) -> IndexState:
    """The index of an owner who has not indexed anything."""
    return IndexState(
        owner_id=owner,
        generation=0,
        last_number=0,
        chunks=0,
        documents=0,
        words=0,
        embeddings=0,
        changed_at=now,
        synced_at=now,
        skipped={},
    )
