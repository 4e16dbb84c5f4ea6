"""Reports of nautilus_trader."""

from pathlib import Path

POSITION = {
    "position_id": "SIM-1-001",
    "trader_id": "BACKTESTER-001",
    "strategy_id": "EMACross-000",
    "instrument_id": "GBP/USD.SIM",
    "entry": "SELL",
    "side": "FLAT",
    "peak_qty": "100000",
    "ts_opened": "2012-02-01 00:19:00+00:00",
    "ts_closed": "2012-02-01 00:38:00+00:00",
    "avg_px_open": "1.57618",
    "avg_px_close": "1.57584",
    "commissions": "['6.30 USD']",
    "realized_pnl": "27.70 USD",
}

FILL = {
    "client_order_id": "O-20120201-001900-001-000-3",
    "trader_id": "BACKTESTER-001",
    "strategy_id": "EMACross-000",
    "instrument_id": "USD/JPY.SIM",
    "venue_order_id": "SIM-1-001",
    "trade_id": "SIM-1-1",
    "position_id": "P-1",
    "order_side": "SELL",
    "last_qty": "1000",
    "last_px": "76.25",
    "currency": "JPY",
    "ts_event": "2012-02-01 00:19:00+00:00",
    "commission": "2.10 JPY",
}

ORDER = {
    "client_order_id": "O-1-2",
    "instrument_id": "ESZ4.GLBX",
    "side": "BUY",
    "filled_qty": "2",
    "avg_px": "4500.25",
    "ts_last": "2024-05-01 10:00:00+00:00",
    "commissions": "[]",
}


def a_report(folder: Path, *rows: dict[str, str]) -> Path:
    lines = [",".join(rows[0]), *(",".join(f'"{cell}"' for cell in row.values()) for row in rows)]
    (folder / "report.csv").write_text("\n".join(lines) + "\n")
    return folder / "report.csv"
