"""nautilus_trader: closed positions become trades, filled orders become fills."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.importers.formats import FileRow, FillRow, InstrumentRow, LeftOutRow, ReadOptions, RemarkRow
from backsight.importers.nautilus import FORMATS
from backsight.importers.registry import recognised_format
from backsight.importers.trades import TradeRow
from program_samples.nautilus import FILL, ORDER, POSITION, a_report

POSITIONS, FILLS = FORMATS
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "formats" / "nautilus_positions_report.csv"


def positions(folder: Path, *rows: dict[str, str]) -> list[FileRow]:
    return list(POSITIONS.read(a_report(folder, *rows), ReadOptions()))


def test_a_closed_position_is_a_trade(tmp_path: Path) -> None:
    remark, trade = positions(tmp_path, POSITION)
    assert remark == RemarkRow(text="Results are in USD.")
    assert trade == TradeRow(
        2,
        {
            "symbol": "GBP/USD.SIM",
            "direction": "short",
            "strategy_name": "EMACross-000",
            "opened_at": datetime(2012, 2, 1, 0, 19, tzinfo=UTC),
            "closed_at": datetime(2012, 2, 1, 0, 38, tzinfo=UTC),
            "entry_price": 1.57618,
            "exit_price": 1.57584,
            "size": 100_000.0,
            "pnl": 27.7,
            "fees": 6.3,
            "position_key": "SIM-1-001",
            "mode": "sim",
        },
    )


@pytest.mark.parametrize(
    ("changes", "reason", "broken"),
    [
        ({"side": "LONG", "ts_closed": ""}, "the position is still open", False),
        ({"ts_closed": "NaT"}, "the position is still open", False),
        ({"realized_pnl": "5 JPY"}, "the result is in JPY, and that of the first row in USD", False),
        ({"realized_pnl": "5"}, "realized_pnl has no currency", True),
        ({"avg_px_close": "x"}, "avg_px_close is not a number", True),
        ({"entry": "HOLD"}, "entry is neither BUY nor SELL", True),
    ],
)
def test_a_row_that_is_no_trade_is_named(tmp_path: Path, changes: Any, reason: str, broken: bool) -> None:
    *_, left = positions(tmp_path, POSITION, POSITION | changes)
    assert left == LeftOutRow(number=3, reason=reason, broken=broken)


def test_commissions_in_another_currency_are_no_fees_of_the_result(tmp_path: Path) -> None:
    *_, trade = positions(tmp_path, POSITION | {"trader_id": "ME-001", "commissions": "['6.30 USD', '0.01 BTC']"})
    assert isinstance(trade, TradeRow)
    assert trade.values["fees"] == 6.3
    assert "mode" not in trade.values


def test_a_fill_is_a_fill(tmp_path: Path) -> None:
    path = a_report(tmp_path, FILL, FILL | {"trade_id": "SIM-1-2", "order_side": "BUY"})
    assert recognised_format(path) == FILLS
    instrument, sold, bought = FILLS.read(path, ReadOptions())
    assert instrument == InstrumentRow(symbol="USD/JPY.SIM", currency="JPY", underlying="USD")
    assert isinstance(sold, FillRow)
    assert isinstance(bought, FillRow)
    fill = sold.fill
    assert (fill.id, fill.quantity, fill.price, fill.position_key) == ("SIM-1-1", -1000.0, 76.25, "P-1")
    assert (fill.fee, fill.fee_currency, fill.sequence, bought.fill.quantity) == (2.1, "JPY", 3, 1000.0)


def test_an_order_is_a_fill_at_its_average_price(tmp_path: Path) -> None:
    path = a_report(tmp_path, ORDER)
    assert recognised_format(path) == FILLS
    (row,) = FILLS.read(path, ReadOptions())
    assert isinstance(row, FillRow)
    assert (row.fill.id, row.fill.quantity, row.fill.price, row.fill.fee) == ("O-1-2", 2.0, 4500.25, 0.0)
    assert row.fill.position_key == "ESZ4.GLBX"


@pytest.mark.parametrize(
    ("changes", "reason", "broken"),
    [
        ({"filled_qty": "0"}, "nothing was filled", False),
        ({"side": "HOLD"}, "the side is neither BUY nor SELL", True),
        ({"commissions": "['1 USD', '1 EUR']"}, "commissions are in several currencies", True),
    ],
)
def test_an_order_that_is_no_fill_is_named(tmp_path: Path, changes: Any, reason: str, broken: bool) -> None:
    (left,) = FILLS.read(a_report(tmp_path, ORDER | changes), ReadOptions())
    assert left == LeftOutRow(number=2, reason=reason, broken=broken)


def test_a_report_that_is_cut_off_or_empty(tmp_path: Path) -> None:
    path = a_report(tmp_path, POSITION, POSITION)
    path.write_text(path.read_text()[:-40])
    *_, left = POSITIONS.read(path, ReadOptions())
    assert left == LeftOutRow(number=3, reason="another number of cells than the header", broken=True)
    path.write_text("")
    assert list(POSITIONS.read(path, ReadOptions())) == list(FILLS.read(path, ReadOptions())) == []


@pytest.mark.skipif(not REAL.exists(), reason="the shared sample is not on this machine")
def test_prices_of_the_shared_sample_give_its_realised_results() -> None:
    assert recognised_format(REAL) == POSITIONS
    rows = list(POSITIONS.read(REAL, ReadOptions()))
    trades = [row.values for row in rows if isinstance(row, TradeRow)]
    assert (len(rows), len(trades)) == (2_001, 2_000)
    ways = {"long": 1, "short": -1}
    for trade in trades:
        gross = ways[trade["direction"]] * (trade["exit_price"] - trade["entry_price"]) * trade["size"]
        assert trade["pnl"] == pytest.approx(gross - trade["fees"], abs=0.01)
