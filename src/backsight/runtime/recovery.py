"""Orders to which the broker's answer is not known: what became of them, as the broker shows it afterwards."""

from collections.abc import Sequence
from dataclasses import replace

from backsight.core.decision import ProposedOrder, Verdict
from backsight.core.orders import BrokerSnapshot, Order, ReportedFill

NOT_CONFIRMED = "NOT_CONFIRMED"
"""The rule of an order of which neither an answer nor a trace at the broker is known."""
RECOGNISED = "The broker's answer is not known; the order was recognised by its trace at the broker."
UNKNOWN = "The broker's answer is not known, and the broker shows no trace of the order."


def settle_proposals(
    proposals: Sequence[ProposedOrder], before: BrokerSnapshot, after: BrokerSnapshot
) -> list[ProposedOrder]:
    """The orders of a tick, each with a verdict: the broker's answer if it is known, else what the broker shows.

    Each fill and each open order is the trace of one order at most.
    """
    known = {(fill.symbol, fill.id) for fill in before.fills}
    fills = [fill for fill in after.fills if (fill.symbol, fill.id) not in known]
    settled: list[ProposedOrder] = []
    for proposal in proposals:
        if proposal.verdict is not None:
            settled.append(proposal)
            continue
        trace = _trace(proposal.order, fills, before, after)
        if trace is None:
            verdict = Verdict(kind="rejected", rule=NOT_CONFIRMED, detail=UNKNOWN)
            settled.append(replace(proposal, verdict=verdict))
            continue
        fills = [fill for fill in fills if not _made(proposal.order, fill)]
        order = replace(proposal.order, order_id=proposal.order.order_id or trace or None)
        settled.append(ProposedOrder(order=order, verdict=Verdict(kind="executed", detail=RECOGNISED)))
    return settled


def _trace(order: Order, fills: Sequence[ReportedFill], before: BrokerSnapshot, after: BrokerSnapshot) -> str | None:
    """The broker's id of an order that it took; empty if only its effect is visible, None if nothing is."""
    own = [fill for fill in fills if _made(order, fill)]
    if own:
        return own[0].order_id or ""
    resting = {each.id for each in before.portfolio.open_orders}
    for each in after.portfolio.open_orders:
        if each.id not in resting and each.symbol == order.symbol and each.quantity * order.quantity > 0:
            return each.id
    return "" if _moved(order, before, after) else None


def _made(order: Order, fill: ReportedFill) -> bool:
    key = fill.position_key or fill.symbol
    return order.may_have_made(symbol=fill.symbol, position_key=key, quantity=fill.quantity)


def _moved(order: Order, before: BrokerSnapshot, after: BrokerSnapshot) -> bool:
    """Whether positions or levels moved as the order wanted; the only trace at a broker that reports no fills."""
    if order.quantity == 0:
        wanted = (order.stop_price, order.target_price)
        own = (each for each in after.portfolio.positions if each.symbol == order.symbol)
        return any(wanted in ((each.stop_price, each.target_price), (each.stop_price, None)) for each in own)
    if after.fills:
        return False  # a broker that reports fills would have reported this one
    return (_size(order, after) - _size(order, before)) * order.quantity > 0


def _size(order: Order, snapshot: BrokerSnapshot) -> float:
    return sum(each.signed_size for each in snapshot.portfolio.positions if each.symbol == order.symbol)
