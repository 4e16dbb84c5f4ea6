"""A recorded session lived through again: the same ticks into another store give the same bytes."""

from collections.abc import Iterator, Mapping, Sequence

from backsight.core.decision import AgentDecision, AgentInput, Decision
from backsight.core.market import Bar
from backsight.memory import Memory, RecordedTick, ReplayBroker
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.tick import run_tick

PAGE = 100


class ReplayAgent:
    """Decides what was decided, and takes as long."""

    def __init__(self, decision: Decision, clock: SimulatedClock) -> None:
        self._decision = decision
        self._clock = clock

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        decision = self._decision
        self._clock.at = decision.recorded_at
        return AgentDecision(
            order=decision.proposal,
            reason=decision.verdict.detail if decision.proposal is None else None,
            confidence=decision.confidence,
            model=decision.model,
            model_parameters=decision.model_parameters,
            input_tokens=decision.input_tokens,
            output_tokens=decision.output_tokens,
            cost=decision.cost,
            citations=decision.citations,
        )


def recorded_session(memory: Memory, deployment: str) -> list[Decision]:
    """Every decision of a deployment, oldest first."""
    return list(_newest_first(memory, deployment))[::-1]


def replay(
    memory: Memory,
    clock: SimulatedClock,
    session: Sequence[Decision],
    *,
    deployment: str,
    bars: Mapping[str, Sequence[Bar]],
) -> None:
    """Live through a session again, into a store that has its account and deployment, with the bars of then."""
    broker = ReplayBroker([_recorded(decision) for decision in session])
    last = None
    for decision in session:
        broker.turn_to_next()
        clock.at = decision.seen_at or decision.recorded_at
        seen = {symbol: [bar for bar in series if bar.closes_at <= decision.at] for symbol, series in bars.items()}
        fresh = [bar for series in seen.values() for bar in series if last is None or bar.closes_at > last.at]
        run_tick(
            memory,
            broker,
            ReplayAgent(decision, clock),
            deployment=deployment,
            at=decision.at,
            sequence=decision.sequence,
            bars=seen,
            new_bars=fresh,
            usd_rate=decision.usd_rate,
            sim_run_id=decision.sim_run_id,
        )
        last = decision


def _recorded(decision: Decision) -> RecordedTick:
    return RecordedTick(
        at=decision.at,
        sequence=decision.sequence,
        before=decision.before,
        after=decision.after,
        order=decision.proposal,
        verdict=decision.verdict,
    )


def _newest_first(memory: Memory, deployment: str) -> Iterator[Decision]:
    cursor: str | None = None
    while True:
        page = memory.list_decisions(deployment=deployment, limit=PAGE, cursor=cursor)
        yield from page.decisions
        cursor = page.next_cursor
        if cursor is None:
            return
