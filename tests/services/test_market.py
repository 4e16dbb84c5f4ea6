"""Bars: stored once, and never against what is stored."""

from pathlib import Path

import pytest

from backsight.core.errors import Conflict
from backsight.memory import Memory
from ops.test_events import ROWS, a_file


def test_bars_are_stored_once(memory: Memory, tmp_path: Path) -> None:
    path = a_file(tmp_path, ROWS)
    first = memory.import_bars(path=path, symbol="XAUUSD")
    again = memory.import_bars(path=path, symbol="XAUUSD")
    assert (first.interval_seconds, first.symbols[0].added, again.symbols[0].added) == (3600, 6, 0)
    assert memory.verify_audit().links == 1
    assert (memory.verify_audit().intact, memory.verify_audit().rows) == (True, 6)


def test_a_longer_file_adds_its_new_bars(memory: Memory, tmp_path: Path) -> None:
    memory.import_bars(path=a_file(tmp_path, ROWS[:4]), symbol="XAUUSD")
    (summary,) = memory.import_bars(path=a_file(tmp_path, ROWS), symbol="XAUUSD").symbols
    assert (summary.bars, summary.added) == (6, 2)
    assert memory.verify_audit().intact


def test_a_bar_that_contradicts_the_stored_one_is_a_conflict_and_nothing_is_written(
    memory: Memory, tmp_path: Path
) -> None:
    memory.import_bars(path=a_file(tmp_path, ROWS[:4]), symbol="XAUUSD")
    changed = [*ROWS[1:], "2026-06-04T00:00:00Z,10,12,9,9.5,5"]
    with pytest.raises(
        Conflict, match=r"path: the XAUUSD bar of 2026-06-04T00:00:00\.000000Z differs from the stored bar"
    ):
        memory.import_bars(path=a_file(tmp_path, changed), symbol="XAUUSD")
    assert memory.verify_audit().rows == 4


def test_ten_thousand_bars_are_one_audit_link(memory: Memory, tmp_path: Path) -> None:
    rows = [f"{1_700_000_000 + 60 * n},10,12,9,10,5" for n in range(10_000)]
    memory.import_bars(path=a_file(tmp_path, rows), symbol="XAUUSD")
    verified = memory.verify_audit()
    assert (verified.intact, verified.links, verified.rows) == (True, 1, 10_000)
