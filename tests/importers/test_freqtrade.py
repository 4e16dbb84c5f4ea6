"""freqtrade: backtest results and databases of several years become trades, or rows that are named."""

import json
import sqlite3
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import FileRow, LeftOutRow, ReadOptions, RemarkRow, head_of
from backsight.importers.freqtrade import FORMATS
from backsight.importers.registry import format_named, recognised_format
from backsight.importers.trades import TradeRow
from program_samples.freqtrade import OLD, OLD_TRADE, TRADE, a_database, a_result

RESULT, DATABASE = FORMATS


def an_order(side: str, amount: float, price: float, **changes: Any) -> dict[str, Any]:
    return {"amount": amount, "safe_price": price, "ft_order_side": side} | changes


def rows_of(folder: Path, text: str) -> list[FileRow]:
    (folder / "backtest-result.json").write_text(text)
    return without_remarks(RESULT.read(folder / "backtest-result.json", ReadOptions()))


def without_remarks(rows: Iterable[FileRow]) -> list[FileRow]:
    return [row for row in rows if not isinstance(row, RemarkRow)]


def values_of(folder: Path, **changes: Any) -> Any:
    (row,) = rows_of(folder, a_result(TRADE | changes))
    assert isinstance(row, TradeRow), row
    return row.values


def stored(path: Path) -> list[FileRow]:
    return without_remarks(DATABASE.read(path, ReadOptions()))


def test_a_trade_has_its_prices_its_reasons_and_what_it_saw(tmp_path: Path) -> None:
    assert values_of(tmp_path) == {
        "symbol": "BTC/USDT:USDT",
        "direction": "long",
        "strategy_name": "Breakout",
        "opened_at": datetime(2024, 5, 1, 10, tzinfo=UTC),
        "closed_at": datetime(2024, 5, 1, 12, tzinfo=UTC),
        "entry_price": 100.0,
        "exit_price": 110.0,
        "size": 2.0,
        "pnl": 18.86,
        "fees": pytest.approx(0.64),
        "funding": -0.5,
        "leverage": 3.0,
        "stop_price": 95.0,
        "reason": "breakout",
        "exit_reason": "roi",
        "max_adverse_excursion": 6.0,
        "max_favorable_excursion": 24.0,
    }


def test_the_money_of_a_trade_adds_up(tmp_path: Path) -> None:
    values = values_of(tmp_path)
    gross = (values["exit_price"] - values["entry_price"]) * values["size"]
    assert values["pnl"] == pytest.approx(gross - values["fees"] + values["funding"])


def test_a_short_wins_when_the_price_falls(tmp_path: Path) -> None:
    values = values_of(tmp_path, is_short=True, profit_abs=-20.0)
    assert (values["direction"], values["max_adverse_excursion"], values["max_favorable_excursion"]) == (
        "short",
        24.0,
        6.0,
    )


def test_orders_tell_average_prices_and_the_largest_size(tmp_path: Path) -> None:
    orders = [
        an_order("buy", 1.0, 100.0),
        an_order("buy", 1.0, 90.0),
        an_order("sell", 1.5, 120.0),
        an_order("sell", 0.5, 100.0),
    ]
    values = values_of(tmp_path, amount=0.5, close_rate=100.0, orders=orders)
    assert (values["entry_price"], values["exit_price"], values["size"]) == (95.0, 115.0, 2.0)
    assert values["fees"] == pytest.approx(190 * 0.001 + 230 * 0.002)
    assert "max_adverse_excursion" not in values


def test_an_order_that_was_never_filled_does_not_count(tmp_path: Path) -> None:
    filled = {"order_filled_timestamp": 1_714_557_600_000}
    orders = [an_order("buy", 2.0, 100.0, **filled), an_order("sell", 2.0, 110.0, **filled)]
    waiting = an_order("buy", 5.0, 50.0, order_filled_timestamp=None)
    assert values_of(tmp_path, orders=[*orders, waiting]) == values_of(tmp_path, orders=orders)


def test_columns_have_their_old_names(tmp_path: Path) -> None:
    old = {name: TRADE[name] for name in TRADE if name not in ("exit_reason", "enter_tag", "is_short", "leverage")}
    text = a_result(old | {"sell_reason": "stop_loss", "buy_tag": "dip"})
    (row,) = rows_of(tmp_path, text)
    assert isinstance(row, TradeRow)
    assert (row.values["exit_reason"], row.values["reason"], row.values["direction"]) == ("stop_loss", "dip", "long")


def test_trades_of_several_strategies_are_theirs(tmp_path: Path) -> None:
    one, two = json.loads(a_result(TRADE)), json.loads(a_result(TRADE, TRADE, strategy="Fade"))
    rows = rows_of(tmp_path, json.dumps({"strategy": one["strategy"] | two["strategy"]}))
    names = [(row.number, row.values["strategy_name"]) for row in rows if isinstance(row, TradeRow)]
    assert names == [(1, "Breakout"), (2, "Fade"), (3, "Fade")]


@pytest.mark.parametrize(
    ("changes", "reason", "broken"),
    [
        ({"is_open": True}, "the trade was still open", False),
        ({"close_date": None}, "the trade was never filled", False),
        ({"pair": None}, "pair is missing", True),
        ({"profit_abs": "a lot"}, "profit_abs is not a number", True),
        ({"profit_abs": float("nan")}, "profit_abs is missing", True),
        ({"amount": 0.0}, "amount is not above 0", True),
        ({"open_date": "yesterday"}, "open_date is not a time", True),
        ({"orders": [1]}, "orders is not a list of objects", True),
        ({"orders": [an_order("buy", 0.0, 1.0), an_order("sell", 1.0, 1.0)]}, "filled is not above 0", True),
    ],
)
def test_a_trade_that_is_not_one_is_named(tmp_path: Path, changes: Any, reason: str, broken: bool) -> None:
    left, imported = rows_of(tmp_path, a_result(TRADE | changes, TRADE))
    assert left == LeftOutRow(number=1, reason=reason, broken=broken)
    assert isinstance(imported, TradeRow)


def test_a_trade_that_is_no_object_is_named(tmp_path: Path) -> None:
    assert rows_of(tmp_path, a_result("x")) == [LeftOutRow(number=1, reason="pair is missing", broken=True)]


def test_a_result_that_is_cut_off_is_named(tmp_path: Path) -> None:
    text = a_result(TRADE, TRADE, TRADE)
    *trades, last = rows_of(tmp_path, text[: len(text) // 2])
    assert all(isinstance(row, TradeRow) for row in trades)
    assert last == LeftOutRow(number=len(trades) + 1, reason="not JSON, or cut off", broken=True)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is empty"):
        rows_of(tmp_path, "")


def test_a_result_is_read_from_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "backtest-result-2024.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("backtest-result-2024_config.json", '{"strategy": "Breakout"}')
        archive.writestr("backtest-result-2024_Breakout.py", "")
        archive.writestr("backtest-result-2024.json", a_result(TRADE))
    assert recognised_format(path) == RESULT
    remark, row = RESULT.read(path, ReadOptions())
    assert remark == RemarkRow(text="Results are in USDT.")
    assert isinstance(row, TradeRow)
    content = path.read_bytes()
    path.write_bytes(content[:300])
    with pytest.raises(Invalid, match="no freqtrade result"):
        list(RESULT.read(path, ReadOptions()))
    at = content.index(b"backtest-result-2024.json") + 40
    path.write_bytes(content[:at] + b"\xff\xff" + content[at + 2 :])
    with pytest.raises(Invalid, match="cannot be unpacked"):
        list(RESULT.read(path, ReadOptions()))


def test_another_archive_is_not_recognised(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("orders.json", "{}")
    with pytest.raises(Invalid, match="fits no format"):
        recognised_format(tmp_path / "a.zip")


def test_formats_are_in_the_registry(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(a_result(TRADE))
    assert recognised_format(tmp_path / "r.json") == format_named("freqtrade-backtest") == RESULT
    assert RESULT.mode == "sim"


NEW = "id, pair, is_open, is_short, leverage, funding_fees, fee_open, fee_close, open_rate, close_rate, stake_amount"
NEW += ", amount, open_date, close_date, initial_stop_loss, min_rate, max_rate, exit_reason, strategy"
NEW += ", close_profit_abs, enter_tag, realized_profit, max_stake_amount, trading_mode, contract_size"
NEW_TRADE = [3, "SOL/USDT:USDT", 0, 1, 5.0, 0.25, 0.0005, 0.0005, 150.0, 140.0, 30.0, 0.4, "2025-05-01 10:00:00.5"]
NEW_TRADE += ["2025-05-02 10:00:00", 157.5, 139.0, 151.0, "stoploss_on_exchange", "New", 9.0, "fade", 9.0, 150.0]
NEW_TRADE += ["FUTURES", 1.0]


def test_a_database_of_2021_is_read(tmp_path: Path) -> None:
    path = a_database(tmp_path / "tradesv3.sqlite", OLD, OLD_TRADE, [8, *OLD_TRADE[1:2], 1, *OLD_TRADE[3:]])
    assert recognised_format(path) == DATABASE
    row, left = stored(path)
    assert isinstance(row, TradeRow)
    assert (row.values["pnl"], row.values["exit_reason"], row.values["strategy_name"]) == (1.958, "sell_signal", "Old")
    assert row.values["opened_at"] == datetime(2021, 5, 1, 10, tzinfo=UTC)
    assert not {"stop_price", "reason", "mode", "leverage"} & set(row.values)
    assert left == LeftOutRow(number=2, reason="the trade was still open")


def test_a_database_of_2025_is_read_with_its_orders(tmp_path: Path) -> None:
    orders = [
        [1, 3, "sell", "x1", 151.0, 150.0, 1.0, 1.0, None, 0.0],
        [2, 3, "buy", "x2", 140.0, None, 0.6, 0.6, None, 0.1],
        [3, 3, "buy", "x3", 130.0, 130.0, 0.4, 0.0, None, 0.0],
        [4, 3, "stoploss", "x4", 145.0, 0.0, 0.4, 0.4, None, 0.15],
    ]
    path = a_database(tmp_path / "tradesv3.sqlite", NEW, NEW_TRADE, orders=orders)
    (row,) = stored(path)
    assert isinstance(row, TradeRow)
    values = row.values
    assert (values["direction"], values["size"], values["entry_price"], values["exit_price"]) == (
        "short",
        1.0,
        150.0,
        142.0,
    )
    assert (values["funding"], values["leverage"], values["reason"]) == (0.25, 5.0, "fade")
    assert "mode" not in values


def test_orders_of_a_dry_run_are_paper(tmp_path: Path) -> None:
    orders = [[1, 3, "sell", "dry_run_sell_1", 150.0, 150.0, 0.4, 0.4, None, 0.0]]
    (row,) = stored(a_database(tmp_path / "t.sqlite", NEW, NEW_TRADE, orders=orders))
    assert isinstance(row, TradeRow)
    assert row.values["mode"] == "paper"


def test_a_database_with_a_broken_row_is_read_on(tmp_path: Path) -> None:
    broken = [*OLD_TRADE[:5], "x", *OLD_TRADE[6:]]
    left, row = stored(a_database(tmp_path / "t.sqlite", OLD, broken, OLD_TRADE))
    assert left == LeftOutRow(number=1, reason="open_rate is not a number", broken=True)
    assert isinstance(row, TradeRow)


def test_a_database_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = a_database(tmp_path / "t.sqlite", OLD, *[OLD_TRADE] * 500)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    *_, last = stored(path)
    assert isinstance(last, LeftOutRow)
    assert "cut off or damaged" in last.reason
    assert last.broken


def test_a_database_with_a_damaged_schema_is_named(tmp_path: Path) -> None:
    path = a_database(tmp_path / "t.sqlite", OLD, OLD_TRADE)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE trades", b"CREATE T\x80\xffLE trades"))
    (left,) = stored(path)
    assert isinstance(left, LeftOutRow)
    assert (left.broken, "cut off or damaged" in left.reason) == (True, True)
    assert not DATABASE.recognises(head_of(path))


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (id)")
    connection.close()
    with pytest.raises(Invalid, match="no table of trades"):
        stored(path)
    with pytest.raises(Invalid, match="fits no format"):
        recognised_format(path)


def test_reading_writes_nothing_beside_the_database(tmp_path: Path) -> None:
    path = a_database(tmp_path / "t.sqlite", OLD, OLD_TRADE)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=wal")
    connection.close()
    assert len(stored(path)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["t.sqlite"]
