"""Revaluation: what an instrument, saved or corrected, makes of the fills and trades that are there already.

A fill keeps the worth that was known when it came. If the multiplier, the currency or the rate was missing then, saving
the instrument values the fills again, as a correction known from now on. Trades follow from the fills, and a trade
whose result the broker no longer contradicts teaches.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.fills import Fill
from backsight.core.instruments import ONE_TO_ONE, Flatness, Instrument, UnitWorth, unit_worth
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade
from backsight.core.orders import ReportedFill, fee_of, in_money
from backsight.core.portfolio import Account
from backsight.core.rates import ExchangeRate
from backsight.core.trades.fold import RoundTrip, fold
from backsight.core.trades.materialise import trade_id_of, updated_trade
from backsight.core.trades.trade import Trade, dollars_for_one, in_dollars
from backsight.services.learning import learn_trades
from backsight.services.ledger import MarketBars, is_unchanged, progress_anew, teaches
from backsight.services.ledger_rows import LedgerRows
from backsight.services.rates import Rates
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Revaluation:
    """What a saved instrument changed in the ledger."""

    fills: int = 0
    """Fills that are worth something else now."""
    trades: int = 0
    """Trades whose money changed with them."""
    settled: int = 0
    """Closed trades that the broker contradicted, and now does not."""
    contradicted: int = 0
    """Closed trades of these that the broker contradicts."""
    left: tuple[str, ...] = ()
    """Positions whose fills would now lead to other trades, because a rest counts differently: they are not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Correction:
    """The instrument before and now, and when that became known."""

    former: Instrument | None
    instrument: Instrument
    at: datetime


def revalue(
    transaction: Transaction, former: Instrument | None, instrument: Instrument, *, at: datetime
) -> Revaluation:
    """Value the fills of an instrument's symbol again on every account, and their trades, and learn what follows."""
    correction = _Correction(former=former, instrument=instrument, at=at)
    owner, connection = instrument.owner_id, transaction.connection
    fills, changes, left = 0, list[tuple[Trade, Trade]](), list[str]()
    for account in stored_strategies.accounts(connection, owner):
        revalued = _revalued_fills(connection, account, correction)
        for key in sorted({fill.position_key for fill in revalued}):
            own = {fill.key: fill for fill in revalued if fill.position_key == key}
            trades = _revalued_trades(connection, account, correction, key, own)
            if trades is None:
                left.append(key)
                continue
            for fill in own.values():
                transaction.revise(stored.FILLS, replace(fill, known_at=at, recorded_at=at))
            fills += len(own)
            changes += trades
    _write_trades(transaction, changes, at=at)
    return Revaluation(
        fills=fills,
        trades=len(changes),
        settled=sum(before.contradiction is not None and after.contradiction is None for before, after in changes),
        contradicted=sum(after.contradiction is not None for _, after in changes),
        left=tuple(left),
    )


# Fills.


def _revalued_fills(connection: Connection, account: Account, correction: _Correction) -> list[Fill]:
    """The fills of the symbol that are worth something else now."""
    fills = stored.fills_of_symbol(connection, account.owner_id, account.id, correction.instrument.symbol)
    rates = Rates(connection, account)
    pairs = ((fill, _revalued(fill, account, correction, rates)) for fill in fills if fill.changes_size)
    return [revalued for fill, revalued in pairs if revalued != fill]


def _revalued(fill: Fill, account: Account, correction: _Correction, rates: Rates) -> Fill:
    """A fill with the worth that the instrument gives it, and its fee in the same money."""
    former = ONE_TO_ONE if correction.former is None else unit_worth(correction.former, account.currency)
    worth = unit_worth(correction.instrument, account.currency).at_rate(_rate(fill, account, correction, rates))
    reported = _as_reported(fill, account, former.at_rate(_own_rate(fill)))
    fee = fee_of(reported, account.currency, worth, _fee_rate(fill, reported, account, rates))
    valued = in_money(fill, worth)
    return replace(
        valued,
        quantity=reported.quantity - fee.base_units,
        fee=fee.money,
        fee_currency=fee.currency,
        fee_amount=None if fee.currency is None else reported.fee,
    )


def _own_rate(fill: Fill) -> ExchangeRate | None:
    """The rate that a fill was converted with."""
    if fill.rate is None or fill.rate_source is None:
        return None
    return ExchangeRate(value=fill.rate, source=fill.rate_source)


def _rate(fill: Fill, account: Account, correction: _Correction, rates: Rates) -> ExchangeRate | None:
    """The rate of a fill: its own if it was reported or of the same currency, else of its tick, else of a bar."""
    own, currency = _own_rate(fill), unit_worth(correction.instrument, account.currency).currency
    if own is not None and (own.source == "reported" or fill.currency == currency):
        return own
    if currency is None:
        return None
    return rates.at(currency, fill.at, _prices(rates.connection, fill))


def _fee_rate(fill: Fill, reported: ReportedFill, account: Account, rates: Rates) -> float | None:
    """The account's money for one unit of the fee's currency: that of the fee if it was converted."""
    if fill.fee_amount and fill.fee and fill.money_currency is None:
        return fill.fee / fill.fee_amount
    if not reported.fee or reported.fee_currency in (None, account.currency):
        return None
    return rates.fee_rate(reported, _prices(rates.connection, fill))


def _prices(connection: Connection, fill: Fill) -> dict[str, float]:
    """The prices of the tick that reported a fill, and its own."""
    marks = stored_decisions.marks_at(connection, fill.owner_id, fill.account_id, fill.known_at)
    return marks if fill.price is None else {**marks, fill.symbol: fill.price}


def _as_reported(fill: Fill, account: Account, worth: UnitWorth) -> ReportedFill:
    """The fill as the broker reported it; `worth` is what it was valued with."""
    currency, fee = fill.fee_taken(account.currency)
    reported = ReportedFill(
        id=fill.id,
        at=fill.at,
        sequence=fill.sequence,
        kind="trade",
        symbol=fill.symbol,
        quantity=fill.quantity + fee,
        price=fill.price,
        fee=fee,
        fee_currency=currency,
    )
    was_in_base = currency != account.currency and fee_of(reported, account.currency, worth, None).base_units != 0
    return reported if was_in_base else replace(reported, quantity=fill.quantity)


# Trades.


def _revalued_trades(
    connection: Connection, account: Account, correction: _Correction, key: str, revalued: dict[tuple[str, str], Fill]
) -> list[tuple[Trade, Trade]] | None:
    """The trades of a position before and after; None if other trades would follow from the fills."""
    rows, former = LedgerRows(everything(connection, account.owner_id)), correction.former
    fills = rows.fills_of_position(account.id, key, since=None)
    lot_step = None if former is None else former.lot_step
    steps = {} if lot_step is None else {correction.instrument.symbol: lot_step}
    trips = fold(
        (revalued.get(fill.key, fill) for fill in fills),
        flatness=Flatness(lot_steps=steps, dust=account.dust or 0.0),
    )
    trades = {trade.id: trade for trade in rows.trades_of_position(account.id, key, before=stored.FIRST_INSTANT)}
    by_id = {trade_id_of(account.id, trip): trip for trip in trips}
    if by_id.keys() != trades.keys() or any(by_id[each].closed_at != trades[each].closed_at for each in trades):
        return None
    market = MarketBars(rows, until=correction.at)
    changed = [trade for trade in trades.values() if not is_unchanged(trade, by_id[trade.id])]
    return [(trade, _revalued_trade(market, account, trade, by_id[trade.id], at=correction.at)) for trade in changed]


def _revalued_trade(market: MarketBars, account: Account, trade: Trade, trip: RoundTrip, *, at: datetime) -> Trade:
    """A trade with the money of its revalued fills."""
    usd_rate = dollars_for_one(account.currency, trade.usd_rate if trade.currency is None else None)
    first = trip.steps[0]
    notional = abs(first.size * trip.valued(first.average_cost)) * trip.point_value
    in_usd = usd_rate if trip.currency is None else dollars_for_one(trip.currency)
    row = replace(trade, entry=replace(trade.entry, size_usd=in_dollars(notional, in_usd)))
    progress = progress_anew(market, account.id, trip, trade)
    return updated_trade(row, trip, progress, usd_rate=usd_rate, known_at=at, recorded_at=at)


def _write_trades(transaction: Transaction, changes: Iterable[tuple[Trade, Trade]], *, at: datetime) -> None:
    """Write the trades, and let the memories learn their results, or forget those that the broker now contradicts."""
    episodes, withdrawn = list[Episode](), list[Episode]()
    for before, after in changes:
        transaction.revise(stored.TRADES, after)
        if teaches(after):
            episodes.append(episode_of_trade(after))
        elif before.status == "closed":
            episode = stored_memories.current_episode(transaction.connection, before.owner_id, episode_id_of(before.id))
            if episode is not None:
                transaction.withdraw(stored_memories.EPISODES, episode, known_at=at, recorded_at=at)
                withdrawn.append(episode)
    if episodes or withdrawn:
        learn_trades(transaction, episodes, withdrawn=withdrawn)
