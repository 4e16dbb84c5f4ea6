"""A deployment run by the clock: a tick at every whole interval, until it is told to stop."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from backsight.core.market import EPOCH, Bar
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker, Clock, Feed
from backsight.runtime.tick import run_tick

LOG = logging.getLogger("backsight")


def run_live(
    memory: Memory,
    broker: Broker,
    agent: Agent,
    feed: Feed,
    *,
    deployment: str,
    symbols: Sequence[str],
    every: timedelta,
    clock: Clock,
    wait_until: Callable[[datetime], bool],
    usd_rate: Callable[[], float | None] = lambda: None,
    after_tick: Callable[[ClosedTick], None] = lambda _: None,
) -> int:
    """Run ticks until `wait_until` says to stop (False); how many were closed.

    A tick that fails is logged and missed; the next one makes it good, since the ledger follows the broker.
    """
    last, closed = EPOCH, 0
    while wait_until(at := next_moment(clock.now(), every)):
        try:
            bars = {symbol: feed.closed_bars(symbol, until=at) for symbol in symbols}
            tick = run_tick(
                memory,
                broker,
                agent,
                deployment=deployment,
                at=at,
                bars=bars,
                new_bars=_fresh(bars.values(), after=last),
                usd_rate=usd_rate(),
            )
        except Exception:
            LOG.exception("the tick of %s failed and is missed", at.isoformat())
            continue
        last, closed = at, closed + 1
        after_tick(tick)
    return closed


def next_moment(now: datetime, every: timedelta) -> datetime:
    """The first whole interval since 1970 after an instant.

    >>> from datetime import UTC
    >>> next_moment(datetime(2026, 6, 4, 10, 7, tzinfo=UTC), timedelta(minutes=5)).isoformat()
    '2026-06-04T10:10:00+00:00'
    """
    return EPOCH + ((now - EPOCH) // every + 1) * every


def _fresh(series: Iterable[Sequence[Bar]], *, after: datetime) -> list[Bar]:
    return [bar for each in series for bar in each if bar.closes_at > after]
