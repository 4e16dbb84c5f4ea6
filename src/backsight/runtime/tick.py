"""One tick of an agent, live, simulated or replayed: snapshot, memory, decision, order, record."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from backsight.arguments import LONG_PROSE
from backsight.core.decision import AgentDecision, AgentInput, OpenedTick, ProposedOrder, Verdict
from backsight.core.errors import BacksightError, Unavailable
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Executed, FillMark, Order, last_mark
from backsight.memory import OPERATIONS, Memory
from backsight.ops.ticks import ClosedTick
from backsight.ports import Agent, Broker
from backsight.runtime.recovery import settle_proposals
from backsight.services.deployments import deployment_named
from backsight.services.recall import repeat_recalls
from backsight.services.recall_hashes import named_recalls

LOG = logging.getLogger("backsight")
Closing = dict[str, Any]
"""The arguments of `close_tick`."""
LONGEST_REASON, LONGEST_RULE = 1_000, 250
"""Characters of an order's reason and of a rejection's rule that `close_tick` takes."""


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
    simulation_id: str | None = None
    since: FillMark | None = None
    """The last fill that the ledger has; None: the broker reports what is new since its previous snapshot."""


def run_tick(memory: Memory, broker: Broker, agent: Agent, tick: TickInput, *, deployment: str) -> ClosedTick:
    """Run one tick: the agent sees the account, the bars and its memory, and the broker executes its orders."""
    return memory.close_tick(**play_tick(memory, broker, agent, tick, deployment=deployment))


def play_tick(
    memory: Memory,
    broker: Broker,
    agent: Agent,
    tick: TickInput,
    *,
    deployment: str,
    record_intent: Callable[[Closing], None] = lambda _: None,
) -> Closing:
    """Run a tick up to its record, and return what `close_tick` must be given.

    If the agent has orders, `record_intent` is called before the first is submitted and again with their results. What
    `close_tick` would refuse is refused before that: after an order is executed, its decision must be recorded. If
    memory is off and the agent declares `reads_memory = False`, a prompt is assembled only if the agent asks for it.
    """
    before, asked_at = broker.snapshot(since=tick.since), memory.now

    @cache
    def open_tick() -> OpenedTick:
        return memory.open_tick(
            deployment=deployment,
            at=tick.at,
            sequence=tick.sequence,
            before=before,
            symbols=list(tick.bars),
            bars=list(tick.new_bars),
        )

    if getattr(agent, "reads_memory", True) or _shows_memory(memory, deployment):
        open_tick()
    decision = agent.decide(
        AgentInput(at=tick.at, open_tick=open_tick, portfolio=before.portfolio, marks=before.marks, bars=tick.bars)
    )
    closing = _closing(tick, before, decision, deployment=deployment) | {"seen_at": asked_at}
    if open_tick.cache_info().currsize:
        closing |= _prompt_arguments(open_tick(), decision)
    if not decision.orders:
        return closing
    _refuse_unrecordable(memory, closing)
    record_intent(closing)
    closing["proposals"] = [carry_out(broker, proposal.order) for proposal in closing["proposals"]]
    record_intent(closing)
    after = broker.snapshot(since=None if tick.since is None else last_mark(before.fills, tick.since))
    return closing | {"after": after, "proposals": settle_proposals(closing["proposals"], before, after)}


def _refuse_unrecordable(memory: Memory, closing: Closing) -> None:
    OPERATIONS["close_tick"].check(closing)
    with memory.reading() as connection:
        recalls = named_recalls(memory, closing["recalls"], connection=connection)
        repeat_recalls(memory, connection, recalls.handles, at=closing["at"], field="recalls")


def _shows_memory(memory: Memory, deployment: str) -> bool:
    with memory.reading() as connection:
        return deployment_named(connection, memory.owner, deployment).memory.enabled


def _prompt_arguments(opened: OpenedTick, decision: AgentDecision) -> Closing:
    """The arguments of `close_tick` that say what an agent was shown."""
    return {
        "shown": list(opened.memory),
        "recalled": list(opened.recalled),
        "recalls": [*opened.recalls, *decision.recalls],
        "lessons_hash": opened.lessons_hash,
        "seen_at": opened.seen_at,
        "citations": [*opened.citations, *decision.citations],
    }


def _closing(tick: TickInput, before: BrokerSnapshot, decision: AgentDecision, *, deployment: str) -> Closing:
    """The arguments of `close_tick` before any order is submitted, for an agent that was shown nothing."""
    return {
        "deployment": deployment,
        "at": tick.at,
        "sequence": tick.sequence,
        "before": before,
        "after": None,
        "verdict": Verdict(kind="noop", detail=decision.reason and storable(decision.reason)),
        "proposals": [ProposedOrder(order=_with_storable_reason(order)) for order in decision.orders],
        "confidence": decision.confidence,
        "bars": list(tick.new_bars),
        "shown": [],
        "recalls": list(decision.recalls),
        "usd_rate": tick.usd_rate,
        "model": decision.model,
        "model_parameters": decision.model_parameters,
        "input_tokens": decision.input_tokens,
        "output_tokens": decision.output_tokens,
        "cost": decision.cost,
        "citations": list(decision.citations),
        "response": None if decision.response is None else storable(decision.response),
        "simulation_id": tick.simulation_id,
    }


def storable(text: str, *, most: int = LONG_PROSE) -> str:
    """A text of a model or a broker as the store takes it: a tick is recorded however long or odd the text is.

    >>> storable("buy\\x00 " + "x" * 50, most=30)
    'buy� xxxx [cut: 55 characters]'
    """
    text = text.replace("\0", "�")
    if len(text) <= most:
        return text
    end = f" [cut: {len(text)} characters]"
    return text[: most - len(end)] + end


def _with_storable_reason(order: Order) -> Order:
    reason = storable((order.reason or "").strip(), most=LONGEST_REASON)
    return replace(order, reason=reason or None)


def carry_out(broker: Broker, order: Order) -> ProposedOrder:
    """Submit an order, and return it with its verdict and the id that the broker gave it.

    An error of the broker is a rejection: it ends neither the loop nor the other orders of the decision. A broker that
    did not answer may have taken the order, so there is no verdict yet.
    """
    try:
        result = broker.submit(order)
    except Unavailable as error:
        LOG.warning("the broker's answer to an order in %s is not known: %s", order.symbol, error)
        return ProposedOrder(order=order)
    except BacksightError as error:
        verdict = Verdict(kind="rejected", rule=f"BROKER_{error.kind.upper()}", detail=error.message)
        return ProposedOrder(order=order, verdict=verdict)
    if isinstance(result, Executed):
        placed = replace(order, order_id=result.order.order_id or order.order_id)
        return ProposedOrder(order=placed, verdict=Verdict(kind="executed"))
    rule, detail = " ".join(result.rule.split())[:LONGEST_RULE], result.detail and storable(result.detail)
    return ProposedOrder(order=order, verdict=Verdict(kind="rejected", rule=rule or "BROKER_REJECTED", detail=detail))
