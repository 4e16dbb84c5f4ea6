"""A broker for tests, with exact books of its own to compare a ledger with.

The paper broker fills orders on bars, for backtests. This one does what real venues do to a ledger: fees in coin, lot
steps, multipliers, inverse contracts, quotes in another currency, orders that fill in parts and between snapshots,
corporate actions, and reports that come late, twice or never. Money is kept in fractions, as what a holding cost and
what it is worth, so that no rounding and no formula is shared with the ledger.

>>> broker = BrokerSimulator([SimulatedInstrument(symbol="ES", multiplier=50.0)], at=T0, cash=100_000.0)
>>> broker.move("ES", 5000.0)
>>> order_id = broker.market_order("ES", 2.0, decision="long")
>>> broker.move("ES", 5003.5)
>>> order_id = broker.market_order("ES", -2.0, decision="flat")
>>> [(trade.realized_pnl, trade.entry_decision, trade.exit_decision) for trade in broker.trades()]
[(350.0, 'long', 'flat')]
>>> snapshot = broker.snapshot()
>>> snapshot.portfolio.equity, [fill.quantity for fill in snapshot.fills]
(100350.0, [2.0, -2.0])
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

from backsight.core.errors import Invalid
from backsight.core.orders import (
    BEGINNING,
    BrokerReason,
    BrokerSnapshot,
    FillMark,
    Order,
    ReportedFill,
    fills_after,
    last_mark,
)
from backsight.core.portfolio import Direction, OpenOrder, Portfolio, Position
from backsight.ports import Broker
from backsight.testing import T0

NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedInstrument:
    """The terms on which a symbol trades."""

    symbol: str
    multiplier: float = 1.0
    """What one unit of size earns for one point of price; of an inverse contract, its worth in the quote currency."""
    inverse: bool = False
    """Whether results are in the coin that is priced: a contract earns multiplier × (1 / entry − 1 / exit)."""
    currency: str | None = None
    """The currency of the results before conversion; None if it is the account's."""
    lot_step: float | None = None
    """Less than one step cannot be sold: it stays as a rest, and the trade counts as closed."""
    fee_rate: float = 0.0
    """Share of what is traded, paid at each execution; negative for a rebate."""
    fee_coin: str | None = None
    """The base asset, if the fee of a purchase is taken in it, off what was bought."""

    def worth(self, price: Fraction) -> Fraction:
        """What one unit is worth at a price, up to a constant: only differences of worth are earned."""
        return -exact(self.multiplier) / price if self.inverse else exact(self.multiplier) * price

    def price_of(self, worth: Fraction) -> Fraction:
        """The price at which one unit has this worth."""
        return -exact(self.multiplier) / worth if self.inverse else worth / exact(self.multiplier)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTrade:
    """One round trip as the simulator counts it, in the account's currency."""

    position_key: str
    symbol: str
    direction: Direction
    opened_at: datetime
    closed_at: datetime | None
    size: float
    """The largest over time."""
    open_size: float
    rest: float
    realized_pnl: float
    """Before fees and funding."""
    fees: float
    funding: float
    entry_decision: str | None
    exit_decision: str | None


def exact(value: float) -> Fraction:
    """The number that is written down, not the binary one next to it.

    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    """
    return Fraction(str(value))


@dataclass(slots=True)
class _Stake:
    """A quantity, and what it cost in the currency of the instrument; both are negative for a short position."""

    quantity: Fraction = NOTHING
    cost: Fraction = NOTHING

    def trade(self, quantity: Fraction, worth: Fraction) -> Fraction:
        """Buy or sell units that are worth so much each, and return what that realises."""
        against = self.quantity * quantity < 0
        closing = min(abs(quantity), abs(self.quantity)) * (1 if quantity > 0 else -1) if against else NOTHING
        cost = -self.cost * closing / self.quantity if closing else NOTHING
        opening = quantity - closing
        self.quantity += quantity
        self.cost += opening * worth - cost
        return -closing * worth - cost if closing else NOTHING


@dataclass(slots=True)
class _TradeBook:
    """A trade from its first execution on."""

    position_key: str
    """That of the entry; a rename may give the position another one at the broker."""
    broker_key: str
    instrument: SimulatedInstrument
    opened_at: datetime
    entry_decision: str | None
    holding: _Stake = field(default_factory=_Stake)
    is_long: bool = True
    peak: Fraction = NOTHING
    realized: Fraction = NOTHING
    fees: Fraction = NOTHING
    funding: Fraction = NOTHING
    closed_at: datetime | None = None
    exit_decision: str | None = None

    @property
    def is_flat(self) -> bool:
        return abs(self.holding.quantity) < (exact(self.instrument.lot_step or 0.0) or Fraction(1, 10**15))


@dataclass(slots=True)
class _Resting:
    """A limit order that is waiting at the broker."""

    order_id: str
    symbol: str
    position_key: str
    quantity: Fraction
    limit: Fraction
    parts: int
    decision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _DueReport:
    """A fill that is still to be reported: with which snapshot, and whether a second time afterwards."""

    turn: int | None
    fill: ReportedFill
    again: bool


def reported_at_once(_: ReportedFill) -> int:
    """The delay of a broker that reports everything with the next snapshot."""
    return 0


def reported_once(_: ReportedFill) -> bool:
    """Whether a broker repeats a report: never."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTerms:
    """What a simulated broker tells, and when."""

    averages: bool = True
    """Whether positions have the broker's average price."""
    results: bool = False
    """Whether fills that reduce a position have the broker's realised PnL."""
    order_ids: bool = True
    """Whether fills name the order that was executed."""
    delay: Callable[[ReportedFill], int | None] = reported_at_once
    """How many snapshots a report comes after the first that could have it; None keeps it back until `release`."""
    repeated: Callable[[ReportedFill], bool] = reported_once
    """Whether a fill is reported a second time with the snapshot after."""


IN_TIME = ReportTerms()
"""Every fill is reported once, with the next snapshot."""


def check_fills_since(broker: Broker, order: Order) -> None:
    """Check that a broker repeats fills until they are recorded; the order must be filled at once.

    Raises `AssertionError` with what the adapter does wrong.
    """
    start = last_mark(broker.snapshot(since=BEGINNING).fills, BEGINNING)
    broker.submit(order)
    first, again = (broker.snapshot(since=start).fills for _ in range(2))
    assert first, "the fill of the order is not reported after the mark of the last fill before it"  # noqa: S101
    missing = {(fill.symbol, fill.id) for fill in first} - {(fill.symbol, fill.id) for fill in again}
    assert not missing, f"a fill is reported only once, and is lost if its answer is: {sorted(missing)}"  # noqa: S101
    later = broker.snapshot(since=last_mark(first, start)).fills
    assert len(later) < len(first), "fills are repeated although the mark says that they are recorded"  # noqa: S101


class BrokerSimulator:
    """An account at a simulated broker; time passes only when a test says so."""

    def __init__(
        self,
        instruments: Iterable[SimulatedInstrument],
        *,
        at: datetime = T0,
        cash: float = 10_000.0,
        hedging: bool = False,
        reports: ReportTerms = IN_TIME,
    ) -> None:
        self.at, self.hedging, self.reports = at, hedging, reports
        self.instruments = {each.symbol: each for each in instruments}
        self.fills: list[ReportedFill] = []
        """Everything that happened, reported or not."""
        self._cash = exact(cash)
        self._marks: dict[str, Fraction] = {}
        self._rates: dict[str, Fraction] = {}
        self._holdings: dict[str, _Stake] = {}
        self._symbols: dict[str, str] = {}
        self._trades: list[_TradeBook] = []
        self._orders: list[_Resting] = []
        self._reports: list[_DueReport] = []
        self._sent: list[ReportedFill] = []
        self._snapshots = self._order_count = self._position_count = 0

    # Time, prices and rates.

    def wait(self, minutes: float) -> None:
        self.at += timedelta(minutes=minutes)

    def move(self, symbol: str, price: float) -> None:
        """Set the mark of a symbol; limit orders that it reaches are executed, one part for each move."""
        self._marks[symbol] = exact(price)
        for order in [each for each in self._orders if each.symbol == symbol]:
            if (order.limit - exact(price)) * order.quantity >= 0:
                part = self._part(order.quantity, order.parts, symbol)
                self._execute(order, part, order.limit)
                order.quantity, order.parts = order.quantity - part, order.parts - 1
        self._orders = [each for each in self._orders if each.quantity]

    def set_rate(self, currency: str, rate: float) -> None:
        """Set what one unit of a currency is worth in the account's."""
        self._rates[currency] = exact(rate)

    # Orders.

    def market_order(
        self,
        symbol: str,
        quantity: float,
        *,
        position_key: str | None = None,
        decision: str | None = None,
        parts: int = 1,
        reason: BrokerReason | None = None,
    ) -> str:
        """Execute an order at the mark, each further part a little worse, and return its id.

        `decision` is any name for what placed the order. On a hedging account an order without a position opens one.
        """
        if symbol not in self._marks:
            raise Invalid(f"{symbol} has no price yet; call move first", field="symbol")
        order = self._new_order(symbol, quantity, self._marks[symbol], position_key, decision, parts)
        worse = Fraction(1, 1000) * (1 if quantity > 0 else -1)
        for number in range(parts):
            part = self._part(order.quantity, parts - number, symbol)
            order.quantity -= part
            if part:
                self._execute(order, part, rounded(self._marks[symbol] * (1 + number * worse)), reason=reason)
        return order.order_id

    def limit_order(
        self,
        symbol: str,
        quantity: float,
        limit: float,
        *,
        position_key: str | None = None,
        decision: str | None = None,
        parts: int = 1,
    ) -> str:
        """Place an order that waits until the mark reaches its limit, and return its id."""
        order = self._new_order(symbol, quantity, exact(limit), position_key, decision, parts)
        self._orders.append(order)
        return order.order_id

    def cancel_orders(self) -> None:
        self._orders = []

    # What happens to positions and to the account.

    def pay_funding(self, symbol: str, share: float) -> None:
        """Let every position in a symbol pay a share of its notional; shorts receive it."""
        instrument = self.instruments[symbol]
        for key, holding in self._open(symbol):
            worth = abs(instrument.worth(self._marks[symbol])) * self._rate(instrument)
            self._credit(key, -holding.quantity * worth * exact(share), kind="funding")

    def pay_dividend(self, symbol: str, amount: float) -> None:
        """Pay an amount of the account's currency on each unit."""
        for key, holding in self._open(symbol):
            self._credit(key, holding.quantity * exact(amount), kind="dividend")

    def split(self, symbol: str, ratio: float) -> None:
        """Make `ratio` units of each one, at a price that is lower accordingly."""
        self._marks[symbol] /= exact(ratio)
        for key, holding in self._open(symbol):
            holding.quantity *= exact(ratio)
            for trade in self._open_trades(key):
                trade.holding.quantity *= exact(ratio)
                trade.peak *= exact(ratio)
            self._report(kind="split", key=key, ratio=ratio)
        self._orders = [each for each in self._orders if each.symbol != symbol]

    def rename(self, symbol: str, new_symbol: str) -> None:
        """Quote a symbol under another name; a position that was named by its symbol has the new one as its key."""
        self.instruments[new_symbol] = replace(self.instruments[symbol], symbol=new_symbol)
        self._marks[new_symbol] = self._marks.pop(symbol)
        self._orders = [each for each in self._orders if each.symbol != symbol]
        for key, _ in self._open(symbol):
            self._symbols[key] = new_symbol
            new_key = new_symbol if key == symbol else key
            self._symbols[new_key] = new_symbol
            self._holdings[new_key] = self._holdings.pop(key)
            for trade in self._open_trades(key):
                trade.broker_key, trade.instrument = new_key, self.instruments[new_symbol]
            self._report(kind="rename", key=key)

    def expire(self, symbol: str, price: float) -> None:
        """Settle every position in a symbol at a price, and stop quoting it."""
        self._orders = [each for each in self._orders if each.symbol != symbol]
        for key, holding in self._open(symbol):
            order = self._new_order(symbol, -float(holding.quantity), exact(price), key, None, 1)
            self._execute(order, -holding.quantity, exact(price), kind="expiry")
        del self._marks[symbol]

    def deposit(self, amount: float) -> None:
        """Pay money in, or out if the amount is negative."""
        self._cash += exact(amount)
        self._report(kind="transfer", amount=amount)

    def withdraw_units(self, position_key: str, quantity: float) -> None:
        """Move units of a position out of the account; they leave at what they cost, and nothing is realised."""
        holding, units = self._holdings[position_key], exact(quantity)
        cost = holding.cost * units / holding.quantity
        for trade in self._open_trades(position_key):
            trade.holding.cost -= trade.holding.cost * units / trade.holding.quantity
            trade.holding.quantity -= units
            if trade.is_flat:
                trade.closed_at = self.at
        holding.quantity, holding.cost = holding.quantity - units, holding.cost - cost
        self._cash -= cost * self._rate(self.instruments[self._symbols[position_key]])
        self._report(kind="asset_transfer", key=position_key, quantity=-quantity)

    # What a ledger sees.

    def snapshot(self, *, since: FillMark | None = None) -> BrokerSnapshot:
        """The account now, with the reports that are due, or with all that came after the marked fill."""
        self._snapshots += 1
        due = [each for each in self._reports if each.turn is not None and each.turn <= self._snapshots]
        self._reports = [each for each in self._reports if each not in due]
        self._reports += [
            _DueReport(turn=self._snapshots + 1, fill=each.fill, again=False) for each in due if each.again
        ]
        portfolio = Portfolio(
            at=self.at,
            equity=self.equity,
            cash=float(self._cash),
            positions=tuple(self._position(key, holding) for key, holding in self._open()),
            open_orders=tuple(
                OpenOrder(id=each.order_id, symbol=each.symbol, quantity=float(each.quantity), price=float(each.limit))
                for each in self._orders
            ),
        )
        self._sent += (each.fill for each in due)
        fills = tuple(each.fill for each in due) if since is None else fills_after(self._sent, since)
        return BrokerSnapshot(portfolio=portfolio, fills=fills, marks=self.marks)

    def release(self) -> None:
        """Let everything that was kept back be reported with the next snapshot."""
        self._reports = [replace(each, turn=self._snapshots + 1) for each in self._reports]

    # The truth.

    @property
    def equity(self) -> float:
        """Cash, and what the positions would realise at their marks."""
        return float(self._cash + self._unrealized)

    @property
    def unrealized(self) -> float:
        """What the open positions would realise at their marks."""
        return float(self._unrealized)

    @property
    def _unrealized(self) -> Fraction:
        return sum((self._earned(key) for key, _ in self._open()), NOTHING)

    @property
    def marks(self) -> dict[str, float]:
        """The mark of every symbol that is quoted."""
        return {symbol: float(mark) for symbol, mark in self._marks.items()}

    def symbol_of(self, position_key: str) -> str:
        """The symbol of a position, open or closed."""
        return self._symbols[position_key]

    def sizes(self) -> dict[str, float]:
        """The signed size of every position by its key, rests too."""
        return {key: float(holding.quantity) for key, holding in self._open()}

    def waiting(self, position_key: str) -> list[float]:
        """The quantities of the limit orders that wait for a position."""
        return [float(each.quantity) for each in self._orders if each.position_key == position_key]

    def trades(self) -> list[SimulatedTrade]:
        """Every trade so far, in the order of the entries."""
        return [self._as_trade(trade) for trade in self._trades]

    def _as_trade(self, trade: _TradeBook) -> SimulatedTrade:
        left = abs(trade.holding.quantity)
        return SimulatedTrade(
            position_key=trade.position_key,
            symbol=trade.instrument.symbol,
            direction="long" if trade.is_long else "short",
            opened_at=trade.opened_at,
            closed_at=trade.closed_at,
            size=float(trade.peak),
            open_size=float(left) if trade.closed_at is None else 0.0,
            rest=0.0 if trade.closed_at is None else float(left),
            realized_pnl=float(trade.realized),
            fees=float(trade.fees),
            funding=float(trade.funding),
            entry_decision=trade.entry_decision,
            exit_decision=trade.exit_decision,
        )

    def _position(self, key: str, holding: _Stake) -> Position:
        symbol = self._symbols[key]
        average = self.instruments[symbol].price_of(holding.cost / holding.quantity) if holding.cost else NOTHING
        return Position(
            position_key=key,
            symbol=symbol,
            direction="long" if holding.quantity > 0 else "short",
            size=float(abs(holding.quantity)),
            mark=float(self._marks[symbol]),
            average_price=float(average) if self.reports.averages else None,
        )

    def _open(self, symbol: str | None = None) -> list[tuple[str, _Stake]]:
        """The positions that are not flat, rests too."""
        return [
            (key, holding)
            for key, holding in sorted(self._holdings.items())
            if holding.quantity and symbol in (None, self._symbols[key])
        ]

    def _open_trades(self, key: str) -> Iterator[_TradeBook]:
        """The open trade of a position, if it has one."""
        return (trade for trade in self._trades if trade.broker_key == key and trade.closed_at is None)

    def _rate(self, instrument: SimulatedInstrument) -> Fraction:
        return Fraction(1) if instrument.currency is None else self._rates[instrument.currency]

    def _earned(self, key: str) -> Fraction:
        """What a position would realise at its mark."""
        instrument, holding = self.instruments[self._symbols[key]], self._holdings[key]
        worth = instrument.worth(self._marks[instrument.symbol])
        return (holding.quantity * worth - holding.cost) * self._rate(instrument)

    def _new_order(
        self, symbol: str, quantity: float, limit: Fraction, position_key: str | None, decision: str | None, parts: int
    ) -> _Resting:
        self._order_count += 1
        if position_key is None and self.hedging:
            self._position_count += 1
            position_key = f"P{self._position_count}"
        return _Resting(
            order_id=f"order-{self._order_count}",
            symbol=symbol,
            position_key=position_key or symbol,
            quantity=exact(quantity),
            limit=limit,
            parts=parts,
            decision=decision,
        )

    def _part(self, quantity: Fraction, parts: int, symbol: str) -> Fraction:
        """The first of the parts of an order, in whole lot steps; all of it if it is the last one."""
        step = exact(self.instruments[symbol].lot_step or 0.001)
        part = quantity / parts // step * step if parts > 1 else quantity
        return part or quantity

    def _execute(
        self,
        order: _Resting,
        quantity: Fraction,
        price: Fraction,
        *,
        kind: Literal["trade", "expiry"] = "trade",
        reason: BrokerReason | None = None,
    ) -> None:
        """Execute a part of an order: in the account, in the trade that it belongs to, and as a report."""
        instrument, key = self.instruments[order.symbol], order.position_key
        rate, worth = self._rate(instrument), instrument.worth(price)
        free = kind == "expiry"
        units = NOTHING if free else abs(quantity) * exact(instrument.fee_rate)
        coins = units if instrument.fee_coin and quantity > 0 else NOTHING
        fee = units * abs(worth) * rate
        moved = quantity - coins
        self._symbols[key] = order.symbol
        holding = self._holdings.setdefault(key, _Stake())
        reduces = holding.quantity * moved < 0
        realized = holding.trade(moved, worth) * rate
        self._cash += realized - fee
        self._book(order, moved, worth, fee=fee, rate=rate)
        self._report(
            kind=kind,
            key=key,
            quantity=float(quantity),
            price=float(price),
            fee=float(coins or fee),
            fee_currency=instrument.fee_coin if coins else None,
            rate=None if instrument.currency is None else float(rate),
            order_id=order.order_id if kind == "trade" and self.reports.order_ids else None,
            realized_pnl=float(realized) if reduces and self.reports.results else None,
            reason=reason,
        )

    def _book(self, order: _Resting, moved: Fraction, worth: Fraction, *, fee: Fraction, rate: Fraction) -> None:
        """Book an execution in the open trade of its position; what goes beyond flat opens another."""
        trade = next(self._open_trades(order.position_key), None)
        if trade is None:
            self._trades.append(self._opened(order, moved, worth, fee))
            return
        own = trade.holding.quantity
        beyond = abs(moved) - abs(own) if own * moved < 0 else NOTHING
        step = exact(trade.instrument.lot_step or 0.0)
        turns = beyond > 0 and beyond >= step
        sign = 1 if moved > 0 else -1
        share = beyond / abs(moved) if turns else NOTHING
        trade.realized += trade.holding.trade(-own if beyond > 0 else moved, worth) * rate
        trade.fees += fee * (1 - share)
        trade.peak = max(trade.peak, abs(trade.holding.quantity))
        if trade.is_flat:
            trade.closed_at, trade.exit_decision = self.at, order.decision
        if turns:
            self._trades.append(self._opened(order, beyond * sign, worth, fee * share))

    def _opened(self, order: _Resting, quantity: Fraction, worth: Fraction, fee: Fraction) -> _TradeBook:
        return _TradeBook(
            position_key=order.position_key,
            broker_key=order.position_key,
            instrument=self.instruments[order.symbol],
            opened_at=self.at,
            entry_decision=order.decision,
            holding=_Stake(quantity, quantity * worth),
            is_long=quantity > 0,
            peak=abs(quantity),
            fees=fee,
        )

    def _credit(self, key: str, amount: Fraction, *, kind: Literal["funding", "dividend"]) -> None:
        self._cash += amount
        for trade in self._open_trades(key):
            trade.funding += amount
        self._report(kind=kind, key=key, amount=float(amount))

    def _report(self, *, key: str = "", **details: Any) -> None:
        number = len(self.fills)
        symbol = self._symbols.get(key, "")
        fill = ReportedFill(
            id=f"fill-{number:05d}", at=self.at, sequence=number, position_key=key, symbol=symbol, **details
        )
        self.fills.append(fill)
        delay = self.reports.delay(fill)
        turn = None if delay is None else self._snapshots + 1 + delay
        self._reports.append(_DueReport(turn=turn, fill=fill, again=self.reports.repeated(fill)))


def rounded(price: Fraction) -> Fraction:
    """A price with six digits after the point."""
    return Fraction(round(price * 10**6), 10**6)
