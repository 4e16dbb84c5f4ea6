"""Indexed documents against their files: a rule that somebody changed in the index must not be shown in silence.

Whoever can write the database can change a chunk together with its hashes. The file is what the owner wrote. Documents
of before the last change of the index have no files any more and are not compared.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from backsight.core.documents.document import LoadedDocument
from backsight.core.text.untrusted_text import shorten
from backsight.services.context import Context
from backsight.services.document_search import library_of
from backsight.services.traces import TRACE_SOURCES
from backsight.store import documents as stored
from backsight.store.database import Connection

LOG = logging.getLogger("backsight")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileComparison:
    """The documents that may not be shown, and a sentence about each document that is not as its file says."""

    left_out: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def compare_with_files(ctx: Context, connection: Connection, texts: Mapping[str, str]) -> FileComparison:
    """Compare the current texts of documents, by path, with their files.

    A text that differs from a file of the same size and time was changed in the index, and is left out. If the file has
    another size or time, or is missing, the owner may have edited it or the folder may not be mounted: an agent without
    rules would be worse, so that the indexed text is shown with a note.
    """
    library = library_of(ctx)
    if library.folder is None or not texts:
        return FileComparison()
    workspace = library.workspace
    files = {path: workspace.load(path) for path in texts}
    differing = [
        path for path, file in files.items() if not isinstance(file, LoadedDocument) or file.text != texts[path]
    ]
    if not differing:
        return FileComparison()
    indexed = stored.documents(connection, ctx.owner, paths=differing, without=TRACE_SOURCES)
    left_out, notes = set[str](), list[str]()
    for path in differing:
        file = files[path]
        if path not in indexed and not isinstance(file, LoadedDocument):
            continue  # written from rows of the store
        is_same_file = isinstance(file, LoadedDocument) and path in indexed and file.stamp == indexed[path].stamp
        if is_same_file:
            left_out.add(path)
            notes.append(f"{_name(path)} is left out: its text in the index was changed outside Backsight; run reindex")
        elif not isinstance(file, LoadedDocument):
            notes.append(f"{_name(path)} is in the index, but its file is {_MISSING.get(file, file)}; run reindex")
        else:
            notes.append(f"{_name(path)} differs from its file, which may be newer than the index; run reindex")
    for note in notes:
        LOG.warning("documents: %s", note)
    return FileComparison(left_out=frozenset(left_out), notes=tuple(notes))


def compare_paths(ctx: Context, connection: Connection, paths: Collection[str]) -> FileComparison:
    """Compare the current documents at some paths with their files."""
    if library_of(ctx).folder is None or not paths:
        return FileComparison()
    return compare_with_files(ctx, connection, stored.document_texts(connection, ctx.owner, paths))


_MISSING = {"vanished": "missing", "cannot be read": "not readable"}


def _name(path: str) -> str:
    return shorten(path, most=80, tokens=40)
