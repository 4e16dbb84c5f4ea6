"""Trade history of Binance."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow
from export_reading import fills_read, of_type, rows_read
from export_samples import (
    BINANCE_COIN_MARGINED,
    BINANCE_FUTURES,
    BINANCE_OLD_SPOT,
    BINANCE_SPOT,
    BINANCE_TRANSACTIONS,
)


def test_spot_amounts_have_their_units(tmp_path: Path) -> None:
    sale, purchase = fills_read(tmp_path, "binance", BINANCE_SPOT)
    assert (sale.quantity, sale.price, sale.fee, sale.fee_currency) == (-0.17982, 112.0, 0.02013984, "BUSD")
    assert (purchase.quantity, purchase.price, purchase.fee, purchase.fee_currency) == (0.18, 1110.03, 0.00018, "SOL")
    assert purchase.at == datetime(2022, 3, 28, 13, 1, 36, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pair", "executed", "fee", "size", "coin"),
    [
        ("1000SHIBUSDT", "20.01000SHIB", "0.5USDT", 20.0, "USDT"),
        ("1INCHUSDT", "0.51INCH", "0.00051INCH", 0.5, "1INCH"),
        ("BTCUSDT", "0.5", "0.001BNB", 0.5, "BNB"),
        ("ETHBTC", '"1,000.5ETH"', "0", 1000.5, "BTC"),
    ],
)
def test_units_that_begin_with_digits(
    tmp_path: Path, pair: str, executed: str, fee: str, size: float, coin: str
) -> None:
    text = f"Date(UTC),Pair,Side,Price,Executed,Amount,Fee\n2024-01-01 00:00:00,{pair},BUY,2,{executed},1,{fee}\n"
    (fill,) = fills_read(tmp_path, "binance", text)
    assert (fill.quantity, fill.fee_currency) == (size, coin)


def test_sales_on_a_spot_market_and_fills_with_a_profit_close(tmp_path: Path) -> None:
    spot, futures = (
        [row.closes for row in of_type(rows_read(tmp_path, "binance", text), FillRow)]
        for text in (BINANCE_SPOT, BINANCE_FUTURES)
    )
    assert (spot, futures) == (["all", None], ["measured", None, None])


def test_the_spot_export_of_before_2021(tmp_path: Path) -> None:
    purchase, sale = fills_read(tmp_path, "binance", BINANCE_OLD_SPOT)
    assert (purchase.quantity, purchase.fee, purchase.fee_currency) == (10.0, 0.0075, "BNB")
    assert (sale.quantity, sale.fee_currency) == (-9.9, "BTC")


def test_equal_partial_fills_are_two(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "binance", BINANCE_FUTURES)
    sale, *purchases = (row.fill for row in of_type(rows, FillRow))
    assert (sale.realized_pnl, sale.fee_currency, len(purchases), purchases[0]) == (6.0, "USDT", 2, purchases[1])
    (instrument,) = of_type(rows, InstrumentRow)
    assert instrument == InstrumentRow(symbol="BTCUSDT", kind="perpetual", currency="USDT", underlying="BTC")


def test_a_coin_margined_contract_is_inverse(tmp_path: Path) -> None:
    """The columns are in another order and case, with semicolons, decimal commas and an offset from UTC."""
    rows = rows_read(tmp_path, "binance", BINANCE_COIN_MARGINED)
    (fill,) = (row.fill for row in of_type(rows, FillRow))
    assert (fill.quantity, fill.price, fill.fee, fill.fee_currency) == (10.0, 60000.5, 0.0000083, "BTC")
    assert fill.at == datetime(2024, 6, 1, 7, tzinfo=UTC)
    (instrument,) = of_type(rows, InstrumentRow)
    assert (instrument.inverse, instrument.multiplier, instrument.currency) == (True, 100.0, "BTC")


def test_funding_and_transfers_of_the_transaction_history(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "binance-transactions", BINANCE_TRANSACTIONS)
    funding, transfer = (row.fill for row in of_type(rows, FillRow))
    assert (funding.kind, funding.symbol, funding.amount, funding.id) == (
        "funding",
        "BTCUSDT",
        -0.5,
        "funding_fee:9001",
    )
    assert (transfer.kind, transfer.amount) == ("transfer", 1000.0)
    assert [(row.number, row.broken) for row in of_type(rows, LeftOutRow)] == [(3, False), (5, False)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2026-06-01 09:00:00,BTCUSDT,HOLD,68000,0.005,340,0.1,USDT,0,USDT", "a side that is neither"),
        ("2026-06-01 09:00:00,,BUY,68000,0.005,340,0.1,USDT,0,USDT", "no symbol"),
        ("2026-06-01 09:00:00,BTCUSDT,BUY,,0.005,340,0.1,USDT,0,USDT", "price is missing"),
        ("2026-06-01 09:00:00,BTCUSDT,BUY,68000,0,340,0.1,USDT,0,USDT", "not above 0"),
        ("01/06/2026 09:00,BTCUSDT,BUY,68000,0.005,340,0.1,USDT,0,USDT", "time cannot be read"),
        ("2026-06-01 09:00:00,BTCUSDT,BUY,68000,0.005,340,NaN,USDT,0,USDT", "fee is not a number"),
        ("2026-06-01 09:00:00,BTCUSDT,BUY,68,000.00,0.005,340,0.1,USDT,0,USDT", "more cells than the header"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, line: str, reason: str) -> None:
    rows = rows_read(tmp_path, "binance", f"{BINANCE_FUTURES}{line}\n")
    (left_out,) = of_type(rows, LeftOutRow)
    assert (left_out.number, left_out.broken, len(of_type(rows, FillRow))) == (5, True, 3)
    assert reason in left_out.reason
