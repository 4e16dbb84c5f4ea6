"""Results and databases of freqtrade."""

import json
import sqlite3
from pathlib import Path
from typing import Any

TRADE = {
    "pair": "BTC/USDT:USDT",
    "stake_amount": 100.0,
    "amount": 2.0,
    "open_date": "2024-05-01 10:00:00+00:00",
    "close_date": "2024-05-01 12:00:00+00:00",
    "open_rate": 100.0,
    "close_rate": 110.0,
    "fee_open": 0.001,
    "fee_close": 0.002,
    "profit_ratio": 0.2,
    "profit_abs": 18.86,
    "funding_fees": -0.5,
    "exit_reason": "roi",
    "initial_stop_loss_abs": 95.0,
    "stop_loss_abs": 99.0,
    "min_rate": 97.0,
    "max_rate": 112.0,
    "is_open": False,
    "enter_tag": "breakout",
    "leverage": 3.0,
    "is_short": False,
}


def a_result(*trades: object, strategy: str = "Breakout") -> str:
    rest = {"stake_currency": "USDT", "results_per_pair": []}
    return json.dumps({"metadata": {}, "strategy": {strategy: {"trades": trades, **rest}}, "strategy_comparison": []})


OLD = "id, pair, is_open, fee_open, fee_close, open_rate, close_rate, stake_amount, amount, open_date, close_date"

OLD += ", initial_stop_loss, min_rate, max_rate, sell_reason, strategy, close_profit_abs, buy_tag"

OLD_TRADE = [7, "ETH/BTC", 0, 0.001, 0.001, 10.0, 11.0, 20.0, 2.0, "2021-05-01 10:00:00.000000"]

OLD_TRADE += ["2021-05-01 12:00:00.000000", 0.0, 9.5, 11.5, "sell_signal", "Old", 1.958, None]

ORDERS = "id, ft_trade_id, ft_order_side, order_id, price, average, amount, filled, ft_fee_base, funding_fee"


def a_database(path: Path, columns: str, *trades: list[Any], orders: list[list[Any]] | None = None) -> Path:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE trades ({columns})")
        for trade in trades:
            connection.execute(f"INSERT INTO trades VALUES ({','.join('?' * len(trade))})", trade)
        if orders is not None:
            connection.execute(f"CREATE TABLE orders ({ORDERS})")
            for order in orders:
                connection.execute(f"INSERT INTO orders VALUES ({','.join('?' * len(order))})", order)
    connection.close()
    return path
