"""The table of instruments."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select

from backsight.core.instruments import Instrument, Underlyings
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, fetch, known, matching, parameters, prepared_known
from backsight.store.unchanged import has_no_later_correction, unchanged
from backsight.store.view import View

INSTRUMENTS = noun(Instrument, "instruments", key=("symbol",), revised=True)

_INSTRUMENT = select(INSTRUMENTS.table).where(
    INSTRUMENTS.table.c.owner_id == OWNED, INSTRUMENTS.table.c.symbol.in_(bindparam("symbols", expanding=True))
)
_UNDERLYINGS = prepared_known(INSTRUMENTS, ("symbol", "underlying"), lambda c: [c.underlying.is_not(None)])


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
    """The underlying of each symbol, as far as it was known at the view's horizon."""
    if not has_no_later_correction(view, INSTRUMENTS):
        rows = view.connection.execute(_UNDERLYINGS, parameters(view.owner, view.horizon))
        return Underlyings({row.symbol: row.underlying for row in rows})
    current = unchanged(
        view.connection, view.owner, "instruments with underlyings", (INSTRUMENTS,), lambda: _with_underlyings(view)
    )
    then = [each for each in current if view.horizon.holds(each.known_at, each.recorded_at)]
    return Underlyings({each.symbol: each.underlying for each in then if each.underlying is not None})


def _with_underlyings(view: View) -> list[Instrument]:
    c = INSTRUMENTS.table.c
    statement = select(INSTRUMENTS.table).where(c.owner_id == OWNED, c.underlying.is_not(None))
    return fetch(view.connection, INSTRUMENTS, statement, parameters(view.owner))
