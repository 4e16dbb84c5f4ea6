"""The arguments of operations that are objects of ticks, orders, bars and memory settings."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from backsight.arguments import (
    Border,
    Fields,
    Loose,
    Name,
    NotNegative,
    Number,
    RecordedReason,
    RecordedText,
    Share,
    Symbol,
    Whole,
    list_of,
)
from backsight.core.agents.card import CardField
from backsight.core.decision import ProposedOrder, Segment, Verdict
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order, ReportedFill, without_empty_positions
from backsight.core.portfolio import OpenOrder, Portfolio, Position
from backsight.core.prompts.account import Cap
from backsight.core.prompts.trades import MOST_RECENT
from backsight.core.strategies import MemoryOverrides, MemorySettings, Slot
from backsight.language_models import checked_model_name


def _model_name(name: str, info: ValidationInfo) -> str:
    return checked_model_name(name, field=f"memory.{info.field_name}")


_POSITION = Annotated[Position, Border(Position, {"symbol": Symbol, "size": NotNegative, "leverage": NotNegative})]
_OPEN_ORDER = Annotated[OpenOrder, Border(OpenOrder, {"symbol": Symbol})]
_PORTFOLIO = Annotated[
    Portfolio,
    Border(Portfolio, {"positions": list_of(_POSITION, 1_000), "open_orders": list_of(_OPEN_ORDER, 1_000)}),
]
_FILL = Annotated[ReportedFill, Border(ReportedFill, {"position_key": Loose, "symbol": Loose})]
SnapshotArgument = Annotated[
    BrokerSnapshot | Fields,
    Border(
        BrokerSnapshot,
        {"portfolio": _PORTFOLIO, "fills": list_of(_FILL, 10_000), "marks": dict[Symbol, Number]},
    ),
    AfterValidator(without_empty_positions),
]
OrderArgument = Annotated[Order | Fields, Border(Order, {"symbol": Symbol, "reason": RecordedReason})]
VerdictArgument = Annotated[Verdict | Fields, Border(Verdict, {"detail": RecordedText})]
ProposalArgument = Annotated[
    ProposedOrder | Fields, Border(ProposedOrder, {"order": OrderArgument, "verdict": VerdictArgument})
]
SegmentArgument = Annotated[Segment | Fields, Border(Segment, {"text": RecordedText})]
CapArgument = Annotated[Cap | Fields, Border(Cap, {"name": Name, "value": Name})]
BarArgument = Annotated[Bar | Fields, Border(Bar, {"symbol": Symbol}, trusted=True)]
BarsArgument = Annotated[Sequence[BarArgument], Field(max_length=20_000)]

CardFieldArgument = Annotated[CardField | Fields, Border(CardField, {"name": Name, "choices": list_of(Name, 50)})]
"""A field of a card type; its choices are texts."""

_MEMORY_BOUNDS = {
    "recent_trades_k": Annotated[Whole, Field(le=MOST_RECENT)],
    "holdout": Share,
    "suppressed": list_of(Slot, 5),
    "every_n_trades": Annotated[Whole, Field(ge=1, le=10_000)],
    "model": Annotated[Name, AfterValidator(_model_name)],
}
MemoryArgument = Annotated[MemorySettings | Fields, Border(MemorySettings, _MEMORY_BOUNDS)]
MemoryOverridesArgument = Annotated[MemoryOverrides | Fields, Border(MemoryOverrides, _MEMORY_BOUNDS)]
