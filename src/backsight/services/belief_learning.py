"""Bring the stored beliefs up to date with the episodes of closed trades.

`update_beliefs` adds episodes that follow all others of their mode. It reads only the rows that these episodes can
change. `rebuild_beliefs` learns all episodes of a mode again. Both ways end in equal rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backsight.core.memory import belief_induction
from backsight.core.memory.belief_induction import BeliefUpdate, Knowledge
from backsight.core.memory.cells import cells_met, day_of
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    BeliefRecord,
    BeliefRecords,
    EvidenceRecord,
    belief_record,
    cell_from_record,
    changed_cells,
    conditions_held,
    in_teaching_order,
    learn_beliefs,
)
from backsight.core.memory.semantic import BeliefEvidence, Domain, Weighting, reaches_look
from backsight.core.portfolio import Mode
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefChange:
    """How one episode changed one belief."""

    belief_id: str
    proposition: str
    confirms: bool
    founding: bool
    """Whether the belief was induced from this episode, among others."""
    credibility: float
    n: int


def update_beliefs(transaction: Transaction, owner: str, mode: Mode, episodes: Sequence[Episode]) -> BeliefUpdate:
    """Learn episodes that follow all others of their mode, and write the beliefs, evidence, cells and days they change.

    The evidence of the answer includes the founding evidence of the beliefs that the episodes induce.
    """
    connection = transaction.connection
    before = _load_knowledge(connection, owner, mode, episodes)
    update = belief_induction.learn_all(
        in_teaching_order(episodes),
        knowledge=before,
        holds=conditions_held,
        retirements=stored.retirements(everything(connection, owner)),
    )
    after = update.knowledge
    changed = changed_cells(before, after)
    transaction.derive(stored.CELLS, changed.cells)
    transaction.derive(stored.DAYS, changed.days)
    transaction.derive_new(stored.DAYS, changed.new_days)
    standings = [standing for name, standing in after.standings.items() if standing is not before.standings.get(name)]
    transaction.derive(stored.BELIEFS, map(belief_record, standings))
    evidence = list(update.evidence)
    for belief in update.induced:
        standing = after.standings[belief.id]
        founding_episodes = in_teaching_order(stored.founding_episodes(connection, standing))
        evidence += belief_induction.founding_evidence(standing, founding_episodes)
    transaction.derive_new(stored.EVIDENCE, [EvidenceRecord(owner_id=owner, evidence=each) for each in evidence])
    return replace(update, evidence=tuple(evidence))


def _load_knowledge(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> Knowledge:
    """Read the part of the knowledge that learning these episodes needs."""
    met = {domain.text(): (domain, n) for domain, n in cells_met(episodes).items()}
    cells = stored.cells(connection, owner, mode, list(met))
    dates = sorted({day_of(episode).isoformat() for episode in episodes})
    days = stored.days(connection, owner, mode, list(cells), between=(dates[0], dates[-1]))
    # A cell that comes to a test is compared with its strategy's other trades, by runs of days of its labels.
    tested = [
        text
        for text, (domain, more) in met.items()
        if domain.width and reaches_look(cells[text].tally.n if text in cells else 0, more=more)
    ]
    if tested:
        others = {Domain(strategy=met[text][0].strategy).text() for text in tested}
        others |= {wider.text() for text in tested for wider in met[text][0].wider}
        days |= stored.days(connection, owner, mode, [text for text in sorted({*others, *tested}) if text in cells])
    beliefs = _load_beliefs(connection, owner, mode, episodes)
    return Knowledge(
        owner_id=owner,
        mode=mode,
        cells={met[text][0]: cell_from_record(cell, days[text]) for text, cell in cells.items()},
        cells_by_width=stored.count_cells_by_width(connection, owner, mode) if tested else {},
        standings={belief.standing.belief.id: belief.standing for belief in beliefs},
    )


def _load_beliefs(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> list[BeliefRecord]:
    """Read the beliefs that these episodes may be evidence of."""
    if len(episodes) == 1:
        return stored.beliefs_about_episode(connection, episodes[0])
    strategies = sorted({episode.strategy_name for episode in episodes})
    return [
        belief for strategy in strategies for belief in stored.beliefs_about_strategy(connection, owner, mode, strategy)
    ]


def rebuild_beliefs(transaction: Transaction, owner: str, mode: Mode) -> BeliefRecords:
    """Learn all episodes of a mode again and replace its rows."""
    connection = transaction.connection
    records = beliefs_at(everything(connection, owner), mode)
    stored.clear_evidence(connection, owner, mode)
    for noun in (stored.BELIEFS, stored.CELLS, stored.DAYS):
        stored.clear(connection, noun, owner, mode=mode)
    transaction.derive_new(stored.BELIEFS, records.beliefs)
    transaction.derive_new(stored.EVIDENCE, records.evidence)
    transaction.derive_new(stored.CELLS, records.cells)
    transaction.derive_new(stored.DAYS, records.days)
    return records


def beliefs_at(view: View, mode: Mode, *, weighting: Weighting = "count") -> BeliefRecords:
    """Learn the beliefs of a mode from the episodes, statements and retirements that a view shows."""
    return learn_beliefs(
        stored_memories.teaching_trades(view, mode=mode),
        owner_id=view.owner,
        mode=mode,
        stated=stored.stated_beliefs(view, mode),
        retired=stored.retirements(view),
        weighting=weighting,
    )


def current_beliefs(view: View, mode: Mode) -> list[BeliefRecord]:
    """The beliefs of a mode as of a view: the stored rows where they are of that instant, else learned again."""
    if stored.is_current(view):
        return stored.beliefs(view.connection, view.owner, mode)
    return list(beliefs_at(view, mode).beliefs)


def beliefs_changed_by(view: View, mode: Mode, episode_id: str) -> tuple[BeliefChange, ...]:
    """The beliefs that an episode is evidence of, as of a view."""
    if stored.is_current(view):
        pairs = stored.beliefs_with_evidence_from(view.connection, view.owner, episode_id)
    else:
        records = beliefs_at(view, mode)
        beliefs = {belief.standing.belief.id: belief for belief in records.beliefs}
        evidence = [record for record in records.evidence if record.evidence.episode_id == episode_id]
        pairs = [(record, beliefs[record.evidence.belief_id]) for record in evidence]
    changes = (belief_change(record.evidence, belief) for record, belief in pairs)
    return tuple(sorted(changes, key=lambda change: change.belief_id))


def belief_change(evidence: BeliefEvidence, record: BeliefRecord) -> BeliefChange:
    """How a piece of evidence changed its belief."""
    return BeliefChange(
        belief_id=evidence.belief_id,
        proposition=record.standing.belief.proposition,
        confirms=evidence.confirms,
        founding=evidence.founding,
        credibility=record.posterior.credibility,
        n=record.posterior.n,
    )
