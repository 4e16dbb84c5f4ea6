"""A view of the store: the connection, the owner whose rows are read, and the instant they are read as of."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from backsight.core.instants import Horizon


@dataclass(frozen=True, slots=True)
class View:
    """One owner's rows as of a horizon. Functions that read take a view as their first argument."""

    connection: Connection
    owner: str
    horizon: Horizon

    @property
    def as_of(self) -> datetime:
        return self.horizon.as_of

    @property
    def seen_at(self) -> datetime | None:
        return self.horizon.seen_at


EVERYTHING = Horizon(as_of=datetime.max.replace(tzinfo=UTC))
"""The horizon that includes everything that is known, whenever it became known."""


def everything(connection: Connection, owner: str) -> View:
    """A view of all rows of an owner, whenever they became known."""
    return View(connection, owner, EVERYTHING)
