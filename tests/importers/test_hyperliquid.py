"""Fills and funding of Hyperliquid."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.orders import as_fill
from backsight.core.trades.fold import RoundTrip, fold
from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow, ReadOptions, RemarkRow
from backsight.importers.registry import format_named
from backsight.testing import T0, an_account
from export_reading import fills_read, of_type, rows_read
from export_samples import HYPERLIQUID_FILLS, HYPERLIQUID_FUNDING

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "formats" / "hyperliquid_user_fills_sdk_cassette.json"


def a_row(
    number: int, change: float, *, start: float, px: float = 100.0, pnl: float = 0.0, **more: Any
) -> dict[str, Any]:
    """A fill with the older twelve keys, a second later each number."""
    row = {
        "coin": "SOL",
        "px": str(px),
        "sz": str(abs(change)),
        "side": "B" if change > 0 else "A",
        "time": 1_746_086_400_000 + number * 1000,
        "startPosition": str(start),
        "dir": "",
        "closedPnl": str(pnl),
        "hash": f"0x{number}",
        "oid": number,
        "crossed": True,
        "fee": "0.0",
    }
    return row | more


def trips_of(folder: Path, *rows: dict[str, Any]) -> list[RoundTrip]:
    reported = fills_read(folder, "hyperliquid", json.dumps(rows))
    return fold(as_fill(each, an_account(), decision_id=None, known_at=T0, recorded_at=T0) for each in reported)


def test_fills_are_read_with_profit_before_fees(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "hyperliquid", json.dumps(HYPERLIQUID_FILLS))
    assert [row.number for row in of_type(rows, FillRow)] == [3, 2, 1]
    assert of_type(rows, InstrumentRow) == [InstrumentRow(symbol="ETH", kind="perpetual", underlying="ETH")]
    (trip,) = trips_of(tmp_path, *HYPERLIQUID_FILLS)
    assert trip.realized_pnl == pytest.approx(4.9862 + 7.49, abs=1e-9)
    assert [trip.broker_pnl, trip.fees] == pytest.approx([12.4762, 0.594491])


def test_funding_deposits_and_other_updates(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "hyperliquid", json.dumps(HYPERLIQUID_FUNDING))
    funding, deposit = (row.fill for row in of_type(rows, FillRow))
    assert (funding.kind, funding.symbol, funding.amount) == ("funding", "ETH", -0.0125)
    assert (deposit.kind, deposit.amount) == ("transfer", 500.0)
    assert [row.reason for row in of_type(rows, LeftOutRow)] == ["a ledger update of type vaultDeposit"]


def test_a_position_from_before_the_file_is_entered_at_the_cost_that_its_profit_implies(tmp_path: Path) -> None:
    rows = [
        a_row(2, -3.0, start=3.0, px=120.0, pnl=3 * (120 - 100)),
        a_row(1, 1.0, start=2.0, px=120.0),
    ]
    holding = fills_read(tmp_path, "hyperliquid", json.dumps(rows))[0]
    assert (holding.kind, holding.quantity) == ("holding", 2.0)
    assert holding.price == pytest.approx(90.0)
    (trip,) = trips_of(tmp_path, *rows)
    assert (trip.status, trip.inferred) == ("closed", True)
    assert trip.realized_pnl == pytest.approx(60.0)
    (remark,) = of_type(rows_read(tmp_path, "hyperliquid", json.dumps(rows)), RemarkRow)
    assert remark.text.startswith("The file begins within positions in SOL:")


def test_a_short_from_before_the_file(tmp_path: Path) -> None:
    (trip,) = trips_of(tmp_path, a_row(1, 2.0, start=-2.0, px=90.0, pnl=20.0))
    assert trip.direction == "short"
    assert [trip.entry_price, trip.realized_pnl] == pytest.approx([100.0, 20.0])


def test_the_cost_of_a_position_that_only_grows_is_not_known(tmp_path: Path) -> None:
    holding = fills_read(tmp_path, "hyperliquid", json.dumps([a_row(1, 2.0, start=1.0, px=90.0)]))[0]
    assert (holding.kind, holding.quantity, holding.price) == ("holding", 1.0, None)


def test_fills_missing_within_the_file_are_told(tmp_path: Path) -> None:
    rows = [a_row(1, 1.0, start=0.0), a_row(2, 1.0, start=5.0)]
    (remark,) = of_type(rows_read(tmp_path, "hyperliquid", json.dumps(rows)), RemarkRow)
    assert remark.text.startswith("Fills or transfers are missing within the file in SOL:")


@given(st.permutations(range(5)), st.booleans())
def test_fills_of_one_millisecond_are_put_in_order(tmp_path_factory: Any, order: list[int], newest_first: bool) -> None:
    changes = [2.0, 1.5, -3.0, 4.0, -4.5]
    rows, position = [], 0.0
    for number, change in enumerate(changes):
        rows.append(a_row(number, change, start=position, px=100.0 + number, time=1_746_086_400_000))
        position += change
    shuffled = [rows[place] for place in order]
    text = json.dumps(shuffled[::-1] if newest_first else shuffled)
    fills = fills_read(tmp_path_factory.mktemp("hyperliquid"), "hyperliquid", text)
    assert [fill.quantity for fill in fills] == changes
    assert [fill.sequence for fill in fills] == [0, 1, 2, 3, 4]


def test_a_trade_with_oneself_is_two_fills_and_no_gap(tmp_path: Path) -> None:
    rows = [
        a_row(1, 5.0, start=0.0),
        a_row(2, 2.0, start=5.0, hash="0xself", tid=7, oid=21),
        a_row(2, -2.0, start=5.0, hash="0xself", tid=7, oid=22),
        a_row(3, -5.0, start=5.0),
    ]
    read = rows_read(tmp_path, "hyperliquid", json.dumps(rows))
    assert [row.fill.quantity for row in of_type(read, FillRow)] == [5.0, 2.0, -2.0, -5.0]
    assert not of_type(read, RemarkRow)


def test_a_fill_that_occurs_again_is_left_out(tmp_path: Path) -> None:
    row = a_row(1, 5.0, start=0.0)
    read = rows_read(tmp_path, "hyperliquid", json.dumps([row, row]))
    assert (len(of_type(read, FillRow)), of_type(read, LeftOutRow)[0].reason) == (1, "the same fill occurs again")


def test_a_spot_fee_in_coin_comes_off_what_was_bought(tmp_path: Path) -> None:
    row = a_row(1, 10.0, start=0.0, px=20.0, coin="@107", fee="0.01", feeToken="HYPE", tid=1)
    read = rows_read(tmp_path, "hyperliquid", json.dumps([row]))
    (fill,) = (each.fill for each in of_type(read, FillRow))
    assert (fill.quantity, fill.fee_currency) == (9.99, None)
    assert fill.fee == pytest.approx(0.2)
    assert of_type(read, InstrumentRow) == [InstrumentRow(symbol="@107", kind="spot", underlying="HYPE")]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"dir": "Liquidated Cross Long"}, "liquidated"),
        ({"dir": "Close Long", "liquidation": {"method": "market"}, "crossed": True}, "liquidated"),
        ({"dir": "Close Long", "liquidation": {"method": "market"}, "crossed": False}, None),
        ({"dir": "Open Long", "liquidation": {"method": "market"}, "crossed": True}, None),
    ],
)
def test_only_the_liquidated_side_is_liquidated(tmp_path: Path, more: dict[str, Any], reason: str | None) -> None:
    (fill,) = fills_read(tmp_path, "hyperliquid", json.dumps([a_row(1, -1.0, start=0.0, **more)]))
    assert fill.reason == reason


@pytest.mark.parametrize(
    "broken",
    [{"px": "x"}, {"sz": "0"}, {"side": "C"}, {"time": "soon"}, {"startPosition": None}, {"fee": {}}, {"coin": ""}],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path, broken: dict[str, Any]) -> None:
    rows = [a_row(1, 1.0, start=0.0), a_row(2, 1.0, start=1.0, **broken)]
    read = rows_read(tmp_path, "hyperliquid", json.dumps(rows))
    (left_out,) = of_type(read, LeftOutRow)
    assert (left_out.number, left_out.broken, len(of_type(read, FillRow))) == (2, True, 1)


@pytest.mark.skipif(not REAL.exists(), reason="needs the shared sample")
def test_the_real_sample_is_read_whole() -> None:
    rows = list(format_named("hyperliquid").read(REAL, ReadOptions()))
    fills = [row.fill for row in of_type(rows, FillRow)]
    assert (len(fills), len(of_type(rows, LeftOutRow))) == (516, 0)
    # The file begins within positions of all 15 coins; of the first trade of SUI with oneself it has one half only.
    assert sum(fill.kind == "holding" for fill in fills) == 16
    by_number = dict(enumerate(json.loads(REAL.read_text()), start=1))
    ends = {}
    for row in of_type(rows, FillRow):
        if row.fill.kind == "trade":
            ends[row.fill.symbol] = float(by_number[row.number]["startPosition"]) + row.fill.quantity
    trips = fold(as_fill(each, an_account(), decision_id=None, known_at=T0, recorded_at=T0) for each in fills)
    sizes = {trip.symbol: trip.signed_size for trip in trips}
    assert sizes == pytest.approx(ends, abs=1e-6), "the ledger ends where the exchange says"


@pytest.mark.skipif(not REAL.exists(), reason="needs the shared sample")
def test_the_profits_of_the_real_sample_follow_the_rule_of_its_time() -> None:
    """In May 2023 the exchange averaged reductions into its entry price, and told flips of shorts with another sign."""
    file = json.loads(REAL.read_text())
    average: dict[str, float] = {}
    explained = compared = 0
    for row in of_type(list(format_named("hyperliquid").read(REAL, ReadOptions())), FillRow):
        fill = row.fill
        assert fill.price is not None
        start = fill.quantity if fill.kind == "holding" else float(file[row.number - 1]["startPosition"])
        if fill.kind == "holding":
            average[fill.symbol] = fill.price
            continue
        size, entry = abs(fill.quantity), average.get(fill.symbol, fill.price)
        if start * fill.quantity < 0:
            closed = min(abs(start), size)
            gain = (fill.price - entry) * (closed if start > 0 else -closed)
            compared += 1
            explained += abs(abs(gain) - abs(fill.realized_pnl or 0.0)) <= 2e-5 * fill.price * closed
            entry = fill.price - (fill.realized_pnl or 0.0) / (closed if start > 0 else -closed)
        flipped = start * (start + fill.quantity) <= 0
        average[fill.symbol] = fill.price if flipped else (abs(start) * entry + size * fill.price) / (abs(start) + size)
    assert (compared, explained) == (288, 288)
