"""The table of instruments."""

from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, bindparam, func, select

from backsight.core.instruments import Instrument, Underlyings, underlyings_of
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, fetch, known, matching, owned, parameters
from backsight.store.symbols import symbols_with_trades
from backsight.store.unchanged import has_no_later_correction, unchanged
from backsight.store.view import View

INSTRUMENTS = noun(Instrument, "instruments", key=("symbol",), revised=True)

_INSTRUMENT = select(INSTRUMENTS.table).where(
    INSTRUMENTS.table.c.owner_id == OWNED, INSTRUMENTS.table.c.symbol.in_(bindparam("symbols", expanding=True))
)


def instruments_of(connection: Connection, owner: str, symbols: list[str]) -> list[Instrument]:
    """The instruments of some symbols, of those that have one."""
    if not symbols:
        return []
    return unchanged(
        connection,
        owner,
        ("instruments", *symbols),
        (INSTRUMENTS,),
        lambda: fetch(connection, INSTRUMENTS, _INSTRUMENT, parameters(owner, symbols=symbols)),
    )


def instruments_then(view: View, symbols: list[str]) -> list[Instrument]:
    """The instruments of some symbols, of those that had one at the view's horizon."""
    current = instruments_of(view.connection, view.owner, symbols)
    if has_no_later_correction(view, INSTRUMENTS):
        return [each for each in current if view.horizon.holds(each.known_at, each.recorded_at)]
    statement = known(INSTRUMENTS, view.owner, view.horizon, lambda c: [c.symbol.in_(symbols)])
    return fetch(view.connection, INSTRUMENTS, statement)


def last_saved_at(connection: Connection, owner: str) -> datetime | None:
    """When an instrument was last saved; None if there is none."""
    c = INSTRUMENTS.table.c
    at: datetime | None = connection.execute(select(func.max(c.recorded_at)).where(c.owner_id == owner)).scalar_one()
    return at


def instruments(view: View, *, underlying: str | None = None) -> list[Instrument]:
    """The instruments as they were known at the view's horizon, by symbol."""
    statement = known(INSTRUMENTS, view.owner, view.horizon, lambda c: matching(c, underlying=underlying))
    return sorted(fetch(view.connection, INSTRUMENTS, statement), key=lambda each: each.symbol)


def underlyings(view: View) -> Underlyings:
    """What symbols have in common, as far as it was known at the view's horizon."""
    if has_no_later_correction(view, INSTRUMENTS):
        current = unchanged(view.connection, view.owner, "instruments", (INSTRUMENTS,), lambda: _current(view))
        saved = tuple(each for each in current if view.horizon.holds(each.known_at, each.recorded_at))
    else:
        saved = tuple(instruments(view))
    return _underlyings(saved, tuple(symbols_with_trades(view)))


_underlyings = lru_cache(maxsize=16)(underlyings_of)


def _current(view: View) -> list[Instrument]:
    return fetch(view.connection, INSTRUMENTS, owned(INSTRUMENTS, view.owner))
