"""The columnar image: the episodes of the store, whoever wrote them and whenever one asks."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
from backsight.store import memories as stored
from backsight.store.columns import Images
from backsight.store.columns_file import LABEL_END, pack_columns, read_label
from backsight.store.view import View
from backsight.testing import T0, FakeClock, a_trade_call, an_episode

COUNT = itertools.count()
FOREVER = Horizon(as_of=T0 + timedelta(days=36_500))


def told(columns: Columns, horizon: Horizon = FOREVER) -> dict[str, Any]:
    """All that an image says of what was known and recorded by a horizon, by id."""
    seen = micros(horizon.seen_at) if horizon.seen_at is not None else None
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
        if seen is None or columns.recorded_at[row] <= seen
    }


def image(memory: Memory, horizon: Horizon = FOREVER, images: Images | None = None) -> Columns:
    with memory.reading() as connection:
        return (images or memory.database.images).at(View(connection, memory.owner, horizon))


def truth(memory: Memory, horizon: Horizon = FOREVER) -> dict[str, Any]:
    """The same, from every row of the store."""
    with memory.reading() as connection:
        episodes = stored.episodes(View(connection, memory.owner, horizon))
    return told(columns_of(e for e in episodes if e.pnl is not None or e.outcome is not None), horizon)


def remember(memory: Memory, number: int) -> RememberedTrade:
    """Tell the trade of this number, again or for the first time."""
    told = {"market_context": f"range {number}", "tags": ["all", str(number % 2)]}
    call = a_trade_call(closed_at=T0 - timedelta(days=number), **told)
    return memory.remember_trade(**call, idempotency_key=str(number))


def test_it_is_what_the_store_holds(memory: Memory) -> None:
    for number in (3, 1, 2):
        remember(memory, number)
    memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason="narrow")
    assert len(told(image(memory))) == 3
    assert told(image(memory)) == truth(memory)


def test_nobody_remembers_nothing(memory: Memory) -> None:
    assert len(image(memory)) == 0


def test_only_what_changed_is_read_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(memory, 1)
    image(memory)
    read: list[int] = []
    plainly = stored_columns._rows
    monkeypatch.setattr(stored_columns, "_rows", lambda *given: _counted(read, plainly(*given)))
    remember(memory, 2)
    assert told(image(memory)) == truth(memory)
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


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=14), at=st.integers(-8, 20), seen=st.none() | st.integers(0, 20))
def test_two_processes_see_the_same_whatever_happened(
    url: str, steps: list[tuple[str, int, bool, int]], at: int, seen: int | None
) -> None:
    clock, owner = FakeClock(T0), f"owner {next(COUNT)}"
    with open_memory(url, owner=owner, clock=clock) as one, open_memory(url, owner=owner, clock=clock) as other:
        for name, number, first, hours in steps:
            clock.at += timedelta(hours=hours)
            STEPS[name](one if first else other, number)
        horizons = [
            FOREVER,
            Horizon(as_of=T0 + timedelta(hours=at), seen_at=None if seen is None else T0 + timedelta(hours=seen)),
        ]
        for memory in (one, other):
            for horizon in horizons:
                assert told(image(memory, horizon), horizon) == truth(memory, horizon)


@pytest.mark.parametrize("looked", [True, False])
def test_what_was_taken_back_is_gone_and_still_stands_as_of_before(
    memory: Memory, clock: FakeClock, looked: bool
) -> None:
    named = [remember(memory, number).episode_id for number in range(3)][1]
    if looked:
        image(memory)
    clock.at += timedelta(hours=1)
    with memory.writing() as transaction:
        found = stored.current_episode(transaction.connection, memory.owner, named)
        assert found is not None
        transaction.withdraw(stored.EPISODES, found, known_at=memory.now, recorded_at=memory.now)
    seen = [len(told(image(memory, at), at)) for at in (FOREVER, Horizon(as_of=T0))]
    assert seen == [2, 3]
    assert told(image(memory, Horizon(as_of=T0)), Horizon(as_of=T0)) == truth(memory, Horizon(as_of=T0))


def test_one_who_began_to_read_earlier_sees_what_there_was_then(memory: Memory) -> None:
    remember(memory, 1)
    with memory.reading() as connection:
        before = stored.episodes(View(connection, memory.owner, FOREVER))
        remember(memory, 2)
        assert len(image(memory)) == 2
        images = memory.database.images
        assert set(told(images.at(View(connection, memory.owner, FOREVER)))) == {e.id for e in before}
    assert len(image(memory)) == 2


@pytest.fixture
def owners(url: str) -> Iterator[Callable[[str], Memory]]:
    clock = FakeClock(T0)
    with ExitStack() as stack:
        yield lambda owner: stack.enter_context(open_memory(url, owner=owner, clock=clock))


def test_owners_are_apart_and_images_are_dropped_where_all_do_not_fit(owners: Callable[[str], Memory]) -> None:
    images = Images(max_bytes=1)
    memories = [owners(name) for name in ("ana", "ben", "eve")]
    for number, memory in enumerate(memories):
        remember(memory, number)
    for memory in [*memories, *memories]:
        assert told(image(memory, images=images)) == truth(memory)
        assert len(images._owners) == 1


# The file


@pytest.fixture
def filed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_columns, "MIN_FILE_ROWS", 2)


def is_built(memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows a fresh process reads to have an image that is right."""
    read: list[int] = []
    plainly = stored_columns._rows
    with monkeypatch.context() as patched:
        patched.setattr(stored_columns, "_rows", lambda *given: _counted(read, plainly(*given)))
        assert told(image(memory, images=Images(folder))) == truth(memory)
    return sum(read)


def test_a_fresh_process_reads_a_file_and_what_changed_since(
    memory: Memory, filed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path = tmp_path / "files"
    for number in range(12):
        remember(memory, number)
    assert is_built(memory, tmp_path, monkeypatch) == 12
    assert is_built(memory, tmp_path, monkeypatch) == 0
    remember(memory, 12)
    memory.archive_episode(episode_id=remember(memory, 3).episode_id)
    assert is_built(memory, tmp_path, monkeypatch) == 2
    assert [file.stat().st_mode & 0o77 for file in tmp_path.iterdir()] == [0]


@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "other", "owner"])
def test_a_file_that_is_not_this_stores_is_not_used(
    memory: Memory,
    filed: None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    spoil: str,
) -> None:
    tmp_path = tmp_path_factory.mktemp("files")
    for number in range(3):
        remember(memory, number)
    is_built(memory, tmp_path, monkeypatch)
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    if spoil in ("other", "owner"):  # another store of the same owner, or another owner's file under this name
        folder = tmp_path_factory.mktemp("other")
        owner = memory.owner if spoil == "other" else "ben"
        with open_memory(f"sqlite:///{folder / 'x.db'}", owner=owner, clock=FakeClock(T0)) as another:
            for number in range(4, 8):
                remember(another, number)
            is_built(another, folder / "files", monkeypatch)
        [theirs] = (folder / "files").iterdir()
        content = theirs.read_bytes()
    changes = {"cut": content[:-64], "flip": content[:-70] + bytes([content[-70] ^ 1]) + content[-69:], "empty": b""}
    file.write_bytes(changes.get(spoil, content))
    assert is_built(memory, tmp_path, monkeypatch) == 3
    assert is_built(memory, tmp_path, monkeypatch) == 0


def test_a_liar_is_found_by_the_doctor(
    memory: Memory, filed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who can write beside the store, and knows the checksum, can change what recall reads: until then."""
    for number in range(4):
        remember(memory, number)
    monkeypatch.setitem(vars(memory.database), "images", Images(tmp_path / "files"))
    honest = image(memory)
    [file] = (tmp_path / "files").iterdir()
    lying = append_episodes(honest, [an_episode(id="forged", known_at=T0, pnl_r=9.0)])
    label = read_label(file.read_bytes()[:LABEL_END])
    file.write_bytes(b"".join(pack_columns(lying, label=label)))
    monkeypatch.setitem(vars(memory.database), "images", Images(tmp_path / "files"))
    assert "forged" in told(image(memory))
    first, second = memory.doctor(), memory.doctor()
    assert [(found.table, found.key) for found in first.findings] == [("columns", "forged")]
    assert (first.healthy, second.healthy) == (False, True)
    assert told(image(memory)) == truth(memory)


def test_a_folder_that_cannot_be_written_to_is_no_hindrance(memory: Memory, filed: None, tmp_path: Path) -> None:
    for number in range(3):
        remember(memory, number)
    (tmp_path / "file").write_text("in the way")
    assert told(image(memory, images=Images(tmp_path / "file" / "below"))) == truth(memory)


def test_a_small_store_leaves_no_file(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(memory, 1)
    is_built(memory, tmp_path / "files", monkeypatch)
    assert not (tmp_path / "files").exists()


def test_a_store_that_was_put_back_is_read_anew(tmp_path: Path) -> None:
    clock = FakeClock(T0)
    with open_memory(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as memory:
        remember(memory, 1)
        memory.database.save(tmp_path / "kept.db")
        remember(memory, 2)
        images = memory.database.images
        image(memory)
    with open_memory(f"sqlite:///{tmp_path / 'kept.db'}", clock=clock) as memory:
        remember(memory, 5)
        assert told(image(memory, images=images)) == truth(memory)


def test_instants_are_compared_to_the_microsecond(memory: Memory) -> None:
    remember(memory, 1)
    ended = T0 - timedelta(days=1)
    found = [len(told(image(memory, at), at)) for at in (just_before(ended), Horizon(as_of=ended))]
    assert found == [0, 1]


def just_before(at: datetime) -> Horizon:
    return Horizon(as_of=at - timedelta(microseconds=1))
