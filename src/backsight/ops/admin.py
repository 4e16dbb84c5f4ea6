"""Operations on the whole store: verify and export its audit chain, repair derived rows, and copy all rows to files."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from backsight.arguments import ChainHead, FilePath, Flag, Whole
from backsight.core.audit import AuditBatch, AuditRow, Finding, parse_head
from backsight.core.chain_heads import RESTORE
from backsight.core.errors import UNREADABLE, Conflict, Invalid
from backsight.core.instants import format_instant
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.archive import Manifest, read_archive, read_manifest, write_archive
from backsight.services.context import Context
from backsight.services.derivation import find_differences, rebuild_rows
from backsight.services.verification import Verification, verify_everything, verify_later
from backsight.store import audit as stored
from backsight.store.archive import has_rows
from backsight.store.database import Connection
from backsight.store.decisions import unexplained_equity
from backsight.store.documents import CHUNKS, WRITINGS, spoilt_paths
from backsight.store.experience import DERIVED, count
from backsight.store.instruments import last_saved_at
from backsight.store.trades import contradicted_trades, unconverted_trades
from backsight.store.verify import spoilt_rows, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Whether every derived row follows from the episodes, every difference, and what else an owner should know."""

    healthy: bool
    """Before any repair."""
    rows: Mapping[str, int]
    """The number of derived rows that were compared, by table."""
    findings: tuple[Finding, ...]
    repaired: bool
    remarks: tuple[str, ...]
    """Known problems of the database, and where brokers contradict the ledger."""

    @property
    def passed(self) -> bool:
        """Whether the check found nothing wrong, or repaired it."""
        return self.healthy or self.repaired


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExport:
    """Links of the chain in order, and the head to save elsewhere."""

    head: str
    links: tuple[AuditRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedData:
    """A folder with everything of an owner: the number of rows by table, and the head of the audit chain."""

    path: str
    owner: str
    exported_at: datetime
    head: str
    facts: Mapping[str, int]
    """Rows by table: a file of JSON Lines each, which import_data reads."""
    derived: Mapping[str, int]
    """Rows by table that follow from the facts; import_data derives them again."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedData:
    """The number of rows that were imported, and whether they agree with the audit chain that came with them."""

    path: str
    owner: str
    exported_at: datetime
    head: str
    facts: Mapping[str, int]
    intact: bool
    """Whether verify_audit finds no difference; if it does, the exported store had the same differences."""
    replayed: bool
    """Whether the store had these rows already; nothing was changed then."""
    notes: tuple[str, ...]


@query()
def verify_audit(
    ctx: Context,
    *,
    head: Annotated[ChainHead | None, "The head of an earlier export, saved outside the store."] = None,
    since: Annotated[
        ChainHead | None,
        "The `checkpoint` of an earlier verification, saved outside the store: verify only what followed.",
    ] = None,
) -> Verification:
    """Verify that no row was changed other than by Backsight's commands.

    Every link of the audit chain is checked against the link before it, and every row against the chain. If they agree,
    beliefs, habits and moods are derived again from the verified rows and compared. A head that was saved outside the
    store also shows whether the chain was cut off or rewritten, as do the heads in the file of the setting heads_file.
    With `since`, earlier rows are counted and not compared.
    """
    saved_head = None if head is None else parse_head(head)
    if saved_head is not None and since is not None:
        raise Invalid("give either `head` or `since`: a checkpoint contains its head", field="since")
    return verify_everything(ctx, head=saved_head) if since is None else verify_later(ctx, since)


@command()
def doctor(
    ctx: Context,
    *,
    repair: Annotated[Flag, "Replace stored rows that differ from the rows derived again."] = False,
) -> Diagnosis:
    """Derive every memory again from the episodes and compare it with the stored rows.

    Beliefs, evidence, habits and moods follow from trades, decisions and equity alone. A difference means that somebody
    changed the rows, or that Backsight has a defect. Damaged pages of a SQLite file, and cells that cannot be read, are
    named instead. The in-memory columns that recall scans are compared too, and are
    always rebuilt where they differ.
    """
    damage = [Finding(kind="damaged", table="pages", key="", detail=each) for each in ctx.database.damage]
    if damage:
        return Diagnosis(healthy=False, rows={}, findings=tuple(damage), repaired=False, remarks=_remarks(ctx))
    with ctx.reading() as connection:
        try:
            column_findings = _stale_columns(ctx, connection)
            if not repair:
                return _diagnosis(ctx, connection, column_findings)
        except UNREADABLE as error:
            findings = spoilt_rows(connection, ctx.owner, error)
            return Diagnosis(healthy=False, rows={}, findings=findings, repaired=False, remarks=_remarks(ctx))
    with ctx.writing() as transaction:
        diagnosis = _diagnosis(ctx, transaction.connection, column_findings)
        if not diagnosis.healthy:
            rebuild_rows(transaction, ctx.owner)
            # A link without rows: other processes learn from it that derived rows were replaced.
            transaction.changes += [AuditBatch(table=noun.table.name, items="") for noun in DERIVED]
    is_repaired = all(finding.table != CHUNKS.table.name for finding in diagnosis.findings)
    return replace(diagnosis, repaired=not diagnosis.healthy and is_repaired)


def _remarks(ctx: Context) -> tuple[str, ...]:
    """The remarks of a store whose rows cannot be compared."""
    return (*ctx.database.remarks, "Rows were not compared; restore a backup, or put the named rows right first.")


def _stale_columns(ctx: Context, connection: Connection) -> list[Finding]:
    """Episodes and trades whose in-memory columns differ from the rows; the columns are dropped and rebuilt on use."""
    database = ctx.database
    return [
        Finding(
            kind="changed", table="columns", key=key, detail=f"the columns differ from the {noun}; they are rebuilt"
        )
        for noun, images in (("episode", database.images), ("trade", database.trade_images))
        for key in images.drop_if_spoilt(connection, ctx.owner)
    ]


def _spoilt_documents(connection: Connection, owner: str) -> Iterator[Finding]:
    """Documents whose rows in the index were changed; they are not shown, and reindex reads their files again."""
    detail = "the indexed text has not the hash that was stored with it; it is not shown, and reindex reads it again"
    for path in spoilt_paths(connection, owner):
        yield Finding(kind="changed", table=CHUNKS.table.name, key=path, detail=detail)


def _diagnosis(ctx: Context, connection: Connection, column_findings: list[Finding]) -> Diagnosis:
    findings = [*find_differences(connection, ctx.owner), *column_findings, *_spoilt_documents(connection, ctx.owner)]
    return Diagnosis(
        healthy=not findings,
        rows={noun.table.name: count(connection, noun, ctx.owner) for noun in DERIVED},
        findings=tuple(findings),
        repaired=False,
        remarks=(*ctx.database.remarks, *contradictions(connection, ctx.owner)),
    )


def contradictions(connection: Connection, owner: str) -> Iterator[str]:
    """Sentences about trades whose results brokers contradict or no rate converts, and about unexplained equity."""
    symbols = Counter(trade.symbol for trade in contradicted_trades(connection, owner))
    for symbol, trades in sorted(symbols.items()):
        yield (
            f"{symbol}: the broker's result differs from the ledger's in {count_of(trades, 'trade')}, from which"
            " nothing is learned; a multiplier may be missing (save_instrument mends these trades too)."
        )
    for symbol, currency, trades in unconverted_trades(connection, owner):
        yield (
            f"{symbol}: the money of {count_of(trades, 'trade')} is in {currency} and in no sum, because no rate to the"
            f" account's currency is known; import bars of the currency pair, and save_instrument for {symbol} again."
        )
    yield from _equity_remarks(connection, owner)


def _equity_remarks(connection: Connection, owner: str) -> Iterator[str]:
    """A sentence about changes of equity that nothing explains, and whether any is since an instrument changed."""
    gaps = unexplained_equity(connection, owner)
    if not gaps:
        return
    ticks, (last, recorded_at) = count_of(len(gaps), "tick"), gaps[-1]
    saved_at = last_saved_at(connection, owner)
    is_over = saved_at is not None and saved_at > recorded_at
    remedy = "none since an instrument was saved" if is_over else "check multipliers, fees and transfers"
    yield f"Equity changed beyond what fills and marks explain at {ticks}, last at {format_instant(last)}: {remedy}."


@query()
def export_audit(
    ctx: Context,
    *,
    after: Annotated[Whole, "Leave out links up to and including this sequence number."] = 0,
    limit: Annotated[Whole | None, "The maximum number of links; all if left out."] = None,
) -> AuditExport:
    """Export the audit chain as JSON Lines, and its head.

    Save the head outside the store: verify_audit with that head shows whether the chain was cut off or rewritten since.
    """
    with ctx.reading() as connection:
        links = tuple(stored.links(connection, ctx.owner, after=after, limit=limit))
        return AuditExport(head=str(stored.head(connection, ctx.owner)), links=links)


@command()
def export_data(
    ctx: Context,
    *,
    path: Annotated[FilePath, "A new folder on this machine; an existing one is never written to."],
    tables: Annotated[
        Literal["csv", "parquet", "none"], "The format of the second file of each table, for spreadsheets."
    ] = "csv",
) -> ExportedData:
    """Export everything of the owner to a folder: each table as JSON Lines and as CSV or Parquet, and a manifest.

    The manifest has the rows and the hash of each file, the schema and the head of the audit chain. import_data reads
    the folder into an empty store, also of the other database. Files of the documents workspace are not in the store
    and not in the export.
    """
    folder = Path(path)
    manifest = write_archive(ctx, folder, tables=None if tables == "none" else tables)
    return ExportedData(
        path=str(folder),
        owner=manifest.owner,
        exported_at=manifest.exported_at,
        head=manifest.head,
        facts=_rows_by_table(manifest),
        derived={name: table.rows for name, table in manifest.derived.items()},
        notes=_workspace_note(manifest),
    )


@command()
def import_data(
    ctx: Context, *, path: Annotated[FilePath, "A folder that export_data wrote, on this machine."]
) -> ImportedData:
    """Import a folder of export_data into a store that has nothing of the owner yet.

    All facts come with their instants, former versions and audit chain, so every query answers as in the exported
    store; beliefs, habits and moods are derived again. Every file is checked before anything is written.
    """
    folder = Path(path)
    manifest = read_manifest(ctx, folder)
    notes = _workspace_note(manifest)
    with ctx.writing() as transaction:
        occupied = has_rows(transaction.connection, ctx.owner)
        replayed = occupied and str(stored.head(transaction.connection, ctx.owner)) == manifest.head
        if not replayed:
            if occupied:
                message = f"the owner {ctx.owner!r} has rows in this store already; import into an empty store"
                raise Conflict(message, field="path")
            different = read_archive(ctx, transaction, folder, manifest)
            notes = (
                *(f"{table}: derived again, some rows differ from the exported ones." for table in different),
                *notes,
            )
        _, _, findings = verify(transaction.connection, ctx.owner)
    if not replayed:
        ctx.record_head(parse_head(manifest.head), operation=RESTORE)
        ctx.write_columns_file()
    return ImportedData(
        path=str(folder),
        owner=manifest.owner,
        exported_at=manifest.exported_at,
        head=manifest.head,
        facts=_rows_by_table(manifest),
        intact=not findings,
        replayed=replayed,
        notes=notes if not findings else (*notes, _not_intact(len(findings))),
    )


def _rows_by_table(manifest: Manifest) -> dict[str, int]:
    return {name: table.rows for name, table in manifest.facts.items()}


def _workspace_note(manifest: Manifest) -> tuple[str, ...]:
    writings = manifest.facts[WRITINGS.table.name].rows
    return ("The files of the documents workspace are not in the export; copy that folder too.",) if writings else ()


def _not_intact(findings: int) -> str:
    return f"{count_of(findings, 'difference')} between rows and audit chain: verify_audit names them."
