"""Cycles of ai-hedge-fund."""

from typing import Any

BUY = {"ticker": "AAPL", "side": "buy", "shares": 500, "price": 200.0}


def a_record(day: int, *fills: Any, positions: Any) -> dict[str, Any]:
    return {
        "fund": "test-fund",
        "as_of": f"2024-06-{day:02}",
        "spec": {"name": "test-fund"},
        "marks": {"AAPL": 200.0},
        "signals": [],
        "fills": list(fills),
        "positions": positions,
        "nav": 100_000.0,
    }


RECORDS = [
    a_record(3, BUY, positions={"AAPL": 500}),
    a_record(4, positions={"AAPL": 500}),
    a_record(5, BUY | {"side": "sell", "commission": 1.5}, positions={}),
]
