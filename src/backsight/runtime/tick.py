"""One tick, live or simulated: look, remember, decide, act, record. Only the clock and the broker differ."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from backsight.core.decision import AgentDecision, AgentInput, Verdict
from backsight.core.errors import BacksightError
from backsight.core.market import Bar
from backsight.core.orders import Executed
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker


def run_tick(
    memory: Memory,
    broker: Broker,
    agent: Agent,
    *,
    deployment: str,
    at: datetime,
    sequence: int = 0,
    bars: Mapping[str, Sequence[Bar]],
    new_bars: Sequence[Bar] = (),
    usd_rate: float | None = None,
    sim_run_id: str | None = None,
) -> ClosedTick:
    """What a tick came to: the agent sees the account, the bars and its memory, and what it decides is carried out.

    `bars` are those closed by now, by symbol; `new_bars` those of them that the store does not have yet.
    """
    before = broker.snapshot()
    opened = memory.open_tick(
        deployment=deployment, at=at, sequence=sequence, before=before, symbols=list(bars), bars=list(new_bars)
    )
    decision = agent.decide(AgentInput(opened=opened, portfolio=before.portfolio, marks=before.marks, bars=bars))
    verdict = carry_out(broker, decision)
    return memory.close_tick(
        deployment=deployment,
        at=at,
        sequence=sequence,
        before=before,
        after=None if decision.order is None else broker.snapshot(),
        verdict=verdict,
        proposal=decision.order,
        confidence=decision.confidence,
        bars=list(new_bars),
        shown=list(opened.memory),
        recalled=list(opened.recalled),
        recalls=[*opened.recalls, *decision.recalls],
        lessons_hash=opened.lessons_hash,
        seen_at=opened.seen_at,
        usd_rate=usd_rate,
        model=decision.model,
        model_parameters=decision.model_parameters,
        input_tokens=decision.input_tokens,
        output_tokens=decision.output_tokens,
        cost=decision.cost,
        citations=[*opened.citations, *decision.citations],
        sim_run_id=sim_run_id,
    )


def carry_out(broker: Broker, decision: AgentDecision) -> Verdict:
    """What became of a decision; an order that the broker cannot take is a rejection, not the end of the run."""
    if decision.order is None:
        return Verdict(kind="noop", detail=decision.reason)
    try:
        result = broker.submit(decision.order)
    except BacksightError as error:
        return Verdict(kind="rejected", rule=f"BROKER_{error.kind.upper()}", detail=error.message)
    if isinstance(result, Executed):
        return Verdict(kind="executed")
    return Verdict(kind="rejected", rule=result.rule, detail=result.detail)
