"""A trade: one round trip from flat to flat, and its outcome in a comparable unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, assert_never

from backsight.core.context import ContextVector
from backsight.core.holdout import MemoryArm
from backsight.core.instruments import valued
from backsight.core.portfolio import Direction, Mode
from backsight.core.quick_init import quick_init
from backsight.core.regime import Preset, RegimeTag

USD = "USD"
EXPLAINED_SHARE = 0.005
"""A difference between broker and ledger below this share of the notional, and the fees, is none."""
REST_SHARE = 0.05
"""What is left of a position may be a rest if it is no more than this share of its largest size."""
TradeStatus = Literal["open", "closed"]
OutcomeUnit = Literal["R", "vol", "pct"]
ExcursionSource = Literal["bars", "marks"]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The size of a win or loss and its unit; statistics never mix units."""

    value: float
    unit: OutcomeUnit


def unit_suffix(unit: OutcomeUnit) -> str:
    """The unit of an outcome as it is written after a number; a share is written in percent."""
    match unit:
        case "R":
            return "R"
        case "vol":
            return " daily ATR"
        case "pct":
            return "%"
    assert_never(unit)


def unknown_outcomes(count: int, unit: OutcomeUnit) -> str:
    """For how many trades the outcome is not known in a unit, in words.

    >>> unknown_outcomes(8, "R"), unknown_outcomes(3, "pct")
    ('R is unknown for 8', 'the outcome in percent is unknown for 3')
    """
    names: Mapping[OutcomeUnit, str] = {"R": "R", "vol": "the outcome in daily ATR", "pct": "the outcome in percent"}
    return f"{names[unit]} is unknown for {count}"


def outcome_of(
    net: float,
    *,
    pnl_r: float | None = None,
    risk: float | None = None,
    notional: float | None = None,
    atr_share: float | None = None,
) -> Outcome | None:
    """The outcome in the best unit that is known: R, else daily ATRs, else share of notional, else none.

    `notional` is the largest during the trade, `atr_share` the daily ATR as a share of price at entry.

    >>> outcome_of(300.0, risk=100.0)
    Outcome(value=3.0, unit='R')
    >>> outcome_of(300.0, notional=5000.0, atr_share=0.02)
    Outcome(value=3.0, unit='vol')
    >>> outcome_of(48.0, notional=4800.0)
    Outcome(value=0.01, unit='pct')
    >>> outcome_of(300.0) is None
    True
    """
    if pnl_r is not None:
        return Outcome(value=pnl_r, unit="R")
    if risk:
        return Outcome(value=net / risk, unit="R")
    daily_move = abs((notional or 0.0) * (atr_share or 0.0))
    if daily_move:
        return Outcome(value=net / daily_move, unit="vol")
    return Outcome(value=net / abs(notional), unit="pct") if notional else None


def risk_to_stop(direction: Direction, *, entry_price: float, stop_price: float, size: float) -> float | None:
    """The loss at the stop; None for a stop at or beyond the entry, which protects a gain.

    >>> risk_to_stop("long", entry_price=100.0, stop_price=95.0, size=2.0)
    10.0
    >>> risk_to_stop("short", entry_price=100.0, stop_price=95.0, size=2.0) is None
    True
    """
    distance = entry_price - stop_price if direction == "long" else stop_price - entry_price
    return distance * size if distance > 0 else None


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The facts of a trade's entry. They never change, except the size, which follows the fills."""

    size: float | None = None
    """The size of the first fill; of a fill that reversed the position, the part that opened the trade."""
    size_usd: float | None = None
    leverage: float | None = None
    reason: str | None = None
    """The reason of the proposal."""
    snapshot_id: str | None = None
    """The id of the decision that opened the trade; None if no recorded decision did."""
    lessons_hash: str | None = None
    """Hash of the active lessons note; None if no lessons were shown."""
    shown_hash: str | None = None
    """Hash of the whole prompt."""
    regime_tag: RegimeTag | None = None
    """None if bars are missing."""
    regime_interval_seconds: int | None = None
    regime_preset: Preset | None = None
    equity: float | None = None
    """The account's equity before the entry."""
    recommended_share: float | None = None
    """The share of equity to risk that `position_size` recommended for the decision that opened the trade; None where
    it had no recommendation."""
    configured_risk: float | None = None
    """The strategy's risk per trade, in money, at the equity of the entry."""
    model: str | None = None


REPORTED_ENTRY = Entry()
"""The entry of a trade that was reported as a whole: only its price is known."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One round trip. Money is in the account's currency, unless `currency` names another that could not be converted.

    `pnl` is net, and a win is net > 0.
    """

    owner_id: str
    id: str
    deployment_id: str
    account_id: str
    strategy_id: str
    strategy_name: str
    strategy_version: int | None
    mode: Mode
    position_key: str
    symbol: str
    direction: Direction
    status: TradeStatus
    opened_at: datetime | None
    closed_at: datetime | None
    holding_minutes: float | None = None
    entry_price: float
    """Average price of all entries."""
    exit_price: float | None
    """Average price of all exits."""
    size: float | None
    """The largest size over time."""
    open_size: float = 0.0
    rest: float = 0.0
    """What was left at the close, too small to count as a position."""
    point_value: float = 1.0
    """Money that one unit of size earns for one point of price."""
    inverse: bool = False
    """Whether its points are those of −1/price: an inverse contract."""
    currency: str | None = None
    """The currency of its money, if no rate to the account's is known: no sum contains it. None for the account's."""
    average_cost: float | None = None
    """Average cost of the open size; of a closed trade, before the exit."""
    stop_price: float | None
    """The first stop."""
    initial_risk: float | None = None
    """At the first stop."""
    risk: float | None
    """The loss at the stop, at its largest over time."""
    pnl: float | None
    """None while the trade is open."""
    realized_pnl: float | None
    """Gross: `pnl` = `realized_pnl` + `funding` − `fees`."""
    realized_pnl_usd: float | None = None
    """At the exchange rate of the close; amounts in dollars are None if that rate is not known."""
    usd_rate: float | None = None
    """Dollars for one unit of the account's currency at the close."""
    fees: float
    fees_usd: float | None = None
    funding: float
    broker_pnl: float | None = None
    """Realised PnL as the broker reports it; None unless it does so for every exit."""
    inferred: bool = False
    """Whether any of its fills is inferred."""
    outcome: Outcome | None
    mfe: float | None = None
    """Maximum favourable excursion in money: 0 or more."""
    mae: float | None
    """Maximum adverse excursion in money: 0 or negative."""
    mfe_at: datetime | None = None
    mae_at: datetime | None = None
    mfe_r: float | None = None
    """In multiples of the risk, as is `mae_r`."""
    mae_r: float | None = None
    mfe_usd: float | None = None
    mae_usd: float | None = None
    excursion_source: ExcursionSource | None = None
    excursion_interval_seconds: int | None = None
    entry: Entry = REPORTED_ENTRY
    exit_reason: str | None = None
    exit_snapshot_id: str | None = None
    memory_arm: MemoryArm | None = None
    """None if no tick opened the trade."""
    context: ContextVector
    """The market context at entry; it never changes."""
    market_context: str | None
    confidence: float | None
    reflection: str | None
    tags: tuple[str, ...]
    group_id: str | None = None
    """Shared by the legs of one idea."""
    first_fill_id: str | None = None
    """None for a trade that was reported as a whole."""
    request_digest: str
    """SHA-256 of the request that reported the trade, to tell a replay from a contradiction; empty for fills."""
    created_at: datetime
    """When the first version was recorded."""
    known_at: datetime
    recorded_at: datetime

    @property
    def contradiction(self) -> float | None:
        """By how much the broker's realised result exceeds ours; None unless fees and rounding cannot explain it.

        A missing multiplier shows itself here, a split, or an inverse contract.
        """
        if self.broker_pnl is None or self.realized_pnl is None or self.currency is not None:
            return None
        gap = self.broker_pnl - self.realized_pnl
        explained = EXPLAINED_SHARE * (self.notional(self.size) or 0.0) + abs(self.fees)
        return gap if abs(gap) > explained else None

    def notional(self, size: float | None, price: float | None = None) -> float | None:
        """What a size of this trade is worth at a price, by default at the average of its entries."""
        value = valued(self.entry_price if price is None else price, inverse=self.inverse)
        return None if size is None else abs(size * value) * self.point_value

    def unrealized(self, mark: float, signed_size: float) -> float | None:
        """The PnL that closing a size at a mark would realise; None if the trade has no average cost."""
        if self.average_cost is None:
            return None
        points = valued(mark, inverse=self.inverse) - valued(self.average_cost, inverse=self.inverse)
        return points * signed_size * self.point_value

    @property
    def money(self) -> float | None:
        """The net result in the account's currency; None while the trade is open, or if no rate is known."""
        return self.pnl if self.currency is None else None

    @property
    def configured_risk(self) -> float | None:
        """The strategy's risk per trade, if it is in the currency of the trade's money."""
        return self.entry.configured_risk if self.currency is None else None

    @property
    def won(self) -> bool:
        return self.pnl is not None and self.pnl > 0

    @property
    def is_almost_closed(self) -> bool:
        """Whether so little is open that it may be a rest too small to sell, which a lot step would tell."""
        reduced = self.status == "open" and self.exit_price is not None
        return reduced and may_be_rest(self.open_size, self.size or 0.0)


def may_be_rest(left: float, peak: float) -> bool:
    """Whether what is left of a position may be a rest: a small part of its largest size, and less than one unit.

    >>> may_be_rest(0.009, 0.999), may_be_rest(0.3, 0.999), may_be_rest(5.0, 100.0)
    (True, False, False)
    """
    return left < 1.0 and left <= REST_SHARE * peak


def rest_note(symbol: str, rest: float, size: float) -> str:
    """A sentence about what is left of a position in a symbol without a lot step.

    >>> print(rest_note("BTC/USDT", 0.009, 0.999))
    BTC/USDT: 0.009 of 0.999 is left, so the trade is open. If that is too little to sell, save_instrument with lot_step
    """
    left = f"{symbol}: {rest:.6g} of {size:.6g} is left, so the trade is open"
    return f"{left}. If that is too little to sell, save_instrument with lot_step"


def dollars_for_one(currency: str, stated: float | None = None) -> float | None:
    """Dollars for one unit of an account's currency: one of a dollar, else the stated rate; None if it is not known.

    A token that follows the dollar is not a dollar.

    >>> dollars_for_one("USD"), dollars_for_one("EUR", 1.1), dollars_for_one("USDT")
    (1.0, 1.1, None)
    """
    return 1.0 if currency == USD else stated


def in_dollars(amount: float | None, rate: float | None) -> float | None:
    """An amount of an account's currency in dollars; None if the amount or the rate is not known."""
    return None if amount is None or rate is None else amount * rate


def minutes_between(opened_at: datetime | None, closed_at: datetime | None) -> float | None:
    """Minutes between entry and close; None if either is not known."""
    return (closed_at - opened_at).total_seconds() / 60 if opened_at and closed_at else None
