"""Importing bars through the operation."""

from pathlib import Path

import pytest
from sqlalchemy import delete, update

from backsight.core.errors import Invalid, NotFound
from backsight.core.instants import Horizon, parse_instant
from backsight.memory import Memory
from backsight.store.bars import BARS, bars_between
from support import raw

HEADER = "time,open,high,low,close,volume\n"
ROWS = [f"2026-06-04T0{hour}:00:00Z,10,12,9,1{hour % 3},5" for hour in range(6)]


def a_file(folder: Path, rows: list[str], name: str = "bars.csv") -> str:
    (folder / name).write_text(HEADER + "\n".join(rows) + "\n")
    return str(folder / name)


def test_a_bar_is_known_from_its_close(memory: Memory, tmp_path: Path) -> None:
    memory.import_bars(path=a_file(tmp_path, ROWS), symbol="XAUUSD")
    start, end = parse_instant("2026-06-04T00:00:00Z"), parse_instant("2026-06-04T05:00:00Z")
    with memory.reading() as connection:
        known_bars = bars_between(
            connection,
            "ana",
            Horizon(as_of=parse_instant("2026-06-04T03:00:00Z")),
            symbol="XAUUSD",
            interval_seconds=3600,
            since=start,
            until=end,
        )
    assert [bar.opened_at.hour for bar in known_bars] == [0, 1, 2]


def test_gaps_are_reported(memory: Memory, tmp_path: Path) -> None:
    report = memory.import_bars(path=a_file(tmp_path, [*ROWS[:2], *ROWS[4:]]), symbol="XAUUSD").report
    assert (report.gap_count, report.missing) == (1, 2)


def test_bad_files_are_refused_by_name(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="path: "):
        memory.import_bars(path=str(tmp_path / "nothing.csv"), symbol="XAUUSD")
    with pytest.raises(Invalid, match="line 2"):
        memory.import_bars(path=a_file(tmp_path, ["2026-06-04T00:00:00Z,nan,12,9,10,5"]), symbol="XAUUSD")
    assert memory.verify_audit().rows == 0


def test_the_audit_finds_a_changed_or_removed_bar(memory: Memory, tmp_path: Path, url: str) -> None:
    memory.import_bars(path=a_file(tmp_path, ROWS), symbol="XAUUSD")
    condition = BARS.table.c.opened_at == parse_instant("2026-06-04T02:00:00Z")
    with raw(url) as connection:
        connection.execute(update(BARS.table).where(condition).values(close=11.5))
    findings = memory.verify_audit().findings
    assert {(finding.kind, finding.table) for finding in findings} == {("added", "bars"), ("removed", "bars")}
    assert "XAUUSD, 3600, 2026-06-04T02:00:00.000000Z" in {finding.key for finding in findings}
    with raw(url) as connection:
        connection.execute(delete(BARS.table).where(condition))
    (lost,) = memory.verify_audit().findings
    assert (lost.kind, lost.key) == ("removed", "1 of a batch")
