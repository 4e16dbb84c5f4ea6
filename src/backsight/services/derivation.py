"""Derive every row that follows from facts again: to compare it with the stored row, or to replace it."""

from typing import Any

from backsight.core.audit import Finding
from backsight.core.memory.experience import learn_habits
from backsight.core.memory.mood_series import account_rows
from backsight.services.belief_learning import beliefs_from
from backsight.services.context import Progress, no_progress
from backsight.services.habit_learning import episodes_by_strategy
from backsight.services.mood import strategy_moods
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.mapping import Noun
from backsight.store.transaction import Transaction
from backsight.store.view import everything


def find_differences(connection: Connection, owner: str, *, progress: Progress = no_progress) -> list[Finding]:
    """The derived rows of an owner that are not what the facts lead to."""
    progress("derived rows", 0, 2)
    rows_by_noun = derive_rows(connection, owner)
    progress("derived rows", 1, 2)
    findings = [
        finding for noun, rows in rows_by_noun.items() for finding in stored.compare(connection, noun, owner, rows)
    ]
    progress("derived rows", 2, 2)
    return findings


def rebuild_rows(transaction: Transaction, owner: str) -> None:
    """Replace every derived row of an owner by what the facts lead to."""
    for noun, rows in derive_rows(transaction.connection, owner).items():
        stored.clear(transaction.connection, noun, owner)
        transaction.derive_new(noun, rows)


def derive_rows(connection: Connection, owner: str) -> dict[Noun[Any], list[Any]]:
    """Every derived row of an owner, by table."""
    view = everything(connection, owner)
    rows: dict[Noun[Any], list[Any]] = {noun: [] for noun in stored.DERIVED}
    for mode in stored.modes(connection, owner):
        places = stored.cell_checkpoints(connection, owner, mode)
        episodes = stored_memories.current_teaching_trades(connection, owner, mode=mode)
        beliefs = beliefs_from(view, mode, episodes, keep_cells=places)
        rows[stored.BELIEFS] += beliefs.beliefs
        rows[stored.EVIDENCE] += beliefs.evidence
        rows[stored.BELIEF_CHECKPOINTS] += beliefs.checkpoints
        rows[stored.CELLS] += beliefs.cells
        rows[stored.CELL_CHECKPOINTS] += beliefs.cell_checkpoints
        rows[stored.DAYS] += beliefs.days
        for strategy_name, own in episodes_by_strategy(episodes).items():
            habits = learn_habits(own, owner_id=owner, mode=mode, strategy_name=strategy_name)
            rows[stored.PRACTISED] += habits.trades
            rows[stored.HABITS] += habits.habits
            rows[stored.STRATEGY_DRIFT] += habits.strategies
            rows[stored.HABIT_CHECKPOINTS] += habits.checkpoints
    deployments = stored_strategies.deployments(view)
    for account_id in sorted(account.id for account in stored_strategies.accounts(connection, owner)):
        facts = stored_state.equity_facts(view, account_id)
        rows[stored.MOODS] += account_rows(facts, owner_id=owner, account_id=account_id)
    for deployment in {(each.account_id, each.strategy_name): each for each in deployments}.values():
        rows[stored.MOODS] += strategy_moods(connection, deployment)
    return rows
