"""ai-hedge-fund: the fills of cycles, checked against the positions of the records."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.importers.ai_hedge_fund import FORMATS
from backsight.importers.formats import FileRow, FillRow, LeftOutRow, ReadOptions
from backsight.importers.registry import recognised_format
from program_samples.ai_hedge_fund import BUY, RECORDS, a_record

(CYCLES,) = FORMATS


def rows_of(folder: Path, content: object) -> list[FileRow]:
    (folder / "cycle.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return list(CYCLES.read(folder / "cycle.json", ReadOptions()))


def test_fills_count_from_the_end_of_the_day(tmp_path: Path) -> None:
    bought, left, sold = rows_of(tmp_path, RECORDS)
    assert recognised_format(tmp_path / "cycle.json") == CYCLES
    assert isinstance(bought, FillRow)
    assert isinstance(sold, FillRow)
    assert (bought.fill.quantity, sold.fill.quantity, sold.fill.fee) == (500.0, -500.0, 1.5)
    assert bought.fill.at == datetime(2024, 6, 3, 23, 59, 59, tzinfo=UTC)
    assert left == LeftOutRow(number=2, reason="a cycle without fills")


def test_a_record_a_line_and_the_result_of_a_backtest_are_read_alike(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, RECORDS)
    assert rows_of(tmp_path, "\n".join(map(json.dumps, RECORDS))) == rows
    result = {"fund": "test-fund", "rebalance": "daily", "benchmark_nav": [1.0], "records": RECORDS}
    assert rows_of(tmp_path, result) == rows
    assert recognised_format(tmp_path / "cycle.json") == CYCLES
    assert rows_of(tmp_path, json.dumps(RECORDS[0], indent=2)) == rows[:1]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (a_record(6, BUY, positions={"AAPL": 400}), "the fills do not lead to the positions of the record"),
        (a_record(6, BUY | {"side": "hold"}, positions={}), "the side of a fill is neither buy nor sell"),
        (a_record(6, BUY | {"shares": 0}, positions={}), "shares or price of a fill are not above 0"),
        (a_record(6, 5, positions={}), "fills is not a list of objects"),
        (a_record(6, positions=5), "positions is not an object"),
        (a_record(6, positions={}) | {"as_of": "soon"}, "as_of is not a day"),
        ({}, "fund is missing"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, record: Any, reason: str) -> None:
    *_, left = rows_of(tmp_path, [*RECORDS, record])
    assert left == LeftOutRow(number=4, reason=reason, broken=True)


def test_files_that_are_cut_off_or_empty(tmp_path: Path) -> None:
    *_, left = rows_of(tmp_path, json.dumps(RECORDS)[:-20])
    assert isinstance(left, LeftOutRow)
    assert (left.number, left.broken) == (3, True)
    with pytest.raises(Invalid, match="empty"):
        rows_of(tmp_path, "")
