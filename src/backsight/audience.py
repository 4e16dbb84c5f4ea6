"""Who may call an operation, which tools each is offered, and nouns. `--help` imports it, so it must be quick."""

import re
from collections.abc import Collection, Mapping
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


def with_missing_tools(message: str, *, operations: Collection[str], offered: Collection[str]) -> str:
    """The message of an error, which says of the operations that it names which ones the caller does not have.

    >>> with_missing_tools("no plan '7'; list_plans lists them", operations=["list_plans"], offered=[])
    "no plan '7'; list_plans lists them (list_plans is not one of your tools: ask the owner)"
    """
    words = dict.fromkeys(re.findall(r"[a-z]+(?:_[a-z]+)+", message))
    missing = [word for word in words if word in operations and word not in offered]
    if not missing:
        return message
    are = "is not one" if len(missing) == 1 else "are not some"
    return f"{message} ({' and '.join(missing)} {are} of your tools: ask the owner)"


def noun_of(module: str) -> str:
    """The noun of the operations in a module of `ops`: its name, or the name's first word.

    >>> noun_of("trades"), noun_of("trades_pages")
    ('trades', 'trades')
    """
    return module.partition("_")[0]
