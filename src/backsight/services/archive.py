"""Everything of an owner in a folder of files, and back into an empty store.

A table of facts is a file of JSON Lines with its rows as they are stored, the audit chain included: only so do
`recorded_at`, former versions and the chain stay as they are. Derived tables are written too, for those who read the
files; they are not read back but derived again, and compared by their hashes.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from backsight.core.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.core.ids import canonical_json
from backsight.services.context import Context, Progress
from backsight.services.derivation import rebuild_rows
from backsight.services.table_files import (
    TableFormat,
    file_hash,
    hash_of_rows,
    json_lines_file,
    parquet_modules,
    read_rows,
    table_file,
)
from backsight.store import audit
from backsight.store.archive import FACTS, ROWS_AT_ONCE, cell_kinds, has_rows, insert_cells, read_cells
from backsight.store.database import Connection
from backsight.store.experience import DERIVED, count
from backsight.store.mapping import Noun
from backsight.store.schema import REVISION
from backsight.store.transaction import Transaction

MANIFEST = "manifest.json"
LONGEST_MANIFEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """The rows of one file of JSON Lines, and the file's hash."""

    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in an exported folder; it is written last, so a folder without it is not whole."""

    kind: Literal["backsight export"]
    version: Literal[1]
    schema: str
    """The revision of the tables."""
    owner: str
    exported_at: datetime
    head: str
    """The last link of the audit chain."""
    facts: Mapping[str, ExportedTable]
    derived: Mapping[str, ExportedTable]


_MANIFEST = TypeAdapter(Manifest)


def write_archive(ctx: Context, folder: Path, *, tables: TableFormat | None) -> Manifest:
    """Write everything of an owner to a new folder, at one instant of the store."""
    if tables == "parquet":
        parquet_modules()
    with ctx.reading() as connection:
        if not has_rows(connection, ctx.owner):
            raise NotFound(f"nothing is stored for the owner {ctx.owner!r}; name the owner whose rows you want")
        with _new_folder(folder):
            progress = _Progress(ctx.progress, "exporting", _counts(connection, ctx.owner))
            manifest = Manifest(
                kind="backsight export",
                version=1,
                schema=REVISION,
                owner=ctx.owner,
                exported_at=ctx.now,
                head=str(audit.head(connection, ctx.owner)),
                facts={each.table.name: _write(ctx, connection, each, folder, tables, progress) for each in FACTS},
                derived={each.table.name: _write(ctx, connection, each, folder, tables, progress) for each in DERIVED},
            )
            (folder / MANIFEST).write_text(canonical_json(manifest) + "\n", encoding="utf-8")
    return manifest


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Make a folder that does not exist; it is removed again if anything fails."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Conflict(f"{folder} exists already; name a new folder", field="path") from None
    except (OSError, ValueError) as error:
        raise Invalid(f"{str(folder)!r} cannot be made ({error}); name a new folder", field="path") from None
    try:
        yield
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unavailable(f"{folder} cannot be written ({error}); nothing is left there", field="path") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _Progress:
    """Counts the rows of all tables together."""

    def __init__(self, report: Progress, part: str, total: int) -> None:
        self._report, self._part, self._total, self._done = report, part, total, 0

    def add(self, rows: int) -> None:
        self._done += rows
        self._report(self._part, self._done, self._total)


def _counts(connection: Connection, owner: str) -> int:
    return sum(count(connection, noun, owner) for noun in (*FACTS, *DERIVED))


def _write(
    ctx: Context, connection: Connection, noun: Noun[Any], folder: Path, tables: TableFormat | None, progress: _Progress
) -> ExportedTable:
    """Write one table: JSON Lines, and the same rows as CSV or Parquet."""
    with ExitStack() as files:
        lines = files.enter_context(json_lines_file(_lines_path(folder, noun)))
        writers: list[Any] = [lines]
        if tables is not None:
            path = folder / f"{noun.table.name}.{tables}"
            writers.append(files.enter_context(table_file(path, cell_kinds(noun), table_format=tables)))
        for rows in read_cells(connection, noun, ctx.owner):
            for writer in writers:
                writer.write(rows)
            progress.add(len(rows))
    return ExportedTable(rows=lines.rows, sha256=lines.sha256)


def _lines_path(folder: Path, noun: Noun[Any]) -> Path:
    return folder / f"{noun.table.name}.jsonl"


def read_manifest(ctx: Context, folder: Path) -> Manifest:
    """The manifest of a folder that can be imported: of this owner and schema, with every file as it was written."""
    manifest = _parse_manifest(folder / MANIFEST)
    if manifest.schema != REVISION:
        remedy = f"import it with the version that has this schema; this version has {REVISION!r}"
        raise Refused(f"the export has the schema {manifest.schema!r}; {remedy}", field="path")
    if manifest.owner != ctx.owner:
        remedy = f"open the memory as {manifest.owner!r}: ids and the audit chain contain the owner's name"
        raise Refused(f"the export is of the owner {manifest.owner!r}, not {ctx.owner!r}; {remedy}", field="path")
    for number, noun in enumerate(FACTS, start=1):
        _check_file(_lines_path(folder, noun), manifest.facts.get(noun.table.name))
        ctx.progress("checking files", number, len(FACTS))
    return manifest


def _parse_manifest(path: Path) -> Manifest:
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        message = f"there is no {path}; give a folder that export_data wrote to its end"
        raise NotFound(message, field="path") from None
    except (OSError, ValueError) as error:
        raise Invalid(f"{str(path)!r} cannot be read ({error}); give an exported folder", field="path") from None
    try:
        return _MANIFEST.validate_json(content)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "its content"
        message = f"{path} is not the manifest of an export ({place}: {problem['msg']})"
        raise Invalid(f"{message}; give a folder that export_data wrote", field="path") from None


def _check_file(path: Path, expected: ExportedTable | None) -> None:
    if expected is None:
        raise Invalid(f"the manifest does not list {path.name}; give a folder that export_data wrote", field="path")
    try:
        same = file_hash(path) == expected.sha256
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotFound(f"{path} cannot be read ({reason}); copy the whole folder again", field="path") from None
    if not same:
        message = f"{path} is not the file that was exported: its SHA-256 differs from the manifest's"
        raise Invalid(f"{message}; copy the folder again", field="path")


def read_archive(ctx: Context, transaction: Transaction, folder: Path, manifest: Manifest) -> tuple[str, ...]:
    """Insert the rows of a folder and derive the rest; the tables that came out different, which should be none."""
    connection = transaction.connection
    progress = _Progress(ctx.progress, "importing", sum(table.rows for table in manifest.facts.values()))
    for noun in FACTS:
        rows = read_rows(_lines_path(folder, noun), cell_kinds(noun))
        while some := list(islice(rows, ROWS_AT_ONCE)):
            insert_cells(connection, noun, ctx.owner, some)
            progress.add(len(some))
    rebuild_rows(transaction, ctx.owner)
    return tuple(
        noun.table.name
        for noun in DERIVED
        if hash_of_rows(read_cells(connection, noun, ctx.owner)) != _derived_hash(manifest, noun)
    )


def _derived_hash(manifest: Manifest, noun: Noun[Any]) -> str | None:
    table = manifest.derived.get(noun.table.name)
    return None if table is None else table.sha256
