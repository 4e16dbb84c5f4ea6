"""The state of a store in one answer: what it holds, its last tick, its index and its audit head."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Limit, SeenAt
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.context import Context
from backsight.store import audit, counts, documents
from backsight.store.schema import REVISION


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMode:
    """What is stored of one mode."""

    mode: str
    trades: int
    decisions: int
    last_trade_at: datetime | None
    """When the last trade was closed."""
    last_tick_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """What an owner has in a store, and the state of its index and of its audit chain."""

    message: str
    owner: str
    schema_revision: str
    modes: tuple[StoredMode, ...]
    documents: int
    """Indexed documents."""
    indexed_at: datetime | None
    """When the documents were last indexed; None if they never were."""
    head: str | None
    """The head of the audit chain: save it elsewhere, and verify_audit proves that nothing before it was changed. None
    as of an earlier instant."""
    last_command_at: datetime | None
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImport:
    """A file that was read into the store."""

    at: datetime
    operation: str
    actor: str
    """Who called it, as the audit chain names it."""
    link: int
    """The number of its link of the audit chain, which has its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImports:
    """The last imports of an owner, newest first."""

    imports: tuple[StoredImport, ...]
    message: str
    as_of: datetime


@query(audience=("trader", "coach"))
def list_imports(
    ctx: Context,
    *,
    limit: Annotated[Limit, "The most imports; the newest come first."] = 10,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> StoredImports:
    """List the files that were read into the store: when, by which operation and by whom."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        until = min(each for each in (view.as_of, seen_at) if each is not None)
        links = audit.last_imports(connection, ctx.owner, until=until, limit=limit)
    imports = tuple(
        StoredImport(at=each.at, operation=each.operation, actor=each.actor, link=each.sequence) for each in links
    )
    number = count_of(len(imports), "import")
    message = f"The last {number}, newest first." if len(imports) == limit else f"{number}, newest first."
    if not imports:
        message = "No file was imported by then; `backsight import FILE` reads exports of exchanges and brokers."
    return StoredImports(imports=imports, message=message, as_of=view.as_of)


@query(audience=("trader", "coach"))
def status(ctx: Context, *, as_of: AsOf = None, seen_at: SeenAt = None) -> StoreStatus:
    """See what the store holds: trades and decisions by mode, the last tick, the index and the audit head."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        trades = {each.mode: each for each in counts.trades_by_mode(view)}
        decisions = {each.mode: each for each in counts.decisions_by_mode(view)}
        until = min((each for each in (as_of, seen_at) if each is not None), default=None)
        index = documents.index_state(connection, ctx.owner, until)
        head = None if until else str(audit.head(connection, ctx.owner))
        last_at = None if until else audit.head_instant(connection, ctx.owner)
    modes = tuple(
        StoredMode(
            mode=mode,
            trades=trades[mode].rows if mode in trades else 0,
            decisions=decisions[mode].rows if mode in decisions else 0,
            last_trade_at=trades[mode].last_at if mode in trades else None,
            last_tick_at=decisions[mode].last_at if mode in decisions else None,
        )
        for mode in sorted({*trades, *decisions})
    )
    return StoreStatus(
        message=_sentence(ctx.owner, modes),
        owner=ctx.owner,
        schema_revision=REVISION,
        modes=modes,
        documents=0 if index is None else index.documents,
        indexed_at=None if index is None else index.changed_at,
        head=head,
        last_command_at=last_at,
        as_of=view.as_of,
    )


def _sentence(owner: str, modes: tuple[StoredMode, ...]) -> str:
    if not modes:
        return f"Nothing was traded or decided yet under the owner {owner!r}."
    parts = [f"{mode.mode}: {count_of(mode.trades, 'trade')}, {count_of(mode.decisions, 'decision')}" for mode in modes]
    return f"Owner {owner!r}. {'; '.join(parts)}."
