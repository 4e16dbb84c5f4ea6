"""nofx: closed positions become trades, executed decisions become fills, and the rest is named."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import FileRow, FillRow, LeftOutRow, ReadOptions
from backsight.importers.nofx import FORMATS
from backsight.importers.registry import recognised_format
from backsight.importers.trades import TradeRow
from program_samples.nofx import CLOSE, OPEN, POSITION, a_database, a_record

POSITIONS, DECISIONS = FORMATS


def positions(folder: Path, *rows: dict[str, Any]) -> list[FileRow]:
    return list(POSITIONS.read(a_database(folder / "data.db", "trader_positions", *rows), ReadOptions()))


def decisions(folder: Path, content: object) -> list[FileRow]:
    (folder / "decision.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return list(DECISIONS.read(folder / "decision.json", ReadOptions()))


def test_a_closed_position_is_a_trade_and_its_result_is_before_fees(tmp_path: Path) -> None:
    (row,) = positions(tmp_path, POSITION)
    assert recognised_format(tmp_path / "data.db") == POSITIONS
    assert row == TradeRow(
        1,
        {
            "symbol": "BTCUSDT",
            "direction": "short",
            "strategy_name": "qwen",
            "opened_at": datetime(2025, 11, 1, 12, 26, 40, tzinfo=UTC),
            "closed_at": datetime(2025, 11, 1, 13, 26, 40, tzinfo=UTC),
            "entry_price": 100_000.0,
            "exit_price": 99_000.0,
            "size": 0.5,
            "pnl": 460.0,
            "fees": 40.0,
            "leverage": 5.0,
            "exit_reason": "take_profit",
            "position_key": "sync_BTCUSDT_SHORT_1",
        },
    )


def test_times_of_older_databases_are_texts(tmp_path: Path) -> None:
    (row,) = positions(
        tmp_path, POSITION | {"entry_time": "2025-11-01 12:00:00+00:00", "exit_time": "2025-11-01 13:00"}
    )
    assert isinstance(row, TradeRow)
    assert row.values["closed_at"] == datetime(2025, 11, 1, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "reason", "broken"),
    [
        ({"status": "OPEN"}, "the position is still open", False),
        ({"side": "BOTH"}, "side is neither LONG nor SHORT", True),
        ({"exit_time": 0}, "exit_time is missing", True),
        ({"realized_pnl": "x"}, "realized_pnl is not a number", True),
    ],
)
def test_a_position_that_is_no_trade_is_named(tmp_path: Path, changes: Any, reason: str, broken: bool) -> None:
    left, row = positions(tmp_path, POSITION | changes, POSITION)
    assert left == LeftOutRow(number=1, reason=reason, broken=broken)
    assert isinstance(row, TradeRow)


def test_executed_actions_are_fills_and_a_close_closes_all(tmp_path: Path) -> None:
    records = [
        a_record(OPEN),
        a_record(OPEN | {"quantity": 0.005}, {"action": "hold"}, cycle=2),
        a_record(CLOSE, cycle=3),
    ]
    rows = decisions(tmp_path, records)
    fills = [row.fill for row in rows if isinstance(row, FillRow)]
    assert [fill.quantity for fill in fills] == [0.015, 0.005, pytest.approx(-0.02)]
    assert {fill.position_key for fill in fills} == {"BTCUSDT long"}
    assert (fills[0].order_id, fills[-1].order_id) == ("7", None)
    assert fills[0].at == datetime(2025, 10, 28, 7, 31, 42, 123456, tzinfo=UTC)
    assert LeftOutRow(number=2, reason="hold trades nothing") in rows
    assert recognised_format(tmp_path / "decision.json") == DECISIONS


def test_one_record_in_a_file_and_the_table_of_records_are_read_alike(tmp_path: Path) -> None:
    (row,) = decisions(tmp_path, a_record(OPEN))
    record = {"id": 1, "trader_id": "qwen", **a_record(OPEN)}
    record |= {"decisions": json.dumps(record["decisions"]), "account_state": ""}
    path = a_database(tmp_path / "data.db", "decision_records", record)
    assert recognised_format(path) == DECISIONS
    assert list(DECISIONS.read(path, ReadOptions())) == [row]


@pytest.mark.parametrize(
    ("record", "reason", "broken"),
    [
        (a_record(), "a cycle without a decision", False),
        (a_record(OPEN | {"success": False}), "the order failed", False),
        (a_record(OPEN | {"price": 0}), "its price or its quantity is not known", False),
        (a_record(CLOSE), "its price or its quantity is not known", False),
        (a_record(OPEN | {"price": "x"}), "price is not a number", True),
        (a_record(7), "decisions is not a list of objects", True),
        ({"cycle_number": 1}, "decisions is not a list of objects", True),
        (5, "decisions is not a list of objects", True),
    ],
)
def test_a_decision_that_is_no_fill_is_named(tmp_path: Path, record: object, reason: str, broken: bool) -> None:
    assert decisions(tmp_path, [record]) == [LeftOutRow(number=1, reason=reason, broken=broken)]


def test_files_that_are_cut_off_or_empty(tmp_path: Path) -> None:
    text = json.dumps([a_record(OPEN), a_record(OPEN, cycle=2)])
    fill, left = decisions(tmp_path, text[:-30])
    assert isinstance(fill, FillRow)
    assert isinstance(left, LeftOutRow)
    assert left.broken
    with pytest.raises(Invalid, match="empty"):
        decisions(tmp_path, "")
    path = a_database(tmp_path / "data.db", "trader_positions", *[POSITION] * 500)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    *_, last = POSITIONS.read(path, ReadOptions())
    assert isinstance(last, LeftOutRow)
    assert "cut off or damaged" in last.reason


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = a_database(tmp_path / "data.db", "other", {"id": 1})
    with pytest.raises(Invalid, match="no table trader_positions"):
        list(POSITIONS.read(path, ReadOptions()))
