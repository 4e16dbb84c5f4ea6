"""Exports of exchanges and brokers in the ledger: imported twice and in parts, compared with their own figures."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.memory import Memory
from backsight.ops.fills import ImportedFills
from backsight.testing import FakeClock, open_memory
from export_samples import SAMPLES

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "formats"
HYPERLIQUID = SHARED / "hyperliquid_user_fills_sdk_cassette.json"
CONTRACTS = SHARED / "tradetally_pnl_contracts.json"
NOW = datetime(2027, 1, 1, tzinfo=UTC)
FILES = [
    pytest.param(name, text, id=f"{name}-{number}") for name in SAMPLES for number, text in enumerate(SAMPLES[name])
]


def a_memory() -> Any:
    return open_memory("sqlite://", clock=FakeClock(NOW))


def imported(memory: Memory, folder: Path, text: str, **options: Any) -> ImportedFills:
    path = folder / "export"
    path.write_text(text, encoding="utf-8")
    return memory.import_fills(path=str(path), mode="live", account="desk", **options)


def results(memory: Memory) -> list[tuple[Any, ...]]:
    trades = memory.list_trades(limit=100).trades
    return sorted((trade.symbol, trade.opened_at, trade.closed_at, round(trade.pnl or 0.0, 6)) for trade in trades)


@pytest.mark.parametrize(("name", "text"), FILES)
def test_every_sample_is_imported_once(tmp_path: Path, name: str, text: str) -> None:
    with a_memory() as memory:
        first = imported(memory, tmp_path, text)
        assert (first.format, first.added > 0, first.fees_missing) == (name, True, 0)
        assert first.rows == first.added + sum(each.rows for each in first.left_out)
        before = results(memory)
        assert (imported(memory, tmp_path, text).added, results(memory)) == (0, before)


@pytest.mark.parametrize(("name", "number"), [("hyperliquid", 0), ("binance", 2), ("okx", 0), ("ibkr-flex", 0)])
def test_profits_are_those_of_the_export(tmp_path: Path, name: str, number: int) -> None:
    with a_memory() as memory:
        trades = imported(memory, tmp_path, SAMPLES[name][number]).trades
        assert trades is not None
        assert (trades.comparison.compared, trades.comparison.agreeing) == (1, 1)


def test_a_profit_without_a_position_is_told(tmp_path: Path) -> None:
    latest = "".join(line for line in SAMPLES["binance"][2].splitlines(keepends=True) if "BUY" not in line)
    with a_memory() as memory:
        answer = imported(memory, tmp_path, latest)
        assert answer.notes[-1].startswith("Fills of BTCUSDT closed positions that were entered before the file")
        assert (answer.added, results(memory)) == (1, []), "no trade, so nothing is learned"
        whole = imported(memory, tmp_path, SAMPLES["binance"][2])
        assert whole.trades is not None
        assert (whole.trades.entered_before, whole.trades.closed, whole.trades.open_positions) == ((), 1, 0)


FUTURES = "Date(UTC),Symbol,Side,Price,Quantity,Amount,Fee,Fee Coin,Realized Profit\n"
SPOT = "Date(UTC),Pair,Side,Price,Executed,Amount,Fee\n"


@pytest.mark.parametrize(
    ("text", "trades"),
    [
        # 5 were held at 40 before the file; the profit of the sale is that of 6 at an average of 50.
        (
            FUTURES
            + "2026-06-01 09:00:00,BTCUSDT,BUY,100,1,100,0,USDT,0\n"
            + "2026-06-01 10:00:00,BTCUSDT,SELL,110,6,660,0,USDT,360\n",
            [("long", 1.0)],
        ),
        # A long position of 1 is closed and a short one of 2 is opened: the profit is that of 1.
        (
            FUTURES
            + "2026-06-01 09:00:00,BTCUSDT,BUY,100,1,100,0,USDT,0\n"
            + "2026-06-01 10:00:00,BTCUSDT,SELL,110,3,330,0,USDT,10\n",
            [("long", 1.0), ("short", 2.0)],
        ),
        # Coins that were there before are sold: no short position on a spot market.
        (
            SPOT
            + "2026-06-01 09:00:00,SOLUSDT,SELL,100,2SOL,200USDT,0USDT\n"
            + "2026-06-01 10:00:00,SOLUSDT,BUY,90,1SOL,90USDT,0USDT\n"
            + "2026-06-01 11:00:00,SOLUSDT,SELL,95,3SOL,285USDT,0USDT\n",
            [("long", 1.0)],
        ),
    ],
)
def test_what_was_held_before_a_file_makes_no_false_trade(tmp_path: Path, text: str, trades: list[Any]) -> None:
    with a_memory() as memory:
        answer = imported(memory, tmp_path, text)
        listed = [trade for status in ("closed", "open") for trade in memory.list_trades(status=status).trades]
        assert [(trade.direction, trade.size) for trade in listed] == trades
        named = any("entered before the file" in note for note in answer.notes)
        assert named == (len(trades) == 1)


def test_an_inverse_contract_pays_in_its_coin(tmp_path: Path) -> None:
    header = "Date(UTC),Symbol,Side,Price,Quantity,Amount,Fee,Fee Coin,Realized Profit\n"
    entry = "2026-06-01 09:00:00,BTCUSD_PERP,BUY,50000,10,0.02,0.00001,BTC,0\n"
    exit_ = "2026-06-01 10:00:00,BTCUSD_PERP,SELL,62500,10,0.016,0.000008,BTC,0.004\n"
    with a_memory() as memory:
        answer = imported(memory, tmp_path, header + entry + exit_, currency="BTC")
        assert answer.trades is not None
        assert (answer.trades.comparison.agreeing, answer.fees_missing) == (1, 0)
        assert [trade.pnl for trade in memory.list_trades().trades] == [pytest.approx(0.004 - 0.000018)]


@pytest.mark.skipif(not HYPERLIQUID.exists(), reason="needs the shared sample")
@pytest.mark.parametrize("parts", [(0, 250), (250, 500), (100, 300)])
def test_parts_of_the_real_sample_lead_to_the_same_trades_as_the_whole(tmp_path: Path, parts: tuple[int, int]) -> None:
    rows = json.loads(HYPERLIQUID.read_text())
    first, last = (next((n for n in range(cut, 500) if rows[n]["time"] != rows[n - 1]["time"]), 500) for cut in parts)
    with a_memory() as memory:
        whole = imported(memory, tmp_path, json.dumps(rows))
        assert whole.trades is not None
        assert (whole.added, whole.trades.closed, whole.trades.open_positions) == (516, 37, 0)
        expected = results(memory)
    with a_memory() as memory:
        imported(memory, tmp_path, json.dumps(rows[first if parts[0] else 0 : last]))
        again = imported(memory, tmp_path, json.dumps(rows))
        assert again.trades is not None
        assert again.trades.open_positions == 0
        assert results(memory) == expected


SIGN_OF_BROKER = frozenset({"ibkr_double_recorded_cost"})
"""Its fee of -1.53244 is a commission that was paid, in the sign of the broker; the case counts it as a gain."""


def contract_cases() -> list[Any]:
    cases = json.loads(CONTRACTS.read_text())["pnl_engine_cases"] if CONTRACTS.exists() else []
    return [pytest.param(case, id=case["id"]) for case in cases if case["id"] not in SIGN_OF_BROKER]


def table_of(case: dict[str, Any]) -> str:
    """The executions of a case as a table of fills; an entry and an exit in one execution are two rows."""
    long = case["input"]["side"] == "long"
    lines = ["time,symbol,side,quantity,price,fee"]
    for each in case["input"]["executions"]:
        cost = each.get("commission", 0) + each.get("fees", 0)
        if "action" in each:
            legs = [(each["datetime"], each["action"], each["price"], cost)]
        else:
            sides = ("buy", "sell") if long else ("sell", "buy")
            legs = [
                (each["entryTime"], sides[0], each["entryPrice"], 0.0),
                (each["exitTime"], sides[1], each["exitPrice"], cost),
            ]
        lines += [f"{time},X,{side},{each['quantity']},{price},{fee}" for time, side, price, fee in legs]
    return "\n".join([*lines, ""])


@pytest.mark.skipif(not CONTRACTS.exists(), reason="needs the shared sample")
@pytest.mark.parametrize("case", contract_cases())
def test_profits_of_the_golden_cases(tmp_path: Path, case: dict[str, Any]) -> None:
    expected = case["expected"]["aggregate"]
    with a_memory() as memory:
        multiplier = case["input"].get("contractSize") or case["input"].get("pointValue") or 1
        memory.save_instrument(symbol="X", multiplier=multiplier)
        imported(memory, tmp_path, table_of(case))
        (trade,) = memory.list_trades().trades
        figures = [trade.pnl, trade.entry_price, trade.exit_price]
        assert figures == pytest.approx([expected[name] for name in ("pnl", "entry_price", "exit_price")])


@pytest.mark.skipif(not CONTRACTS.exists(), reason="needs the shared sample")
def test_the_golden_flex_query(tmp_path: Path) -> None:
    cases = json.loads(CONTRACTS.read_text())["csv_import_cases"]
    case = next(each for each in cases if each["id"] == "ibkr_same_order_partial_fills_round_trip")
    with a_memory() as memory:
        answer = imported(memory, tmp_path, case["csv"])
        (trade,) = memory.list_trades().trades
    assert (answer.format, answer.added, trade.symbol) == ("ibkr-flex-csv", case["expected"]["execution_count"], "AAPL")
    figures = [trade.entry_price, trade.exit_price, trade.size, trade.fees]
    names = ("entry_price", "exit_price", "quantity", "commission")
    assert figures == pytest.approx([case["expected"][name] for name in names])
