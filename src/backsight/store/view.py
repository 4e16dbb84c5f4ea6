"""A view of the store: whose rows are read, over which connection, and as of which instant."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from backsight.core.instants import Horizon


@dataclass(frozen=True, slots=True)
class View:
    """One owner's rows as they were known at a horizon."""

    connection: Connection
    owner: str
    horizon: Horizon

    @property
    def as_of(self) -> datetime:
        return self.horizon.as_of

    @property
    def seen_at(self) -> datetime | None:
        return self.horizon.seen_at
