"""What every operation is handed: whose memory it is, where it is kept, who asks, and what time it is."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backsight.core.errors import Unavailable
from backsight.core.ids import digest, plain
from backsight.core.instants import Horizon
from backsight.ports import Clock, Reflector
from backsight.store import audit
from backsight.store.database import Connection, Database
from backsight.store.transaction import Transaction
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.services.library import Library

CLOCK_SKEW = timedelta(seconds=60)
"""How far ahead of ours another clock may be before what it tells is of the future."""


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that shows one instant: an operation reads the time once."""

    at: datetime

    def now(self) -> datetime:
        return self.at


Reflectors = Callable[[str], Reflector]
"""Who writes lessons, by the name of a language model."""


def no_reflectors(model: str) -> Reflector:
    """Nobody: `Unavailable`, since no language models were handed in."""
    raise Unavailable(f"nobody here can ask {model!r}; open the memory with reflectors")


Progress = Callable[[str, int, int], None]
"""Told how far a part of long work is: what it is, how much is done, and of how much."""


def no_progress(_part: str, _done: int, _total: int) -> None:
    """Nothing: nobody watches."""


class Context:
    """The owner's memory, open for one actor."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        owner: str,
        actor: str,
        reflectors: Reflectors = no_reflectors,
        library: "Library | None" = None,
        progress: Progress = no_progress,
        operation: str = "",
        request: Mapping[str, object] | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.owner = owner
        self.actor = actor
        self.reflectors = reflectors
        self.library = library
        self.progress = progress
        self.operation = operation
        self._request = request or {}

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def request_digest(self) -> str:
        """SHA-256 of the request's arguments without the idempotency key: equal requests have equal digests."""
        return digest(self.arguments(without=("idempotency_key",)))

    def arguments(self, *, without: Collection[str]) -> dict[str, object]:
        """The request's checked arguments as JSON values, except those named in `without`."""
        return {name: plain(value) for name, value in self._request.items() if name not in without}

    def horizon(self, as_of: datetime | None, seen_at: datetime | None) -> Horizon:
        """How far a read may see; by default all that is known now."""
        return Horizon(as_of=self.now if as_of is None else as_of, seen_at=seen_at)

    def view(self, connection: Connection, as_of: datetime | None = None, seen_at: datetime | None = None) -> View:
        """This owner's rows over a connection, as of an instant; by default all that is known now."""
        return View(connection, self.owner, self.horizon(as_of, seen_at))

    def reading(self) -> AbstractContextManager[Connection]:
        """One moment of the store."""
        return self.database.reading()

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One transaction; if it changed anything, the audit chain says what."""
        with self.database.writing(self.owner) as connection:
            transaction = Transaction(connection)
            yield transaction
            if transaction.changes:
                audit.append(
                    connection,
                    transaction.changes,
                    owner=self.owner,
                    at=self.now,
                    actor=self.actor,
                    operation=self.operation,
                )

    def at_one_instant(self, *, operation: str, request: Mapping[str, object]) -> "Context":
        """This context with the clock stopped, for one operation and its checked arguments."""
        return Context(
            database=self.database,
            clock=StoppedClock(self.now),
            owner=self.owner,
            actor=self.actor,
            reflectors=self.reflectors,
            library=self.library,
            progress=self.progress,
            operation=operation,
            request=request,
        )
