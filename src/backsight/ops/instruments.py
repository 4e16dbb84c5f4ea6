"""Instruments: what one unit of a symbol is worth, and in which steps it trades."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from backsight.arguments import AsOf, Flag, Name, Positive, SeenAt, Symbol
from backsight.core.instruments import Instrument, InstrumentKind, unknown_instrument
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.revaluation import Revaluation, revalue
from backsight.store import instruments as stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedInstrument:
    """The instrument, whether it was saved with the same content before, and what it changed in the ledger."""

    instrument: Instrument
    revaluation: Revaluation
    """Of the fills and trades in the symbol that were there already."""
    message: str
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentList:
    """The instruments that were saved."""

    instruments: tuple[Instrument, ...]
    message: str
    as_of: datetime


@command()
def save_instrument(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The symbol, as the broker names it."],
    multiplier: Annotated[
        Positive | None,
        "Money that one unit of size earns for one point of price: 50 for ES, 100 for an option on a stock; 1 if none "
        "was ever given.",
    ] = None,
    lot_step: Annotated[Positive | None, "The smallest step of the size; less than one step is no position."] = None,
    tick_size: Annotated[Positive | None, "The smallest step of the price."] = None,
    currency: Annotated[
        Name | None,
        "The currency in which it pays, if it is not that of the account: that of its prices, or the coin of an inverse"
        " contract.",
    ] = None,
    underlying: Annotated[Name | None, "What several symbols have in common, like 'BTC'."] = None,
    kind: Annotated[InstrumentKind | None, "What is traded."] = None,
    inverse: Annotated[
        Flag | None,
        "The contract pays in the coin and is worth `multiplier` of the price's currency, as on COIN-M markets.",
    ] = None,
) -> SavedInstrument:
    """Save what is known of a symbol, so that money and risk in it are right, in trades that are there already too.

    What is left out stays as it was saved. Fills of the symbol are valued again, also at rates that became known since,
    as a correction known from now on. A trade whose result the broker no longer contradicts teaches. A lot step holds
    from the next tick or import on, also for the sales of a trade that is open then.
    """
    given: dict[str, Any] = {
        "kind": kind,
        "multiplier": multiplier,
        "inverse": inverse,
        "lot_step": lot_step,
        "tick_size": tick_size,
        "currency": currency,
        "underlying": underlying,
    }
    with ctx.writing() as transaction:
        former = next(iter(stored.instruments_of(transaction.connection, ctx.owner, [symbol])), None)
        instrument = replace(
            former or unknown_instrument(ctx.owner, symbol, at=ctx.now),
            **{name: value for name, value in given.items() if value is not None},
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        is_same = former is not None and _same(former, instrument)
        if not is_same:
            transaction.revise(stored.INSTRUMENTS, instrument)
        revaluation = revalue(transaction, former, instrument, at=ctx.now)
        replayed = not transaction.changes
    return SavedInstrument(
        instrument=former if is_same and former is not None else instrument,
        revaluation=revaluation,
        message=_in_words(revaluation),
        replayed=replayed,
    )


def _in_words(revaluation: Revaluation) -> str:
    """What an instrument changed in the ledger."""
    trades = count_of(revaluation.trades, "trade")
    parts = [f"{count_of(revaluation.fills, 'fill')} and {trades} were valued again." if revaluation.fills else ""]
    if revaluation.settled:
        parts.append(
            f"{count_of(revaluation.settled, 'result')} that the broker contradicted now agree and are learned."
        )
    if revaluation.contradicted:
        parts.append(f"The broker still contradicts {count_of(revaluation.contradicted, 'result')}.")
    if revaluation.left:
        positions = ", ".join(revaluation.left)
        parts.append(f"Not valued again, because rests would count differently and make other trades: {positions}.")
    return " ".join(part for part in parts if part) or "No earlier fill changes."


def _same(former: Instrument, instrument: Instrument) -> bool:
    return replace(former, known_at=instrument.known_at, recorded_at=instrument.recorded_at) == instrument


@query()
def list_instruments(
    ctx: Context,
    *,
    underlying: Annotated[Name | None, "Only instruments on this underlying."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> InstrumentList:
    """List the instruments that were saved: multiplier, lot step, currency and underlying of each."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        instruments = tuple(stored.instruments(view, underlying=underlying))
    message = f"{count_of(len(instruments), 'instrument')}."
    if not instruments:
        message = "None is saved; a symbol without an instrument has the multiplier 1 and the account's currency."
    return InstrumentList(instruments=instruments, message=message, as_of=view.as_of)
