"""Orders that an agent sends to a broker, and the results, fills and snapshots that the broker reports."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.fills import Fill
from backsight.core.instants import EPOCH, to_utc
from backsight.core.instruments import ONE_TO_ONE, UnitWorth, is_base_asset
from backsight.core.portfolio import Account, Direction, Portfolio
from backsight.core.rates import ExchangeRate

ReportedKind = Literal[
    "trade",
    "funding",
    "fee",
    "transfer",
    "split",
    "dividend",
    "expiry",
    "assignment",
    "asset_transfer",
    "holding",
    "rename",
]
"""`split` changes size and average price and realises nothing. `dividend` is money for a position. `expiry` and
`assignment` close it at a price. `asset_transfer` moves units in or out at their cost and realises nothing; `transfer`
moves money of the account. `holding` is the size of a position at an instant. Where the fills that are known lead to
another size, the difference is moved in, so that the average cost is the price, or out at cost, and realises nothing.
Where they lead to it, nothing changes, so that missing fills may be reported later. `rename` gives the position that is
named by `position_key` (the old symbol, unless the broker numbers positions) a new symbol and realises nothing."""
BrokerReason = Literal["stop_loss", "take_profit", "liquidated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A market order for a quantity of a symbol, with the stop and target of the position."""

    symbol: str
    """What to buy or sell."""
    quantity: float
    """Buy is positive, sell negative, in base units; 0 only moves the stop and the target of a position."""
    stop_price: float | None = None
    """Attached to the position; None leaves the current one."""
    target_price: float | None = None
    """Attached to the position; None leaves the current one."""
    reduce_only: bool = False
    """May only reduce or close a position, never open or reverse one."""
    position_key: str | None = None
    """The position to trade on a hedging account, None to open a new one; a netting account needs none."""
    reason: str | None = None
    """The agent's reason."""
    order_id: str | None = None
    """The broker's id of the order, once it has one: fills that report it belong to the decision, also ticks later."""

    @property
    def direction(self) -> Direction | None:
        """The direction of the order; None if it only moves the stop or the target."""
        if self.quantity == 0:
            return None
        return "long" if self.quantity > 0 else "short"

    def may_have_made(self, *, symbol: str, position_key: str, quantity: float) -> bool:
        """Whether an execution can come from this order: it has its symbol and side, and its position if one is named.

        >>> add = Order(symbol="BTC", quantity=1.0)
        >>> add.may_have_made(symbol="BTC", position_key="BTC", quantity=-2.0)
        False
        """
        same = self.symbol == symbol and self.position_key in (None, position_key)
        return same and self.quantity * quantity > 0


def order_behind(
    orders: Sequence[Order], *, symbol: str, position_key: str, quantity: float, order_id: str | None = None
) -> Order | None:
    """The order that made an execution: the one with its id, else the first of its symbol, side and position.

    An order with another id did not make it.

    >>> orders = [Order(symbol="BTC", quantity=1.0, order_id="7"), Order(symbol="BTC", quantity=2.0, order_id="8")]
    >>> order_behind(orders, symbol="BTC", position_key="BTC", quantity=0.5, order_id="8").quantity
    2.0
    >>> order_behind(orders, symbol="BTC", position_key="BTC", quantity=-0.5) is None
    True
    >>> order_behind(orders, symbol="BTC", position_key="BTC", quantity=0.5, order_id="9") is None
    True
    """
    fits = (each.may_have_made(symbol=symbol, position_key=position_key, quantity=quantity) for each in orders)
    fitting = [order for order, fit in zip(orders, fits, strict=True) if fit and None in (order.order_id, order_id)]
    named = [order for order in orders if order_id is not None and order.order_id == order_id]
    return next(iter([*named, *fitting]), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOrder:
    """An order that a decision placed at the broker; its fills may come ticks later, and in parts."""

    owner_id: str
    account_id: str
    order_id: str
    decision_id: str
    symbol: str
    quantity: float
    reason: str | None
    known_at: datetime
    recorded_at: datetime

    def may_have_made(self, *, symbol: str, quantity: float) -> bool:
        """Whether an execution can come from this order: it has its symbol and side."""
        return self.symbol == symbol and self.quantity * quantity > 0


def waiting_order_behind(waiting: Sequence[PlacedOrder], *, symbol: str, quantity: float) -> PlacedOrder | None:
    """The waiting order that made an execution without an order id: one of its size, else the first of its side."""
    fitting = [order for order in waiting if order.may_have_made(symbol=symbol, quantity=quantity)]
    of_size = (order for order in fitting if math.isclose(order.quantity, quantity))
    return next(of_size, fitting[0] if fitting else None)


def entry_direction(order: Order, before: "BrokerSnapshot") -> Direction | None:
    """The direction in which an order enters or adds; None if it only reduces a position or moves its levels."""
    positions = (position for position in before.portfolio.positions if position.symbol == order.symbol)
    against = sum(position.size for position in positions if position.direction != order.direction)
    leaves = order.reduce_only or abs(order.quantity) <= against
    return None if leaves else order.direction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFill:
    """An execution, a payment, a fee, a transfer or a corporate action, as a broker reports it."""

    id: str
    """The broker's id; a fill that is reported again is known by it."""
    at: datetime
    """When it happened, by the broker's clock."""
    sequence: int
    """The broker's order among fills of one instant."""
    kind: ReportedKind
    """`trade` is an execution, `funding` a payment for holding a position, `fee` a fee on its own, `transfer` money
    moved in or out, `asset_transfer` units moved in or out, `split` a change of units, `dividend` money for a position,
    `expiry` and `assignment` close a position at a price, `holding` is the size of a position at an instant."""
    position_key: str = ""
    """The position as in the portfolio; the symbol if left out. Empty for a transfer, which belongs to no position."""
    symbol: str = ""
    """The instrument; empty for a transfer of money."""
    quantity: float = 0.0
    """Bought or moved in is positive, sold or moved out negative, in base units; else 0."""
    price: float | None = None
    """The price of an execution; of units that are moved in, their cost."""
    ratio: float | None = None
    """Of a split, how many units one became: 10 for 10:1."""
    fee: float = 0.0
    """Fee paid; negative for a rebate."""
    fee_currency: str | None = None
    """The currency of the fee; that of the account if left out. A fee in the base asset comes off the position."""
    rate: float | None = None
    """Units of the account's currency for one unit of the instrument's; if left out, a price of the pair is taken."""
    order_id: str | None = None
    """The broker's id of the order that was executed."""
    amount: float = 0.0
    """Funding or a dividend received, or a transfer in; negative for paid and out. 0 for executions."""
    realized_pnl: float | None = None
    """Realised PnL before fees, as the broker reports it."""
    reason: BrokerReason | None = None
    """Set if the broker acted on its own; None for an order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillMark:
    """A fill of an account up to which all fills are recorded: a broker is asked for the fills after it."""

    id: str
    symbol: str
    at: datetime
    """When the fill happened, for brokers that are asked by time."""

    def is_of(self, fill: ReportedFill) -> bool:
        """Whether this is the mark of a fill."""
        return (self.symbol, self.id) == (fill.symbol, fill.id)


BEGINNING = FillMark(id="", symbol="", at=EPOCH)
"""Nothing is recorded yet: every fill of the account is asked for."""


def fills_after(reports: Sequence[ReportedFill], since: FillMark) -> tuple[ReportedFill, ...]:
    """The reports after the last one of a marked fill; all of them if it is not among them.

    >>> a, b = (ReportedFill(id=name, at=EPOCH, sequence=0, kind="trade") for name in "ab")
    >>> [fill.id for fill in fills_after([a, b], FillMark(id="a", symbol="", at=EPOCH))]
    ['b']
    >>> [fill.id for fill in fills_after([a, b], BEGINNING)]
    ['a', 'b']
    """
    places = [number for number, fill in enumerate(reports, start=1) if since.is_of(fill)]
    return tuple(reports[places[-1] if places else 0 :])


def last_mark(fills: Sequence[ReportedFill], since: FillMark) -> FillMark:
    """The mark of the newest of the fills; `since` if there are none."""
    newest = max(fills, key=lambda fill: (fill.at, fill.sequence, fill.id), default=None)
    return since if newest is None else FillMark(id=newest.id, symbol=newest.symbol, at=newest.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSnapshot:
    """One account at one instant, as the broker reports it."""

    portfolio: Portfolio
    """Equity, positions and open orders."""
    fills: tuple[ReportedFill, ...] = ()
    """Executions, payments and transfers since the last snapshot; empty from a broker that reports no fills."""
    marks: Mapping[str, float]
    """The last price of every symbol, with or without a position; of currency pairs like USDJPY they are rates."""


def without_empty_positions(snapshot: BrokerSnapshot) -> BrokerSnapshot:
    """The snapshot without positions of size 0, which some brokers report after a close; marks other than 0 are kept.

    >>> from datetime import UTC
    >>> from backsight.core.portfolio import Position
    >>> flat = Position(position_key="BTC", symbol="BTC", direction="long", size=0.0, mark=101.0)
    >>> now = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> portfolio = Portfolio(at=now, equity=1.0, cash=1.0, positions=(flat,))
    >>> snapshot = without_empty_positions(BrokerSnapshot(portfolio=portfolio, marks={}))
    >>> snapshot.portfolio.positions, snapshot.marks
    ((), {'BTC': 101.0})
    """
    positions = snapshot.portfolio.positions
    empty = [position for position in positions if position.size == 0]
    if not empty:
        return snapshot
    open_positions = tuple(position for position in positions if position.size != 0)
    return replace(
        snapshot,
        portfolio=replace(snapshot.portfolio, positions=open_positions),
        marks={**{position.symbol: position.mark for position in empty if position.mark != 0}, **snapshot.marks},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """An order that the broker carried out."""

    order: Order
    position_key: str
    fills: tuple[ReportedFill, ...]
    """The executions; empty if the broker reports none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An order that the broker did not carry out; nothing changed."""

    order: Order
    rule: str
    detail: str


OrderResult = Executed | Rejected


def check_order(order: Order) -> None:
    """Refuse an order without a symbol or a quantity, or with levels that are not finite.

    >>> check_order(Order(symbol="BTC", quantity=0.0))
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: quantity: 0.0 orders nothing; give base units, positive to buy, negative to sell
    """
    if not order.symbol:
        raise Invalid("it is empty; give a symbol", field="symbol")
    levels = order.stop_price is not None or order.target_price is not None
    if not math.isfinite(order.quantity) or (order.quantity == 0 and not levels):
        message = f"{order.quantity} orders nothing; give base units, positive to buy, negative to sell"
        raise Invalid(message, field="quantity")
    if order.position_key == "":
        raise Invalid("it is empty; name the position or leave it out", field="position_key")
    _check_finite(order.stop_price, field="stop_price")
    _check_finite(order.target_price, field="target_price")


def as_fill(
    reported: ReportedFill,
    account: Account,
    *,
    decision_id: str | None,
    known_at: datetime,
    recorded_at: datetime,
    reason: str | None = None,
    worth: UnitWorth = ONE_TO_ONE,
    fee_rate: float | None = None,
) -> Fill:
    """The ledger's fill of a broker's report; refuses numbers that are not finite and times without a zone.

    `reason` is the agent's, for fills of its order; a reason that the broker gives takes precedence. `worth` is that of
    the instrument, at the rate to take if the report has none. `fee_rate` is the account's money for one unit of the
    fee's currency, if that is a third one and the rate is known.

    >>> from backsight.testing import T0, an_account
    >>> report = ReportedFill(id="7", at=T0, sequence=0, kind="trade", symbol="BTC", quantity=2.0, price=100.0)
    >>> fill = as_fill(report, an_account(), decision_id=None, known_at=T0, recorded_at=T0)
    >>> fill.quantity, fill.price, fill.price_source
    (2.0, 100.0, 'reported')
    >>> in_coin = replace(report, fee=0.002, fee_currency="BTC")
    >>> fill = as_fill(in_coin, an_account(), decision_id=None, known_at=T0, recorded_at=T0)
    >>> fill.quantity, fill.fee, fill.fee_amount
    (1.998, 0.2, 0.002)
    """
    _check_reported(reported)
    if reported.rate is not None:
        worth = worth.at_rate(ExchangeRate(value=reported.rate, source="reported"))
    if worth.inverse and reported.price is not None and reported.price <= 0:
        raise Invalid(f"{reported.price} is no price of an inverse contract; give one above 0", field="price")
    fee = fee_of(reported, account.currency, worth, fee_rate)
    fill = Fill(
        owner_id=account.owner_id,
        account_id=account.id,
        id=reported.id,
        kind=reported.kind,
        at=to_utc(reported.at, field="at"),
        sequence=reported.sequence,
        position_key=reported.position_key or reported.symbol,
        symbol=reported.symbol,
        quantity=reported.quantity - fee.base_units,
        price=reported.price,
        price_source="reported",
        fee=fee.money,
        fee_currency=fee.currency,
        fee_amount=None if fee.currency is None else reported.fee,
        amount=reported.amount,
        realized_pnl=reported.realized_pnl,
        reason=reported.reason or reason,
        decision_id=decision_id,
        ratio=reported.ratio,
        order_id=reported.order_id,
        group_id=None,
        earliest_at=None,
        latest_at=None,
        replaces=None,
        known_at=to_utc(known_at, field="known_at"),
        recorded_at=to_utc(recorded_at, field="recorded_at"),
    )
    return in_money(fill, worth) if fill.changes_size and worth != ONE_TO_ONE else fill


def in_money(fill: Fill, worth: UnitWorth) -> Fill:
    """A fill with what one unit of its symbol is worth."""
    return replace(
        fill,
        point_value=worth.point_value,
        inverse=worth.inverse,
        currency=worth.currency,
        rate=worth.rate,
        rate_source=worth.rate_source,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeeMoney:
    """A fee in the currency of its fill's money, and what it takes off the position."""

    money: float
    """0 if it cannot be converted."""
    base_units: float = 0.0
    currency: str | None = None
    """The currency in which it was taken, if that is not the account's or its worth is not known."""


def fee_of(reported: ReportedFill, currency: str, worth: UnitWorth, fee_rate: float | None) -> FeeMoney:
    """The fee of a report in the currency of the fill's money; `currency` is the account's.

    An execution in a currency without a rate has its money in that currency, so that no other fee can be added to it.
    """
    fee, other = reported.fee, reported.fee_currency
    unconverted = worth.unconverted if reported.quantity else None
    if not fee:
        return FeeMoney(money=fee)
    if other is None or other.upper() == currency.upper():
        return FeeMoney(money=fee) if unconverted is None else FeeMoney(money=0.0, currency=currency)
    if worth.currency is not None and other.upper() == worth.currency.upper():
        known = worth.rate is not None or unconverted is not None
        return FeeMoney(money=fee * (worth.rate or 1.0) if known else 0.0, currency=other)
    if is_base_asset(other, reported.symbol) and not worth.is_contract and reported.price is not None:
        if abs(fee) >= abs(reported.quantity):
            message = f"a fee of {fee} {other} is more than the execution of {reported.quantity}"
            raise Invalid(f"{message}; give the fee in the currency that you name", field="fee")
        return FeeMoney(money=fee * reported.price * (worth.rate or 1.0), base_units=fee, currency=other)
    is_known = fee_rate is not None and unconverted is None
    return FeeMoney(money=fee * (fee_rate or 0.0) if is_known else 0.0, currency=other)


NUMBERS = ("quantity", "price", "fee", "amount", "realized_pnl", "rate", "ratio")
_numbers = attrgetter(*NUMBERS)


def _check_reported(reported: ReportedFill) -> None:
    for name, number in zip(NUMBERS, _numbers(reported), strict=True):
        _check_finite(number, field=name)
    if reported.kind == "split" and not (reported.ratio and reported.ratio > 0):
        raise Invalid(f"{reported.ratio} splits nothing; give how many units one became, above 0", field="ratio")
    if reported.kind == "asset_transfer" and reported.quantity == 0:
        raise Invalid("0 units are moved; give units, positive for in and negative for out", field="quantity")
    if reported.kind == "rename" and (not reported.symbol or reported.position_key in ("", reported.symbol)):
        message = "it names no position under another symbol; give the old symbol, or the broker's id of the position"
        raise Invalid(message, field="position_key")
    executed = reported.kind in ("trade", "expiry", "assignment")
    if executed and (reported.price is None or reported.quantity == 0):
        message = f"{reported.quantity} at {reported.price} is not an execution; give a quantity and a price"
        raise Invalid(f"{message}, or report another kind", field="quantity")
    if reported.rate is not None and reported.rate <= 0:
        raise Invalid(f"{reported.rate} is not a rate; give what one unit is worth, above 0", field="rate")


def _check_finite(value: float | None, *, field: str) -> None:
    if value is not None and not math.isfinite(value):
        raise Invalid(f"{value} is not finite; give a finite number or none", field=field)
