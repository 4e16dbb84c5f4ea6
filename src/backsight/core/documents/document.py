"""A document at rest: which version stood when, and its chunks."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.documents.chunk import chunks_of
from backsight.core.documents.citation import Source
from backsight.core.documents.query import words_of
from backsight.core.documents.workspace import is_markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What tells that a file is as it was, without reading it."""

    size: int
    changed: int
    """When it was changed, in the nanoseconds of its file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One version of a document, and from when to when it stood."""

    owner_id: str
    path: str
    source: Source
    agent: str | None
    """Whose it is; None where it is everybody's."""
    written_at: datetime
    """When it was last written, as far as its file says."""
    content_hash: str
    lines: int
    stamp: Stamp
    valid_from: datetime
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A chunk of a version of a document, as it is searched."""

    owner_id: str
    number: int
    """Counts the chunks of an owner; a chunk that changes is another one."""
    path: str
    source: Source
    agent: str | None
    written_at: datetime
    start_line: int
    end_line: int
    heading: tuple[str, ...]
    text: str
    text_hash: str
    """Of what is embedded: equal texts under equal headings have one vector."""
    valid_from: datetime
    valid_to: datetime | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """What makes it the same chunk as one of an earlier version."""
        return (self.start_line, self.end_line, self.heading, self.text, self.source, self.agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document as it was just read."""

    path: str
    source: Source
    agent: str | None
    written_at: datetime
    stamp: Stamp
    text: str


def content_hash(text: str) -> str:
    """SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def embedded_text(heading: Iterable[str], text: str) -> str:
    """What is embedded of a chunk: its text under its headings.

    >>> embedded_text(("Manual", "Risk"), "Never above 2 %.")
    'Manual > Risk\\nNever above 2 %.'
    """
    above = " > ".join(heading)
    return f"{above}\n{text}" if above else text


def indexed_words(heading: Iterable[str], text: str) -> list[str]:
    """The words that a chunk is found by; those of headings above it that are not in its text come first."""
    said = list(words_of(text))
    known = set(said)
    return [word for word in words_of(" ".join(heading)) if word not in known] + said


def pieces_of(read: Read, *, owner: str, now: datetime) -> list[Piece]:
    """The chunks of a document that was just read; their numbers are given when they are published."""
    return [
        Piece(
            owner_id=owner,
            number=0,
            path=read.path,
            source=read.source,
            agent=read.agent,
            written_at=read.written_at,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            heading=chunk.heading,
            text=chunk.text,
            text_hash=content_hash(embedded_text(chunk.heading, chunk.text)),
            valid_from=now,
        )
        for chunk in chunks_of(read.text, markdown=is_markdown(read.path))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What has become of a document's chunks: which stay, which are over, which are new."""

    ended: tuple[Piece, ...]
    begun: tuple[Piece, ...]


def revised(before: Iterable[Piece], after: Iterable[Piece]) -> Revision:
    """The least that changes from one version to the next; a chunk that says the same in the same lines stays."""
    standing = {piece.place: piece for piece in before}
    begun = []
    for piece in after:
        if standing.pop(piece.place, None) is None:
            begun.append(piece)
    return Revision(ended=tuple(standing.values()), begun=tuple(begun))


def numbered(pieces: Iterable[Piece], after: int) -> list[Piece]:
    """Chunks with the numbers that come after the last one given."""
    return [replace(piece, number=number) for number, piece in enumerate(pieces, start=after + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """How the index of an owner stands; each publication is a generation of it."""

    owner_id: str
    generation: int
    last_number: int
    chunks: int
    documents: int
    words: int
    """Of all chunks that stand; with their number, how long one is on average."""
    embeddings: int
    """How often vectors were added: they come between generations."""
    synced_at: datetime
    skipped: Mapping[str, str]
    """Files that should be in it and are not, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """The vector of a text as one model has it."""

    owner_id: str
    model: str
    text_hash: str
    values: bytes
    """Little-endian half-precision floats."""

    @property
    def numbers(self) -> int:
        """How many it has."""
        return len(self.values) // 2


def no_index(owner: str, *, now: datetime) -> Index:
    """The index of one who has none yet."""
    return Index(
        owner_id=owner,
        generation=0,
        last_number=0,
        chunks=0,
        documents=0,
        words=0,
        embeddings=0,
        synced_at=now,
        skipped={},
    )
