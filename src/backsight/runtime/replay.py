"""Replays: the recorded ticks of a deployment, run again into another store, leave the same rows."""

from collections.abc import Iterator, Mapping, Sequence

from backsight.core.decision import AgentDecision, AgentInput, Decision
from backsight.core.errors import NotFound
from backsight.core.instants import format_instant
from backsight.core.market import Bar, bars_closed_by, with_longer_intervals
from backsight.memory import Memory, RecordedTick, ReplayBroker
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.tick import TickInput, run_tick

PAGE = 100


class ReplayAgent:
    """An agent that repeats a recorded decision and takes as long as it took."""

    def __init__(self, decision: Decision, clock: SimulatedClock, response: str | None) -> None:
        self._decision = decision
        self._clock = clock
        self._response = response

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        decision = self._decision
        self._clock.at = decision.recorded_at
        return AgentDecision(
            order=decision.proposal,
            further_orders=tuple(each.order for each in decision.further_proposals),
            reason=decision.verdict.detail if decision.proposal is None else None,
            confidence=decision.confidence,
            model=decision.model,
            model_parameters=decision.model_parameters,
            input_tokens=decision.input_tokens,
            output_tokens=decision.output_tokens,
            cost=decision.cost,
            citations=decision.citations,
            response=self._response,
        )


def recorded_session(memory: Memory, deployment: str) -> list[Decision]:
    """Every decision of a deployment, oldest first."""
    return list(_newest_first(memory, deployment))[::-1]


def recorded_responses(memory: Memory, session: Sequence[Decision]) -> dict[str, str]:
    """The raw answers of the model in a session, by hash."""
    by_hash = {each.response_hash: each.id for each in session if each.response_hash is not None}
    details = {hash_: memory.get_decision(decision_id=id_) for hash_, id_ in by_hash.items()}
    return {hash_: detail.response for hash_, detail in details.items() if detail.response is not None}


def replay(
    memory: Memory,
    clock: SimulatedClock,
    session: Sequence[Decision],
    *,
    deployment: str,
    bars: Mapping[str, Sequence[Bar]],
    responses: Mapping[str, str] | None = None,
) -> None:
    """Replay a session with its bars, into a store that has the account and the deployment.

    `responses` are those of `recorded_responses`; a session in which none was recorded needs none.
    """
    broker = ReplayBroker([_recorded_tick(decision) for decision in session])
    stored = [bar for series in bars.values() for bar in with_longer_intervals(series)]
    last = None
    for decision in session:
        broker.turn_to_next()
        clock.at = decision.seen_at or decision.recorded_at
        closed = {symbol: [bar for bar in series if bar.closes_at <= decision.at] for symbol, series in bars.items()}
        new_bars = [bar for bar in bars_closed_by(stored, at=decision.at) if last is None or bar.closes_at > last.at]
        tick = TickInput(
            at=decision.at,
            sequence=decision.sequence,
            bars=closed,
            new_bars=new_bars,
            usd_rate=decision.usd_rate,
            simulation_id=decision.simulation_id,
        )
        agent = ReplayAgent(decision, clock, _response_of(decision, responses or {}))
        run_tick(memory, broker, agent, tick, deployment=deployment)
        last = decision


def _response_of(decision: Decision, responses: Mapping[str, str]) -> str | None:
    if decision.response_hash is None:
        return None
    if decision.response_hash not in responses:
        message = f"the model's answer at {format_instant(decision.at)} is missing"
        raise NotFound(f"{message}; pass the answers of recorded_responses", field="responses")
    return responses[decision.response_hash]


def _recorded_tick(decision: Decision) -> RecordedTick:
    return RecordedTick(
        at=decision.at,
        sequence=decision.sequence,
        before=decision.before,
        after=decision.after,
        proposals=decision.proposals,
    )


def _newest_first(memory: Memory, deployment: str) -> Iterator[Decision]:
    cursor: str | None = None
    while True:
        page = memory.list_decisions(deployment=deployment, limit=PAGE, cursor=cursor)
        yield from page.decisions
        cursor = page.next_cursor
        if cursor is None:
            return
