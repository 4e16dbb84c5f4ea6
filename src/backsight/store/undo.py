"""Undoing one link of the audit chain: its rows return to what they were before, and a new link records that."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, select

from backsight.core.audit import EMPTY, AuditRow, Cell, ChainHead, item_hash
from backsight.core.errors import Conflict
from backsight.core.instants import parse_instant
from backsight.store.audit import AUDIT, changes_of
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED, Noun, UtcInstant
from backsight.store.reading import owned
from backsight.store.tables import AUDITED
from backsight.store.transaction import Transaction

_NOUNS = {noun.table.name: noun for noun in AUDITED}
_REPLACED = {REPLACED_KNOWN, REPLACED_RECORDED}


def link_that_wrote(
    connection: Connection, noun: Noun[Any], owner: str, row: Any, *, operation: str
) -> AuditRow | None:
    """The last link of an operation that wrote a row as part of a batch."""
    written = item_hash(noun.cells_of_values(noun.to_values(row)))
    c = AUDIT.table.c
    newest = connection.execute(owned(AUDIT, owner, c.operation == operation).order_by(c.sequence.desc()))
    return next((AUDIT.from_row(link) for link in newest if written in link.changes), None)


def undo_rows(transaction: Transaction, link: AuditRow) -> None:
    """Return every row that a link wrote singly to what it was before; `Conflict` if one was changed since."""
    for change in reversed(json.loads(link.changes)):
        if "items" not in change:
            _undo(transaction, link, _NOUNS[change["table"]], change)


def delete_rows(transaction: Transaction, noun: Noun[Any], owner: str, **where: str) -> None:
    """Delete the rows of a table that have these values."""
    c = noun.table.c
    matching = [c[name] == value for name, value in where.items()]
    rows = transaction.connection.execute(select(*noun.stored_columns).where(c[OWNER] == owner, *matching))
    for row in rows.mappings().all():
        transaction.put_back(noun, _key(noun, owner, noun.key_of(row)), None)


def _undo(transaction: Transaction, link: AuditRow, noun: Noun[Any], change: Mapping[str, Any]) -> None:
    connection, key = transaction.connection, _key(noun, link.owner_id, change["key"])
    current = connection.execute(noun.select_by_key, key).mappings().first()
    if (None if current is None else noun.cells(current)) != change["set"]:
        name = ", ".join(map(str, change["key"]))
        message = f"{noun.table.name} {name} was changed after the tick; undo the later change first"
        raise Conflict(message, field="decision_id")
    transaction.put_back(noun, key, _cells_before(connection, link, noun, change, key) if "was" in change else None)


def _key(noun: Noun[Any], owner: str, key: Collection[Cell]) -> dict[str, Any]:
    """The parameters that select a row by the key that the audit chain has for it."""
    values = {
        name: parse_instant(str(cell)) if isinstance(noun.table.c[name].type, UtcInstant) else cell
        for name, cell in zip(noun.key, key, strict=True)
    }
    return {OWNER: owner, **values}


def _cells_before(
    connection: Connection, link: AuditRow, noun: Noun[Any], change: Mapping[str, Any], key: Mapping[str, Any]
) -> dict[str, Cell]:
    """A row as it was before a change: from its replaced versions, else from the link that wrote it last."""
    for cells in (*_versions(connection, noun, key), *_earlier(connection, link, noun, change["key"])):
        if item_hash(cells) == change["was"]:
            return cells
    message = f"the former version of {noun.table.name} {', '.join(map(str, change['key']))} is not stored"
    raise Conflict(f"{message}; the tick cannot be voided", field="decision_id")


def _versions(connection: Connection, noun: Noun[Any], key: Mapping[str, Any]) -> list[dict[str, Cell]]:
    if noun.former is None:
        return []
    table = noun.former.table
    rows = connection.execute(
        select(*noun.former.stored_columns).where(*(table.c[name] == value for name, value in key.items()))
    )
    cells = (noun.former.cells(row) for row in rows.mappings())
    return [{name: cell for name, cell in each.items() if name not in _REPLACED} for each in cells]


def _earlier(connection: Connection, link: AuditRow, noun: Noun[Any], key: list[Cell]) -> list[dict[str, Cell]]:
    until = ChainHead(sequence=link.sequence - 1, hash=link.previous)
    changes = (
        change
        for _, text in changes_of(connection, link.owner_id, noun.table.name, after=EMPTY, until=until)
        for change in json.loads(text)
        if change["table"] == noun.table.name and change.get("key") == key
    )
    return [change["set"] for change in changes if change["set"] is not None]
