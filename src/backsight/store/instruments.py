"""The table of instruments."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select

from backsight.core.instruments import Instrument
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, fetch, known, matching, parameters
from backsight.store.view import View

INSTRUMENTS = noun(Instrument, "instruments", key=("symbol",), revised=True)

_INSTRUMENT = select(INSTRUMENTS.table).where(
    INSTRUMENTS.table.c.owner_id == OWNED, INSTRUMENTS.table.c.symbol.in_(bindparam("symbols", expanding=True))
)


def instruments_of(connection: Connection, owner: str, symbols: list[str]) -> list[Instrument]:
    """The instruments of some symbols, of those that have one."""
    return fetch(connection, INSTRUMENTS, _INSTRUMENT, parameters(owner, symbols=symbols)) if symbols else []


def last_saved_at(connection: Connection, owner: str) -> datetime | None:
    """When an instrument was last saved; None if there is none."""
    c = INSTRUMENTS.table.c
    at: datetime | None = connection.execute(select(func.max(c.recorded_at)).where(c.owner_id == owner)).scalar_one()
    return at


def instruments(view: View, *, underlying: str | None = None) -> list[Instrument]:
    """The instruments as they were known at the view's horizon, by symbol."""
    statement = known(INSTRUMENTS, view.owner, view.horizon, lambda c: matching(c, underlying=underlying))
    return sorted(fetch(view.connection, INSTRUMENTS, statement), key=lambda each: each.symbol)
