"""The live loop: a tick of a deployment at every whole interval, until the caller stops it.

Nothing is lost between broker and store. The store gives the loop a claim on the account, so that no second loop trades
it. The orders of a tick are recorded before they are submitted. A tick that cannot be recorded is retried before the
next look at the broker; after a crash, the next loop finds the recorded orders and asks the broker what became of them.
"""

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from backsight.core.errors import BacksightError, Unavailable
from backsight.core.ids import canonical_json
from backsight.core.instants import JUST_BEFORE, Horizon
from backsight.core.market import EPOCH, Bar, with_longer_intervals
from backsight.core.orders import last_mark
from backsight.memory import OPERATIONS, Memory
from backsight.ops.claims import LEASE_SECONDS, ClaimedTick
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker, Clock, Feed
from backsight.runtime.recovery import settle_proposals
from backsight.runtime.tick import Closing, TickInput, play_tick
from backsight.store import bars as stored_bars
from backsight.store.view import View

LOG = logging.getLogger("backsight")


def this_process() -> str:
    """A name that no other running process has."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """Which deployment runs live, on which symbols, and how often."""

    deployment: str
    symbols: Sequence[str]
    every: timedelta
    usd_rate: Callable[[], float | None] = lambda: None
    """Gives the value of one unit of the account's currency in dollars."""
    holder: str = field(default_factory=this_process)
    """The name under which the loop claims the account; a loop that is started again under it need not wait."""
    lease_seconds: int = LEASE_SECONDS
    """How long the claim lasts after a crash; a decision may take at most this long."""


def run_live(
    memory: Memory,
    broker: Broker,
    agent: Agent,
    feed: Feed,
    settings: LiveSettings,
    *,
    clock: Clock,
    wait_until: Callable[[datetime], bool],
    after_tick: Callable[[ClosedTick], None] = lambda _: None,
) -> int:
    """Run ticks until `wait_until` returns False; the number of ticks that succeeded.

    A tick that fails before its orders is logged and skipped; a tick that fails after them is recorded before the next
    look. While another loop has the account, the loop logs that and waits for its turn.
    """
    loop = LiveLoop(memory, broker, agent, feed, settings)
    succeeded = 0
    while wait_until(at := next_moment(clock.now(), settings.every)):
        try:
            tick = loop.run(at)
        except Exception:
            LOG.exception("the tick of %s failed and is skipped", at.isoformat())
            continue
        succeeded += 1
        after_tick(tick)
    loop.release()
    return succeeded


class LiveLoop:
    """The state of a live loop between its ticks."""

    def __init__(self, memory: Memory, broker: Broker, agent: Agent, feed: Feed, settings: LiveSettings) -> None:
        self._memory = memory
        self._broker = broker
        self._agent = agent
        self._feed = feed
        self._settings = settings
        self._last_at = EPOCH
        self._closed_until: dict[tuple[str, int], datetime] = {}
        """The last close of the stored bars by symbol and length in seconds."""
        self._unrecorded: Closing | None = None
        """What a tick must be closed with that the store could not record yet."""

    def run(self, at: datetime) -> ClosedTick:
        """Run the tick of an instant, after whatever is still to be recorded."""
        if self._unrecorded is not None:
            self._close(self._unrecorded)
        claim = self._claim(at)
        settings = self._settings
        bars = {symbol: self._feed.closed_bars(symbol, until=at) for symbol in settings.symbols}
        new_bars = [bar for series in bars.values() if series for bar in self._new_bars(series, at)]
        tick = TickInput(
            at=at,
            sequence=claim.sequence,
            bars=bars,
            new_bars=new_bars,
            usd_rate=settings.usd_rate(),
            since=claim.since,
        )
        closing = play_tick(
            self._memory,
            self._broker,
            self._agent,
            tick,
            deployment=settings.deployment,
            record_intent=self._record_intent,
        )
        closed = self._close(closing)
        self._last_at = at
        for bar in new_bars:
            self._closed_until[bar.symbol, bar.interval_seconds] = bar.closes_at
        return closed

    def _new_bars(self, series: Sequence[Bar], at: datetime) -> Iterator[Bar]:
        """The bars of a series that are new since the last tick, and the hours and days that are complete with them."""
        first = series[0]
        with self._memory.reading() as connection:
            view = View(connection, self._memory.owner, Horizon(as_of=at))
            whole = [*_bars_before(view, first, at), *series]
            for bar in with_longer_intervals(whole, until=at):
                if bar.interval_seconds == first.interval_seconds:
                    is_new = bar.closes_at > self._last_at and bar.opened_at >= first.opened_at
                else:
                    is_new = bar.closes_at > self._stored_until(view, bar)
                if is_new:
                    yield bar

    def _stored_until(self, view: View, bar: Bar) -> datetime:
        """The last close of the stored bars of a bar's symbol and length: what is stored is not made again."""
        key = bar.symbol, bar.interval_seconds
        if key not in self._closed_until:
            last = stored_bars.last_bars(view, symbol=bar.symbol, counts={bar.interval_seconds: 1})
            self._closed_until[key] = max((each.closes_at for bars in last.values() for each in bars), default=EPOCH)
        return self._closed_until[key]

    def release(self) -> None:
        """Give the account free for another loop, unless a tick is still to be recorded."""
        if self._unrecorded is not None:
            LOG.error("a tick is not recorded yet; start the loop again, and it will be")
            return
        try:
            self._memory.release_claim(deployment=self._settings.deployment, holder=self._settings.holder)
        except BacksightError as error:
            LOG.warning("the claim on the account is not released and expires by itself: %s", error)

    def _claim(self, at: datetime) -> ClaimedTick:
        """Claim the tick of an instant; a tick that was interrupted is closed first."""
        settings = self._settings
        claim = self._claim_once(at)
        if claim.unfinished is not None:
            LOG.warning("the tick of %s was interrupted; it is closed now", claim.at.isoformat())
            self._close(self._recovered(claim.unfinished, claim))
            claim = self._claim_once(at)
        if claim.unfinished is not None:
            raise Unavailable(f"{settings.deployment!r} has an unfinished tick that could not be closed; try again")
        return claim

    def _claim_once(self, at: datetime) -> ClaimedTick:
        settings = self._settings
        return self._memory.claim_tick(
            deployment=settings.deployment, at=at, holder=settings.holder, lease_seconds=settings.lease_seconds
        )

    def _recovered(self, intent: str, claim: ClaimedTick) -> Closing:
        """What an interrupted tick must be closed with: its intent, and what the broker shows of its orders now."""
        closing = OPERATIONS["close_tick"].check(json.loads(intent))
        before = closing["before"]
        after = self._broker.snapshot(since=last_mark(before.fills, claim.since))
        return {**closing, "after": after, "proposals": settle_proposals(closing["proposals"], before, after)}

    def _record_intent(self, closing: Closing) -> None:
        """Record what the tick must close with. Orders may be submitted only if that succeeds."""
        settings = self._settings
        submitted = any(proposal.verdict is not None for proposal in closing["proposals"])
        try:
            self._memory.record_intent(
                deployment=settings.deployment,
                at=closing["at"],
                sequence=closing["sequence"],
                holder=settings.holder,
                intent=canonical_json(closing),
                lease_seconds=settings.lease_seconds,
            )
        except BacksightError:
            if not submitted:
                raise
            LOG.exception("the results of the orders are not recorded yet; the tick will record them")

    def _close(self, closing: Closing) -> ClosedTick:
        """Record a tick; what the store cannot take now is kept for the next attempt."""
        self._unrecorded = closing
        try:
            closed = self._memory.close_tick(**closing)
        except Unavailable:
            raise
        except BacksightError as error:
            at, is_of_broker = closing["at"].isoformat(), (error.field or "").partition(".")[0] == "after"
            if is_of_broker:  # the next tick finds the recorded orders, and asks the broker again
                LOG.error("the broker's state after the orders of %s is refused and asked for again: %s", at, error)
                self._unrecorded = None
            else:  # it would be refused again: the ledger follows the broker's fills without it
                LOG.error("the tick of %s is refused and given up: %s", at, error)
                self._give_up()
            raise
        self._unrecorded = None
        return closed

    def _give_up(self) -> None:
        self._unrecorded = None
        self._memory.release_claim(deployment=self._settings.deployment, holder=self._settings.holder)


DAY = timedelta(days=1)


def _bars_before(view: View, first: Bar, at: datetime) -> list[Bar]:
    """The stored bars before the first one of a feed that does not reach back to the beginning of its last day."""
    if first.opened_at <= EPOCH + (at - JUST_BEFORE - EPOCH) // DAY * DAY:
        return []
    count = 2 * int(DAY.total_seconds()) // first.interval_seconds
    then = replace(view, horizon=Horizon(as_of=first.opened_at))
    return stored_bars.last_bars(then, symbol=first.symbol, counts={first.interval_seconds: count}).get(
        first.interval_seconds, []
    )


def next_moment(now: datetime, every: timedelta) -> datetime:
    """The first end of a whole interval since 1970 after an instant.

    >>> from datetime import UTC
    >>> next_moment(datetime(2026, 6, 4, 10, 7, tzinfo=UTC), timedelta(minutes=5)).isoformat()
    '2026-06-04T10:10:00+00:00'
    """
    return EPOCH + ((now - EPOCH) // every + 1) * every
