"""Positions and decisions of nofx."""

import sqlite3
from pathlib import Path
from typing import Any

POSITION: dict[str, Any] = {
    "id": 4,
    "trader_id": "qwen",
    "exchange_position_id": "sync_BTCUSDT_SHORT_1",
    "symbol": "BTCUSDT",
    "side": "SHORT",
    "entry_quantity": 0.5,
    "quantity": 0.5,
    "entry_price": 100_000.0,
    "entry_time": 1_762_000_000_000,
    "exit_price": 99_000.0,
    "exit_time": 1_762_003_600_000,
    "realized_pnl": 500.0,
    "fee": 40.0,
    "leverage": 5,
    "status": "CLOSED",
    "close_reason": "take_profit",
}

OPEN = {
    "action": "open_long",
    "symbol": "BTCUSDT",
    "quantity": 0.015,
    "price": 95_800.0,
    "order_id": 7,
    "success": True,
}

CLOSE = {"action": "close_long", "symbol": "BTCUSDT", "quantity": 0, "price": 96_000.0, "order_id": 0, "success": True}


def a_record(*actions: Any, cycle: int = 1) -> dict[str, Any]:
    return {
        "timestamp": f"2025-10-28T15:3{cycle}:42.123456789+08:00",
        "cycle_number": cycle,
        "cot_trace": "…",
        "decision_json": "[]",
        "account_state": {},
        "decisions": list(actions),
    }


def a_database(path: Path, table: str, *rows: dict[str, Any]) -> Path:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table} ({', '.join(rows[0])})")
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", list(row.values()))
    connection.close()
    return path
