"""A strategy over bars that were: the same ticks as live, at the speed of the machine, the same bytes every time."""

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
from backsight.core.market import EPOCH, Bar, aggregate, check_bars
from backsight.memory import Memory
from backsight.ports import Agent, Broker
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.tick import run_tick

HISTORY = 600
"""How many bars of each symbol the agent sees."""
LONGER = (3_600, 86_400)
"""Hours and days are kept beside the bars given, so that a context has its ATRs."""
CHUNK = 5_000

Progress = Callable[[int, int], None]


class SimulatedBroker(Broker, Protocol):
    """A broker that lives through bars."""

    def advance(self, bars: Sequence[Bar]) -> None:
        """The account after these bars closed, in the order in which they did."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRun:
    """What a backtest came to."""

    run_id: str
    ticks: int
    opened: int
    closed: int
    start_equity: float
    end_equity: float
    first_at: datetime
    last_at: datetime
    equity: tuple[float, ...]
    """After every tick."""

    @property
    def drawdown(self) -> float:
        """The largest fall of equity from a peak, as a share of it."""
        peaks = accumulate(self.equity, max)
        return max(
            (1 - equity / peak for equity, peak in zip(self.equity, peaks, strict=True) if peak > 0), default=0.0
        )


def record_history(
    memory: Memory, clock: SimulatedClock, bars: Mapping[str, Sequence[Bar]], *, progress: Progress = lambda *_: None
) -> None:
    """Store the bars and the hours and days they make; each is known from its close, whatever the clock says."""
    every = [bar for series in bars.values() for bar in _with_longer(series)]
    clock.at = max(bar.closes_at for bar in every)
    for done in range(0, len(every), CHUNK):
        memory.record_bars(bars=every[done : done + CHUNK])
        progress(min(done + CHUNK, len(every)), len(every))


def run_backtest(
    memory: Memory,
    clock: SimulatedClock,
    agent: Agent,
    broker: SimulatedBroker,
    *,
    deployment: str,
    bars: Mapping[str, Sequence[Bar]],
    every: timedelta = timedelta(hours=1),
    usd_rate: float | None = None,
    progress: Progress = lambda *_: None,
) -> BacktestRun:
    """Run an agent over bars that are stored already, deciding at every whole interval in which a bar closed."""
    moments = list(_moments(bars, every))
    if not moments:
        raise Invalid("no interval is complete; give more bars or decide more often", field="bars")
    run_id = derive_id("run", deployment, format_instant(moments[0]), format_instant(moments[-1]))
    closes = {symbol: [bar.closes_at for bar in series] for symbol, series in bars.items()}
    at, opened, closed, start = EPOCH, 0, 0, broker.snapshot().portfolio.equity
    equity: list[float] = []
    for number, moment in enumerate(moments, start=1):
        ends = {symbol: bisect_right(closes[symbol], moment) for symbol in bars}
        begins = {symbol: bisect_right(closes[symbol], at) for symbol in bars}
        lived = merge(*(bars[each][begins[each] : ends[each]] for each in sorted(bars)), key=lambda bar: bar.closes_at)
        broker.advance(list(lived))
        clock.at = at = moment
        seen = {symbol: bars[symbol][max(0, ends[symbol] - HISTORY) : ends[symbol]] for symbol in bars}
        tick = run_tick(
            memory, broker, agent, deployment=deployment, at=at, bars=seen, usd_rate=usd_rate, sim_run_id=run_id
        )
        opened, closed = opened + len(tick.opened), closed + len(tick.closed)
        equity.append(tick.decision.equity)
        progress(number, len(moments))
    return BacktestRun(
        run_id=run_id,
        ticks=len(moments),
        opened=opened,
        closed=closed,
        start_equity=start,
        end_equity=equity[-1],
        first_at=moments[0],
        last_at=moments[-1],
        equity=tuple(equity),
    )


def _with_longer(series: Sequence[Bar]) -> Iterator[Bar]:
    check_bars(series)
    yield from series
    for seconds in LONGER:
        if series and series[0].interval_seconds < seconds and seconds % series[0].interval_seconds == 0:
            yield from aggregate(series, interval_seconds=seconds)


def _moments(bars: Mapping[str, Sequence[Bar]], every: timedelta) -> Iterator[datetime]:
    """The whole intervals since 1970 in which at least one bar closed; where a market rests, there are none."""
    if every <= timedelta(0):
        raise Invalid(f"{every} is no interval; give one above 0", field="every")
    closes = {EPOCH - ((EPOCH - bar.closes_at) // every) * every for series in bars.values() for bar in series}
    last = max((bar.closes_at for series in bars.values() for bar in series), default=EPOCH)
    yield from sorted(moment for moment in closes if moment <= last)
