"""The live loop: a tick of a deployment at every whole interval, until the caller stops it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.market import EPOCH
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker, Clock, Feed
from backsight.runtime.tick import TickInput, run_tick

LOG = logging.getLogger("backsight")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """Which deployment runs live, on which symbols, and how often."""

    deployment: str
    symbols: Sequence[str]
    every: timedelta
    usd_rate: Callable[[], float | None] = lambda: None
    """Gives the value of one unit of the account's currency in dollars."""


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

    A tick that fails is logged and skipped. The next tick catches up, because the ledger follows the broker.
    """
    last_at, succeeded = EPOCH, 0
    while wait_until(at := next_moment(clock.now(), settings.every)):
        try:
            bars = {symbol: feed.closed_bars(symbol, until=at) for symbol in settings.symbols}
            new_bars = [bar for series in bars.values() for bar in series if bar.closes_at > last_at]
            tick_input = TickInput(at=at, bars=bars, new_bars=new_bars, usd_rate=settings.usd_rate())
            tick = run_tick(memory, broker, agent, tick_input, deployment=settings.deployment)
        except Exception:
            LOG.exception("the tick of %s failed and is skipped", at.isoformat())
            continue
        last_at, succeeded = at, succeeded + 1
        after_tick(tick)
    return succeeded


def next_moment(now: datetime, every: timedelta) -> datetime:
    """The first end of a whole interval since 1970 after an instant.

    >>> from datetime import UTC
    >>> next_moment(datetime(2026, 6, 4, 10, 7, tzinfo=UTC), timedelta(minutes=5)).isoformat()
    '2026-06-04T10:10:00+00:00'
    """
    return EPOCH + ((now - EPOCH) // every + 1) * every
