"""The context of an operation: the store, the owner, the actor who calls, and the clock."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self

from backsight.core.audit import ChainHead
from backsight.core.chain_heads import RecordedChain, RecordedHead
from backsight.core.errors import Invalid, Unavailable
from backsight.core.ids import digest, plain
from backsight.core.instants import CLOCK_SKEW, Horizon, format_instant
from backsight.core.keys import Authority
from backsight.ports import AgentRunner, Clock, Randomness, Reflector
from backsight.services.runs_in_progress import RunsInProgress
from backsight.store import audit
from backsight.store.database import Connection, Database
from backsight.store.heads_file import HeadsFile
from backsight.store.transaction import Transaction
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.agents.agent_settings import AgentSettings
    from backsight.core.agents.request import AgentTool
    from backsight.services.library import Library


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """A clock that always shows one instant, so that an operation has one time throughout."""

    at: datetime

    def now(self) -> datetime:
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockTerms:
    """How far a clock is trusted."""

    skew: timedelta = CLOCK_SKEW
    """How far a reported instant may be ahead of the clock."""
    may_be_wrong: bool = False
    """Whether it is a machine's clock. A simulation's clock is right, even if it is before the last record."""


Reflectors = Callable[[str], Reflector]
"""Returns the reflector that writes lessons with the named language model."""


def no_reflectors(model: str) -> Reflector:
    """The default: raises `Unavailable`, because no language models were configured."""
    raise Unavailable(f"no language model is configured, so {model!r} cannot be asked; open the memory with reflectors")


Runners = Callable[["AgentSettings"], AgentRunner]
"""Returns the runner of an agent by its settings."""


def no_runners(settings: "AgentSettings") -> AgentRunner:
    """The default: raises `Unavailable`, because no runners were configured."""
    raise Unavailable(f"no runner is configured, so {settings.runner!r} cannot be used; open the memory with runners")


Progress = Callable[[str, int, int], None]
"""Receives the progress of long work: the name of the part, how much is done, and the total."""


def no_progress(_part: str, _done: int, _total: int) -> None:
    """The default: progress is not reported."""


class NoRandomness:
    """The default: raises `Unavailable`, because nothing that draws secrets was configured."""

    def random_bytes(self, _count: int) -> bytes:
        raise Unavailable("no source of randomness is configured; open the memory with open_memory")


def refuse_past(as_of: datetime | None, seen_at: datetime | None, *, dry_run: bool) -> None:
    """Refuse the instants of a read in a call that records something: only a dry run looks at the past."""
    field = "seen_at" if as_of is None else "as_of"
    if not dry_run and (as_of is not None or seen_at is not None):
        raise Invalid("only a dry run looks at the past; set dry_run, or leave it out", field=field)


class Context:
    """An owner's memory, opened for one actor."""

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
    ) -> None:
        self.database = database
        self.clock = clock
        self.clock_terms = ClockTerms()
        self._running_clock = clock
        self.owner = owner
        self.actor = actor
        self.reflectors = reflectors
        self.library = library
        self.progress = progress
        self.randomness: Randomness = NoRandomness()
        self.runners: Runners = no_runners
        self.in_progress = RunsInProgress()
        """The runs that this process has started."""
        self.environment: Mapping[str, str] = {}
        """The variables that name this store to programs that agents use."""
        self.on_text: Callable[[str], None] | None = None
        """Receives the answer of an agent piece by piece; None: nobody reads along."""
        self.authority: Authority | None = None
        """What the caller may do; None in the process of the owner, who may do everything."""
        self.file_folders: tuple[str, ...] = ()
        """The folders below which callers of a server may name files."""
        self.heads_file: HeadsFile | None = None
        """The file outside the database with the heads of audit chains; None: heads are not recorded."""
        self.operation = ""
        """The operation that runs; the audit chain records its name."""
        self._request: Mapping[str, object] = {}

    @property
    def clock_skew(self) -> timedelta:
        return self.clock_terms.skew

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

    def agent_tools(self, _names: Collection[str] | None) -> "tuple[AgentTool, ...]":
        """The operations that an agent may call; None names those that a trader is offered."""
        return ()

    def horizon(self, as_of: datetime | None, seen_at: datetime | None) -> Horizon:
        """The horizon of a read; by default everything known now."""
        return Horizon(as_of=self.now if as_of is None else as_of, seen_at=seen_at)

    def view(self, connection: Connection, as_of: datetime | None = None, seen_at: datetime | None = None) -> View:
        """This owner's rows as of an instant; by default everything known now."""
        return View(connection, self.owner, self.horizon(as_of, seen_at))

    def reading(self) -> AbstractContextManager[Connection]:
        """A read-only transaction that sees one snapshot of the store."""
        return self.database.reading(self.owner)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A write transaction; if it changed rows, one link of the audit chain records the changes.

        The operation's instant is taken when the lock is acquired, so that commands of one owner have instants in the
        order of their links, however long each waited. An instant that was read before belongs to no row.
        """
        head: ChainHead | None = None
        with self.database.writing(self.owner) as connection:
            if isinstance(self.clock, StoppedClock):
                self.clock = StoppedClock(max(self.now, self._running_clock.now()))
            transaction = Transaction(connection)
            yield transaction
            if transaction.changes:
                audit.append(
                    connection,
                    transaction.take_changes(),
                    owner=self.owner,
                    at=self.now,
                    actor=self.actor,
                    operation=self.operation,
                )
                head = audit.head(connection, self.owner)
        if head is not None:
            self.record_head(head)

    def record_head(self, head: ChainHead, *, operation: str | None = None, owner: str | None = None) -> None:
        """Append the head of a committed chain to the heads file, if there is one."""
        if self.heads_file is not None:
            of_owner, by = owner or self.owner, operation or self.operation
            self.heads_file.append(RecordedHead(owner_id=of_owner, head=head, operation=by, at=self.now))

    def recorded_heads(self) -> RecordedChain | None:
        """What the heads file says about this owner's chain; None without a heads file.

        Read it before the transaction that the chain is read in: later heads would be beyond the end of the chain.
        """
        return None if self.heads_file is None else self.heads_file.read(self.owner)

    def write_columns_file(self) -> None:
        """After an import: write the file from which a later process reads the columns of many episodes."""
        with self.reading() as connection:
            self.database.images.write_file(connection, self.owner)

    def read_up_to_head(self) -> str | None:
        """Let a query read as of the last record, if the clock is before it; returns a sentence that says so.

        A clock that was set back would otherwise hide what is recorded already.
        """
        if not self.clock_terms.may_be_wrong:
            return None
        with self.reading() as connection:
            recorded_at = audit.head_instant(connection, self.owner)
        behind = timedelta(0) if recorded_at is None else recorded_at - self.now
        if recorded_at is None or behind <= self.clock_skew:
            return None
        self.clock = StoppedClock(recorded_at)
        seconds = f"{behind.total_seconds():,.0f} s before the last record, {format_instant(recorded_at)}"
        return f"Check the clock: this machine's is {seconds}. This answer is as of that record."

    def at_one_instant(self, *, operation: str, request: Mapping[str, object]) -> Self:
        """A copy of this context for one operation: the clock is stopped and the arguments are recorded.

        A query has the instant of its call. A command has the instant at which it acquired the lock.
        """
        context = copy(self)
        context.clock = StoppedClock(self.now)
        context.operation, context._request = operation, request
        return context
