"""An example call of each operation: the arguments that it requires, with values from the demonstration."""

from collections.abc import Mapping
from typing import Any

from backsight.operation import Operation

_AT = "2026-01-05T09:00:00Z"
_ID = "2bc9c40c"
VALUES: Mapping[str, Any] = {
    "account": "demo",
    "agent": "breakouts",
    "at": _AT,
    "bars": [
        {
            "symbol": "XAUUSD",
            "opened_at": _AT,
            "interval_seconds": 300,
            "open": 2650.0,
            "high": 2652.5,
            "low": 2649.0,
            "close": 2651.0,
        }
    ],
    "before": {"portfolio": {"at": _AT, "equity": 100_000.0, "cash": 100_000.0}, "marks": {"XAUUSD": 2650.0}},
    "belief_id": _ID,
    "by": "regime",
    "confidence": "asserted",
    "confirm": "me",
    "decision_id": _ID,
    "deployment": "VolBreakout@demo",
    "direction": "long",
    "edit_id": _ID,
    "entry": 2650.0,
    "entry_price": 2650.0,
    "episode_id": _ID,
    "equity": 100_000.0,
    "exit": 2670.0,
    "exit_price": 2670.0,
    "fact": "I never risk more than 1% a trade.",
    "fact_id": _ID,
    "fields": [{"name": "view", "type": "text"}],
    "followed": True,
    "holder": "host-1",
    "horizon_hours": 24.0,
    "intent": "buy 10 XAUUSD",
    "keep_days": 365,
    "key_id": _ID,
    "memory_id": _ID,
    "name": "main",
    "path": "TRADING_MANUAL.md",
    "plan_id": _ID,
    "planned_action": {"type": "skip_trade"},
    "pnl": 190.0,
    "prompt": "Look at gold and decide.",
    "proposal_id": _ID,
    "proposition": "Breaks hold in a trend",
    "query": "daily loss",
    "reason": "the range was too narrow",
    "reasoning": "three losses in a range",
    "recall": "the handle that recall_memories returned",
    "run": "2026-01-05",
    "sequence": 1,
    "strategy_name": "VolBreakout",
    "symbol": "XAUUSD",
    "text": "Two stops in a row: half size until the next winner.",
    "timezone": "UTC",
    "trade_id": _ID,
    "trigger_condition": {"regime": "ranging"},
    "venue": "simulated",
}
"""An example value of every argument that an operation requires, by its name."""
OWN_VALUES: Mapping[str, Mapping[str, Any]] = {
    "backup": {"path": "backup.db"},
    "export_data": {"path": "export"},
    "import_bars": {"path": "samples/bars.csv"},
    "import_data": {"path": "export"},
    "import_fills": {"path": "samples/fills.csv"},
    "import_positions": {"path": "samples/positions.jsonl"},
    "import_trades": {"path": "trades.csv"},
    "migrate_legacy": {"path": "legacy.db"},
    "restore": {"path": "backup.db"},
    "save_strategy": {"name": "VolBreakout"},
}
"""Values of single operations, where the name alone says too little."""


def example_call(operation: Operation) -> dict[str, Any] | None:
    """The required arguments of an operation with example values; None if one of them has no example."""
    required = operation.input_schema.get("required", [])
    values = {**VALUES, **OWN_VALUES.get(operation.name, {})}
    return {name: values[name] for name in required} if values.keys() >= set(required) else None
