"""The columnar image has the same episodes as the store, for every writer and every horizon."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.instants import Horizon
from backsight.core.recall.arrays.columns import REPLACED, Columns, append_episodes, columns_of, micros
from backsight.memory import Memory, open_memory
from backsight.ops.trades import RememberedTrade
from backsight.store import columns as stored_columns
from backsight.store import images as stored_images
from backsight.store import memories as stored
from backsight.store.columns import Images
from backsight.store.columns_build import batches
from backsight.store.columns_file import FORMAT, LABEL_END, pack_columns, read_label
from backsight.store.reading import fetch, owned
from backsight.store.view import View
from backsight.testing import T0, FakeClock, a_trade_call, an_episode

COUNT = itertools.count()
FOREVER = Horizon(as_of=T0 + timedelta(days=36_500))


def rows_by_id(columns: Columns, horizon: Horizon = FOREVER) -> dict[str, Any]:
    """All values in an image that were known and recorded by a horizon, by episode id."""
    latest = micros(horizon.seen_at) if horizon.seen_at is not None else None
    return {
        columns.id(row): (
            columns.group_of(row),
            columns.outcome_of(row),
            columns.end_of(row),
            float(columns.conviction[row]),
            columns.context(row),
            columns.tags(row),
            sorted(columns.words_of(row)),
            int(columns.recorded_at[row]),
        )
        for row in range(len(columns.known_at))
        if columns.group[row] != REPLACED and columns.known_at[row] <= micros(horizon.as_of)
        if latest is None or columns.recorded_at[row] <= latest
    }


def image(memory: Memory, horizon: Horizon = FOREVER, images: Images | None = None) -> Columns:
    with memory.reading() as connection:
        return (images or memory.database.images).at(View(connection, memory.owner, horizon))


def truth(memory: Memory, horizon: Horizon = FOREVER) -> dict[str, Any]:
    """The same values, read from every row of the store."""
    with memory.reading() as connection:
        episodes = stored.episodes(View(connection, memory.owner, horizon))
    return rows_by_id(columns_of(e for e in episodes if e.pnl is not None or e.outcome is not None), horizon)


def remember(memory: Memory, number: int) -> RememberedTrade:
    """Remember the trade with this number; a second call is a replay."""
    texts = {"market_context": f"range {number}", "tags": ["all", str(number % 2)]}
    call = a_trade_call(closed_at=T0 - timedelta(days=number), **texts)
    return memory.remember_trade(**call, idempotency_key=str(number))


def test_the_image_has_the_episodes_of_the_store(memory: Memory) -> None:
    for number in (3, 1, 2):
        remember(memory, number)
    memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason="narrow")
    assert len(rows_by_id(image(memory))) == 3
    assert rows_by_id(image(memory)) == truth(memory)


def test_the_image_of_an_empty_store_is_empty(memory: Memory) -> None:
    assert len(image(memory)) == 0


def test_only_changed_rows_are_read_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(memory, 1)
    image(memory)
    read: list[int] = []
    original = stored_columns._rows
    monkeypatch.setattr(stored_columns, "_rows", lambda *given: _counted(read, original(*given)))
    remember(memory, 2)
    assert rows_by_id(image(memory)) == truth(memory)
    assert sum(read) == 1


def _counted(read: list[int], rows: Any) -> Any:
    read.append(len(rows.id))
    return rows


Step = Callable[[Memory, int], object]
STEPS: dict[str, Step] = {
    "remember": remember,
    "annotate": lambda memory, number: memory.annotate_trade(
        trade_id=remember(memory, number).trade.id, market_context="it broke", confidence=0.25
    ),
    "archive": lambda memory, number: memory.archive_episode(episode_id=remember(memory, number).episode_id),
    "restore": lambda memory, number: memory.archive_episode(
        episode_id=remember(memory, number).episode_id, restore=True
    ),
    "look": lambda memory, number: image(memory),
}
STEP = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 6), st.booleans(), st.integers(0, 3))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=14), at=st.integers(-8, 20), seen_hours=st.none() | st.integers(0, 20))
def test_two_processes_see_the_same_episodes_after_any_steps(
    url: str, steps: list[tuple[str, int, bool, int]], at: int, seen_hours: int | None
) -> None:
    clock, owner = FakeClock(T0), f"owner {next(COUNT)}"
    with open_memory(url, owner=owner, clock=clock) as one, open_memory(url, owner=owner, clock=clock) as other:
        for name, number, first, hours in steps:
            clock.at += timedelta(hours=hours)
            STEPS[name](one if first else other, number)
        horizons = [
            FOREVER,
            Horizon(
                as_of=T0 + timedelta(hours=at), seen_at=None if seen_hours is None else T0 + timedelta(hours=seen_hours)
            ),
        ]
        for memory in (one, other):
            for horizon in horizons:
                assert rows_by_id(image(memory, horizon), horizon) == truth(memory, horizon)


@pytest.mark.parametrize("cached", [True, False])
def test_a_withdrawn_episode_is_gone_but_visible_as_of_before(memory: Memory, clock: FakeClock, cached: bool) -> None:
    withdrawn_id = [remember(memory, number).episode_id for number in range(3)][1]
    if cached:
        image(memory)
    clock.at += timedelta(hours=1)
    with memory.writing() as transaction:
        episode = stored.current_episode(transaction.connection, memory.owner, withdrawn_id)
        assert episode is not None
        transaction.withdraw(stored.EPISODES, episode, known_at=memory.now, recorded_at=memory.now)
    counts = [len(rows_by_id(image(memory, at), at)) for at in (FOREVER, Horizon(as_of=T0))]
    assert counts == [2, 3]
    assert rows_by_id(image(memory, Horizon(as_of=T0)), Horizon(as_of=T0)) == truth(memory, Horizon(as_of=T0))


def test_a_reader_that_began_earlier_sees_the_earlier_episodes(memory: Memory) -> None:
    remember(memory, 1)
    with memory.reading() as connection:
        before = stored.episodes(View(connection, memory.owner, FOREVER))
        remember(memory, 2)
        assert len(image(memory)) == 2
        images = memory.database.images
        assert set(rows_by_id(images.at(View(connection, memory.owner, FOREVER)))) == {e.id for e in before}
    assert len(image(memory)) == 2


@pytest.fixture
def owners(url: str) -> Iterator[Callable[[str], Memory]]:
    clock = FakeClock(T0)
    with ExitStack() as stack:
        yield lambda owner: stack.enter_context(open_memory(url, owner=owner, clock=clock))


def test_owners_have_separate_images_and_images_beyond_the_limit_are_dropped(owners: Callable[[str], Memory]) -> None:
    images = Images(max_bytes=1)
    memories = [owners(name) for name in ("ana", "ben", "eve")]
    for number, memory in enumerate(memories):
        remember(memory, number)
    for memory in [*memories, *memories]:
        assert rows_by_id(image(memory, images=images)) == truth(memory)
        assert len(images._owners) == 1


# The file


@pytest.fixture
def filed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_images, "MIN_FILE_ROWS", 2)


def rows_read(memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of rows that a fresh process reads to build a correct image."""
    read: list[int] = []
    original = stored_columns._rows
    with monkeypatch.context() as patched:
        patched.setattr(stored_columns, "_rows", lambda *given: _counted(read, original(*given)))
        patched.setattr(stored_columns, "batches", lambda *given: (_counted(read, each) for each in batches(*given)))
        assert rows_by_id(image(memory, images=Images(folder))) == truth(memory)
    return sum(read)


def test_a_fresh_process_reads_the_file_and_the_rows_changed_since(
    memory: Memory, filed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path / "files"
    for number in range(12):
        remember(memory, number)
    assert rows_read(memory, tmp_path, monkeypatch) == 12
    assert rows_read(memory, tmp_path, monkeypatch) == 0
    remember(memory, 12)
    memory.archive_episode(episode_id=remember(memory, 3).episode_id)
    assert rows_read(memory, tmp_path, monkeypatch) == 2
    assert [file.stat().st_mode & 0o77 for file in tmp_path.iterdir()] == [0]


def test_a_trade_without_words_is_added_to_the_columns_of_a_file(memory: Memory, filed: None, tmp_path: Path) -> None:
    for number in range(12):
        remember(memory, number)
    image(memory, images=Images(tmp_path / "files"))
    wordless: dict[str, Any] = {"market_context": None, "reflection": None, "tags": []}
    memory.remember_trade(**a_trade_call(symbol="ETH") | wordless)
    assert rows_by_id(image(memory, images=Images(tmp_path / "files"))) == truth(memory)


@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "killed", "other", "owner"])
def test_a_damaged_or_foreign_file_is_not_used(
    memory: Memory,
    filed: None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    spoil: str,
) -> None:
    tmp_path = tmp_path_factory.mktemp("files")
    for number in range(3):
        remember(memory, number)
    rows_read(memory, tmp_path, monkeypatch)
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    if spoil in ("other", "owner"):  # another store of the same owner, or another owner's file under this name
        folder = tmp_path_factory.mktemp("other")
        owner = memory.owner if spoil == "other" else "ben"
        with open_memory(f"sqlite:///{folder / 'x.db'}", owner=owner, clock=FakeClock(T0)) as another:
            for number in range(4, 8):
                remember(another, number)
            rows_read(another, folder / "files", monkeypatch)
        [theirs] = (folder / "files").iterdir()
        content = theirs.read_bytes()
    changes = {"cut": content[:-64], "flip": content[:-70] + bytes([content[-70] ^ 1]) + content[-69:], "empty": b""}
    file.write_bytes(changes.get(spoil, content))
    if spoil == "killed":  # a process of the same id was killed while it wrote the first file
        file.rename(file.with_name(f"{file.name}.{os.getpid()}"))
    assert rows_read(memory, tmp_path, monkeypatch) == 3
    assert rows_read(memory, tmp_path, monkeypatch) == 0


def test_the_doctor_finds_a_forged_file(
    memory: Memory, filed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forged file with a valid checksum changes what recall reads until the doctor runs."""
    for number in range(4):
        remember(memory, number)
    monkeypatch.setitem(vars(memory.database), "images", Images(tmp_path / "files"))
    honest = image(memory)
    [file] = (tmp_path / "files").iterdir()
    lying = append_episodes(honest, [an_episode(id="forged", known_at=T0, pnl_r=9.0)])
    label = read_label(file.read_bytes()[:LABEL_END])
    file.write_bytes(b"".join(pack_columns(lying, label=label)))
    monkeypatch.setitem(vars(memory.database), "images", Images(tmp_path / "files"))
    assert "forged" in rows_by_id(image(memory))
    first, second = memory.doctor(), memory.doctor()
    assert [(finding.table, finding.key) for finding in first.findings] == [("columns", "forged")]
    assert (first.healthy, second.healthy) == (False, True)
    assert rows_by_id(image(memory)) == truth(memory)


def test_an_image_is_built_without_a_writable_folder(memory: Memory, filed: None, tmp_path: Path) -> None:
    for number in range(3):
        remember(memory, number)
    (tmp_path / "file").write_text("in the way")
    assert rows_by_id(image(memory, images=Images(tmp_path / "file" / "below"))) == truth(memory)


def test_an_import_writes_the_file_that_later_processes_read(tmp_path: Path, filed: None) -> None:
    url, trades = f"sqlite:///{tmp_path}/store.db", tmp_path / "trades.csv"
    rows = [f"XAUUSD,long,s,1,2,{number},2026-01-0{number}T10:00Z" for number in (1, 2, 3)]
    trades.write_text("\n".join(["symbol,direction,strategy_name,entry_price,exit_price,pnl,closed_at", *rows]))
    with open_memory(url) as memory:
        memory.import_trades(path=str(trades), dry_run=True)
        assert not list(tmp_path.glob("*.columns"))
        memory.import_trades(path=str(trades))
        assert len(list(tmp_path.glob("*.columns"))) == 1
        assert rows_by_id(image(memory)) == truth(memory)


def test_a_small_store_writes_no_file(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(memory, 1)
    rows_read(memory, tmp_path / "files", monkeypatch)
    assert not (tmp_path / "files").exists()


def test_a_restored_store_is_read_again(tmp_path: Path) -> None:
    clock = FakeClock(T0)
    with open_memory(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as memory:
        remember(memory, 1)
        memory.database.save(tmp_path / "kept.db")
        remember(memory, 2)
        images = memory.database.images
        image(memory)
    with open_memory(f"sqlite:///{tmp_path / 'kept.db'}", clock=clock) as memory:
        remember(memory, 5)
        assert rows_by_id(image(memory, images=images)) == truth(memory)


def test_instants_are_compared_to_the_microsecond(memory: Memory) -> None:
    remember(memory, 1)
    close_time = T0 - timedelta(days=1)
    counts = [len(rows_by_id(image(memory, at), at)) for at in (just_before(close_time), Horizon(as_of=close_time))]
    assert counts == [0, 1]


def just_before(at: datetime) -> Horizon:
    return Horizon(as_of=at - timedelta(microseconds=1))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_file_that_somebody_wrote_is_found_despite_its_checksum(
    url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_images, "MIN_FILE_ROWS", 1)
    with open_memory(url, owner="ana", clock=clock) as memory:
        memory.remember_trade(**a_trade_call())
        memory.recall_memories(symbol="XAUUSD", mode="all")
        assert memory.verify_audit().intact
        with memory.reading() as connection:
            episodes = fetch(connection, stored.EPISODES, owned(stored.EPISODES, "ana"))
    (file,) = tmp_path.glob("*.columns")
    label = read_label(file.read_bytes(), FORMAT)
    poisoned = columns_of([replace(each, pnl=-1e6) for each in episodes])
    file.write_bytes(b"".join(pack_columns(poisoned, label=label)))
    with open_memory(url, owner="ana", clock=clock) as memory:
        verified = memory.verify_audit()
        assert [(finding.kind, finding.table) for finding in verified.findings] == [("changed", "columns file")]
        assert memory.verify_audit().intact  # the file was removed
