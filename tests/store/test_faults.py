"""Faults of disk, files, processes and neighbours: each gives a clear error or is recovered from."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from backsight.core.errors import Refused, Unavailable
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from backsight.testing import FakeClock, a_trade_call
from support import raw

TRADES = 30


@pytest.fixture
def path(tmp_path: Path, clock: FakeClock) -> Path:
    """The file of a store with some trades."""
    with open_memory(f"sqlite:///{tmp_path / 'store.db'}", owner="ana", clock=clock) as memory:
        for number in range(TRADES):
            clock.advance(minutes=1)
            memory.remember_trade(**a_trade_call(idempotency_key=str(number)))
    return tmp_path / "store.db"


def opened(path: Path, clock: FakeClock) -> Memory:
    return open_memory(f"sqlite:///{path}", owner="ana", clock=clock)


@pytest.fixture
def impatient(url: str, clock: FakeClock) -> Iterator[Memory]:
    """A memory that waits only a moment."""
    settings = Settings(url=url, owner="ana", lock_timeout=0.3, pool_timeout=0.1, connections=1)
    with open_memory(settings=settings, clock=clock) as memory:
        yield memory


def test_a_command_that_waits_too_long_for_the_lock_is_told_so(memory: Memory, impatient: Memory) -> None:
    with memory.writing(), pytest.raises(Unavailable, match=r"lock for longer than 0\.3 s \(setting lock_timeout\)"):
        impatient.remember_trade(**a_trade_call())
    assert not impatient.remember_trade(**a_trade_call()).replayed


def test_a_call_without_a_free_connection_is_told_so(impatient: Memory) -> None:
    with (
        impatient.reading(),
        pytest.raises(Unavailable, match=r"all 1 connections to .* were in use for 0\.1 s; .* setting connections"),
    ):
        impatient.list_trades()


def test_postgresql_ends_a_transaction_whose_process_was_stopped(postgres_url: str, clock: FakeClock) -> None:
    settings = Settings(url=postgres_url, owner="ana", idle_timeout=0.2)
    with open_memory(settings=settings, clock=clock) as stopped, open_memory(postgres_url, owner="ana") as other:
        with pytest.raises(Unavailable), stopped.writing() as transaction:  # noqa: PT012
            other.remember_trade(**a_trade_call())  # waits until the idle transaction is ended
            transaction.connection.execute(text("SELECT 1"))
        assert other.verify_audit().intact


def test_an_empty_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    empty = tmp_path / "store.db"
    empty.touch()
    with pytest.raises(Refused, match="exists and is empty: it is no store, or a copy without its write-ahead log"):
        open_memory(f"sqlite:///{empty}")
    assert empty.stat().st_size == 0


def test_a_copy_without_its_write_ahead_log_is_never_a_new_store(tmp_path: Path, clock: FakeClock) -> None:
    with opened(tmp_path / "store.db", clock) as memory:
        memory.remember_trade(**a_trade_call())
        head = memory.export_audit().head
        (tmp_path / "copy.db").write_bytes((tmp_path / "store.db").read_bytes())
    with opened(tmp_path / "copy.db", clock) as copy:
        assert [each.kind for each in copy.verify_audit(head=head).findings] == ["cut_off"]
    with closing(sqlite3.connect(tmp_path / "bare.db")) as bare:
        bare.execute("PRAGMA user_version = 7")
        bare.commit()
    with pytest.raises(Refused, match="exists and is empty"):
        opened(tmp_path / "bare.db", clock)


def test_a_store_is_readable_by_its_user_alone(path: Path, clock: FakeClock, tmp_path: Path) -> None:
    with opened(path, clock) as memory:
        memory.remember_trade(**a_trade_call())
        memory.save(tmp_path / "saved.db")
        files = [path, path.with_name("store.db-wal"), path.with_name("store.db-shm"), tmp_path / "saved.db"]
        assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * 4
        assert not any("Other users" in remark for remark in memory.doctor().remarks)
        path.chmod(0o644)
        assert any("chmod 600" in remark for remark in memory.doctor().remarks)


READER = """
import os, sys
from backsight import open_memory
from backsight.memory import OPERATIONS
dict(OPERATIONS)  # imports all that another user may not be allowed to read
if os.getuid() == 0:
    os.setuid(65534)
with open_memory(sys.argv[1], owner="ana") as memory:
    print(len(memory.list_trades(limit=100).trades))
    try:
        memory.open_account(venue="x", name="y")
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_file_that_may_not_be_written_can_be_read(path: Path) -> None:
    path.chmod(0o444)
    for folder in (path.parent, *path.parents):
        if str(folder).startswith("/dev/shm/") or folder.name.startswith("pytest"):
            folder.chmod(0o755)
    run = subprocess.run([sys.executable, "-c", READER, f"sqlite:///{path}"], capture_output=True, text=True)
    assert run.stdout.startswith(f"{TRADES}\nUnavailable"), run.stderr
    assert "open for reading only" in run.stdout


def test_flipped_pages_are_found_by_the_doctor_and_named_by_every_error(path: Path, clock: FakeClock) -> None:
    with closing(sqlite3.connect(path)) as store:
        (page,) = store.execute("SELECT rootpage FROM sqlite_master WHERE name = 'audit_log'").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    with opened(path, clock) as memory:
        diagnosis = memory.doctor()
        assert (diagnosis.healthy, {each.kind for each in diagnosis.findings}) == (False, {"damaged"})
        with pytest.raises(Unavailable, match=r"pages of the file are damaged; .* restore a backup"):
            memory.verify_audit()


def test_a_file_whose_beginning_is_gone_is_named(path: Path, clock: FakeClock) -> None:
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    with pytest.raises(Unavailable, match="damaged or of another program; restore a backup"):
        opened(path, clock)


def test_a_spoilt_cell_is_named_by_recall_and_doctor(memory: Memory, url: str) -> None:
    trade = memory.remember_trade(**a_trade_call(deployment=None)).trade
    assert memory.doctor().healthy
    with raw(url) as connection:
        connection.execute(text("UPDATE trade_history SET tags = 'spoilt'"))
        connection.execute(text("UPDATE episodic_memory SET tags = 'spoilt'"))
    with open_memory(url, owner="ana", clock=memory.clock) as later:
        for call in (lambda: later.recall_memories(symbol="XAUUSD"), lambda: later.get_trade(trade_id=trade.id)):
            with pytest.raises(Unavailable, match=r"changed outside Backsight and cannot be read: .* verify_audit"):
                call()
        diagnosis = later.doctor()
        assert not diagnosis.healthy
        assert {each.table for each in diagnosis.findings} == {"trade_history", "episodic_memory"}
        assert {each.kind for each in later.verify_audit().findings} == {"changed"}


def test_a_spoilt_derived_cell_is_named_and_repaired(memory: Memory, url: str) -> None:
    memory.remember_trade(**a_trade_call())
    with raw(url) as connection:
        connection.execute(text("UPDATE affective_state SET confidence = :huge"), {"huge": float("inf")})
    deployment = memory.get_my_deployments().deployments[0].deployment.name
    with open_memory(url, owner="ana", clock=memory.clock) as later:
        with pytest.raises(Unavailable, match=r"cannot be read: affective_state .*doctor --repair"):
            later.preview_context(deployment=deployment, symbols=["XAUUSD"])
        assert not later.doctor().healthy
        later.doctor(repair=True)
        assert later.preview_context(deployment=deployment, symbols=["XAUUSD"]).deployment == deployment


FULL = """
import resource, signal, sys
from backsight import open_memory
from backsight.testing import a_trade_call
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_memory(sys.argv[1], owner="ana") as memory:
    memory.remember_trade(**a_trade_call(idempotency_key="first"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, resource.RLIM_INFINITY))
    try:
        for number in range(100):
            memory.remember_trade(**a_trade_call(idempotency_key=str(number)))
            print(number, flush=True)
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    run = subprocess.run([sys.executable, "-c", FULL, url], capture_output=True, text=True, check=True)
    *written, error = run.stdout.splitlines()
    assert error.startswith("Unavailable"), run.stdout
    with opened(tmp_path / "store.db", clock) as memory:
        assert memory.verify_audit().intact
        assert len(memory.list_trades(limit=100, as_of=memory.now.replace(year=9000)).trades) == len(written) + 1


STOPPED = """
import os, signal, sys
from backsight import open_memory
from backsight.testing import a_trade_call
with open_memory(sys.argv[1], owner="ana") as memory, memory.writing():
    print("locked", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.slow
def test_a_process_that_is_stopped_while_it_holds_the_lock_holds_up_others_for_a_bounded_time(
    memory: Memory, impatient: Memory, url: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", STOPPED, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        with pytest.raises(Unavailable, match="lock for longer than"):
            impatient.remember_trade(**a_trade_call())
        process.kill()
    assert not impatient.remember_trade(**a_trade_call()).replayed
