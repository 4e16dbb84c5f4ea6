"""What the stand-in of a language model does in the examples, and their options on the command line."""

import argparse
from typing import Any

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("recall_memories", {"symbol": "BTC/USDT", "direction": "long", "context_regime": "trending_up"}),
    ("position_size", {"symbol": "BTC/USDT", "direction": "long", "strategy_name": "Breakout"}),
    ("trade_breakout", {"risk_percent": 0.25}),
    (
        "remember_trade",
        {
            "symbol": "BTC/USDT",
            "direction": "long",
            "strategy_name": "Breakout",
            "entry_price": 65_200.0,
            "exit_price": 65_940.0,
            "pnl": 28.37,
            "pnl_r": 1.1,
            "context_regime": "trending_up",
            "reflection": "The break held and the target was reached within three hours.",
        },
    ),
)
"""The tools that the stand-in calls, one a turn."""
LAST_WORDS = "Traded the breakout at a quarter of a per cent and remembered the result."


def options_of(program: str | None) -> argparse.Namespace:
    """The options of an example; its docstring is the help."""
    parser = argparse.ArgumentParser(description=program, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="agent.db", help="File of the memory.")
    parser.add_argument("--model", help="Name of a language model. Default: a scripted stand-in.")
    parser.add_argument("--backsight", default="backsight", help="The program that serves the memory.")
    return parser.parse_args()
