"""Arms: ways to size a trade, each asked before the outcome is known. An arm is one small class; add your own.

class HalfAfterTwoLosses(Arm):
    name = "half_after_two_losses"

    def decide(self, question: Question) -> ArmDecision:
        losses = question.recall.mood.consecutive_losses if question.recall.mood else 0
        return ArmDecision(share=question.entry.recorded_share * (0.5 if losses >= 2 else 1.0))
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from backsight.core.context import ContextVector
from backsight.core.decision import AgentDecision, AgentInput, OpenedTick
from backsight.core.errors import Invalid, nearest
from backsight.core.market import Bar, bars_closed_by
from backsight.core.orders import BrokerSnapshot
from backsight.core.portfolio import Portfolio
from backsight.core.recall.rank import WARNINGS, RecalledMemory
from backsight.core.recommended_size import FEWEST_TRADES, PositionSize
from backsight.core.sizing import SHARE_OF_KELLY
from backsight.core.strategies import MemoryOverrides
from backsight.lab.trades import LabEntry, LabTrade
from backsight.memory import Memory
from backsight.ops.recall import Recall
from backsight.ports import Agent

RECALLED = 50
"""Memories of a recall, as the seed's formula takes them."""
AGENT_EQUITY = 100_000.0
AGENT_BARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDecision:
    """The share of equity to risk on a trade, 0 to skip it, and the stated probability of a win."""

    share: float
    confidence: float | None = None


@dataclass(kw_only=True)
class Question:
    """A trade that is about to be opened, and the memory of all trades that closed before. All arms share one."""

    entry: LabEntry
    memory: Memory
    """The memory at this instant: call its queries only."""
    deployment: str
    """The deployment whose trades are remembered."""
    bars: Mapping[str, Sequence[Bar]] = field(default_factory=dict)

    @cached_property
    def recall(self) -> Recall:
        """What `recall_memories` answers for the entry."""
        entry = self.entry
        return self.memory.recall_memories(
            symbol=entry.symbol,
            direction=entry.direction,
            strategy_name=entry.strategy_name,
            context=self.context,
            market_context=entry.market_context,
            deployment=self.deployment,
            memory_types=["episodic"],
            limit=RECALLED,
        )

    @cached_property
    def size(self) -> PositionSize:
        """What `position_size` answers for the entry."""
        entry = self.entry
        return self.memory.position_size(
            symbol=entry.symbol,
            direction=entry.direction,
            strategy_name=entry.strategy_name,
            context=self.context,
            deployment=self.deployment,
        ).size

    @property
    def context(self) -> ContextVector:
        """The market context of the entry."""
        return self.entry.context

    @property
    def base_rate(self) -> float | None:
        """The share of earlier trades like this one that were won; None where there is too little to say."""
        rate = self.recall.base_rate
        return None if rate is None or rate.too_little else rate.headline.win_rate


@dataclass(slots=True)
class KellySums:
    """Weighted outcomes in R, and the share of equity that a quarter of Kelly puts at risk on them.

    >>> sums = KellySums()
    >>> for outcome in [1.0] * 12 + [-1.0] * 8:
    ...     sums.add(outcome)
    >>> round(sums.quarter_kelly, 6), sums.win_rate
    (0.05, 0.6)
    """

    count: int = 0
    weight_won: float = 0.0
    weight_lost: float = 0.0
    won: float = 0.0
    lost: float = 0.0

    def add(self, outcome: float, *, weight: float = 1.0) -> None:
        self.count += 1
        if outcome > 0:
            self.weight_won += weight
            self.won += weight * outcome
        else:
            self.weight_lost += weight
            self.lost -= weight * outcome

    @property
    def win_rate(self) -> float | None:
        """p; None without weight."""
        total = self.weight_won + self.weight_lost
        return self.weight_won / total if total else None

    @property
    def quarter_kelly(self) -> float:
        """¼ · (p / a − q / b), from 0 to 1; 0 for fewer than ten outcomes, or without wins or losses."""
        p = self.win_rate
        if p is None or self.count < FEWEST_TRADES or not (self.won and self.lost):
            return 0.0
        kelly = p / (self.lost / self.weight_lost) - (1.0 - p) / (self.won / self.weight_won)
        return min(1.0, max(0.0, SHARE_OF_KELLY * kelly))


class Arm:
    """A way to size trades. A subclass has a name and decides; it may learn from every close."""

    name: ClassVar[str]
    meaning: ClassVar[str] = ""

    def decide(self, question: Question) -> ArmDecision:
        """The share of equity to risk on the trade; the outcome is not known yet."""
        raise NotImplementedError

    def learn(self, trade: LabTrade) -> None:
        """Called when a trade has closed, after memory has learned it."""


class Fixed(Arm):
    """The recorded size: the baseline."""

    name = "fixed"
    meaning = "the recorded size"

    def decide(self, question: Question) -> ArmDecision:
        return ArmDecision(share=question.entry.recorded_share, confidence=question.entry.confidence)


class AllKelly(Arm):
    """A quarter of Kelly on all earlier trades of the strategy, without context: p / a − q / b (Kelly 1956)."""

    name = "all_kelly"
    meaning = "a quarter of Kelly on all earlier trades"

    def __init__(self) -> None:
        self._sums: dict[str, KellySums] = defaultdict(KellySums)

    def decide(self, question: Question) -> ArmDecision:
        sums = self._sums[question.entry.strategy_name]
        return ArmDecision(share=sums.quarter_kelly, confidence=sums.win_rate)

    def learn(self, trade: LabTrade) -> None:
        self._sums[trade.entry.strategy_name].add(trade.outcome_r)


class OwmScore(Arm):
    """Kelly weighted by the recall score, which contains the outcome: the formula that this project does not use."""

    name = "owm_score"
    meaning = "a quarter of Kelly on recalled memories, weighted by their score"

    def decide(self, question: Question) -> ArmDecision:
        sums, mood = KellySums(), question.recall.mood
        for memory in question.recall.memories:
            if memory.episode.outcome is not None:
                sums.add(memory.episode.outcome.value, weight=memory.score)
        appetite = 1.0 if mood is None else mood.risk_appetite
        return ArmDecision(share=sums.quarter_kelly * appetite, confidence=sums.win_rate)


class RecommendedSize(Arm):
    """What `position_size` recommends; without a recommendation the recorded size, which is the strategy's own."""

    name = "position_size"
    meaning = "what position_size recommends, else the recorded size"

    def decide(self, question: Question) -> ArmDecision:
        size = question.size
        share = question.entry.recorded_share if size.recommended is None else size.recommended
        return ArmDecision(share=share, confidence=size.win_rate)


class SkipWarned(Arm):
    """The recorded size, but nothing where the losses that memory warns of outweigh the best wins it recalls."""

    name = "skip_warned"
    meaning = "the recorded size, skipped where warnings outweigh the best recalled wins"

    def decide(self, question: Question) -> ArmDecision:
        skips = warnings_outweigh(question.recall.warnings, question.recall.memories)
        return ArmDecision(share=0.0 if skips else question.entry.recorded_share, confidence=question.base_rate)


class RandomSkip(Arm):
    """As many skips as `skip_warned`, at random: its draws are the null, and are made after the replay."""

    name = "random_skip"
    meaning = "as many skips as skip_warned, at random: the mean of 1,000 draws"

    def decide(self, question: Question) -> ArmDecision:
        return ArmDecision(share=question.entry.recorded_share)


class AgentArm(Arm):
    """A strategy or a language model behind the port of agents; it takes the trade if it orders in its direction."""

    name = "agent"
    meaning = "the agent, with its memory in the prompt"
    memory_settings: ClassVar[MemoryOverrides] = MemoryOverrides(enabled=True, holdout=0.0)

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def deployment_of(self, question: Question) -> str:
        """The deployment that the agent runs as."""
        return question.deployment

    def decide(self, question: Question) -> ArmDecision:
        entry, marks = question.entry, {question.entry.symbol: question.entry.price}
        portfolio = Portfolio(at=entry.at, equity=AGENT_EQUITY, cash=AGENT_EQUITY, positions=())
        before = BrokerSnapshot(portfolio=portfolio, fills=(), marks=marks)
        bars = {entry.symbol: bars_closed_by(question.bars.get(entry.symbol, ()), at=entry.at)[-AGENT_BARS:]}

        def open_tick() -> OpenedTick:
            return question.memory.open_tick(
                deployment=self.deployment_of(question), at=entry.at, before=before, symbols=[entry.symbol]
            )

        decision = self.agent.decide(
            AgentInput(at=entry.at, open_tick=open_tick, portfolio=portfolio, marks=marks, bars=bars)
        )
        return ArmDecision(share=ordered_share(decision, entry), confidence=decision.confidence)


class AgentWithoutMemory(AgentArm):
    """The same agent with an empty memory: its prompt has no section of memory."""

    name = "agent_without_memory"
    meaning = "the same agent, without memory"
    memory_settings = MemoryOverrides(enabled=False)

    def deployment_of(self, question: Question) -> str:
        return without_memory(question.deployment)


def without_memory(deployment: str) -> str:
    """The name of the deployment that shows no memory, beside one that does."""
    return f"{deployment}, no memory"


def ordered_share(decision: AgentDecision, entry: LabEntry) -> float:
    """The share of equity that an agent's order risks to its stop, else the recorded share; 0 without an order."""
    for order in decision.orders:
        if order.symbol == entry.symbol and order.direction == entry.direction:
            if order.stop_price is None:
                return entry.recorded_share
            return min(1.0, abs(order.quantity * (entry.price - order.stop_price)) / AGENT_EQUITY)
    return 0.0


def warnings_outweigh(warnings: Sequence[RecalledMemory], memories: Sequence[RecalledMemory]) -> bool:
    """Whether the three strongest warnings weigh more than the three best recalled wins."""
    wins = [memory.score for memory in memories if memory.episode.outcome and memory.episode.outcome.value > 0]
    return sum(warning.score for warning in warnings[:WARNINGS]) > sum(wins[:WARNINGS])


SIMPLE_ARMS: Mapping[str, type[Arm]] = {
    each.name: each for each in (Fixed, AllKelly, OwmScore, RecommendedSize, SkipWarned, RandomSkip)
}
AGENT_ARMS: Mapping[str, type[AgentArm]] = {each.name: each for each in (AgentArm, AgentWithoutMemory)}
DEFAULT_ARMS = tuple(SIMPLE_ARMS)


def arms_named(names: Sequence[str], *, agent: Agent | None = None) -> list[Arm]:
    """New arms by name; `agent` stands for the agent with and without memory.

    >>> [arm.name for arm in arms_named(["fixed", "position_size"])]
    ['fixed', 'position_size']
    """
    arms: list[Arm] = []
    for name in names:
        if name in SIMPLE_ARMS:
            arms.append(SIMPLE_ARMS[name]())
        elif name in AGENT_ARMS:
            if agent is None:
                raise Invalid(f"{name!r} needs an agent; give one as file.py:Class", field="agent")
            chosen = AGENT_ARMS if name == AgentArm.name else {name: AGENT_ARMS[name]}
            arms += [arm(agent) for arm in chosen.values()]
        else:
            known = (*SIMPLE_ARMS, *AGENT_ARMS)
            match = nearest(name, known)
            remedy = f"did you mean {match!r}?" if match else f"give some of {', '.join(known)}, or file.py:Class"
            raise Invalid(f"{name!r} is not an arm; {remedy}", field="arms")
    return arms


def checked_arms(arms: Sequence[Arm]) -> list[Arm]:
    """The arms with the baseline first; `Invalid` if two have one name, or `random_skip` has nothing to compare."""
    names = [arm.name for arm in arms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Invalid(f"{twice[0]!r} is given twice; give each arm once", field="arms")
    if RandomSkip.name in names and SkipWarned.name not in names:
        raise Invalid("random_skip makes as many skips as skip_warned; give skip_warned too", field="arms")
    baseline = [arm for arm in arms if arm.name == Fixed.name] or [Fixed()]
    return [*baseline, *(arm for arm in arms if arm.name != Fixed.name)]
