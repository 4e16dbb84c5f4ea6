"""Backups of a live store, and their way back; both are verified.

A SQLite store is copied by SQLite's online backup, a PostgreSQL store dumped by pg_dump. Both contain all owners. Where
pg_dump is missing or may not read everything, the rows of one owner are exported to a folder.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backsight.core.chain_heads import RESTORE
from backsight.core.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.services.archive import read_archive, read_manifest, write_archive
from backsight.services.context import Context
from backsight.store import audit, postgres_dump
from backsight.store.archive import has_rows
from backsight.store.database import Connection, Database, open_copy
from backsight.store.erasure import erase_rows
from backsight.store.verify import verify

BackupKind = Literal["sqlite_file", "postgresql_dump", "exported_folder"]
SQLITE_MAGIC = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """The result of verifying every owner of a store: the head of one of them, and what is wrong."""

    head: str
    owners: int
    rows: int
    differences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """The kind of a backup, what verifying it found, and what its owner should know."""

    kind: BackupKind
    check: StoreCheck
    notes: tuple[str, ...] = ()


def write_backup(ctx: Context, path: Path) -> BackupReport:
    """Write a backup to a new file, or to a new folder if it is an export."""
    if path.exists():
        raise Conflict(f"{path} already exists; name a new file", field="path")
    database = ctx.database
    if database.url.get_backend_name() == "sqlite":
        refuse_other_owners(ctx, owners_of(database))
        database.save(path)
        return BackupReport(kind="sqlite_file", check=_check_file(ctx.owner, path))
    with ctx.reading() as connection:
        reason = postgres_dump.missing_reason(connection)
        if reason is None:
            refuse_other_owners(ctx, audit.owners(connection))
            check = _check_rows(connection, ctx.owner)
            postgres_dump.dump(connection, database.url, path)
            return BackupReport(kind="postgresql_dump", check=check, notes=(_DUMPED,))
    manifest = write_archive(ctx, path, tables=None)
    read_manifest(ctx, path)
    with ctx.reading() as connection:
        _, rows, findings = verify(connection, ctx.owner)
    check = StoreCheck(head=manifest.head, owners=1, rows=rows, differences=len(findings))
    return BackupReport(kind="exported_folder", check=check, notes=(f"Exported to a folder, since {reason}.",))


_DUMPED = "The store was verified; the dump is of the same rows, and is verified when it is restored."


def read_backup(ctx: Context, path: Path, *, overwrite: bool) -> BackupReport:
    """Restore a backup; a store with rows is replaced only if `overwrite` is set."""
    kind = kind_of(path)
    match kind:
        case "sqlite_file":
            report = _restore_file(ctx, path, overwrite=overwrite)
        case "postgresql_dump":
            report = _restore_dump(ctx, path, overwrite=overwrite)
        case "exported_folder":
            report = _restore_folder(ctx, path, overwrite=overwrite)
    if not report.check.differences:
        _record_heads(ctx, [ctx.owner] if kind == "exported_folder" else owners_of(ctx.database))
    return report


def _record_heads(ctx: Context, owners: Collection[str]) -> None:
    """Record that chains continue from the backup: heads of the links that it does not have are given up."""
    for owner in owners:
        with ctx.database.reading(owner) as connection:
            head = audit.head(connection, owner)
        ctx.record_head(head, operation=RESTORE, owner=owner)


def kind_of(path: Path) -> BackupKind:
    """The kind of a backup, by its first bytes."""
    if path.is_dir():
        return "exported_folder"
    try:
        if not path.is_file():
            raise NotFound(f"there is no file {path}; give a file that backup wrote", field="path")
        with path.open("rb") as file:
            start = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Invalid(f"{path} cannot be read ({reason}); give a file that backup wrote", field="path") from None
    if start == SQLITE_MAGIC:
        return "sqlite_file"
    if start.startswith(postgres_dump.MAGIC):
        return "postgresql_dump"
    raise Invalid(f"{path} is not a backup; give a file that backup wrote", field="path")


def _restore_file(ctx: Context, path: Path, *, overwrite: bool) -> BackupReport:
    database = ctx.database
    _refuse_other_database(database, "sqlite")
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise Refused(f"{path} is in use: it has a write-ahead log; give a file that backup wrote", field="path")
    check = _check_file(ctx.owner, path)
    if check.differences:
        raise Refused(_damaged(path, check), field="path")
    copy = open_copy(path)
    try:
        refuse_other_owners(ctx, {*owners_of(database), *owners_of(copy)})
    finally:
        copy.close()
    _refuse_overwriting(owners_of(database), overwrite=overwrite)
    database.load(path)
    return BackupReport(kind="sqlite_file", check=_check(ctx.owner, database), notes=(_RESTORED,))


def _restore_dump(ctx: Context, path: Path, *, overwrite: bool) -> BackupReport:
    database = ctx.database
    _refuse_other_database(database, "postgresql")
    with ctx.reading() as connection:
        schema, reason = postgres_dump.schema_of(connection), postgres_dump.missing_reason(connection)
        stored = audit.owners(connection)
    if reason is not None:
        raise Unavailable(f"the dump cannot be restored: {reason}; restore it as the tables' owner", field="path")
    if ctx.authority is not None:
        raise Refused("a dump has the rows of all owners; restore it where the store is", field="path")
    _refuse_overwriting(stored, overwrite=overwrite)
    database.forget()
    postgres_dump.load(schema, database.url, path)
    database.forget()
    return BackupReport(kind="postgresql_dump", check=_check(ctx.owner, database), notes=(_RESTORED,))


def _restore_folder(ctx: Context, path: Path, *, overwrite: bool) -> BackupReport:
    manifest = read_manifest(ctx, path)
    with ctx.writing() as transaction:
        connection = transaction.connection
        if has_rows(connection, ctx.owner):
            _refuse_overwriting([ctx.owner], overwrite=overwrite)
            erase_rows(connection, ctx.owner)
        read_archive(ctx, transaction, path, manifest)
        _, rows, findings = verify(connection, ctx.owner)
    ctx.database.forget()
    check = StoreCheck(head=manifest.head, owners=1, rows=rows, differences=len(findings))
    return BackupReport(kind="exported_folder", check=check, notes=(_RESTORED,))


_RESTORED = (
    "This store has the rows of the copy now. Restart other processes that have the store open: they remember rows of"
    " before."
)


def _refuse_overwriting(owners: Collection[str], *, overwrite: bool) -> None:
    if owners and not overwrite:
        names = ", ".join(map(repr, sorted(owners)[:3]))
        message = f"the store has rows of {names}, which would be lost"
        raise Conflict(f"{message}; set overwrite to replace them, or restore to a new store", field="overwrite")


def refuse_other_owners(ctx: Context, owners: Collection[str]) -> None:
    """A caller of a server may neither copy, replace nor lock what others own."""
    if ctx.authority is not None and set(owners) - {ctx.owner}:
        message = "the store or the backup has rows of other owners"
        raise Refused(f"{message}; call it where the store is, or use export_data and import_data", field="path")


def _refuse_other_database(database: Database, backend: str) -> None:
    if database.url.get_backend_name() != backend:
        message = f"this backup is of a {backend} store; restore it to one"
        raise Refused(f"{message}, and move rows between databases by export_data and import_data", field="path")


def _damaged(path: Path, check: StoreCheck) -> str:
    return f"{path} is not intact ({check.differences} differences); nothing was restored: give another backup"


def owners_of(database: Database) -> list[str]:
    """The owners in a store, as far as the role of the connection may see them."""
    with database.reading() as connection:
        return audit.owners(connection)


def _check_file(owner: str, path: Path) -> StoreCheck:
    """Verify a copy of a SQLite store: its pages, and the rows of every owner."""
    copy = open_copy(path)
    try:
        return _check(owner, copy)
    finally:
        copy.close()


def _check(owner: str, database: Database) -> StoreCheck:
    """Verify the pages of a store and the rows of every owner."""
    damage = database.damage
    if damage:
        return StoreCheck(head="", owners=0, rows=0, differences=len(damage))
    with database.reading() as connection:
        return _check_rows(connection, owner)


def _check_rows(connection: Connection, owner: str) -> StoreCheck:
    """Verify the rows of every owner, on a connection that sees all of them."""
    rows, differences, owners = 0, 0, audit.owners(connection)
    for each in owners:
        _, compared, findings = verify(connection, each)
        rows += compared
        differences += len(findings)
    head = str(audit.head(connection, owner))
    return StoreCheck(head=head, owners=len(owners), rows=rows, differences=differences)
