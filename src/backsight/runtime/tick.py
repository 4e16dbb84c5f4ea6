"""One tick of an agent, live, simulated or replayed: snapshot, memory, decision, order, record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.arguments import LONG_PROSE
from backsight.core.decision import AgentInput, ProposedOrder, Verdict
from backsight.core.errors import BacksightError
from backsight.core.market import Bar
from backsight.core.orders import Executed, Order
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
    """Run one tick: the agent sees the account, the bars and its memory, and the broker executes its orders."""
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
    proposals = [carry_out(broker, order) for order in decision.orders]
    return memory.close_tick(
        deployment=deployment,
        at=tick.at,
        sequence=tick.sequence,
        before=before,
        after=broker.snapshot() if proposals else None,
        verdict=Verdict(kind="noop", detail=decision.reason),
        proposals=proposals,
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
        response=None if decision.response is None else storable(decision.response),
        sim_run_id=tick.sim_run_id,
    )


def storable(response: str, *, most: int = LONG_PROSE) -> str:
    """A model's answer as the store takes it: a tick is recorded however long or odd the answer is.

    >>> storable("buy\\x00 " + "x" * 50, most=30)
    'buy� xxxx [cut: 55 characters]'
    """
    text = response.replace("\0", "�")
    if len(text) <= most:
        return text
    end = f" [cut: {len(text)} characters]"
    return text[: most - len(end)] + end


def carry_out(broker: Broker, order: Order) -> ProposedOrder:
    """Submit an order, and return it with its verdict and the id that the broker gave it.

    An error of the broker is a rejection: it ends neither the run nor the other orders of the decision.
    """
    try:
        result = broker.submit(order)
    except BacksightError as error:
        verdict = Verdict(kind="rejected", rule=f"BROKER_{error.kind.upper()}", detail=error.message)
        return ProposedOrder(order=order, verdict=verdict)
    if isinstance(result, Executed):
        placed = replace(order, order_id=result.order.order_id or order.order_id)
        return ProposedOrder(order=placed, verdict=Verdict(kind="executed"))
    return ProposedOrder(order=order, verdict=Verdict(kind="rejected", rule=result.rule, detail=result.detail))
