"""Account history of Tradier."""

import json
from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow
from export_reading import fills_read, of_type, rows_read
from export_samples import TRADIER


def test_every_event_is_a_fill_or_left_out(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "tradier", json.dumps(TRADIER))
    option, expiry, shares, dividend, deposit = (row.fill for row in of_type(rows, FillRow))
    assert (option.symbol, option.quantity, option.fee) == ("GE180622C00014000", 1.0, 0.05), "129.05 was paid for 129"
    assert (expiry.kind, expiry.quantity, expiry.price) == ("expiry", -1.0, 0.0)
    assert (shares.quantity, shares.fee) == (-1.0, 1.5)
    assert (dividend.kind, dividend.symbol, dividend.amount) == ("dividend", "GE", 0.12)
    assert (deposit.kind, deposit.amount) == ("transfer", 3000.0)
    assert [row.multiplier for row in of_type(rows, InstrumentRow)] == [100.0, 1.0]
    assert [row.reason for row in of_type(rows, LeftOutRow)] == ["a fee that names no position"]


def test_one_event_is_an_object(tmp_path: Path) -> None:
    text = json.dumps({"history": {"event": TRADIER["history"]["event"][0]}})
    assert len(fills_read(tmp_path, "tradier", text)) == 1
    assert not rows_read(tmp_path, "tradier", '{"history": "null"}')


@pytest.mark.parametrize(
    "change",
    [{"date": None}, {"trade": {}}, {"type": "option"}, {"trade": {"quantity": 0, "price": 1, "symbol": "GE"}}],
)
def test_an_event_that_cannot_be_read_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    text = json.dumps({"history": {"event": [TRADIER["history"]["event"][0] | change]}})
    (left_out,) = of_type(rows_read(tmp_path, "tradier", text), LeftOutRow)
    assert (left_out.number, left_out.broken) == (1, True)
