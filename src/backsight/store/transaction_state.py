"""What a running transaction knows: the heads of audit chains, the tables it wrote, and values that are still valid.

`store/unchanged.py` explains when a value is valid.
"""

from collections import OrderedDict
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from sqlalchemy import Connection

from backsight.core.audit import ChainHead

TRANSACTION = "backsight_transaction"
"""Key of the running transaction's state in the information of its connection."""
MOST_OWNERS = 64
MOST_VALUES = 512
"""Values kept for an owner; at one more, all of them are dropped."""
ANY_TABLE = "*"
"""The name in `touched` of a statement whose tables are not known."""


Values = dict[Hashable, tuple[frozenset[str], Any]]


@dataclass(slots=True)
class OwnerValues:
    """The values of one owner at one head of the chain."""

    head: ChainHead
    values: Values = field(default_factory=dict)
    """By key: the tables that a value was read from, and the value."""

    def after(self, head: ChainHead, touched: Collection[str]) -> "OwnerValues":
        """The values at a later head, after some tables were written."""
        if ANY_TABLE in touched:
            return OwnerValues(head)
        values = {key: entry for key, entry in list(self.values.items()) if entry[0].isdisjoint(touched)}
        return OwnerValues(head, values)


class UnchangedValues:
    """The values that a store's connections share; bounded in owners and in values an owner."""

    def __init__(self) -> None:
        self._owners: OrderedDict[str, OwnerValues] = OrderedDict()
        self._lock = Lock()

    def at(self, owner: str, head: ChainHead) -> OwnerValues:
        """The values of an owner at a head; values at an earlier head are dropped."""
        with self._lock:
            current = self._owners.get(owner)
            if current is not None and current.head == head:
                self._owners.move_to_end(owner)
                return current
            new = OwnerValues(head)
            if current is None or current.head.sequence <= head.sequence:  # else a reader of an earlier snapshot
                self._replace(owner, new)
            return new

    def last(self, owner: str, key: Hashable) -> Any:
        """The value under a key at the last known head; None if there is none."""
        with self._lock:
            current = self._owners.get(owner)
            entry = None if current is None else current.values.get(key)
            return None if entry is None else entry[1]

    def advance(self, owner: str, before: ChainHead, after: ChainHead, touched: Collection[str]) -> None:
        """Keep the values of tables that a committed command did not touch."""
        with self._lock:
            current = self._owners.get(owner)
            if current is None or current.head != before:
                return
            self._replace(owner, current.after(after, touched))

    def drop(self, touched: Collection[str]) -> None:
        """Drop every owner's values of some tables, because rows were written without a link."""
        with self._lock:
            for owner, current in list(self._owners.items()):
                self._owners[owner] = current.after(current.head, touched)

    def _replace(self, owner: str, values: OwnerValues) -> None:
        self._owners[owner] = values
        self._owners.move_to_end(owner)
        while len(self._owners) > MOST_OWNERS:
            self._owners.popitem(last=False)


@dataclass(slots=True)
class TransactionState:
    """What a transaction has read of the chains, and the tables that it has written."""

    shared: UnchangedValues
    heads: dict[str, ChainHead] = field(default_factory=dict)
    """The head of each owner's chain, as the transaction sees it."""
    first_heads: dict[str, ChainHead] = field(default_factory=dict)
    """The heads before the transaction wrote anything."""
    touched: set[str] = field(default_factory=set)
    written: list[tuple[str, Hashable, frozenset[str], Any]] = field(default_factory=list)
    """Values that are valid once the transaction is committed: owner, key, tables, value."""

    def touch(self, table: str) -> None:
        """Note a write to a table; a value that was written before may no longer follow from its rows."""
        self.touched.add(table)
        if self.written:
            self.written = [entry for entry in self.written if table != ANY_TABLE and table not in entry[2]]

    def has_touched(self, tables: frozenset[str]) -> bool:
        """Whether the transaction wrote to one of the tables."""
        return bool(self.touched) and (ANY_TABLE in self.touched or not tables.isdisjoint(self.touched))

    def committed(self) -> None:
        """Carry the shared values over to the new heads, without those of tables that were written."""
        if not self.touched:
            return
        if not self.first_heads:
            self.shared.drop(self.touched)
        for owner, head in self.first_heads.items():
            self.shared.advance(owner, head, self.heads[owner], self.touched)
        for owner, key, tables, value in self.written:
            if owner in self.heads:
                self.shared.at(owner, self.heads[owner]).values[key] = tables, value


def state_of(connection: Connection) -> TransactionState | None:
    """The state of the running transaction; None for a connection that `Database` did not open."""
    state: TransactionState | None = connection.info.get(TRANSACTION)
    return state


def mark_touched(connection: Connection, table: str) -> None:
    """Note that the transaction writes to a table."""
    state = state_of(connection)
    if state is not None:
        state.touch(table)
