"""A broker that repeats the snapshots and order results of a recorded session, tick by tick."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.decision import DecidedOrder
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.orders import BrokerSnapshot, Executed, FillMark, Order, OrderResult, Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTick:
    """The snapshots, the orders and their results at one recorded tick."""

    at: datetime
    sequence: int
    before: BrokerSnapshot
    after: BrokerSnapshot | None
    proposals: tuple[DecidedOrder, ...]


class ReplayBroker:
    """A broker that answers from a recording; an order that the recording does not have is `Conflict`."""

    def __init__(self, session: Sequence[RecordedTick]) -> None:
        self._session = list(session)
        self._tick = -1
        self._snapshots = 0

    def turn_to_next(self) -> RecordedTick:
        """Move to the next tick of the recording, and return it."""
        if self._tick + 1 == len(self._session):
            raise Conflict("the recording has ended; there is no next tick", field="session")
        self._tick += 1
        self._snapshots = 0
        return self._session[self._tick]

    def snapshot(self, *, since: FillMark | None = None) -> BrokerSnapshot:
        """The recorded account: before the decision at the first call of a tick, after it at further calls."""
        tick, self._snapshots = self._session[self._tick], self._snapshots + 1
        return tick.before if self._snapshots == 1 else tick.after or replace(tick.before, fills=())

    def submit(self, order: Order) -> OrderResult:
        """The recorded result of the order."""
        tick = self._session[self._tick]
        verdict = next((each.verdict for each in tick.proposals if each.order == order), None)
        if verdict is None:
            recorded = ", ".join(str(each.order) for each in tick.proposals) or "no order"
            message = f"at {format_instant(tick.at)} the recording has {recorded}, not {order}"
            raise Conflict(f"{message}; replay with the agent that was recorded", field="order")
        if verdict.kind == "executed":
            fills = () if tick.after is None else tick.after.fills
            return Executed(order=order, position_key=order.position_key or order.symbol, fills=fills)
        return Rejected(order=order, rule=verdict.rule or "", detail=verdict.detail or "")
