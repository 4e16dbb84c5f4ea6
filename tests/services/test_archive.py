"""An export has everything of an owner, and a store that imports it answers every query alike, on either database."""

import csv
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused
from backsight.core.market import Bar
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.services.archive import MANIFEST
from backsight.services.table_files import parquet_modules
from backsight.store.archive import FACTS, ROWS_AT_ONCE
from backsight.store.experience import DERIVED
from backsight.testing import T0, FakeClock, a_trade_call
from parity.test_parity import SCENARIO
from support import dump, fresh_postgres, lived_in_copy


@pytest.fixture(params=["sqlite", "postgresql"])
def lived(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    """Ana's memory with rows in every table."""
    with lived_in_copy(request.param, tmp_path) as (url, last):
        clock.advance(seconds=(last - T0).total_seconds())
        with open_memory(url, owner="ana", actor="test", clock=clock) as memory:
            yield memory


ON_SQLITE = pytest.mark.parametrize("lived", ["sqlite"], indirect=True)


def other_store(memory: Memory, folder: Path) -> str:
    """The URL of an empty store on the other database."""
    return fresh_postgres() if memory.database.name.startswith("sqlite") else f"sqlite:///{folder}/other.db"


def answers_to_queries(memory: Memory) -> list[Any]:
    """The answer to every query of the parity scenario, errors included."""
    answers = []
    for name, arguments in SCENARIO:
        if OPERATIONS[name].kind == "query" and "no_such_argument" not in arguments:
            try:
                answers.append(OPERATIONS[name].as_json(getattr(memory, name)(**arguments)))
            except BacksightError as error:
                answers.append(error.as_json())
    return answers


def play(memory: Memory) -> None:
    for name, arguments in SCENARIO:
        if OPERATIONS[name].kind == "command" and OPERATIONS[name].noun != "documents":
            try:
                getattr(memory, name)(**arguments)
            except BacksightError:
                continue


def test_an_imported_store_answers_every_query_alike(clock: FakeClock, tmp_path: Path, postgres_url: str) -> None:
    with (
        open_memory(f"sqlite:///{tmp_path}/store.db", owner="ana", actor="test", clock=clock) as memory,
        open_memory(postgres_url, owner="ana", actor="mover", clock=clock) as copy,
    ):
        play(memory)
        memory.export_data(path=str(tmp_path / "out"))
        copy.recall_memories(symbol="XAUUSD")  # leaves an image of the empty store behind
        imported = copy.import_data(path=str(tmp_path / "out"))
        assert imported.intact
        assert not imported.replayed
        assert imported.notes == ()
        expected, answers = answers_to_queries(memory), answers_to_queries(copy)
        assert answers == expected
        assert sum("error" not in answer for answer in answers) > 30
        assert copy.doctor().healthy
        # And it learns on alike.
        later = a_trade_call(pnl=-300.0, pnl_r=-1.0, closed_at=clock.now(), opened_at=None)
        assert copy.remember_trade(**later).episode_id == memory.remember_trade(**later).episode_id
        assert copy.list_beliefs() == memory.list_beliefs()


def test_every_row_comes_back_with_its_instants_and_versions(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    exported = lived.export_data(path=str(tmp_path / "out"), tables="none")
    assert all(exported.facts.values())
    assert exported.head == lived.verify_audit().head
    with open_memory(other_store(lived, tmp_path), owner="ana", clock=clock) as copy:
        copy.import_data(path=str(tmp_path / "out"))
        index = ("documents", "document_chunks", "chunk_embeddings")
        rows, expected = dump(copy), dump(lived)
        assert {name: each for name, each in rows.items() if name not in index} == {
            name: each for name, each in expected.items() if name not in index
        }
        assert copy.verify_audit(head=exported.head).intact
        # Exported again, from the other database, the files are the same bytes.
        copy.export_data(path=str(tmp_path / "again"), tables="none")
    manifests = [json.loads((tmp_path / each / MANIFEST).read_text()) for each in ("out", "again")]
    assert manifests[0] == manifests[1]


@ON_SQLITE
def test_importing_again_changes_nothing(lived: Memory, tmp_path: Path) -> None:
    lived.export_data(path=str(tmp_path / "out"), tables="none")
    before = dump(lived)
    assert lived.import_data(path=str(tmp_path / "out")).replayed
    assert dump(lived) == before


@ON_SQLITE
def test_a_store_with_rows_is_refused(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    lived.export_data(path=str(tmp_path / "out"), tables="none")
    clock.advance(minutes=1)
    lived.record_equity(account="main", equity=9_999.0)
    before = dump(lived)
    with pytest.raises(Conflict, match="has rows in this store already; import into an empty store"):
        lived.import_data(path=str(tmp_path / "out"))
    assert dump(lived) == before


@ON_SQLITE
def test_another_owner_is_refused(lived: Memory, clock: FakeClock, tmp_path: Path) -> None:
    lived.export_data(path=str(tmp_path / "out"), tables="none")
    with open_memory(f"sqlite:///{tmp_path}/bob.db", owner="bob", clock=clock) as other:
        with pytest.raises(Refused, match="of the owner 'ana', not 'bob'; open the memory as 'ana'"):
            other.import_data(path=str(tmp_path / "out"))
        with pytest.raises(NotFound, match="nothing is stored for the owner 'bob'"):
            other.export_data(path=str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()


@ON_SQLITE
def test_an_existing_folder_is_not_touched(lived: Memory, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(Conflict, match="exists already; name a new folder"):
        lived.export_data(path=str(tmp_path / "out"))
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was exported from SQLite, with CSV files."""
    folder = tmp_path_factory.mktemp("lived")
    with (
        lived_in_copy("sqlite", folder) as (url, last),
        open_memory(url, owner="ana", clock=FakeClock(last)) as memory,
    ):
        memory.export_data(path=str(folder / "out"))
    return folder / "out"


def changed_line(folder: Path) -> None:
    file = folder / "trade_history.jsonl"
    file.write_bytes(file.read_bytes().replace(b"XAUUSD", b"XAGUSD"))


def cut_off(folder: Path) -> None:
    file = folder / "audit_log.jsonl"
    file.write_bytes(file.read_bytes()[:-100])


DAMAGES: list[tuple[Callable[[Path], object], type[BacksightError], str]] = [
    (changed_line, Invalid, "trade_history.jsonl is not the file that was exported"),
    (cut_off, Invalid, "audit_log.jsonl is not the file that was exported"),
    (lambda folder: (folder / "fills.jsonl").unlink(), NotFound, "fills.jsonl cannot be read"),
    (lambda folder: (folder / MANIFEST).unlink(), NotFound, "give a folder that export_data wrote to its end"),
    (lambda folder: (folder / MANIFEST).write_bytes(b"\x00\xff"), Invalid, "is not the manifest of an export"),
    (lambda folder: in_manifest(folder, version=2), Invalid, "is not the manifest of an export \\(version"),
    (lambda folder: in_manifest(folder, schema="0000"), Refused, "the export has the schema '0000'"),
    (lambda folder: in_manifest(folder, facts={}), Invalid, "the manifest does not list accounts.jsonl"),
]


def in_manifest(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, **changes}))


@pytest.mark.parametrize(("damage", "error", "message"), DAMAGES)
def test_a_damaged_export_is_refused_and_nothing_is_written(
    damage: Callable[[Path], object], error: type[BacksightError], message: str, exported: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "out"))
    damage(folder)
    with open_memory(f"sqlite:///{tmp_path}/new.db", owner="ana", clock=FakeClock(T0)) as memory:
        with pytest.raises(error, match=message):
            memory.import_data(path=str(folder))
        assert not any(dump(memory).values())


def rewritten(folder: Path, table: str, line: bytes) -> None:
    """Replace the first line of a table and its hash, as somebody would who forges an export."""
    file = folder / f"{table}.jsonl"
    _, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(line + b"\n" + rest)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["facts"][table]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    in_manifest(folder, facts=manifest["facts"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1: it is not JSON"),
        (b'{"id": "x"}', "line 1: its columns are not those of the table"),
        (b"NESTED", "line 1: a value is not a text"),
        (b"INFINITE", "line 1: a value is not a text"),
        (b"HUGE", "line 1: a value is not a text"),
    ],
)
def test_a_line_that_no_export_wrote_is_refused(line: bytes, message: str, exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "out"))
    row = json.loads((folder / "accounts.jsonl").read_text().splitlines()[0])
    values: dict[bytes, Any] = {b"NESTED": {"a": 1}, b"INFINITE": float("inf"), b"HUGE": 2**63}
    if line in values:
        line = json.dumps({**row, "venue": values[line]}).encode()
    rewritten(folder, "accounts", line)
    with open_memory(f"sqlite:///{tmp_path}/new.db", owner="ana", clock=FakeClock(T0)) as memory:
        with pytest.raises(Invalid, match=message):
            memory.import_data(path=str(folder))
        assert not any(dump(memory).values())


def test_rows_that_contradict_the_chain_are_named(exported: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported, tmp_path / "out"))
    row = json.loads((folder / "instruments.jsonl").read_text().splitlines()[0])
    rewritten(folder, "instruments", json.dumps({**row, "multiplier": 7.0}).encode())
    with open_memory(f"sqlite:///{tmp_path}/new.db", owner="ana", clock=FakeClock(T0)) as memory:
        imported = memory.import_data(path=str(folder))
        assert not imported.intact
        assert any("verify_audit names them" in note for note in imported.notes)
        (finding,) = memory.verify_audit().findings
        assert finding.table == "instruments"


@ON_SQLITE
def test_tables_are_readable_as_csv_and_parquet(lived: Memory, tmp_path: Path) -> None:
    lived.export_data(path=str(tmp_path / "csv"))
    lived.export_data(path=str(tmp_path / "parquet"), tables="parquet")
    names = {noun.table.name for noun in (*FACTS, *DERIVED)}
    assert {each.stem for each in (tmp_path / "csv").glob("*.csv")} == names
    with (tmp_path / "csv" / "trade_history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet_modules()[1].read_table(tmp_path / "parquet" / "trade_history.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "csv" / "trade_history.jsonl").read_text().splitlines()]
    assert len(rows) == len(table) == len(lines) > 20
    for row, typed, line in zip(rows, table, lines, strict=True):
        assert float(row["realized_pnl"]) == typed["realized_pnl"] == line["realized_pnl"]
        assert row["known_at"] == line["known_at"]
        assert typed["known_at"].isoformat()[:19] == line["known_at"][:19]


@ON_SQLITE
def test_progress_counts_every_row(lived: Memory, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    lived.progress = lambda part, done, total: reports.append((part, done, total))
    exported = lived.export_data(path=str(tmp_path / "out"), tables="none")
    total = sum(exported.facts.values()) + sum(exported.derived.values())
    assert reports[-1] == ("exporting", total, total)


def test_rows_are_streamed_in_parts(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    start = T0 - timedelta(minutes=ROWS_AT_ONCE + 10)
    bars = [
        Bar(symbol="BTC", interval_seconds=60, opened_at=start + timedelta(minutes=n), open=1, high=1, low=1, close=1)
        for n in range(ROWS_AT_ONCE + 5)
    ]
    for first in range(0, len(bars), 500):
        memory.record_bars(bars=bars[first : first + 500])
    exported = memory.export_data(path=str(tmp_path / "out"))
    assert exported.facts["bars"] == len(bars)
    with open_memory(other_store(memory, tmp_path), owner="ana", clock=clock) as copy:
        copy.import_data(path=str(tmp_path / "out"))
        assert dump(copy)["bars"] == dump(memory)["bars"]


@ON_SQLITE
def test_a_failed_export_leaves_nothing(lived: Memory, tmp_path: Path) -> None:
    def full(_part: str, done: int, _total: int) -> None:
        if done > 10:
            raise OSError(28, "No space left on device")

    lived.progress = full
    with pytest.raises(BacksightError, match=r"No space left on device.*nothing is left there"):
        lived.export_data(path=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
