"""Bars at rest."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from backsight.core.instants import Horizon
from backsight.core.market import Bar
from backsight.store.mapping import noun
from backsight.store.reading import fetch, matching, owned, within


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFact:
    """A bar, known from the instant it closed."""

    owner_id: str
    bar: Bar
    known_at: datetime
    recorded_at: datetime


BARS = noun(
    BarFact,
    "bars",
    key=("symbol", "interval_seconds", "opened_at"),
    names={
        f"bar.{name}": name
        for name in ("symbol", "interval_seconds", "opened_at", "open", "high", "low", "close", "volume")
    },
)


def bars_between(
    connection: Connection,
    owner: str,
    horizon: Horizon | None,
    *,
    symbol: str,
    interval_seconds: int,
    since: datetime,
    until: datetime,
) -> list[Bar]:
    """The bars of a symbol that opened from one instant up to another, both counted, as far as the horizon goes."""
    c = BARS.table.c
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), c.opened_at >= since]
    seen = [] if horizon is None else within(BARS, horizon)
    statement = owned(BARS, owner, *where, c.opened_at <= until, *seen).order_by(c.opened_at)
    return [fact.bar for fact in fetch(connection, BARS, statement)]
