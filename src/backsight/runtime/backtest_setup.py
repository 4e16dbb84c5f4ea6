"""Setting up a backtest: the agent, its bars, and a store with the account, the strategy and the deployment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.core.reflection.cadence import parse_cadence
from backsight.core.strategies import Cadence, Deployment, MemoryOverrides
from backsight.importers.bars import read_bars
from backsight.memory import Memory, PaperBroker, PaperTerms
from backsight.runtime.backtest import BacktestResult, record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import CodedStrategy, load_agent, memory_for

NamedProgress = Callable[[str, int, int], None]
"""Called with the name of a step, the number of units done, and the number of units in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """A backtest as a user asks for it, with nothing read or loaded yet."""

    strategy: str
    """The class of the strategy: `file.py:Class` or `module:Class`."""
    files: tuple[Path, ...]
    """Files of bars; each symbol is in one file only."""
    symbol: str | None = None
    timezone: str = "UTC"
    every: timedelta = timedelta(hours=1)
    cash: float = 10_000.0
    currency: str = "USD"
    terms: PaperTerms
    reflect: str = "off"
    """When lessons are written: `off`, `daily` or `per_n_trades:10`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSetup:
    """A backtest that is ready to run: the agent is loaded and the bars are read."""

    agent: CodedStrategy
    bars: Mapping[str, Sequence[Bar]]
    start: datetime
    account: str
    terms: PaperTerms
    cash: float
    currency: str = "USD"
    every: timedelta = timedelta(hours=1)
    cadence: Cadence = Cadence()  # noqa: RUF009 (frozen)
    holdout: float | None = None
    """Share of days without memory, if lessons are written; None: the default of a strategy."""

    @property
    def memory_settings(self) -> MemoryOverrides | None:
        """How the deployment uses memory: it learns if lessons are wanted, else as the agent asks."""
        if self.cadence.kind == "off":
            return memory_for(self.agent)
        return MemoryOverrides(cadence=self.cadence.kind, every_n_trades=self.cadence.trades, holdout=self.holdout)


def prepare_backtest(request: BacktestRequest) -> BacktestSetup:
    """Load the agent and read the bars of a request."""
    cadence = parse_cadence(request.reflect, field="reflect")
    agent = load_agent(request.strategy)
    bars = _read_all_bars(request.files, symbol=request.symbol, timezone=request.timezone)
    return BacktestSetup(
        agent=agent,
        bars=bars,
        start=min(series[0].opened_at for series in bars.values()),
        account="backtest",
        terms=request.terms,
        cash=request.cash,
        currency=request.currency,
        every=request.every,
        cadence=cadence,
    )


def open_backtest(
    memory: Memory, clock: SimulatedClock, setup: BacktestSetup, *, progress: NamedProgress = lambda *_: None
) -> tuple[Deployment, PaperBroker]:
    """Fill an empty store with bars, account, strategy and deployment; return the deployment and its broker."""
    agent = setup.agent
    record_history(memory, clock, setup.bars, progress=lambda *counts: progress("Recording bars", *counts))
    clock.at = setup.start
    account = memory.open_account(venue="simulated", name=setup.account, mode="sim", currency=setup.currency).account
    memory.save_strategy(name=agent.name, thesis=agent.thesis, rules=list(agent.rules), avoid=list(agent.avoid))
    deployed = memory.deploy(strategy_name=agent.name, account=account.name, memory=setup.memory_settings)
    return deployed.deployment, PaperBroker(account.id, at=setup.start, cash=setup.cash, terms=setup.terms)


def run_setup(
    memory: Memory, clock: SimulatedClock, setup: BacktestSetup, *, progress: NamedProgress = lambda *_: None
) -> tuple[Deployment, BacktestResult]:
    """Fill an empty store and run the backtest in it; the deployment that traded, and the result."""
    deployment, broker = open_backtest(memory, clock, setup, progress=progress)
    result = run_backtest(
        memory,
        clock,
        setup.agent,
        broker,
        deployment=deployment.id,
        bars=setup.bars,
        every=setup.every,
        progress=lambda *counts: progress(f"Trading {setup.agent.name}", *counts),
    )
    return deployment, result


def _read_all_bars(files: Sequence[Path], *, symbol: str | None, timezone: str) -> dict[str, Sequence[Bar]]:
    """The bars of several files by symbol."""
    bars: dict[str, Sequence[Bar]] = {}
    for file in files:
        for name, series in read_bars(file, symbol=symbol, timezone=timezone).bars.items():
            if name in bars:
                raise Invalid(
                    f"{file} has bars of {name!r}, and so has an earlier file; put each symbol in one file",
                    field="bars",
                )
            bars[name] = series
    return bars
