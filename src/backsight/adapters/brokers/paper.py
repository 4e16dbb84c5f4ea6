"""A simulated broker account: it follows bars and executes orders as a broker would; equal calls give equal results.

For the bars that close at one instant, the order is: stops; liquidation; targets; the close as the new mark; funding;
liquidation again at the close. A position is exposed to the whole bar in which it was entered.

- A stop or target fills at its level, or at the open of a bar that opened beyond it. If a bar reaches both, the stop
  fills.
- Orders fill at the last mark, worse by the slippage. Stops, targets and liquidations pay the fee and do not slip.
- Cross margin: all positions are closed when equity is at or below the maintenance share of notional. The price of each
  symbol is the high or low of its bar, whichever is worse for the position. A negative balance stays negative.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from backsight.core.errors import Invalid, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant, to_utc
from backsight.core.instruments import FLAT_SHARE
from backsight.core.market import EPOCH, Bar, check_bars
from backsight.core.numbers import positive_zero
from backsight.core.orders import (
    BrokerReason,
    BrokerSnapshot,
    Executed,
    FillMark,
    Order,
    OrderResult,
    Rejected,
    ReportedFill,
    ReportedKind,
    check_order,
    fills_after,
)
from backsight.core.portfolio import Portfolio, Position, PositionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTerms:
    """The costs and limits of a simulated account."""

    position_mode: PositionMode = "netting"
    fee_rate: float = 0.0
    """Fee of every execution, as a share of notional."""
    slippage: float = 0.0
    """How much worse than the mark an order fills, as a share of price."""
    funding_rate: float = 0.0
    """Funding of every interval as a share of notional; if it is positive, longs pay and shorts receive."""
    funding_interval_seconds: int = 28_800
    """Funding is due at whole multiples of this interval since 1970."""
    max_leverage: float = 10.0
    """The largest notional of all positions over equity, after an order that adds to it."""
    maintenance: float = 0.05
    """Share of notional above which equity must stay."""
    reports_fills: bool = True
    """If False, snapshots have positions and no fills."""

    def __post_init__(self) -> None:
        for name in ("fee_rate", "slippage", "maintenance"):
            if not 0 <= getattr(self, name) < 1:
                raise Invalid(f"{getattr(self, name)} is not a share; give 0 or more and less than 1", field=name)
        if not -1 < self.funding_rate < 1:
            raise Invalid(f"{self.funding_rate} is not a rate; give more than -1 and less than 1", field="funding_rate")
        if self.funding_interval_seconds < 1:
            message = f"{self.funding_interval_seconds} is not an interval; give whole seconds"
            raise Invalid(message, field="funding_interval_seconds")
        if not 0 < self.max_leverage < math.inf or self.max_leverage * self.maintenance >= 1:
            message = (
                f"{self.max_leverage} is not above 0, or liquidates at once at a maintenance of {self.maintenance}"
            )
            raise Invalid(f"{message}; give less than 1 / maintenance", field="max_leverage")


FREE = PaperTerms()
"""No fee, no slippage, no funding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """A position at average cost; a quantity of 0 is flat."""

    position_key: str
    symbol: str
    quantity: float = 0.0
    """Long is positive, short negative."""
    average_price: float = 0.0
    peak_size: float = 0.0
    stop_price: float | None = None
    target_price: float | None = None

    def unrealized(self, price: float) -> float:
        return self.quantity * (price - self.average_price)

    def opposed_by(self, quantity: float) -> bool:
        return self.quantity != 0 and (self.quantity > 0) != (quantity > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """An execution, and the holding after it."""

    quantity: float
    price: float
    fee: float
    realized_pnl: float | None
    """None if the execution did not reduce the position."""
    after: _Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """Cash, and the holdings by position key."""

    cash: float
    holdings: Mapping[str, _Holding]

    def in_order(self) -> list[_Holding]:
        return [self.holdings[key] for key in sorted(self.holdings)]

    def equity(self, prices: Mapping[str, float]) -> float:
        return self.cash + sum(holding.unrealized(prices[holding.symbol]) for holding in self.holdings.values())

    def notional(self, prices: Mapping[str, float]) -> float:
        return sum(abs(holding.quantity * prices[holding.symbol]) for holding in self.holdings.values())

    def slack(self, prices: Mapping[str, float], *, maintenance: float) -> float:
        """The part of equity above the maintenance share of notional."""
        return self.equity(prices) - maintenance * self.notional(prices)

    def of_symbol(self, symbol: str) -> "_Book":
        """The holdings of one symbol, without the cash."""
        holdings = {key: holding for key, holding in self.holdings.items() if holding.symbol == symbol}
        return _Book(cash=0.0, holdings=holdings)

    def after(self, execution: _Execution) -> "_Book":
        after = execution.after
        holdings = {key: holding for key, holding in self.holdings.items() if key != after.position_key}
        if after.quantity != 0:
            holdings[after.position_key] = after
        return _Book(cash=self.cash + (execution.realized_pnl or 0.0) - execution.fee, holdings=holdings)


class PaperBroker:
    """A simulated account that starts at an instant with an amount of cash."""

    def __init__(self, account_id: str, *, at: datetime, cash: float = 0.0, terms: PaperTerms = FREE) -> None:
        if not math.isfinite(cash):
            raise Invalid(f"{cash} is not an amount; give a finite number", field="cash")
        self._account_id = account_id
        self._terms = terms
        self._at = to_utc(at, field="at")
        self._book = _Book(cash=float(cash), holdings={})
        self._marks: dict[str, float] = {}
        self._fill_count = 0
        self._sequence = 0
        self._reports: list[ReportedFill] = []
        self._reported = 0

    def snapshot(self, *, since: FillMark | None = None) -> BrokerSnapshot:
        """The account now, and the fills after the marked one or since the previous snapshot, if fills are reported."""
        fills = tuple(self._reports[self._reported :]) if since is None else fills_after(self._reports, since)
        self._reported = len(self._reports)
        equity = self._book.equity(self._marks)
        portfolio = Portfolio(
            at=self._at,
            equity=equity,
            cash=self._book.cash,
            positions=tuple(self._position(holding, equity=equity) for holding in self._book.in_order()),
        )
        return BrokerSnapshot(portfolio=portfolio, fills=fills, marks=dict(sorted(self._marks.items())))

    def submit(self, order: Order) -> OrderResult:
        """Fill an order at the last mark, or reject it by a named rule.

        A quantity of 0 only moves the stop and the target of a position: nothing is filled or paid. An order that makes
        no sense is `Invalid`: a quantity that is not a number, or 0 without levels; a symbol without a mark; a position
        of another symbol.
        """
        check_order(order)
        mark = self._mark_of(order.symbol)
        holding = self._holding_for(order)
        if order.quantity == 0:
            return self._move_levels(order, holding, mark=mark)
        quantity = _executable(order, holding)
        if quantity == 0:
            detail = f"position {holding.position_key!r} is {holding.quantity}; {order.quantity} would not reduce it"
            return Rejected(order=order, rule="REDUCE_ONLY", detail=detail)
        price = mark + math.copysign(self._terms.slippage * abs(mark), quantity)
        execution = _executed(holding, quantity=quantity, price=price, fee_rate=self._terms.fee_rate)
        execution = replace(execution, after=_with_levels(execution.after, order))
        rejected = _level_reached(order, execution.after, mark=mark) or self._too_large(order, holding, execution)
        if rejected is not None:
            return rejected
        fill = self._execute(execution)
        fills = (fill,) if self._terms.reports_fills else ()
        return Executed(order=order, position_key=holding.position_key, fills=fills)

    def advance(self, bars: Iterable[Bar]) -> None:
        """Lead the account through closed bars, in the order of their closes, each after the broker's instant.

        Bars of several symbols that close together belong in one call. Bad bars are `Invalid` and change nothing.
        """
        bars = list(bars)
        self._check(bars)
        for closes_at, closing in groupby(bars, key=lambda bar: bar.closes_at):
            self._follow_bars({bar.symbol: bar for bar in closing}, closes_at)

    def deposit(self, amount: float, *, at: datetime) -> None:
        """Add cash at an instant that is not before the broker's."""
        amount = _amount(amount)
        self._move_to(at)
        self._transfer(amount)

    def withdraw(self, amount: float, *, at: datetime) -> None:
        """Take cash out; `Invalid` if the amount is not free at the leverage cap."""
        amount = _amount(amount)
        free = self._book.equity(self._marks) - self._book.notional(self._marks) / self._terms.max_leverage
        if amount > free:
            raise Invalid(f"{amount} is more than the free {max(0.0, free)}; withdraw less", field="amount")
        self._move_to(at)
        self._transfer(-amount)

    def _check(self, bars: Sequence[Bar]) -> None:
        by_symbol: dict[str, list[Bar]] = {}
        for bar in bars:
            by_symbol.setdefault(bar.symbol, []).append(bar)
        for symbol, series in by_symbol.items():
            check_bars(series, field=symbol)
        reached = self._at
        for number, bar in enumerate(bars):
            if bar.closes_at <= self._at or bar.closes_at < reached:
                message = f"{format_instant(bar.closes_at)} is not after {format_instant(reached)}"
                remedy = "give each bar once, in the order of their closes"
                raise Invalid(f"{message}; {remedy}", field=f"bars[{number}].closes_at")
            reached = bar.closes_at

    def _follow_bars(self, bars: Mapping[str, Bar], closes_at: datetime) -> None:
        since = self._set_instant(closes_at)
        if not self._book.holdings:  # nothing to exit, to liquidate or to pay funding for
            self._marks.update((symbol, float(bar.close)) for symbol, bar in bars.items())
            return
        self._exit_at_levels(bars, "stop_loss")
        self._liquidate_if_due({**self._marks, **_worst(bars, self._book, maintenance=self._terms.maintenance)})
        self._exit_at_levels(bars, "take_profit")
        self._marks.update((symbol, float(bar.close)) for symbol, bar in bars.items())
        self._settle(since)

    def _exit_at_levels(self, bars: Mapping[str, Bar], reason: BrokerReason) -> None:
        for holding in self._book.in_order():
            level = holding.stop_price if reason == "stop_loss" else holding.target_price
            bar = bars.get(holding.symbol)
            if bar is None or level is None:
                continue
            price = _price_at_level(bar, level=level, rising=(holding.quantity > 0) == (reason == "take_profit"))
            if price is not None:
                self._close(holding, price=price, reason=reason)

    def _liquidate_if_due(self, prices: Mapping[str, float]) -> None:
        if self._book.slack(prices, maintenance=self._terms.maintenance) > 0:
            return
        for holding in self._book.in_order():
            self._close(holding, price=prices[holding.symbol], reason="liquidated")

    def _close(self, holding: _Holding, *, price: float, reason: BrokerReason) -> None:
        execution = _executed(holding, quantity=-holding.quantity, price=price, fee_rate=self._terms.fee_rate)
        self._execute(execution, reason=reason)

    def _settle(self, since: datetime) -> None:
        """Pay the funding that came due since an instant, at the marks; then liquidate if equity is too low."""
        interval = timedelta(seconds=self._terms.funding_interval_seconds)
        times = (self._at - EPOCH) // interval - (since - EPOCH) // interval
        rate = self._terms.funding_rate * times
        for holding in self._book.in_order() if rate else ():
            amount = positive_zero(-rate * holding.quantity * abs(self._marks[holding.symbol]))
            self._book = replace(self._book, cash=self._book.cash + amount)
            self._report("funding", position_key=holding.position_key, symbol=holding.symbol, amount=amount)
        self._liquidate_if_due(self._marks)

    def _transfer(self, amount: float) -> None:
        self._book = replace(self._book, cash=self._book.cash + amount)
        self._report("transfer", amount=amount)

    def _execute(self, execution: _Execution, *, reason: BrokerReason | None = None) -> ReportedFill:
        self._book = self._book.after(execution)
        after = execution.after
        return self._report(
            "trade", position_key=after.position_key, symbol=after.symbol, execution=execution, reason=reason
        )

    def _move_to(self, at: datetime) -> None:
        at = to_utc(at, field="at")
        if at < self._at:
            message = f"{format_instant(at)} is before the account's {format_instant(self._at)}; give a later instant"
            raise Invalid(message, field="at")
        if at > self._at:
            self._settle(self._set_instant(at))

    def _set_instant(self, at: datetime) -> datetime:
        """Set the instant and return the previous one; fills are numbered anew at every instant."""
        before, self._at, self._sequence = self._at, at, 0
        return before

    def _report(
        self,
        kind: ReportedKind,
        *,
        position_key: str = "",
        symbol: str = "",
        amount: float = 0.0,
        execution: _Execution | None = None,
        reason: BrokerReason | None = None,
    ) -> ReportedFill:
        fill = ReportedFill(
            id=derive_id("fill", self._account_id, self._fill_count),
            at=self._at,
            sequence=self._sequence,
            kind=kind,
            position_key=position_key,
            symbol=symbol,
            quantity=0.0 if execution is None else execution.quantity,
            price=None if execution is None else execution.price,
            fee=0.0 if execution is None else execution.fee,
            amount=amount,
            realized_pnl=None if execution is None else execution.realized_pnl,
            reason=reason,
        )
        self._fill_count += 1
        self._sequence += 1
        if self._terms.reports_fills:
            self._reports.append(fill)
        return fill

    def _mark_of(self, symbol: str) -> float:
        if symbol not in self._marks:
            message = f"{symbol!r} has no price yet; advance through a bar of it first"
            raise Invalid(
                f"{message}, or {did_you_mean(symbol, self._marks)}" if self._marks else message, field="symbol"
            )
        return self._marks[symbol]

    def _holding_for(self, order: Order) -> _Holding:
        key = self._key_of(order)
        holding = self._book.holdings.get(key, _Holding(position_key=key, symbol=order.symbol))
        if holding.symbol != order.symbol:
            message = f"{key!r} is a position in {holding.symbol!r}, not in {order.symbol!r}; name another"
            raise Invalid(message, field="position_key")
        return holding

    def _move_levels(self, order: Order, holding: _Holding, *, mark: float) -> OrderResult:
        if holding.quantity == 0:
            message = f"position {holding.position_key!r} is flat; open one before its levels are moved"
            return Rejected(order=order, rule="NO_POSITION", detail=message)
        rejected = _level_reached(order, holding, mark=mark)
        if rejected is not None:
            return rejected
        self._book = replace(
            self._book, holdings={**self._book.holdings, holding.position_key: _with_levels(holding, order)}
        )
        return Executed(order=order, position_key=holding.position_key, fills=())

    def _key_of(self, order: Order) -> str:
        if self._terms.position_mode == "netting":
            if order.position_key not in (None, order.symbol):
                message = (
                    f"{order.position_key!r} on a netting account, which holds one position a symbol; leave it out"
                )
                raise Invalid(message, field="position_key")
            return order.symbol
        if order.position_key is not None:
            return order.position_key
        if order.reduce_only or order.quantity == 0:
            message = "none message; name the position that is to be reduced, or whose levels are to be moved"
            raise Invalid(message, field="position_key")
        return derive_id("position", self._account_id, self._fill_count)

    def _too_large(self, order: Order, holding: _Holding, execution: _Execution) -> Rejected | None:
        """The rejection of an order above the leverage cap; an order that only reduces a position is always allowed."""
        if holding.opposed_by(execution.quantity) and abs(execution.quantity) <= abs(holding.quantity):
            return None
        book = self._book.after(execution)
        notional, equity = book.notional(self._marks), book.equity(self._marks)
        if notional <= self._terms.max_leverage * equity:
            return None
        message = f"notional {notional} would be more than {self._terms.max_leverage} times equity {equity}"
        return Rejected(order=order, rule="MAX_LEVERAGE", detail=f"{message}; order less")

    def _position(self, holding: _Holding, *, equity: float) -> Position:
        mark = self._marks[holding.symbol]
        return Position(
            position_key=holding.position_key,
            symbol=holding.symbol,
            direction="long" if holding.quantity > 0 else "short",
            size=abs(holding.quantity),
            mark=mark,
            average_price=holding.average_price,
            leverage=abs(holding.quantity * mark) / equity if equity > 0 else None,
            stop_price=holding.stop_price,
            target_price=holding.target_price,
            liquidation_price=self._liquidation_price(holding, mark=mark),
        )

    def _liquidation_price(self, holding: _Holding, *, mark: float) -> float | None:
        """The price at which the account would be liquidated, all else unchanged; None if there is none."""
        parts = self._book.of_symbol(holding.symbol).holdings.values()
        slack = self._book.slack(self._marks, maintenance=self._terms.maintenance)
        slope = sum(part.quantity - self._terms.maintenance * abs(part.quantity) for part in parts)
        if slope == 0 or mark <= 0:
            return None
        price = mark - slack / slope
        losing = price < mark if holding.quantity > 0 else price > mark
        return price if losing and 0 < price < math.inf else None


def _executable(order: Order, holding: _Holding) -> float:
    """The quantity of an order that is executed: a reduction stops at flat, and a negligible rest is closed too."""
    size = abs(order.quantity)
    if holding.opposed_by(order.quantity):
        beyond = size - abs(holding.quantity)
        dust = FLAT_SHARE * max(holding.peak_size, size)
        if abs(beyond) <= dust or (order.reduce_only and beyond > 0):
            return -holding.quantity
    elif order.reduce_only:
        return 0.0
    return float(order.quantity)


def _executed(holding: _Holding, *, quantity: float, price: float, fee_rate: float) -> _Execution:
    """An execution at average cost: an addition moves the average, a reduction realises pnl, a reversal does both."""
    fee = fee_rate * abs(quantity * price)
    total = holding.quantity + quantity
    if not holding.opposed_by(quantity):
        cost = holding.average_price * abs(holding.quantity) + price * abs(quantity)
        average = price if holding.quantity == 0 else cost / abs(total)
        peak = max(holding.peak_size, abs(total))
        after = replace(holding, quantity=total, average_price=average, peak_size=peak)
        return _Execution(quantity=quantity, price=price, fee=fee, realized_pnl=None, after=after)
    size = min(abs(quantity), abs(holding.quantity))
    realized = positive_zero(math.copysign(size, holding.quantity) * (price - holding.average_price))
    if abs(quantity) < abs(holding.quantity):
        after = replace(holding, quantity=total)
    else:
        reversed_holding = _Holding(position_key=holding.position_key, symbol=holding.symbol)
        after = replace(reversed_holding, quantity=total, average_price=price, peak_size=abs(total))
    return _Execution(quantity=quantity, price=price, fee=fee, realized_pnl=realized, after=after)


def _with_levels(holding: _Holding, order: Order) -> _Holding:
    """The holding with the stop and target of an order; levels that the order does not have stay."""
    stop = holding.stop_price if order.stop_price is None else float(order.stop_price)
    target = holding.target_price if order.target_price is None else float(order.target_price)
    return replace(holding, stop_price=stop, target_price=target)


def _level_reached(order: Order, after: _Holding, *, mark: float) -> Rejected | None:
    """The rejection of a stop or target that the mark has reached already, because it would execute at once."""
    side = math.copysign(1.0, after.quantity)
    if after.quantity == 0:
        return None
    if order.stop_price is not None and side * (mark - order.stop_price) <= 0:
        message = f"stop {order.stop_price} is not on the losing side of the mark {mark}; move it"
        return Rejected(order=order, rule="STOP_REACHED", detail=message)
    if order.target_price is not None and side * (order.target_price - mark) <= 0:
        message = f"target {order.target_price} is not on the winning side of the mark {mark}; move it"
        return Rejected(order=order, rule="TARGET_REACHED", detail=message)
    return None


def _price_at_level(bar: Bar, *, level: float, rising: bool) -> float | None:
    """The price at which a level fills in a bar that rises or falls to it; None if the bar does not reach it."""
    if rising:
        return float(max(bar.open, level)) if bar.high >= level else None
    return float(min(bar.open, level)) if bar.low <= level else None


def _worst(bars: Mapping[str, Bar], book: _Book, *, maintenance: float) -> dict[str, float]:
    """Of every symbol, the extreme of its bar at which what is holding in it leaves less above the maintenance."""
    worst: dict[str, float] = {}
    for symbol, bar in bars.items():
        holdings = book.of_symbol(symbol)
        slacks = [
            (holdings.slack({symbol: price}, maintenance=maintenance), float(price)) for price in (bar.low, bar.high)
        ]
        worst[symbol] = min(slacks)[1]
    return worst


def _amount(amount: float) -> float:
    if not 0 < amount < math.inf:
        raise Invalid(f"{amount} is not an amount to move; give one above 0", field="amount")
    return float(amount)
