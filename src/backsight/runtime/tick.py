"""One tick of an agent, live, simulated or replayed: snapshot, memory, decision, order, record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.decision import AgentDecision, AgentInput, Verdict
from backsight.core.errors import BacksightError
from backsight.core.market import Bar
from backsight.core.orders import Executed
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class TickInput:
    """The instant of a tick and the market as it was then."""

    at: datetime
    sequence: int = 0
    """The order among ticks of one instant."""
    bars: Mapping[str, Sequence[Bar]]
    """The bars that were closed at the instant, by symbol."""
    new_bars: Sequence[Bar] = ()
    """Bars among them that are not stored yet."""
    usd_rate: float | None = None
    """The value of one unit of the account's currency in dollars."""
    sim_run_id: str | None = None


def run_tick(memory: Memory, broker: Broker, agent: Agent, tick: TickInput, *, deployment: str) -> ClosedTick:
    """Run one tick: the agent sees the account, the bars and its memory, and the broker executes its order."""
    before = broker.snapshot()
    opened = memory.open_tick(
        deployment=deployment,
        at=tick.at,
        sequence=tick.sequence,
        before=before,
        symbols=list(tick.bars),
        bars=list(tick.new_bars),
    )
    decision = agent.decide(AgentInput(opened=opened, portfolio=before.portfolio, marks=before.marks, bars=tick.bars))
    verdict = carry_out(broker, decision)
    return memory.close_tick(
        deployment=deployment,
        at=tick.at,
        sequence=tick.sequence,
        before=before,
        after=None if decision.order is None else broker.snapshot(),
        verdict=verdict,
        proposal=decision.order,
        confidence=decision.confidence,
        bars=list(tick.new_bars),
        shown=list(opened.memory),
        recalled=list(opened.recalled),
        recalls=[*opened.recalls, *decision.recalls],
        lessons_hash=opened.lessons_hash,
        seen_at=opened.seen_at,
        usd_rate=tick.usd_rate,
        model=decision.model,
        model_parameters=decision.model_parameters,
        input_tokens=decision.input_tokens,
        output_tokens=decision.output_tokens,
        cost=decision.cost,
        citations=[*opened.citations, *decision.citations],
        sim_run_id=tick.sim_run_id,
    )


def carry_out(broker: Broker, decision: AgentDecision) -> Verdict:
    """Submit the order of a decision; an error of the broker is a rejection and does not end the run."""
    if decision.order is None:
        return Verdict(kind="noop", detail=decision.reason)
    try:
        result = broker.submit(decision.order)
    except BacksightError as error:
        return Verdict(kind="rejected", rule=f"BROKER_{error.kind.upper()}", detail=error.message)
    if isinstance(result, Executed):
        return Verdict(kind="executed")
    return Verdict(kind="rejected", rule=result.rule, detail=result.detail)
