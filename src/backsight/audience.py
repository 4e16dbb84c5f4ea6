"""Who may call an operation, which tools each is offered, and nouns. `--help` imports it, so it must be quick."""

from collections.abc import Mapping
from typing import get_args

from backsight.core.keys import Audience as Audience

AUDIENCES: tuple[Audience, ...] = get_args(Audience)

DOCUMENT_TOOLS = frozenset({"search_memory", "read_memory", "append_note"})
"""Offered only where there is a workspace to read."""
OFFERED: Mapping[Audience, tuple[str, ...] | None] = {
    "trader": (
        "remember_trade",
        "remember_inaction",
        "recall_memories",
        "get_trade",
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
        "get_strategy_performance",
        "get_upcoming_events",
        "remember",
        "forget",
        "list_trades",
        "get_trade_reflection",
        "recall_memories",
        "get_agent_state",
        "get_behavioral_analysis",
        "list_beliefs",
        "list_plans",
        "get_my_decisions",
        "review_period",
        "search_memory",
        "read_memory",
    ),
    "owner": None,
}
"""The tools that an audience is offered, in this order: a model chooses badly among many. None means all.

The other operations that an audience may call are offered if they are chosen by name.
"""


def noun_of(module: str) -> str:
    """The noun of the operations in a module of `ops`: its name, or the name's first word.

    >>> noun_of("trades"), noun_of("trades_pages")
    ('trades', 'trades')
    """
    return module.partition("_")[0]
