"""Erasing deletes the rows of one owner in every table, and counts them."""

from backsight.memory import Memory, open_memory
from backsight.store import audit
from backsight.store.erasure import erase_rows
from backsight.testing import FakeClock, a_trade_call
from support import dump


def test_the_rows_of_one_owner_are_deleted_and_counted(memory: Memory, clock: FakeClock, url: str) -> None:
    with open_memory(url, owner="bob", clock=clock) as bob:
        bob.remember_trade(**a_trade_call())
    others = dump(memory)
    memory.remember_trade(**a_trade_call())
    stored = sum(map(len, dump(memory).values())) - sum(map(len, others.values()))
    with memory.database.writing("ana") as connection:
        assert erase_rows(connection, "ana") == stored - 1  # the link of the chain is not counted
        assert audit.head(connection, "ana").sequence == 1  # the next link is appended to it
    assert dump(memory) == others
