"""What is erased leaves no text in the files of the store; what is thinned stays verifiable; nobody else is touched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from backsight import brief
from backsight.core.decision import Segment, Verdict
from backsight.core.errors import Invalid
from backsight.memory import Memory, open_memory
from backsight.services.library import Library
from backsight.settings import Settings
from backsight.store import images
from backsight.store.mapping import METADATA, OWNER
from backsight.store.row_security import WORDS_TABLE
from backsight.testing import FakeClock, a_snapshot, a_trade_call
from support import deployed, dump, lived_in, raw

SECRET = "zanzibarite"
"""A word that nobody else writes."""


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "TRADING_MANUAL.md").write_text(f"# Manual\n\nNever sell {SECRET}.\n")
    return folder


@pytest.fixture
def two_owners(
    url: str, clock: FakeClock, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Memory, Memory]]:
    """The memories of ana, in every table of which is the word, and of bob."""
    monkeypatch.setattr(images, "MIN_FILE_ROWS", 1)
    with (
        open_memory(url, owner="ana", actor="test", clock=clock) as ana,
        open_memory(url, owner="bob", actor="test", clock=clock) as bob,
    ):
        lived_in(ana, clock)
        ana.remember_trade(**a_trade_call(symbol="XAUUSD", reflection=f"a {SECRET} day", tags=[SECRET]))
        ana.library = Library(folder=str(workspace))
        ana.reindex()
        ana.recall_memories(symbol="XAUUSD", mode="all")
        ana.create_key(name=SECRET)
        bob.remember_trade(**a_trade_call())
        yield ana, bob


def rows_of(memory: Memory, owner: str) -> dict[str, int]:
    """The number of rows of an owner by table, for tables that have any."""
    with memory.database.reading(owner) as connection:
        counts = {
            table.name: len(connection.execute(select(table.c[OWNER]).where(table.c[OWNER] == owner)).all())
            for table in METADATA.sorted_tables
            if OWNER in table.c
        }
    return {name: count for name, count in counts.items() if count}


def test_nothing_of_an_erased_owner_remains(two_owners: tuple[Memory, Memory], url: str, tmp_path: Path) -> None:
    ana, bob = two_owners
    before = {name: [row for row in rows if row[0] == "bob"] for name, rows in dump(bob).items()}
    assert len(rows_of(ana, "ana")) > 30
    erased = ana.erase_owner(confirm="ana")
    assert erased.rows > 100
    assert erased.overwritten
    assert rows_of(ana, "ana") == {"audit_log": 1}
    assert {name: [row for row in rows if row[0] == "bob"] for name, rows in dump(bob).items()} == before
    assert bob.verify_audit().intact
    if url.startswith("sqlite"):
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        assert not [path.name for path in files if SECRET.encode() in path.read_bytes()]
    else:
        with raw(url) as connection:
            assert not connection.execute(text(f"SELECT * FROM {WORDS_TABLE} WHERE owner_id = 'ana'")).all()


def test_an_erasure_is_told_from_tampering(two_owners: tuple[Memory, Memory], clock: FakeClock, url: str) -> None:
    ana, _ = two_owners
    earlier = ana.verify_audit()
    assert earlier.checkpoint is not None
    clock.advance(minutes=1)
    erased = ana.erase_owner(confirm="ana")
    for verified in (
        ana.verify_audit(),
        ana.verify_audit(head=earlier.head),
        ana.verify_audit(since=earlier.checkpoint),
    ):
        assert verified.intact
        assert verified.head == erased.head
        assert verified.note.startswith(f"The owner erased everything before link {erased.links + 1}, at ")
    assert not ana.verify_audit(head=f"{erased.links}:{'0' * 64}").intact
    ana.remember_trade(**a_trade_call())
    assert ana.verify_audit(since=earlier.checkpoint).intact
    with raw(url) as connection:
        connection.execute(text("UPDATE audit_log SET at = at WHERE owner_id = 'ana'"))
        connection.execute(text("UPDATE audit_log SET previous = hash WHERE operation = 'erase_owner'"))
    assert not ana.verify_audit().intact


def test_removing_links_without_an_erasure_is_tampering(two_owners: tuple[Memory, Memory], url: str) -> None:
    ana, _ = two_owners
    last = ana.verify_audit().links
    with raw(url) as connection:
        connection.execute(text("DELETE FROM audit_log WHERE owner_id = 'ana' AND sequence < :last"), {"last": last})
    assert "link_missing" in {finding.kind for finding in ana.verify_audit().findings}


def test_an_erased_owner_can_begin_again(two_owners: tuple[Memory, Memory]) -> None:
    ana, _ = two_owners
    erased = ana.erase_owner(confirm="ana")
    assert ana.list_trades(mode="all").trades == ()
    assert ana.recall_memories(symbol="XAUUSD", mode="all").memories == ()
    ana.remember_trade(**a_trade_call())
    ana.reindex()
    verified = ana.verify_audit()
    assert verified.intact
    assert verified.links == erased.links + 2
    assert ana.doctor().healthy


def test_the_name_must_be_repeated(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    before = dump(memory)
    with pytest.raises(Invalid, match="'bob' is not the owner of this memory; repeat the name 'ana'"):
        memory.erase_owner(confirm="bob")
    assert dump(memory) == before


def test_an_erasure_on_postgresql_does_not_wait_for_others_nor_hold_them_up(
    postgres_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backsight.store.database.TABLE_LOCK_WAIT", 0.2)
    monkeypatch.setattr("backsight.store.database.READERS_END", (0.1,))
    with (
        open_memory(postgres_url, owner="ana", clock=clock) as ana,
        open_memory(postgres_url, owner="bob", clock=clock) as bob,
    ):
        for memory in (ana, bob):
            memory.remember_trade(**a_trade_call(idempotency_key="first"))
        with bob.reading() as connection:  # a reader that stays for long
            connection.execute(text("SELECT count(*) FROM trade_history"))
            erased = ana.erase_owner(confirm="ana")
            assert not erased.overwritten
            assert "could not be overwritten" in erased.notes[0]
            bob.remember_trade(**a_trade_call(idempotency_key="second"))
        assert rows_of(ana, "ana") == {"audit_log": 1}
        monkeypatch.setattr("backsight.ops.admin_backups.LONGEST_LOCK", 0.001)  # every table takes too long
        assert not ana.erase_owner(confirm="ana").overwritten
        monkeypatch.undo()
        assert ana.erase_owner(confirm="ana").overwritten
        with ana.reading() as connection:
            assert connection.execute(text("SHOW statement_timeout")).scalar() == "0"
            assert connection.execute(text("SHOW lock_timeout")).scalar() == "1min"
        assert len(bob.list_trades(mode="all").trades) == 2
        assert (bob.verify_audit().intact, ana.verify_audit().intact) == (True, True)


def test_rows_that_an_older_transaction_may_read_are_not_called_overwritten(
    postgres_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL writes a table anew with the rows that were deleted since the oldest transaction began."""
    monkeypatch.setattr("backsight.store.database.READERS_END", (0.1,))
    with open_memory(postgres_url, owner="ana", clock=clock) as ana:
        fact = ana.add_fact(fact="I owe Ferdinand money").fact
        engine = create_engine(postgres_url, isolation_level="REPEATABLE READ")
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))  # of no table: nothing waits for its locks
            erased = ana.erase_fact(fact_id=fact.id)
            assert not erased.overwritten
            assert "could not be overwritten" in erased.notes[0]
        engine.dispose()
        assert ana.vacuum().compacted


def test_an_erasure_while_another_process_reads_says_that_text_may_remain(tmp_path: Path, clock: FakeClock) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path}/store.db", owner="ana", lock_timeout=0.1)
    with open_memory(settings=settings, clock=clock) as memory, open_memory(settings=settings, clock=clock) as other:
        memory.remember_trade(**a_trade_call())
        with other.reading() as connection:
            connection.execute(text("SELECT count(*) FROM trade_history"))
            erased = memory.erase_owner(confirm="ana")
        assert not erased.overwritten
        assert any("could not be overwritten" in note for note in erased.notes)
        assert memory.erase_owner(confirm="ana").overwritten


SYSTEM = Segment(name="system", text="The same words at every tick.")


def ticked_daily(memory: Memory, clock: FakeClock, *, days: int) -> list[str]:
    """One tick a day with a prompt, an answer and a recall; the ids of the decisions."""
    deployed(memory)
    memory.remember_trade(**a_trade_call())
    ids = []
    for number in range(days):
        clock.advance(hours=24)
        closed = memory.close_tick(
            deployment="VolBreakout@main",
            at=clock.now(),
            before=a_snapshot(at=clock.now()),
            verdict=Verdict(kind="noop"),
            shown=[SYSTEM, Segment(name="market_data", text=f"## Market\nday {number}")],
            response=f"nothing on day {number}",
            recalls=[memory.recall_memories(symbol="XAUUSD", mode="all").recall],
        )
        ids.append(closed.decision.id)
    return ids


def test_old_prompts_and_recalls_are_thinned_and_the_rest_is_verified(memory: Memory, clock: FakeClock) -> None:
    ids = ticked_daily(memory, clock, days=6)
    earlier = memory.verify_audit()
    before = dump(memory)
    rehearsal = memory.retention(keep_days=2, dry_run=True)
    assert (rehearsal.prompts, brief(rehearsal).split()[:5]) == (6, ["Would", "remove", "the", "texts", "of"])
    assert dump(memory) == before
    thinned = memory.retention(keep_days=2)
    assert (thinned.prompts, thinned.recalls) == (6, 3)  # the market and the answer of three days
    old, new = memory.get_decision(decision_id=ids[0]), memory.get_decision(decision_id=ids[-1])
    assert (old.shown, old.response, old.thinned) == ((SYSTEM,), None, 2)
    assert (len(new.shown), new.response, new.thinned) == (2, "nothing on day 5", 0)
    assert memory.list_recalls(decision_id=ids[0]).thinned_before == thinned.before
    assert len(memory.list_recalls(decision_id=ids[-1]).recalls) == 1
    after = dump(memory)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"shown_segments", "recalls", "audit_log"}
    for verified in (memory.verify_audit(head=earlier.head), memory.verify_audit(since=earlier.checkpoint)):
        assert verified.intact
        assert "Thinned: retention removed 9 rows of before" in verified.note
    assert memory.retention(keep_days=2).prompts == 0


def test_a_row_that_somebody_removes_is_no_thinned_row(memory: Memory, clock: FakeClock, url: str) -> None:
    ticked_daily(memory, clock, days=4)
    memory.retention(keep_days=2)
    with raw(url) as connection:
        connection.execute(text("DELETE FROM recalls WHERE decision_id = (SELECT min(decision_id) FROM recalls)"))
    verified = memory.verify_audit()
    assert [(finding.kind, finding.table) for finding in verified.findings] == [("removed", "recalls")]


def test_a_thinned_prompt_that_is_shown_again_is_stored_again(memory: Memory, clock: FakeClock, url: str) -> None:
    with open_memory(url, owner="ana", clock=clock) as other:
        ids = ticked_daily(memory, clock, days=1)
        clock.advance(hours=72)
        assert other.retention(keep_days=2).prompts == 3
        clock.advance(hours=1)
        again = memory.close_tick(
            deployment="VolBreakout@main",
            at=clock.now(),
            before=a_snapshot(at=clock.now()),
            verdict=Verdict(kind="noop"),
            shown=[SYSTEM],
        )
        assert memory.get_decision(decision_id=again.decision.id).shown == (SYSTEM,)
        assert memory.get_decision(decision_id=ids[0]).thinned == 2
        assert memory.verify_audit().intact


def test_vacuum_gives_up_the_space_of_removed_rows(memory: Memory, clock: FakeClock) -> None:
    ticked_daily(memory, clock, days=3)
    memory.erase_owner(confirm="ana")
    assert memory.vacuum().compacted
    assert memory.verify_audit().intact
