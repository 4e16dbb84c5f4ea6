"""Who may call an operation, and which tools each is offered. It does not import pydantic: `--help` must be quick."""

from collections.abc import Mapping
from typing import Literal, get_args

Audience = Literal["trader", "coach", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)

DOCUMENT_TOOLS = frozenset({"search_memory", "read_memory", "append_note"})
"""Offered only where there is a workspace to read."""
OFFERED: Mapping[Audience, tuple[str, ...] | None] = {
    "trader": (
        "remember_trade",
        "remember_inaction",
        "recall_memories",
        "position_size",
        "get_agent_state",
        "get_behavioral_analysis",
        "list_trades",
        "create_trading_plan",
        "check_active_plans",
        "record_decision",
        "active_lessons",
        "search_memory",
        "read_memory",
        "append_note",
    ),
    "coach": (
        "get_my_deployments",
        "list_trades",
        "get_trade_reflection",
        "recall_memories",
        "get_agent_state",
        "get_behavioral_analysis",
        "list_beliefs",
        "list_plans",
        "review_period",
        "search_memory",
        "read_memory",
    ),
    "owner": None,
}
"""The tools that an audience is offered, in this order: a model chooses badly among many. None means all.

The other operations that an audience may call are offered if they are chosen by name.
"""
