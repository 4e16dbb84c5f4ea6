"""A simulated account: told bars and orders, it says what a broker would; the same calls give the same bytes.

Within the bars that close at one instant, in this order: stops; liquidation; targets; the close as the new mark;
funding; liquidation again at the close. A position counts in the whole of the bar in which it was entered.

- A stop or target fills at its level, or at the open of a bar that opened beyond it; both in one bar: the stop.
- Orders fill at the last mark, worse by the slippage. Stops, targets and liquidations pay the fee and do not slip.
- Cross margin: everything is closed when equity is at or below the maintenance share of notional, at the price of each
  symbol's bar (its high or its low) that is worse for what is held in it. What is then owed stays owed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from backsight.core.errors import Invalid, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant, to_utc
from backsight.core.market import EPOCH, Bar, check_bars
from backsight.core.numbers import positive_zero
from backsight.core.orders import (
    BrokerReason,
    BrokerSnapshot,
    Executed,
    Order,
    OrderResult,
    Rejected,
    ReportedFill,
    ReportedKind,
    check_order,
)
from backsight.core.portfolio import Portfolio, Position, PositionMode
from backsight.core.trades.fold import FLAT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTerms:
    """What a simulated account costs and allows."""

    position_mode: PositionMode = "netting"
    fee_rate: float = 0.0
    """Share of notional, for every execution."""
    slippage: float = 0.0
    """Share of price by which an order fills worse than the mark."""
    funding_rate: float = 0.0
    """Share of notional for every funding interval; positive: longs pay, shorts receive."""
    funding_interval_seconds: int = 28_800
    """Funding is due at whole multiples of it since 1970."""
    max_leverage: float = 10.0
    """The most that the notional of all positions may be of equity, after an order that adds to it."""
    maintenance: float = 0.05
    """Share of notional that equity must stay above."""
    reports_fills: bool = True
    """False: snapshots tell positions only."""

    def __post_init__(self) -> None:
        for name in ("fee_rate", "slippage", "maintenance"):
            if not 0 <= getattr(self, name) < 1:
                raise Invalid(f"{getattr(self, name)} is no share; give 0 or more and less than 1", field=name)
        if not -1 < self.funding_rate < 1:
            raise Invalid(f"{self.funding_rate} is no rate; give more than -1 and less than 1", field="funding_rate")
        if self.funding_interval_seconds < 1:
            told = f"{self.funding_interval_seconds} is no interval; give whole seconds"
            raise Invalid(told, field="funding_interval_seconds")
        if not 0 < self.max_leverage < math.inf or self.max_leverage * self.maintenance >= 1:
            told = f"{self.max_leverage} is not above 0, or liquidates at once by a maintenance of {self.maintenance}"
            raise Invalid(f"{told}; give less than one by the maintenance", field="max_leverage")


FREE = PaperTerms()
"""No fee, no slippage, no funding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """A position at average cost; flat at quantity 0."""

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
class _Trade:
    """An execution, and the holding after it."""

    quantity: float
    price: float
    fee: float
    realized_pnl: float | None
    """None where nothing was taken off."""
    after: _Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """Cash and what is held, by position."""

    cash: float
    held: Mapping[str, _Holding]

    def in_order(self) -> list[_Holding]:
        return [self.held[key] for key in sorted(self.held)]

    def equity(self, prices: Mapping[str, float]) -> float:
        return self.cash + sum(holding.unrealized(prices[holding.symbol]) for holding in self.held.values())

    def notional(self, prices: Mapping[str, float]) -> float:
        return sum(abs(holding.quantity * prices[holding.symbol]) for holding in self.held.values())

    def slack(self, prices: Mapping[str, float], *, maintenance: float) -> float:
        """What equity has above the maintenance share of notional."""
        return self.equity(prices) - maintenance * self.notional(prices)

    def of_symbol(self, symbol: str) -> "_Book":
        """What is held in one symbol, without the cash."""
        held = {key: holding for key, holding in self.held.items() if holding.symbol == symbol}
        return _Book(cash=0.0, held=held)

    def after(self, trade: _Trade) -> "_Book":
        held = {key: holding for key, holding in self.held.items() if key != trade.after.position_key}
        if trade.after.quantity != 0:
            held[trade.after.position_key] = trade.after
        return _Book(cash=self.cash + (trade.realized_pnl or 0.0) - trade.fee, held=held)


class PaperBroker:
    """A simulated account, from an instant and an amount of cash on."""

    def __init__(self, account_id: str, *, at: datetime, cash: float = 0.0, terms: PaperTerms = FREE) -> None:
        if not math.isfinite(cash):
            raise Invalid(f"{cash} is no amount; give a finite one", field="cash")
        self._account_id = account_id
        self._terms = terms
        self._at = to_utc(at, field="at")
        self._book = _Book(cash=float(cash), held={})
        self._marks: dict[str, float] = {}
        self._number = 0
        self._sequence = 0
        self._unseen: list[ReportedFill] = []

    def snapshot(self) -> BrokerSnapshot:
        """The account now, and the fills since the snapshot before; none where the terms say that none are reported."""
        fills, self._unseen = tuple(self._unseen), []
        equity = self._book.equity(self._marks)
        portfolio = Portfolio(
            at=self._at,
            equity=equity,
            cash=self._book.cash,
            positions=tuple(self._position(holding, equity=equity) for holding in self._book.in_order()),
        )
        return BrokerSnapshot(portfolio=portfolio, fills=fills, marks=dict(sorted(self._marks.items())))

    def submit(self, order: Order) -> OrderResult:
        """What became of an order: filled at the last mark, or rejected by a rule that it names.

        A quantity of 0 only moves the stop and the target of a position: nothing is filled, nothing paid. An order that
        is no order is `Invalid`: a quantity that is not a number, or zero without levels, a symbol without a mark, a
        position of another symbol.
        """
        check_order(order)
        mark = self._mark_of(order.symbol)
        held = self._holding_for(order)
        if order.quantity == 0:
            return self._move_levels(order, held, mark=mark)
        quantity = _executable(order, held)
        if quantity == 0:
            told = f"position {held.position_key!r} is {held.quantity}; {order.quantity} would not reduce it"
            return Rejected(order=order, rule="REDUCE_ONLY", detail=told)
        price = mark + math.copysign(self._terms.slippage * abs(mark), quantity)
        trade = _traded(held, quantity=quantity, price=price, fee_rate=self._terms.fee_rate)
        trade = replace(trade, after=_protected(trade.after, order))
        rejected = _level_reached(order, trade.after, mark=mark) or self._too_large(order, held, trade)
        if rejected is not None:
            return rejected
        fill = self._execute(trade)
        fills = (fill,) if self._terms.reports_fills else ()
        return Executed(order=order, position_key=held.position_key, fills=fills)

    def advance(self, bars: Iterable[Bar]) -> None:
        """The account is led through bars that closed, in the order in which they did, each after the broker's instant.

        Bars of several symbols that close together belong in one call. Bad bars are `Invalid`, and nothing is changed.
        """
        bars = list(bars)
        self._check(bars)
        for closes_at, together in groupby(bars, key=lambda bar: bar.closes_at):
            self._live_through({bar.symbol: bar for bar in together}, closes_at)

    def deposit(self, amount: float, *, at: datetime) -> None:
        """The account has this much more cash from an instant on that is not before the broker's."""
        amount = _amount(amount)
        self._move_to(at)
        self._transfer(amount)

    def withdraw(self, amount: float, *, at: datetime) -> None:
        """The account has this much less cash; `Invalid` beyond what its positions leave free at the leverage cap."""
        amount = _amount(amount)
        free = self._book.equity(self._marks) - self._book.notional(self._marks) / self._terms.max_leverage
        if amount > free:
            raise Invalid(f"{amount} is more than the {max(0.0, free)} that is free; take less", field="amount")
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
                told = f"{format_instant(bar.closes_at)} is not after {format_instant(reached)}"
                raise Invalid(
                    f"{told}; give bars once, in the order of their closes", field=f"bars[{number}].closes_at"
                )
            reached = bar.closes_at

    def _live_through(self, bars: Mapping[str, Bar], closes_at: datetime) -> None:
        since = self._set_instant(closes_at)
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
        trade = _traded(holding, quantity=-holding.quantity, price=price, fee_rate=self._terms.fee_rate)
        self._execute(trade, reason=reason)

    def _settle(self, since: datetime) -> None:
        """Funding that came due after an instant, on what is held now at its mark; then what cannot be carried goes."""
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

    def _execute(self, trade: _Trade, *, reason: BrokerReason | None = None) -> ReportedFill:
        self._book = self._book.after(trade)
        held = trade.after
        return self._report("trade", position_key=held.position_key, symbol=held.symbol, trade=trade, reason=reason)

    def _move_to(self, at: datetime) -> None:
        at = to_utc(at, field="at")
        if at < self._at:
            told = f"{format_instant(at)} is before {format_instant(self._at)}, where the account is; give a later one"
            raise Invalid(told, field="at")
        if at > self._at:
            self._settle(self._set_instant(at))

    def _set_instant(self, at: datetime) -> datetime:
        """The instant before; fills are numbered anew in every instant."""
        before, self._at, self._sequence = self._at, at, 0
        return before

    def _report(
        self,
        kind: ReportedKind,
        *,
        position_key: str = "",
        symbol: str = "",
        amount: float = 0.0,
        trade: _Trade | None = None,
        reason: BrokerReason | None = None,
    ) -> ReportedFill:
        fill = ReportedFill(
            id=derive_id("fill", self._account_id, self._number),
            at=self._at,
            sequence=self._sequence,
            kind=kind,
            position_key=position_key,
            symbol=symbol,
            quantity=0.0 if trade is None else trade.quantity,
            price=None if trade is None else trade.price,
            fee=0.0 if trade is None else trade.fee,
            amount=amount,
            realized_pnl=None if trade is None else trade.realized_pnl,
            reason=reason,
        )
        self._number += 1
        self._sequence += 1
        if self._terms.reports_fills:
            self._unseen.append(fill)
        return fill

    def _mark_of(self, symbol: str) -> float:
        if symbol not in self._marks:
            told = f"{symbol!r} has no price yet; advance through a bar of it first"
            raise Invalid(f"{told}, or {did_you_mean(symbol, self._marks)}" if self._marks else told, field="symbol")
        return self._marks[symbol]

    def _holding_for(self, order: Order) -> _Holding:
        key = self._key_of(order)
        held = self._book.held.get(key, _Holding(position_key=key, symbol=order.symbol))
        if held.symbol != order.symbol:
            told = f"{key!r} is a position in {held.symbol!r}, not in {order.symbol!r}; name another"
            raise Invalid(told, field="position_key")
        return held

    def _move_levels(self, order: Order, held: _Holding, *, mark: float) -> OrderResult:
        if held.quantity == 0:
            told = f"position {held.position_key!r} is flat; open one before its levels are moved"
            return Rejected(order=order, rule="NO_POSITION", detail=told)
        rejected = _level_reached(order, held, mark=mark)
        if rejected is not None:
            return rejected
        self._book = replace(self._book, held={**self._book.held, held.position_key: _protected(held, order)})
        return Executed(order=order, position_key=held.position_key, fills=())

    def _key_of(self, order: Order) -> str:
        if self._terms.position_mode == "netting":
            if order.position_key not in (None, order.symbol):
                told = f"{order.position_key!r} on a netting account, which holds one position a symbol; leave it out"
                raise Invalid(told, field="position_key")
            return order.symbol
        if order.position_key is not None:
            return order.position_key
        if order.reduce_only or order.quantity == 0:
            told = "none told; name the position that is to be reduced, or whose levels are to be moved"
            raise Invalid(told, field="position_key")
        return derive_id("position", self._account_id, self._number)

    def _too_large(self, order: Order, held: _Holding, trade: _Trade) -> Rejected | None:
        """The rejection by the leverage cap; what only reduces a position may always be done."""
        if held.opposed_by(trade.quantity) and abs(trade.quantity) <= abs(held.quantity):
            return None
        book = self._book.after(trade)
        notional, equity = book.notional(self._marks), book.equity(self._marks)
        if notional <= self._terms.max_leverage * equity:
            return None
        told = f"notional {notional} would be more than {self._terms.max_leverage} times equity {equity}"
        return Rejected(order=order, rule="MAX_LEVERAGE", detail=f"{told}; order less")

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
        """The price at which the account would be liquidated, all else unchanged; None where it is out of reach."""
        own = self._book.of_symbol(holding.symbol).held.values()
        slack = self._book.slack(self._marks, maintenance=self._terms.maintenance)
        slope = sum(each.quantity - self._terms.maintenance * abs(each.quantity) for each in own)
        if slope == 0 or mark <= 0:
            return None
        price = mark - slack / slope
        losing = price < mark if holding.quantity > 0 else price > mark
        return price if losing and 0 < price < math.inf else None


def _executable(order: Order, held: _Holding) -> float:
    """What of an order is carried out: a reduction stops at flat; what would leave dust closes the position."""
    size = abs(order.quantity)
    if held.opposed_by(order.quantity):
        beyond = size - abs(held.quantity)
        dust = FLAT_SHARE * max(held.peak_size, size)
        if abs(beyond) <= dust or (order.reduce_only and beyond > 0):
            return -held.quantity
    elif order.reduce_only:
        return 0.0
    return float(order.quantity)


def _traded(held: _Holding, *, quantity: float, price: float, fee_rate: float) -> _Trade:
    """An execution at average cost: an addition moves the average, a reduction realises, a turn does both anew."""
    fee = fee_rate * abs(quantity * price)
    total = held.quantity + quantity
    if not held.opposed_by(quantity):
        cost = held.average_price * abs(held.quantity) + price * abs(quantity)
        average = price if held.quantity == 0 else cost / abs(total)
        peak = max(held.peak_size, abs(total))
        after = replace(held, quantity=total, average_price=average, peak_size=peak)
        return _Trade(quantity=quantity, price=price, fee=fee, realized_pnl=None, after=after)
    size = min(abs(quantity), abs(held.quantity))
    realized = positive_zero(math.copysign(size, held.quantity) * (price - held.average_price))
    if abs(quantity) < abs(held.quantity):
        after = replace(held, quantity=total)
    else:
        turned = _Holding(position_key=held.position_key, symbol=held.symbol)
        after = replace(turned, quantity=total, average_price=price, peak_size=abs(total))
    return _Trade(quantity=quantity, price=price, fee=fee, realized_pnl=realized, after=after)


def _protected(holding: _Holding, order: Order) -> _Holding:
    """The holding with the levels that an order brings; those it does not bring stay."""
    stop = holding.stop_price if order.stop_price is None else float(order.stop_price)
    target = holding.target_price if order.target_price is None else float(order.target_price)
    return replace(holding, stop_price=stop, target_price=target)


def _level_reached(order: Order, after: _Holding, *, mark: float) -> Rejected | None:
    """The rejection of a stop or target that the mark is at or beyond already: it would execute at once."""
    way = math.copysign(1.0, after.quantity)
    if after.quantity == 0:
        return None
    if order.stop_price is not None and way * (mark - order.stop_price) <= 0:
        told = f"stop {order.stop_price} is not on the losing side of the mark {mark}; move it"
        return Rejected(order=order, rule="STOP_REACHED", detail=told)
    if order.target_price is not None and way * (order.target_price - mark) <= 0:
        told = f"target {order.target_price} is not on the winning side of the mark {mark}; move it"
        return Rejected(order=order, rule="TARGET_REACHED", detail=told)
    return None


def _price_at_level(bar: Bar, *, level: float, rising: bool) -> float | None:
    """Where a level fills in a bar that rises or falls to it; None where the bar does not reach it."""
    if rising:
        return float(max(bar.open, level)) if bar.high >= level else None
    return float(min(bar.open, level)) if bar.low <= level else None


def _worst(bars: Mapping[str, Bar], book: _Book, *, maintenance: float) -> dict[str, float]:
    """Of every symbol, the extreme of its bar at which what is held in it leaves less above the maintenance."""
    worst: dict[str, float] = {}
    for symbol, bar in bars.items():
        own = book.of_symbol(symbol)
        slacks = [(own.slack({symbol: price}, maintenance=maintenance), float(price)) for price in (bar.low, bar.high)]
        worst[symbol] = min(slacks)[1]
    return worst


def _amount(amount: float) -> float:
    if not 0 < amount < math.inf:
        raise Invalid(f"{amount} is no amount to move; give one above 0", field="amount")
    return float(amount)
