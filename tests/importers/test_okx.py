"""Trading history of OKX."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow, RemarkRow
from export_reading import fills_read, of_type, rows_read
from export_samples import OKX


def with_rows(*lines: str) -> str:
    return "\n".join([*OKX.splitlines()[:2], *lines, ""])


def test_a_spot_trade_is_one_fill_and_the_fee_of_a_sale(tmp_path: Path) -> None:
    fills = [fill for fill in fills_read(tmp_path, "okx", OKX) if fill.symbol == "AAA-USDT"]
    assert [(fill.kind, fill.quantity, fill.fee, fill.fee_currency) for fill in fills] == [
        ("trade", 2.0, 0.002, "AAA"),
        ("trade", -1.998, 0.0, "AAA"),
        ("fee", 0.0, 0.22, "USDT"),
    ]
    assert fills[0].at == datetime(2026, 1, 10, 7, tzinfo=UTC), "the first line of the file says UTC+3"


def test_the_size_of_a_contract_follows_from_its_profit(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "okx", OKX)
    swap = next(row for row in of_type(rows, InstrumentRow) if row.symbol == "TAO-USDT-SWAP")
    assert (swap.kind, swap.multiplier, swap.currency) == ("perpetual", 0.01, "USDT")
    assert not of_type(rows, RemarkRow)
    fills = [row.fill for row in of_type(rows, FillRow) if row.fill.symbol == "TAO-USDT-SWAP"]
    assert [(fill.kind, fill.quantity, fill.amount, fill.realized_pnl) for fill in fills] == [
        ("trade", 98.0, 0.0, None),
        ("funding", 0.0, -0.4, None),
        ("trade", -98.0, 0.0, 1.078),
    ]
    assert {fill.position_key for fill in fills} == {"TAO-USDT-SWAP:long"}


def test_a_file_that_begins_with_the_latest_row(tmp_path: Path) -> None:
    lines = OKX.splitlines()
    rows = rows_read(tmp_path, "okx", "\n".join([*lines[:2], *lines[:1:-1]]))
    assert next(row for row in of_type(rows, InstrumentRow) if row.symbol == "TAO-USDT-SWAP").multiplier == 0.01


def test_an_unknown_size_of_a_contract_is_told(tmp_path: Path) -> None:
    line = "5,13,2026-01-10 12:00:00,Swap,TAO-USDT-SWAP,Buy,98,cont,204,0,-0.1,USDT,98,98,-0.1,1019,USDT"
    rows = rows_read(tmp_path, "okx", with_rows(line))
    (remark,) = of_type(rows, RemarkRow)
    assert "does not tell the size of a contract of TAO-USDT-SWAP" in remark.text
    (fill,) = (row.fill for row in of_type(rows, FillRow))
    assert fill.position_key == "TAO-USDT-SWAP"


def test_an_inverse_contract(tmp_path: Path) -> None:
    trade = "5,13,2026-01-10 12:00:00,Swap,BTC-USD-SWAP,Sell,3,cont,60000,0,-0.0000025,BTC,-3,-3,0,1,BTC"
    funding = "6,14,2026-01-10 16:00:00,Swap,BTC-USD-SWAP,Funding fee income,3,cont,0,0.00001,0,BTC,0,-3,0,1,BTC"
    rows = rows_read(tmp_path, "okx", with_rows(trade, funding))
    (instrument,) = of_type(rows, InstrumentRow)
    assert (instrument.inverse, instrument.multiplier, instrument.currency) == (True, 100.0, "BTC")
    assert [row.reason for row in of_type(rows, LeftOutRow)] == ["funding in a coin, whose worth is not told"]


@pytest.mark.parametrize(
    ("action", "quantity", "reason"),
    [
        ("Liquidate long", -3.0, "liquidated"),
        ("Full liquidation of short", 3.0, "liquidated"),
        ("Close short", 3.0, None),
    ],
)
def test_liquidations_close_their_side(tmp_path: Path, action: str, quantity: float, reason: str | None) -> None:
    line = f"5,13,2026-01-10 12:00:00,Swap,ETH-USDT-SWAP,{action},3,ETH,3000,1,-0.1,USDT,0,0,0,1,USDT"
    (fill,) = fills_read(tmp_path, "okx", with_rows(line))
    assert (fill.quantity, fill.reason) == (quantity, reason)


def test_other_actions_are_left_out_and_broken_rows_named(tmp_path: Path) -> None:
    rows = rows_read(
        tmp_path,
        "okx",
        with_rows(
            "5,13,2026-01-10 12:00:00,Swap,ETH-USDT-SWAP,Delivery,3,ETH,3000,1,-0.1,USDT,0,0,0,1,USDT",
            "6,13,2026-01-10 12:00:00,Swap,ETH-USDT-SWAP,Buy,three,ETH,3000,1,-0.1,USDT,0,0,0,1,USDT",
            "7,13,2026-01-10 12:00:00,Spot,ETH-USDT,Buy,3",
        ),
    )
    left_out = [(row.number, row.reason, row.broken) for row in of_type(rows, LeftOutRow)]
    assert left_out == [
        (3, "an action delivery", False),
        (4, "amount is not a number", True),
        (5, "fewer cells than the header", True),
    ]
