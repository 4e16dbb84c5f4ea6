"""What decisions keep of the broker, read back."""

from pydantic import TypeAdapter

from backsight.core.decision import Decision
from backsight.core.orders import BrokerSnapshot, Order

SNAPSHOT: TypeAdapter[BrokerSnapshot] = TypeAdapter(BrokerSnapshot)
ORDER: TypeAdapter[Order] = TypeAdapter(Order)


def snapshots_of(decision: Decision) -> tuple[BrokerSnapshot, BrokerSnapshot | None]:
    """The broker's snapshots that a decision keeps: before it, and after it where there was a second."""
    before = SNAPSHOT.validate_json(decision.before)
    return before, SNAPSHOT.validate_json(decision.after) if decision.after else None


def order_of(decision: Decision) -> Order | None:
    """The order that a decision proposed."""
    return None if decision.proposal is None else ORDER.validate_json(decision.proposal)
