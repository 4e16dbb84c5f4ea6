"""Voiding a tick: what it wrote is undone, and the memories are derived again without it."""

from backsight.core.decision import Decision
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.services.derivation import rebuild_rows
from backsight.store.decisions import DECISIONS
from backsight.store.memories import RECALLS, RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.recalls import sets_of_one_decision
from backsight.store.trades import MARKS
from backsight.store.transaction import Transaction
from backsight.store.undo import delete_rows, link_that_wrote, undo_rows


def void(transaction: Transaction, decision: Decision) -> None:
    """Undo what the last tick of an account wrote, except bars and prompt texts, which other ticks may share."""
    owner = decision.owner_id
    link = link_that_wrote(transaction.connection, DECISIONS, owner, decision, operation="close_tick")
    if link is None:
        message = f"the tick of {format_instant(decision.at)} was imported; only ticks of close_tick can be voided"
        raise Conflict(message, field="decision_id")
    delete_rows(transaction, RECALLS, owner, decision_id=decision.id)
    for episodes_hash in sets_of_one_decision(transaction.connection, owner, decision.id):
        delete_rows(transaction, RETRIEVED_EPISODES, owner, episodes_hash=episodes_hash)
    delete_rows(transaction, RETRIEVALS, owner, decision_id=decision.id)
    delete_rows(transaction, MARKS, owner, decision_id=decision.id)
    delete_rows(transaction, DECISIONS, owner, id=decision.id)
    undo_rows(transaction, link)
    rebuild_rows(transaction, owner)
