"""Account activities of Alpaca."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow, RemarkRow
from export_reading import fills_read, of_type, rows_read
from export_samples import ALPACA, ALPACA_CSV


def test_every_activity_is_a_fill_or_left_out(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "alpaca", json.dumps(ALPACA))
    short, dividend, split, expiry, deposit, fee, coin_fee = (row.fill for row in of_type(rows, FillRow))
    assert (short.quantity, short.price, short.order_id) == (-10.0, 187.25, "61e69015")
    assert short.at == datetime(2026, 3, 10, 14, 0, 0, 709802, tzinfo=UTC)
    assert (dividend.kind, dividend.symbol, dividend.amount) == ("dividend", "T", 1.02)
    assert (split.kind, split.symbol, split.ratio) == ("split", "AAPL", 3.0)
    assert (expiry.kind, expiry.quantity, expiry.price) == ("expiry", -1.0, 0.0)
    assert (deposit.kind, deposit.symbol, deposit.amount) == ("transfer", "", 5000.0)
    assert (fee.kind, fee.fee) == ("fee", 0.02)
    assert fee.at > short.at, "a fee with a date counts after the fills of its day"
    assert (coin_fee.kind, coin_fee.symbol, coin_fee.quantity, coin_fee.fee) == (
        "asset_transfer",
        "BTC/USD",
        -0.001,
        60.0,
    )
    assert [row.reason for row in of_type(rows, LeftOutRow)] == [
        "the other side of a split",
        "an activity INT, which changes no position",
    ]
    assert [row.multiplier for row in of_type(rows, InstrumentRow)] == [1.0, 100.0]


def a_split(number: int, quantity: str, **more: Any) -> dict[str, Any]:
    split = {"id": f"{number}::s", "activity_type": "SPLIT", "date": "2026-03-12", "symbol": "AAPL", "qty": quantity}
    return split | {"net_amount": "0"} | more


def test_the_ratio_of_a_split_follows_from_its_two_sides(tmp_path: Path) -> None:
    for sides in (["-10", "30"], ["30", "-10"]):
        text = json.dumps([a_split(number, side) for number, side in enumerate(sides)])
        (fill,) = fills_read(tmp_path, "alpaca", text)
        assert fill.ratio == 3.0


def test_the_ratio_of_a_split_may_be_in_its_details(tmp_path: Path) -> None:
    details = {"old_rate": "10", "new_rate": "1", "old_qty": "30", "new_qty": "3"}
    sides = [a_split(1, "-30", details=details), a_split(2, "3", details=details)]
    (fill,) = fills_read(tmp_path, "alpaca", json.dumps(sides))
    assert fill.ratio == 0.1


def test_a_split_with_one_side_and_no_ratio_is_told(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "alpaca", json.dumps([a_split(1, "-30")]))
    (remark,) = of_type(rows, RemarkRow)
    assert "A split of AAPL has one side only" in remark.text


def test_assigned_options_deliver_shares(tmp_path: Path) -> None:
    day = {"date": "2026-03-20", "net_amount": "0"}
    rows = [
        {"id": "1::o", "activity_type": "OPASN", "symbol": "AAPL260320P00200000", "qty": "1"} | day,
        {"id": "2::o", "activity_type": "OPTRD", "symbol": "AAPL", "qty": "100", "price": "200"} | day,
    ]
    option, shares = fills_read(tmp_path, "alpaca", json.dumps(rows))
    assert (option.kind, option.price, shares.kind, shares.quantity, shares.price) == (
        "assignment",
        0.0,
        "trade",
        100.0,
        200.0,
    )


def test_activities_as_csv(tmp_path: Path) -> None:
    bought, sold = fills_read(tmp_path, "alpaca-csv", ALPACA_CSV)
    assert (bought.id, bought.quantity, sold.quantity, sold.price) == ("1::a", 10.0, -10.0, 190.0)


@pytest.mark.parametrize(
    "broken", [{"qty": "0"}, {"price": "x"}, {"side": "hold"}, {"symbol": None}, {"transaction_time": "?"}]
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, broken: dict[str, Any]) -> None:
    rows = rows_read(tmp_path, "alpaca", json.dumps([ALPACA[0], ALPACA[0] | broken]))
    (left_out,) = of_type(rows, LeftOutRow)
    assert (left_out.number, left_out.broken, len(of_type(rows, FillRow))) == (2, True, 1)
