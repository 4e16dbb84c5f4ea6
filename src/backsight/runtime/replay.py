"""Replays: the recorded ticks of a deployment, run again into another store, leave the same rows."""

from collections.abc import Iterator, Mapping, Sequence

from backsight.core.decision import AgentDecision, AgentInput, Decision
from backsight.core.market import Bar
from backsight.memory import Memory, RecordedTick, ReplayBroker
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.tick import TickInput, run_tick

PAGE = 100


class ReplayAgent:
    """An agent that repeats a recorded decision and takes as long as it took."""

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
    """Replay a session with its bars, into a store that has the account and the deployment."""
    broker = ReplayBroker([_recorded_tick(decision) for decision in session])
    last = None
    for decision in session:
        broker.turn_to_next()
        clock.at = decision.seen_at or decision.recorded_at
        closed = {symbol: [bar for bar in series if bar.closes_at <= decision.at] for symbol, series in bars.items()}
        new_bars = [bar for series in closed.values() for bar in series if last is None or bar.closes_at > last.at]
        tick = TickInput(
            at=decision.at,
            sequence=decision.sequence,
            bars=closed,
            new_bars=new_bars,
            usd_rate=decision.usd_rate,
            sim_run_id=decision.sim_run_id,
        )
        run_tick(memory, broker, ReplayAgent(decision, clock), tick, deployment=deployment)
        last = decision


def _recorded_tick(decision: Decision) -> RecordedTick:
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
