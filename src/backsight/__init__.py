"""Backsight: the memory of AI trading agents. All that a program needs is imported from here, when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backsight.answers.layouts import brief
    from backsight.core.agents.card import CardField
    from backsight.core.agents.request import AgentAnswer, AgentRequest
    from backsight.core.call_notes import notes_of
    from backsight.core.context import ContextVector
    from backsight.core.decision import AgentDecision, AgentInput, OpenedTick, ProposedOrder, Segment, Verdict
    from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused, Unavailable
    from backsight.core.instruments import Instrument
    from backsight.core.market import Bar
    from backsight.core.orders import BrokerSnapshot, Executed, FillMark, Order, OrderResult, Rejected, ReportedFill
    from backsight.core.portfolio import Account, Direction, Mode, OpenOrder, Portfolio, Position
    from backsight.core.prompts.account import Cap
    from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest
    from backsight.core.regime import Regime, Session, VolatilityRegime
    from backsight.core.simulated_market import simulated_bars
    from backsight.core.strategies import Deployment, MemoryOverrides, MemorySettings, Strategy
    from backsight.core.trades.trade import Trade
    from backsight.memory import (
        Memory,
        PaperBroker,
        PaperTerms,
        RecordedTick,
        ReplayBroker,
        open_memory,
        open_simulation,
    )
    from backsight.ops.recall import Recall, SizeAdvice
    from backsight.ops.ticks import ClosedTick
    from backsight.ops.trades import RememberedTrade
    from backsight.ports import Agent, AgentRunner, Broker, Clock, Embedder, Feed, Randomness, Reflector
    from backsight.runtime.clock import SimulatedClock
    from backsight.settings import Settings

__version__ = "0.1.0"

MODULES = {
    "answers.layouts": "brief",
    "core.agents.card": "CardField",
    "core.agents.request": "AgentAnswer AgentRequest",
    "core.call_notes": "notes_of",
    "core.context": "ContextVector",
    "core.decision": "AgentDecision AgentInput OpenedTick ProposedOrder Segment Verdict",
    "core.errors": "BacksightError Conflict Invalid NotFound Refused Unavailable",
    "core.instruments": "Instrument",
    "core.market": "Bar",
    "core.orders": "BrokerSnapshot Executed FillMark Order OrderResult Rejected ReportedFill",
    "core.portfolio": "Account Direction Mode OpenOrder Portfolio Position",
    "core.prompts.account": "Cap",
    "core.reflection.reflector_request": "ReflectorAnswer ReflectorRequest",
    "core.regime": "Regime Session VolatilityRegime",
    "core.simulated_market": "simulated_bars",
    "core.strategies": "Deployment MemoryOverrides MemorySettings Strategy",
    "core.trades.trade": "Trade",
    "memory": "Memory PaperBroker PaperTerms RecordedTick ReplayBroker open_memory open_simulation",
    "ops.recall": "Recall SizeAdvice",
    "ops.ticks": "ClosedTick",
    "ops.trades": "RememberedTrade",
    "ports": "Agent AgentRunner Broker Clock Embedder Feed Randomness Reflector",
    "runtime.clock": "SimulatedClock",
    "settings": "Settings",
}
"""The modules that define the names below; each is imported when one of its names is first used."""

__all__ = [
    "Account",
    "Agent",
    "AgentAnswer",
    "AgentDecision",
    "AgentInput",
    "AgentRequest",
    "AgentRunner",
    "BacksightError",
    "Bar",
    "Broker",
    "BrokerSnapshot",
    "Cap",
    "CardField",
    "Clock",
    "ClosedTick",
    "Conflict",
    "ContextVector",
    "Deployment",
    "Direction",
    "Embedder",
    "Executed",
    "Feed",
    "FillMark",
    "Instrument",
    "Invalid",
    "Memory",
    "MemoryOverrides",
    "MemorySettings",
    "Mode",
    "NotFound",
    "OpenOrder",
    "OpenedTick",
    "Order",
    "OrderResult",
    "PaperBroker",
    "PaperTerms",
    "Portfolio",
    "Position",
    "ProposedOrder",
    "Randomness",
    "Recall",
    "RecordedTick",
    "Reflector",
    "ReflectorAnswer",
    "ReflectorRequest",
    "Refused",
    "Regime",
    "Rejected",
    "RememberedTrade",
    "ReplayBroker",
    "ReportedFill",
    "Segment",
    "Session",
    "Settings",
    "SimulatedClock",
    "SizeAdvice",
    "Strategy",
    "Trade",
    "Unavailable",
    "Verdict",
    "VolatilityRegime",
    "__version__",
    "brief",
    "notes_of",
    "open_memory",
    "open_simulation",
    "simulated_bars",
]

_MODULE_OF = {name: module for module, names in MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import the module of a name on its first use, so that `import backsight` and `backsight --help` are quick."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'backsight' has no attribute {name!r}")
    value = getattr(import_module(f"backsight.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
