"""A broker that answers as one did before: the snapshots and verdicts of a recorded session, tick by tick."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.orders import BrokerSnapshot, Executed, Order, OrderResult, Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTick:
    """What happened between an agent and its broker at one tick."""

    at: datetime
    sequence: int
    before: BrokerSnapshot
    after: BrokerSnapshot | None
    order: Order | None
    verdict: Verdict


class ReplayBroker:
    """Answers from a recording; an order that was not placed then has no answer, and is `Conflict`."""

    def __init__(self, session: Sequence[RecordedTick]) -> None:
        self._session = list(session)
        self._tick = -1
        self._asked = 0

    def turn_to_next(self) -> RecordedTick:
        """The next tick of the recording, from which it answers from now on."""
        if self._tick + 1 == len(self._session):
            raise Conflict("the recording has ended; there is no next tick", field="session")
        self._tick += 1
        self._asked = 0
        return self._session[self._tick]

    def snapshot(self) -> BrokerSnapshot:
        """The account as it was before the decision, then as it was after."""
        tick, self._asked = self._session[self._tick], self._asked + 1
        return tick.before if self._asked == 1 else tick.after or replace(tick.before, fills=())

    def submit(self, order: Order) -> OrderResult:
        """What became of the order then."""
        tick = self._session[self._tick]
        if order != tick.order:
            told = f"at {format_instant(tick.at)} the recording has {tick.order}, not {order}"
            raise Conflict(f"{told}; replay with the agent that was recorded", field="order")
        if tick.verdict.kind == "executed":
            fills = () if tick.after is None else tick.after.fills
            return Executed(order=order, position_key=order.position_key or order.symbol, fills=fills)
        return Rejected(order=order, rule=tick.verdict.rule or "", detail=tick.verdict.detail or "")
