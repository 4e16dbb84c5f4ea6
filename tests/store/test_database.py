"""Stores are opened and refused, and transactions are atomic."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from backsight.core.errors import BacksightError, Invalid, Refused, Unavailable
from backsight.core.portfolio import Account
from backsight.memory import Memory, open_memory, open_simulation
from backsight.store.database import open_database
from backsight.store.strategies import ACCOUNTS
from backsight.testing import FakeClock, a_trade_call
from support import lived_in, raw


def test_opening_again_keeps_the_rows(url: str, clock: FakeClock) -> None:
    with open_memory(url, clock=clock) as memory:
        remembered = memory.remember_trade(**a_trade_call()).trade
    with open_memory(url, clock=clock) as memory:
        assert memory.get_trade(trade_id=remembered.id).trade == remembered


def test_a_failed_command_writes_nothing(memory: Memory) -> None:
    before = memory.verify_audit()
    with pytest.raises(ZeroDivisionError), memory.writing() as transaction:  # noqa: PT012
        transaction.add(ACCOUNTS, memory_account(memory))
        raise ZeroDivisionError
    assert memory.verify_audit() == before


def memory_account(memory: Memory, currency: str = "USD") -> Account:
    return Account(
        owner_id=memory.owner,
        id="a1",
        venue="v",
        name="n",
        currency=currency,
        mode="live",
        position_mode="netting",
        known_at=memory.now,
        recorded_at=memory.now,
    )


def test_a_read_transaction_sees_one_snapshot(memory: Memory, url: str, clock: FakeClock) -> None:
    with memory.reading() as connection:
        first = connection.execute(select(ACCOUNTS.table)).all()
        with open_memory(url, owner="ana", clock=clock) as other:
            other.open_account(venue="binance", name="main")
        assert connection.execute(select(ACCOUNTS.table)).all() == first == []


def in_threads(work: Callable[[int], object], count: int = 8) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 (shown by the test's own thread)
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_many_writers_keep_one_chain(memory: Memory) -> None:
    def write(number: int) -> None:
        for step in range(5):
            memory.remember_trade(**a_trade_call(idempotency_key=f"{number}-{step}", strategy_name=f"S{number}"))

    in_threads(write)
    verified = memory.verify_audit()
    assert verified.intact
    assert (verified.links, len(memory.list_trades(limit=100).trades)) == (40, 40)


def test_a_copy_that_is_locked_for_a_moment_is_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "store.db"
    with open_simulation(clock) as simulation:
        simulation.save(path)  # a copy has no write-ahead log yet
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        unlock = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        unlock.start()
        open_database(f"sqlite:///{path}").close()
        unlock.join()


def test_concurrent_opens_create_one_store(url: str) -> None:
    in_threads(lambda _: open_database(url).close())
    with open_memory(url) as memory:
        assert memory.verify_audit().intact


def test_another_process_sees_and_adds(url: str) -> None:
    program = (
        "import sys; from backsight import open_memory\n"
        "with open_memory(sys.argv[1], owner='ana') as memory:\n"
        "    memory.open_account(venue='binance', name='main')\n"
    )
    with open_memory(url, owner="ana") as memory:
        subprocess.run([sys.executable, "-c", program, url], check=True)
        assert memory.verify_audit().links == 1
        assert memory.open_account(venue="binance", name="main").replayed


def test_a_memory_without_a_file_serves_many_threads(clock: FakeClock) -> None:
    with open_memory("sqlite://", clock=clock) as memory:
        in_threads(lambda number: memory.remember_trade(**a_trade_call(idempotency_key=str(number))))
        assert len(memory.list_trades().trades) == 8


def test_sqlite_is_configured_for_durability(tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path}/new/folder/store.db") as memory, memory.reading() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 60_000}


def test_a_newer_database_is_refused_with_the_version_it_needs(url: str) -> None:
    open_memory(url).close()
    with raw(url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0009_2.3.0'"))
    with pytest.raises(Refused, match=r"needs Backsight 2\.3\.0"):
        open_memory(url)


def test_a_foreign_database_is_not_changed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    with raw(url) as connection:
        connection.execute(text("CREATE TABLE trade_records (id INTEGER)"))
    with pytest.raises(Refused, match="trade_records"):
        open_memory(url)


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("no url at all", Invalid, "url: this is not a database URL; give one like sqlite:///agent.db"),
        ("mysql://localhost/x", Invalid, "url: 'mysql' is not supported; give one like sqlite:///agent.db"),
        ("sqlite:////dev/null/x.db", Unavailable, "url: cannot use sqlite"),
        ("sqlite:////", Unavailable, "url: cannot use sqlite"),
        ("postgresql://ana:secret@127.0.0.1:1/x", Unavailable, "url: cannot use postgresql"),
    ],
)
def test_a_url_that_cannot_be_opened_is_an_error_of_one_line(
    url: str, kind: type[BacksightError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        open_memory(url)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("This is a diary, not a database. " * 50)
    with pytest.raises(Unavailable, match="file is not a database"):
        open_memory(f"sqlite:///{tmp_path}/x.db")


def test_owners_do_not_see_each_others_rows(url: str, clock: FakeClock) -> None:
    with open_memory(url, owner="ana", clock=clock) as ana, open_memory(url, owner="bob", clock=clock) as bob:
        lived_in(ana, clock)
        trade = ana.list_trades().trades[0]
        assert bob.list_trades().trades == ()
        assert bob.recall_memories(symbol="XAUUSD").candidates == 0
        assert bob.get_my_deployments().deployments == ()
        assert bob.verify_audit().links == 0
        with pytest.raises(BacksightError, match="no trade"):
            bob.get_trade(trade_id=trade.id)
        with pytest.raises(BacksightError, match="no deployment"):
            bob.remember_trade(**a_trade_call(deployment="VolBreakout@main"))


def test_writing_to_a_store_without_its_tables_is_unavailable(tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path}/x.db") as memory:
        with raw(f"sqlite:///{tmp_path}/x.db") as connection:
            connection.execute(text("DROP TABLE accounts"))
        with pytest.raises(Unavailable, match="no such table"):
            memory.open_account(venue="binance", name="main")


def test_rows_of_two_owners_may_share_an_id(memory: Memory) -> None:
    row = ACCOUNTS.to_row(memory_account(memory))
    with memory.database.writing("ana") as connection:
        connection.execute(insert(ACCOUNTS.table), [row, row | {"owner_id": "bob"}])
