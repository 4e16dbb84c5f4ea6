"""Backtests: an agent runs over past bars by the same ticks as live; equal backtests leave equal rows."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import accumulate
from typing import Protocol

from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.market import EPOCH, Bar, check_bars, with_longer_intervals
from backsight.memory import Memory
from backsight.ports import Agent, Broker
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.tick import TickInput, run_tick

HISTORY = 600
"""The number of bars of each symbol that the agent sees."""
CHUNK = 5_000

Progress = Callable[[int, int], None]
"""Called with the number of units done and the number of units in all."""


class SimulatedBroker(Broker, Protocol):
    """A broker whose account follows bars."""

    def advance(self, bars: Sequence[Bar]) -> None:
        """Lead the account through closed bars, in the order of their closes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """The result of a backtest."""

    simulation_id: str
    ticks: int
    opened: int
    closed: int
    start_equity: float
    end_equity: float
    first_at: datetime
    last_at: datetime
    equity: tuple[float, ...]
    """Equity after every tick."""

    @property
    def drawdown(self) -> float:
        """The largest fall of equity from a peak, as a share of the peak."""
        peaks = accumulate(self.equity, max)
        return max(
            (1 - equity / peak for equity, peak in zip(self.equity, peaks, strict=True) if peak > 0), default=0.0
        )


def record_history(
    memory: Memory, clock: SimulatedClock, bars: Mapping[str, Sequence[Bar]], *, progress: Progress = lambda *_: None
) -> None:
    """Store the bars and the hourly and daily bars made from them; each bar is known from its close on."""
    for series in bars.values():
        check_bars(series)
    all_bars = [bar for series in bars.values() for bar in with_longer_intervals(series)]
    clock.at = max(bar.closes_at for bar in all_bars)
    for first in range(0, len(all_bars), CHUNK):
        memory.record_bars(bars=all_bars[first : first + CHUNK])
        progress(min(first + CHUNK, len(all_bars)), len(all_bars))


def run_backtest(
    memory: Memory,
    clock: SimulatedClock,
    agent: Agent,
    broker: SimulatedBroker,
    *,
    deployment: str,
    bars: Mapping[str, Sequence[Bar]],
    every: timedelta = timedelta(hours=1),
    progress: Progress = lambda *_: None,
) -> BacktestResult:
    """Run an agent over stored bars; it decides at the end of every whole interval in which a bar closed."""
    moments = list(_moments(bars, every))
    if not moments:
        raise Invalid("no interval is complete; give more bars, or decide more often", field="bars")
    simulation_id = derive_id("simulation", deployment, format_instant(moments[0]), format_instant(moments[-1]))
    closes = {symbol: [bar.closes_at for bar in series] for symbol, series in bars.items()}
    last_at, opened, closed, start_equity = EPOCH, 0, 0, broker.snapshot().portfolio.equity
    equity: list[float] = []
    for number, moment in enumerate(moments, start=1):
        ends = {symbol: bisect_right(closes[symbol], moment) for symbol in bars}
        begins = {symbol: bisect_right(closes[symbol], last_at) for symbol in bars}
        since_last = (bars[symbol][begins[symbol] : ends[symbol]] for symbol in sorted(bars))
        broker.advance(list(merge(*since_last, key=lambda bar: bar.closes_at)))
        clock.at = last_at = moment
        history = {symbol: bars[symbol][max(0, ends[symbol] - HISTORY) : ends[symbol]] for symbol in bars}
        tick_input = TickInput(at=moment, bars=history, simulation_id=simulation_id)
        tick = run_tick(memory, broker, agent, tick_input, deployment=deployment)
        opened, closed = opened + len(tick.opened), closed + len(tick.closed)
        equity.append(tick.decision.equity)
        progress(number, len(moments))
    return BacktestResult(
        simulation_id=simulation_id,
        ticks=len(moments),
        opened=opened,
        closed=closed,
        start_equity=start_equity,
        end_equity=equity[-1],
        first_at=moments[0],
        last_at=moments[-1],
        equity=tuple(equity),
    )


def _moments(bars: Mapping[str, Sequence[Bar]], every: timedelta) -> Iterator[datetime]:
    """The ends of whole intervals since 1970 in which at least one bar closed; a resting market has none."""
    if every <= timedelta(0):
        raise Invalid(f"{every} is not an interval; give one above 0", field="every")
    closes = {EPOCH - ((EPOCH - bar.closes_at) // every) * every for series in bars.values() for bar in series}
    last = max((bar.closes_at for series in bars.values() for bar in series), default=EPOCH)
    yield from sorted(moment for moment in closes if moment <= last)
