"""Trade history of Bybit."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow
from export_reading import fills_read, of_type, rows_read
from export_samples import BYBIT_DERIVATIVES, BYBIT_SPOT


def test_derivatives_with_funding_and_a_liquidation(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "bybit", BYBIT_DERIVATIVES)
    entry, paid, received, liquidation, inverse = (row.fill for row in of_type(rows, FillRow))
    assert (entry.id, entry.quantity, entry.fee, entry.order_id) == ("a1", 2.0, 0.11, "o1")
    assert entry.at == datetime(2026, 1, 10, 10, tzinfo=UTC)
    assert [(each.kind, each.amount) for each in (paid, received)] == [("funding", -0.0216), ("funding", 0.05)]
    assert (liquidation.quantity, liquidation.reason) == (-2.0, "liquidated")
    assert (inverse.quantity, inverse.fee_currency) == (-500.0, "BTC")
    assert [row.reason for row in of_type(rows, LeftOutRow)] == ["a row of type adjustment"]


def test_spot_fees_are_in_what_was_received(tmp_path: Path) -> None:
    purchase, sale = fills_read(tmp_path, "bybit", BYBIT_SPOT)
    assert (purchase.quantity, purchase.fee, purchase.fee_currency) == (10.0, 0.01, "CCC")
    assert (sale.quantity, sale.fee, sale.fee_currency) == (-9.99, 0.03, "USDT")


@pytest.mark.parametrize(
    ("symbol", "kind", "currency", "inverse"),
    [
        ("BTCUSDT", "perpetual", "USDT", False),
        ("BTCPERP", "perpetual", "USDC", False),
        ("BTCUSD", "perpetual", "BTC", True),
        ("BTCUSDZ26", "future", "BTC", True),
        ("BTC-27MAR26", "future", None, False),
        ("BTC-27MAR26-120000-C", "option", None, False),
    ],
)
def test_instruments(tmp_path: Path, symbol: str, kind: str, currency: str | None, inverse: bool) -> None:
    text = BYBIT_DERIVATIVES.splitlines()
    rows = rows_read(tmp_path, "bybit", "\n".join([text[0], text[1].replace("AAAUSDT", symbol)]))
    (instrument,) = of_type(rows, InstrumentRow)
    assert (instrument.kind, instrument.currency, instrument.inverse) == (kind, currency, inverse)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Long,Market", "Up,Market", "neither a purchase"),
        ("Trade,2,", "Trade,0,", "not above 0"),
        ("10:00 ", "", "time"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    rows = rows_read(
        tmp_path,
        "bybit",
        BYBIT_DERIVATIVES.replace(old, new, 1)
        if old != "10:00 "
        else BYBIT_DERIVATIVES.replace("10:00 2026-01-10", "noon", 1),
    )
    broken = [row for row in of_type(rows, LeftOutRow) if row.broken]
    assert (len(broken), broken[0].number, len(of_type(rows, FillRow))) == (1, 2, 4)
    assert reason in broken[0].reason
