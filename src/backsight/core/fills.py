"""Fills: the facts of the ledger. Trades are computed from them."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.rates import RateSource

FillKind = Literal[
    "trade",
    "funding",
    "fee",
    "transfer",
    "inferred",
    "split",
    "dividend",
    "expiry",
    "assignment",
    "asset_transfer",
    "holding",
    "rename",
]
PriceSource = Literal["reported", "stop", "target", "liquidation", "average", "mark", "last_known", "offset"]
"""Source of a price: the broker's fill; for an inferred fill the level that the bars touched, the broker's average
price, the mark, or, if the broker no longer gives a mark, the last price that was known; `offset` is the price of the
late report that an inferred fill undoes."""

ClosingPart = Literal["all", "measured", "some"]
"""How much of a fill closes a position: all of it, as much as its realised PnL at average cost shows, or some of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """An execution, a funding payment, a fee or a transfer; unique by account, symbol and id.

    Its fee may be restated, and what it is worth may be revalued; nothing else changes.
    """

    owner_id: str
    account_id: str
    id: str
    """The broker's id; for an inferred fill, derived from the tick, the position and the step."""
    kind: FillKind
    at: datetime
    sequence: int
    """The broker's or the file's order among fills of one instant."""
    position_key: str
    symbol: str
    quantity: float
    """Bought is positive, sold negative, in base units, after a fee in the base asset; 0 if nothing was executed."""
    price: float | None
    price_source: PriceSource
    point_value: float = 1.0
    """Money that one unit of size earns for one point of price, in the account's currency if a rate to it is known."""
    inverse: bool = False
    """Whether its points are those of −1/price: an inverse contract."""
    currency: str | None = None
    """The currency of the instrument, if it is another than the account's."""
    rate: float | None = None
    """Units of the account's currency for one unit of the instrument's; None if not known, or if they are the same."""
    rate_source: RateSource | None = None
    fee: float
    """Fee paid, in the currency of the money; negative for a rebate. 0 if the rate of its currency is not known."""
    fee_currency: str | None = None
    """Given if the broker took the fee in another currency than the account's."""
    fee_amount: float | None = None
    """The fee in that currency."""
    amount: float
    """Funding received or a transfer in; negative for paid and out. 0 for executions."""
    realized_pnl: float | None
    """Realised PnL as the broker reports it; kept beside ours."""
    reason: str | None
    """`stop_loss`, `liquidated`, `external_flatten` or the agent's reason; None if none is known."""
    decision_id: str | None
    """The decision that the fill belongs to; of a transfer, that of the tick that reported it."""
    closes: ClosingPart | None = None
    """Given if a file tells that the fill closes a position: what exceeds the known position closes one of before all
    known fills, and opens no trade. None if the fill may open a position."""
    ratio: float | None = None
    """Of a split: how many units one became."""
    order_id: str | None = None
    """The broker's id of the order that was executed."""
    group_id: str | None
    """Shared by the legs of one idea."""
    earliest_at: datetime | None
    """The last snapshot before an inferred fill; None for a reported fill, or if there was no earlier snapshot."""
    latest_at: datetime | None
    """The snapshot that showed an inferred fill."""
    replaces: str | None
    """The inferred fill that this late report explains: the trade that it opened keeps its id."""
    known_at: datetime
    recorded_at: datetime

    @property
    def order(self) -> tuple[datetime, int, str]:
        """The order in which fills are applied; hundreds of real fills can share a millisecond."""
        return self.at, self.sequence, self.id

    @property
    def key(self) -> tuple[str, str]:
        """Symbol and id: some venues number fills per symbol."""
        return self.symbol, self.id

    @property
    def content(self) -> tuple[object, ...]:
        """The fields that the broker reports and never changes; a fee may be restated."""
        key = self.kind, self.at, self.position_key, self.symbol
        return *key, self.quantity, self.price, self.ratio, self.amount, self.realized_pnl

    def fee_taken(self, account_currency: str) -> tuple[str, float]:
        """The currency and the amount of the fee as the broker took it."""
        if self.fee_currency is None or self.fee_amount is None:
            return account_currency, self.fee
        return self.fee_currency, self.fee_amount

    def with_fee_of(self, other: "Fill") -> "Fill":
        """The fill with the fee of another version of it."""
        return replace(self, fee=other.fee, fee_currency=other.fee_currency, fee_amount=other.fee_amount)

    @property
    def money_currency(self) -> str | None:
        """The currency of its money: None for the account's, the instrument's if no rate is known."""
        return self.currency if self.rate is None else None

    @property
    def name(self) -> str:
        """The fill id from which the id of the trade that it opens is derived."""
        return self.replaces or self.id

    @property
    def fee_is_missing(self) -> bool:
        """Whether a fee was taken whose worth in the account's currency is not known."""
        return bool(self.fee_amount) and self.fee == 0

    @property
    def executed(self) -> bool:
        """Whether something was bought or sold at a price."""
        return self.kind in ("trade", "inferred", "expiry", "assignment")

    @property
    def changes_size(self) -> bool:
        return self.executed or self.kind in ("split", "asset_transfer", "holding")
