"""Tables of fills and of closed trades that no program in particular wrote, in every way of writing."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

FILLS: list[dict[str, Any]] = [
    {"time": "2026-06-01 10:00:00", "symbol": "AAPL", "side": "buy", "quantity": 10.0, "price": 200.5, "id": "a1"},
    {"time": "2026-06-13 10:00:00", "symbol": "AAPL", "side": "sell", "quantity": 10.0, "price": 201.5, "id": "a2"},
]
LINES = [",".join(FILLS[0]), *(",".join(map(str, row.values())) for row in FILLS)]
COMMAS = "\n".join([*LINES, ""])
SEMICOLONS = """Date;Symbol;Side;Quantity;Price;Fee;Realized PnL;Trade ID
13.06.2026 15:30;AAPL;Sell;10;201,50;1,00;15,00;t2
02.06.2026 15:30;AAPL;Buy;10;1.200,00;1,00;;t1
"""
OBJECTS = "".join(f"{json.dumps(row)}\n" for row in FILLS)
ARRAY = json.dumps(FILLS, indent=1)
TRADES = """Symbol,Side,Entry Price,Exit Price,Net PnL,Entry Time,Exit Time,Qty
AAPL,long,200,210,100,2026-06-01 10:00:00,2026-06-02 10:00:00,10
MSFT,short,200,190,100,2026-06-01 10:00:00,2026-06-13 10:00:00,10
"""


def as_utf_16(folder: Path) -> Path:
    (folder / "table.csv").write_text(COMMAS, encoding="utf-16")
    return folder / "table.csv"


def as_gzip(folder: Path) -> Path:
    (folder / "table.csv.gz").write_bytes(gzip.compress(COMMAS.encode(), mtime=0))
    return folder / "table.csv.gz"


def as_parquet(folder: Path, rows: list[dict[str, Any]] = FILLS) -> Path:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), folder / "table.parquet")
    return folder / "table.parquet"
