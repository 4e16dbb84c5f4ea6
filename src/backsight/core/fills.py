"""Fills: the facts of the ledger. Everything else about a trade follows from them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

FillKind = Literal["trade", "funding", "fee", "transfer", "inferred"]
PriceSource = Literal["reported", "stop", "target", "liquidation", "average", "mark"]
"""Where a price comes from: the broker's fill; or, inferred, the level the bars touched, the broker's new average
price, or the mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """An execution, a funding payment, a fee or a transfer; unique by account and id, never changed."""

    owner_id: str
    account_id: str
    id: str
    """The broker's; for an inferred one, derived from the tick and what it stands for."""
    kind: FillKind
    at: datetime
    sequence: int
    """The broker's or the file's order among fills of one instant."""
    position_key: str
    symbol: str
    quantity: float
    """Bought is positive, sold negative, in base units; 0 where nothing was executed."""
    price: float | None
    price_source: PriceSource
    fee: float
    """What was paid; negative for a rebate."""
    amount: float
    """Funding received or a transfer in; negative for paid and out. 0 for executions."""
    realized_pnl: float | None
    """The broker's own word on what this fill realised, kept beside ours."""
    reason: str | None
    """Why, where somebody said so: `stop_loss`, `liquidated`, `external_flatten`, or the agent's words."""
    decision_id: str | None
    """The decision snapshot it belongs to."""
    group_id: str | None
    """Legs of one idea share it."""
    earliest_at: datetime | None
    """An inferred one took place after this snapshot; None for a reported one, and where there was none before."""
    latest_at: datetime | None
    """And by this one, which showed it."""
    replaces: str | None
    """The inferred fill that this late report explains: the trade it opened keeps its id."""
    known_at: datetime
    recorded_at: datetime

    @property
    def order(self) -> tuple[datetime, int, str]:
        """Fills fold in this order: hundreds of real ones share a millisecond."""
        return self.at, self.sequence, self.id

    @property
    def content(self) -> tuple[object, ...]:
        """What the broker says of it, which never changes."""
        where = self.kind, self.at, self.position_key, self.symbol
        return *where, self.quantity, self.price, self.fee, self.amount, self.realized_pnl

    @property
    def name(self) -> str:
        """What a trade that it opens is named after."""
        return self.replaces or self.id

    @property
    def executed(self) -> bool:
        return self.kind in ("trade", "inferred")
