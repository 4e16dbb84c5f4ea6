"""Writes of one transaction: each row once, changes recorded, contradictions refused."""

import pytest
from sqlalchemy import select

from backsight.core.errors import Conflict
from backsight.memory import Memory
from backsight.store.database import upsert_all
from backsight.store.strategies import ACCOUNTS
from store.test_database import memory_account


def test_upsert_writes_a_row_once(memory: Memory) -> None:
    row = ACCOUNTS.to_row(memory_account(memory))
    with memory.database.writing("ana") as connection:
        upsert_all(connection, ACCOUNTS.table, [row])
        upsert_all(connection, ACCOUNTS.table, [row | {"currency": "EUR"}])
        stored = connection.execute(select(ACCOUNTS.table)).mappings().one()
    assert stored["currency"] == "EUR"


def test_a_revision_records_only_a_changed_row(memory: Memory) -> None:
    with memory.writing() as transaction:
        transaction.revise(ACCOUNTS, memory_account(memory))
    with memory.writing() as transaction:
        transaction.revise(ACCOUNTS, memory_account(memory))
        assert transaction.changes == []
        transaction.revise(ACCOUNTS, memory_account(memory, currency="EUR"))
        (change,) = transaction.changes
        assert change.as_json()["set"] == ACCOUNTS.cells(ACCOUNTS.to_row(memory_account(memory, currency="EUR")))
    assert memory.verify_audit().intact


def test_a_row_that_contradicts_another_is_a_conflict(memory: Memory) -> None:
    with memory.writing() as transaction:
        transaction.add(ACCOUNTS, memory_account(memory))
    with pytest.raises(Conflict), memory.writing() as transaction:
        transaction.add(ACCOUNTS, memory_account(memory))
