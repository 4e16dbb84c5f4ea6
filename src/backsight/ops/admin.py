"""The audit chain: proof of what was written when, and that nothing was changed since."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from backsight.arguments import Flag, Key, Whole
from backsight.core.audit import AuditRow, Finding, parse_head
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.learning import find_differences, rebuild_rows
from backsight.store import audit as stored
from backsight.store.database import Connection
from backsight.store.experience import DERIVED, count
from backsight.store.verify import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether every row is as the commands left it; if not, what differs and where."""

    intact: bool
    links: int
    rows: int
    head: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Whether every memory is what the episodes make of it, and what else is worth knowing of the store."""

    healthy: bool
    """As it was found, before any repair."""
    rows: Mapping[str, int]
    """How many derived rows were compared, by table."""
    findings: tuple[Finding, ...]
    repaired: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditExport:
    """Links of the chain in order, and the head to keep elsewhere."""

    head: str
    links: tuple[AuditRow, ...]


@query()
def verify_audit(
    ctx: Context,
    *,
    head: Annotated[Key | None, "A head that an earlier export printed, kept elsewhere since."] = None,
) -> Verification:
    """Verify that nothing was changed behind Backsight's back.

    Every row is read again and compared with what the commands wrote, and the chain with itself. Where all of that is
    intact, beliefs, habits and moods, which follow from it, are derived again and compared. With a head that was kept
    elsewhere it also shows whether the chain was cut off or rewritten.
    """
    kept = None if head is None else parse_head(head)
    with ctx.reading() as connection:
        end, rows, findings = verify(connection, ctx.owner, kept=kept)
        findings = findings or find_differences(connection, ctx.owner)
    return Verification(intact=not findings, links=end.sequence, rows=rows, head=str(end), findings=tuple(findings))


@command()
def doctor(
    ctx: Context,
    *,
    repair: Annotated[Flag, "Write what was derived where it differs from what is kept."] = False,
) -> Diagnosis:
    """Derive every memory again from the episodes and compare it with what is kept.

    Beliefs, evidence, habits and moods follow from trades, decisions and equity alone: a difference means that somebody
    changed them, or a defect. The columns that recall scans are compared too; where they differ they are made anew.
    """
    if repair:
        with ctx.reading() as connection:
            spoilt = _spoilt_columns(ctx, connection)
        with ctx.writing() as transaction:
            found = _diagnosis(ctx, transaction.connection, spoilt)
            if not found.healthy:
                rebuild_rows(transaction, ctx.owner)
        return replace(found, repaired=not found.healthy)
    with ctx.reading() as connection:
        return _diagnosis(ctx, connection, _spoilt_columns(ctx, connection))


def _spoilt_columns(ctx: Context, connection: Connection) -> list[Finding]:
    """Episodes of which the columns do not say what the store does; they are forgotten then, and made anew."""
    spoilt = ctx.database.images.spoilt(connection, ctx.owner)
    detail = "not what the episode says; made anew"
    return [Finding(kind="changed", table="columns", key=each, detail=detail) for each in spoilt]


def _diagnosis(ctx: Context, connection: Connection, spoilt: list[Finding]) -> Diagnosis:
    findings = [*find_differences(connection, ctx.owner), *spoilt]
    return Diagnosis(
        healthy=not findings,
        rows={noun.table.name: count(connection, noun, ctx.owner) for noun in DERIVED},
        findings=tuple(findings),
        repaired=False,
        remarks=tuple(ctx.database.remarks),
    )


@query()
def export_audit(
    ctx: Context,
    *,
    after: Annotated[Whole, "Leave out links up to this sequence number."] = 0,
    limit: Annotated[Whole | None, "How many links at most; all if left out."] = None,
) -> AuditExport:
    """Export the audit chain as JSON Lines, and its head.

    Keep the head somewhere else: verify_audit with it shows whether the chain was cut off or rewritten since.
    """
    with ctx.reading() as connection:
        links = tuple(stored.links(connection, ctx.owner, after=after, limit=limit))
        return AuditExport(head=str(stored.head(connection, ctx.owner)), links=links)
