"""Transaction log of a unified account at Bybit."""

from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow
from export_reading import of_type, rows_read
from export_samples import BYBIT_LOG


def test_derivatives_spot_trades_funding_and_transfers_are_in_one_table(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "bybit-log", BYBIT_LOG)
    entry, funding, exit_, purchase, sale, fee, transfer = of_type(rows, FillRow)
    assert (entry.fill.id, entry.fill.quantity, entry.fill.fee, entry.closes) == ("x1", 2.0, 0.11, None)
    assert (funding.fill.kind, funding.fill.amount) == ("funding", -0.0216)
    assert (exit_.fill.quantity, exit_.fill.realized_pnl, exit_.closes) == (-2.0, 20.0, "measured")
    assert (purchase.fill.quantity, purchase.fill.fee, purchase.fill.fee_currency) == (10.0, 0.01, "CCC")
    assert (sale.fill.quantity, sale.fill.realized_pnl, sale.closes) == (-9.99, None, "all")
    assert (fee.fill.kind, fee.fill.fee, fee.fill.fee_currency) == ("fee", 0.03, "USDT")
    assert (transfer.fill.kind, transfer.fill.amount) == ("transfer", 500.0)
    assert [row.kind for row in of_type(rows, InstrumentRow)] == ["perpetual", "spot"]
    assert [(row.number, row.broken) for row in of_type(rows, LeftOutRow)] == [(7, False), (11, False)]


@pytest.mark.parametrize(
    ("row", "closes", "pnl"),
    [
        ("USDT,BTC-27MAR26-90000-C-USDT,TRADE,SELL,1,0,7,0,-0.03,7,6.97,1,CLOSE,o,x,2026-01-11 09:00:00", "all", None),
        ("USDT,AAAUSDT,TRADE,SELL,1,0,100,0,-0.03,0,-0.03,1,CLOSE,o,x,2026-01-11 09:00:00", "all", None),
        ("USDT,AAAUSDT,LIQUIDATION,SELL,1,0,90,0,-0.03,-9,-9.03,1,CLOSE,o,x,2026-01-11 09:00:00", "all", -9.0),
    ],
)
def test_the_cash_flow_of_a_close_is_its_profit_but_not_that_of_an_option(
    tmp_path: Path, row: str, closes: str, pnl: float | None
) -> None:
    header = BYBIT_LOG.splitlines()[1].removeprefix("Uid,")
    (fill,) = of_type(rows_read(tmp_path, "bybit-log", f"{header}\n{row}\n"), FillRow)
    assert (fill.closes, fill.fill.realized_pnl) == (closes, pnl)


@pytest.mark.parametrize("change", [(",BUY,2,2,", ",HOLD,2,2,"), (",2,2,100,", ",0,2,100,"), ("2026-01-10 10", "soon")])
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, change: tuple[str, str]) -> None:
    rows = rows_read(tmp_path, "bybit-log", BYBIT_LOG.replace(*change, 1))
    assert [row.number for row in of_type(rows, LeftOutRow) if row.broken] == [3]
