"""The replay: every arm is asked at every entry, with the memory of all trades that closed before, and nothing later.

Trades are remembered with `remember_trade` when they close, in a store of their own whose clock is the replay's. At one
instant, entries come before closes: an outcome of the same instant is not known yet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from backsight.core.errors import Conflict, Invalid
from backsight.core.market import Bar
from backsight.lab.arms import AgentArm, AgentWithoutMemory, Arm, ArmDecision, Question, without_memory
from backsight.lab.equity import Floats, trade_times
from backsight.lab.trades import LabTrade
from backsight.memory import Memory, open_memory, open_simulation
from backsight.runtime.backtest import record_history
from backsight.runtime.clock import SimulatedClock
from backsight.settings import Settings

OWNER, ACTOR, VENUE = "lab", "lab", "recorded"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """The decisions of all arms: one row an arm, one column a trade."""

    arms: tuple[str, ...]
    shares: Floats
    confidence: Floats
    """NaN where an arm stated none."""


def replay(
    trades: Sequence[LabTrade],
    arms: Sequence[Arm],
    *,
    bars: Mapping[str, Sequence[Bar]] | None = None,
    url: str = "sqlite://",
    progress: Progress = lambda *_: None,
) -> Replay:
    """Ask all arms at every entry. The store is in memory; one that `url` names must have no trades of the lab."""
    shares, confidence = np.zeros((len(arms), len(trades))), np.full((len(arms), len(trades)), np.nan)
    events = trade_times(trades).events.tolist()
    if trades:
        with _open_store(url, trades) as (memory, clock):
            _record_bars(memory, clock, arms, bars or {})
            accounts = _Accounts(memory, arms)
            for number, event in enumerate(events):
                if event >= 0:
                    entry = trades[event].entry
                    clock.at = entry.at
                    deployment = accounts.deployment_of(entry.strategy_name)
                    question = Question(entry=entry, memory=memory, deployment=deployment, bars=bars or {})
                    for row, arm in enumerate(arms):
                        decision = _checked(arm, arm.decide(question))
                        shares[row, event] = decision.share
                        if decision.confidence is not None:
                            confidence[row, event] = decision.confidence
                else:
                    trade = trades[-1 - event]
                    clock.at = trade.closed_at
                    _remember(memory, trade, deployment=accounts.deployment_of(trade.entry.strategy_name))
                    for arm in arms:
                        arm.learn(trade)
                progress(number + 1, len(events))
    return Replay(arms=tuple(arm.name for arm in arms), shares=shares, confidence=confidence)


@contextmanager
def _open_store(url: str, trades: Sequence[LabTrade]) -> Iterator[tuple[Memory, SimulatedClock]]:
    clock = SimulatedClock(trades[0].entry.at)
    in_memory = url == "sqlite://"
    opened = (
        open_simulation(clock, owner=OWNER, actor=ACTOR)
        if in_memory
        else open_memory(clock=clock, settings=Settings(url=url, owner=OWNER, actor=ACTOR))
    )
    with opened as memory:
        if not in_memory and memory.get_my_deployments().deployments:
            raise Conflict("the store has the trades of another run of the lab; give an empty store", field="url")
        yield memory, clock


def _record_bars(memory: Memory, clock: SimulatedClock, arms: Sequence[Arm], bars: Mapping[str, Sequence[Bar]]) -> None:
    """Store the bars for the prompts of agents; each is known from its close on."""
    if bars and any(isinstance(arm, AgentArm) for arm in arms):
        start = clock.at
        record_history(memory, clock, bars)
        clock.at = start


class _Accounts:
    """The deployments of the replay, one a strategy, each made at the first entry of its strategy."""

    def __init__(self, memory: Memory, arms: Sequence[Arm]) -> None:
        self._memory = memory
        self._names: dict[str, str] = {}
        self._needs_blank = any(isinstance(arm, AgentWithoutMemory) for arm in arms)

    def deployment_of(self, strategy: str) -> str:
        if strategy not in self._names:
            self._memory.save_strategy(name=strategy)
            name = f"{strategy}@lab"
            self._deploy(strategy, name, AgentArm)
            if self._needs_blank:
                self._deploy(strategy, without_memory(name), AgentWithoutMemory)
            self._names[strategy] = name
        return self._names[strategy]

    def _deploy(self, strategy: str, name: str, arm: type[AgentArm]) -> None:
        self._memory.open_account(venue=VENUE, name=name, mode="sim")
        self._memory.deploy(strategy_name=strategy, account=name, name=name, memory=arm.memory_settings)


def _remember(memory: Memory, trade: LabTrade, *, deployment: str) -> None:
    entry = trade.entry
    memory.remember_trade(
        symbol=entry.symbol,
        direction=entry.direction,
        entry_price=entry.price,
        exit_price=trade.exit_price,
        pnl=trade.pnl,
        pnl_r=trade.outcome_r,
        strategy_name=entry.strategy_name,
        market_context=entry.market_context,
        confidence=entry.confidence,
        opened_at=entry.at,
        closed_at=trade.closed_at,
        context=entry.context,
        deployment=deployment,
        idempotency_key=entry.id,
    )


def _checked(arm: Arm, decision: ArmDecision) -> ArmDecision:
    """A decision whose numbers can be used; an error names the arm."""
    confidence = decision.confidence
    if not 0.0 <= decision.share <= 1.0:
        raise Invalid(f"{arm.name!r} gives the share {decision.share}; give one from 0 to 1", field="share")
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise Invalid(f"{arm.name!r} gives the confidence {confidence}; give one from 0 to 1", field="confidence")
    return decision
