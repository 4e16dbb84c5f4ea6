"""The status says what a store holds, as of any instant."""

from datetime import timedelta
from pathlib import Path

from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call


def test_the_status_counts_trades_by_mode_and_names_the_head(memory: Memory) -> None:
    assert memory.status().message == f"Nothing was traded or decided yet under the owner {memory.owner!r}."
    for number, mode in enumerate(("live", "live", "paper")):
        memory.remember_trade(**a_trade_call(mode=mode, idempotency_key=str(number)))
    status = memory.status()
    assert [(each.mode, each.trades, each.decisions) for each in status.modes] == [("live", 2, 0), ("paper", 1, 0)]
    assert status.head == memory.export_audit().head
    assert status.documents == 0


def test_the_status_as_of_an_earlier_instant_knows_nothing_later(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    earlier = memory.status(as_of=T0 - timedelta(days=900))
    assert (earlier.modes, earlier.head, earlier.last_command_at) == ((), None, None)


def test_imports_are_listed_with_their_instant_and_caller(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    empty = memory.list_imports()
    assert (empty.imports, empty.message[:31]) == ((), "No file was imported by then; `")
    path = tmp_path / "calendar.csv"
    path.write_text("kind,scheduled_at,title\ncpi,2026-07-01T12:30:00Z,CPI\n")
    first = clock.now()
    memory.import_events(path=str(path))
    clock.advance(days=1)
    memory.record_equity(equity=1_000.0)
    path.write_text("kind,scheduled_at,title\nfomc,2026-07-02T18:00:00Z,FOMC\n")
    memory.import_events(path=str(path))
    listed = memory.list_imports()
    assert [(each.at, each.operation, each.actor) for each in listed.imports] == [
        (clock.now(), "import_events", memory.actor),
        (first, "import_events", memory.actor),
    ]
    assert memory.list_imports(limit=1).imports == listed.imports[:1]
    assert memory.list_imports(as_of=first).imports == memory.list_imports(seen_at=first).imports == listed.imports[1:]
