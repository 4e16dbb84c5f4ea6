"""Bring the stored beliefs up to date with the episodes of closed trades.

`update_beliefs` adds episodes that follow all others of their mode. It reads only the rows that these episodes can
change. `rebuild_beliefs` learns all episodes of a mode again. Both ways end in equal rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from backsight.core.memory import belief_induction, checkpoints
from backsight.core.memory.belief_induction import BeliefUpdate, Knowledge
from backsight.core.memory.cells import NO_TRADES, DayCount, cells_at, cells_met, day_of
from backsight.core.memory.checkpoints import Place
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    BeliefRecord,
    BeliefRecords,
    CellDayRecord,
    EvidenceRecord,
    belief_checkpoint,
    belief_record,
    cell_from_record,
    changed_cells,
    conditions_held,
    days_from_rows,
    in_teaching_order,
    learn_beliefs,
)
from backsight.core.memory.semantic import Belief, BeliefEvidence, Domain, Weighting, place_of, reaches_look, won
from backsight.core.portfolio import Mode
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View, everything


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
        days_of=partial(_days_of, connection, owner, mode),
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
        evidence += belief_induction.founding_evidence(standing, stored.founding_trades(connection, standing))
    transaction.derive_new(stored.EVIDENCE, [EvidenceRecord(owner_id=owner, evidence=each) for each in evidence])
    rows = [belief_checkpoint(each, owner_id=owner) for each in update.checkpoints]
    transaction.derive_new(stored.BELIEF_CHECKPOINTS, rows)
    if len(episodes) > 1 or _may_be_due(after):
        _keep_cells(connection, owner, mode)
    return replace(update, evidence=tuple(evidence))


def _load_knowledge(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> Knowledge:
    """Read the part of the knowledge that learning these episodes needs."""
    met = {domain.text(): (domain, n) for domain, n in cells_met(episodes).items()}
    cells = stored.cells(connection, owner, mode, list(met))
    dates = sorted({day_of(episode).isoformat() for episode in episodes})
    days = stored.days(connection, owner, mode, list(cells), between=(dates[0], dates[-1]))
    may_test = any(
        domain.width and reaches_look(cells[text].tally.n if text in cells else 0, more=more)
        for text, (domain, more) in met.items()
    )
    beliefs = _load_beliefs(connection, owner, mode, episodes)
    return Knowledge(
        owner_id=owner,
        mode=mode,
        cells={met[text][0]: cell_from_record(cell, days[text]) for text, cell in cells.items()},
        cells_by_width=stored.count_cells_by_width(connection, owner, mode) if may_test else {},
        standings={belief.standing.belief.id: belief.standing for belief in beliefs},
    )


def _days_of(
    connection: Connection, owner: str, mode: Mode, domains: Collection[Domain]
) -> dict[Domain, dict[date, DayCount]]:
    """All stored days of some cells."""
    by_text = {domain.text(): domain for domain in domains}
    days = stored.days(connection, owner, mode, sorted(by_text))
    return {by_text[text]: days_from_rows(counts) for text, counts in days.items()}


def _load_beliefs(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> list[BeliefRecord]:
    """Read the beliefs that these episodes may be evidence of."""
    if len(episodes) == 1:
        return stored.beliefs_about_episode(connection, episodes[0])
    strategies = sorted({episode.strategy_name for episode in episodes})
    return [
        belief for strategy in strategies for belief in stored.beliefs_about_strategy(connection, owner, mode, strategy)
    ]


def _may_be_due(knowledge: Knowledge) -> bool:
    """Whether it is time to ask if a checkpoint of cells is due: at some trades only, since asking takes time too."""
    step = max(1, checkpoints.INTERVAL // 4)
    return any(cell.tally.n % step == 0 for domain, cell in knowledge.cells.items() if not domain.width)


def _keep_cells(connection: Connection, owner: str, mode: Mode) -> None:
    """Keep a checkpoint of the cells of a mode if enough trades have been learned since the last one."""
    number, since = stored.last_cell_checkpoint(connection, owner, mode)
    if not stored_memories.has_trades_since(connection, owner, mode, since, at_least=checkpoints.INTERVAL):
        return
    last = stored_memories.last_teaching_place(connection, owner, mode)
    if last is not None:
        places, latest = stored.cell_checkpoints(connection, owner, mode), number + 1
        stored.keep_cells(connection, owner, mode, latest, last)
        old = [each for each in places if not checkpoints.is_retained(each, latest=latest)]
        stored.forget_cells(connection, owner, mode, old)


def relearn_beliefs(
    transaction: Transaction,
    owner: str,
    mode: Mode,
    *,
    changed: Sequence[Episode],
    former: Sequence[Episode],
) -> tuple[BeliefEvidence, ...]:
    """Learn again from the last checkpoint before some changed trades, and return the evidence that was learned.

    `changed` are trades that are new, corrected or withdrawn, `former` the versions of them that were learned before.
    Without a checkpoint everything is learned again.
    """
    connection, first = transaction.connection, min(episode.place for episode in changed)
    places = stored.cell_checkpoints(connection, owner, mode)
    number = max((each for each, place in places.items() if place < first), default=None)
    if number is None or not _can_truncate(connection, owner, mode, places[number]):
        records = rebuild_beliefs(transaction, owner, mode)
        return tuple(record.evidence for record in records.evidence)
    tail = stored_memories.teaching_trades_after(connection, owner, mode, places[number])
    ids = {episode.id for episode in changed}
    learned = [*(episode for episode in tail if episode.id not in ids), *former]
    _truncate_beliefs(transaction, owner, mode, number, places[number], learned)
    return update_beliefs(transaction, owner, mode, tail).evidence if tail else ()


def _can_truncate(connection: Connection, owner: str, mode: Mode, place: Place) -> bool:
    """Whether it is certain which beliefs were refuted by a place: none was refuted at its very instant."""
    return all(record.standing.belief.retired_at != place[0] for record in stored.beliefs(connection, owner, mode))


def _truncate_beliefs(
    transaction: Transaction, owner: str, mode: Mode, number: int, place: Place, learned: Sequence[Episode]
) -> None:
    """Put the rows of a mode back to a checkpoint of its cells; `learned` are the trades that were learned since."""
    connection = transaction.connection
    stored.restore_cells(connection, owner, mode, number)
    _subtract_days(transaction, owner, mode, learned)
    stored.forget_evidence(connection, owner, [episode.id for episode in learned])
    retirements = stored.retirements(everything(connection, owner))
    records = stored.beliefs(connection, owner, mode)
    ids = [record.standing.belief.id for record in records]
    with_checkpoint = stored.forget_checkpoints_after(connection, owner, ids, place)
    for record in records:
        standing, belief = record.standing, record.standing.belief
        if belief.source == "induced" and belief.id not in with_checkpoint:
            stored.forget_belief(connection, owner, belief.id)
        elif standing.last_evidence_at >= place[0]:
            if belief.retired_at is not None and belief.retired_at > place[0]:
                belief = replace(belief, retired_at=retirements.get(belief.id))
            standing = stored.standing_as_of(connection, replace(standing, belief=belief), EVERYTHING.as_of)
            transaction.derive(stored.BELIEFS, [belief_record(standing)])


def _subtract_days(transaction: Transaction, owner: str, mode: Mode, episodes: Sequence[Episode]) -> None:
    """Take some trades out of the counts of their days."""
    counts: dict[tuple[str, str], DayCount] = {}
    for episode in episodes:
        win, day = won(episode), day_of(episode).isoformat()
        for domain in () if win is None else cells_at(place_of(episode)):
            key = domain.text(), day
            count = counts.get(key, NO_TRADES)
            counts[key] = DayCount(n=count.n + 1, wins=count.wins + (win is True))
    if not counts:
        return
    days = sorted({day for _, day in counts})
    domains = sorted({domain for domain, _ in counts})
    before = stored.days(transaction.connection, owner, mode, domains, between=(days[0], days[-1]))
    rows = [
        CellDayRecord(
            owner_id=owner,
            mode=mode,
            domain=domain,
            day=day,
            count=DayCount(n=before[domain][day].n - count.n, wins=before[domain][day].wins - count.wins),
        )
        for (domain, day), count in sorted(counts.items())
    ]
    transaction.derive(stored.DAYS, [row for row in rows if row.count.n])
    stored.forget_days(transaction.connection, owner, mode, [(row.domain, row.day) for row in rows if not row.count.n])


def rebuild_beliefs(
    transaction: Transaction, owner: str, mode: Mode, trades: Sequence[Episode] | None = None
) -> BeliefRecords:
    """Learn all episodes of a mode again and replace its rows; `trades` are these episodes, if they were read."""
    connection = transaction.connection
    if trades is None:
        trades = stored_memories.current_teaching_trades(connection, owner, mode=mode)
    records = beliefs_from(everything(connection, owner), mode, trades)
    stored.clear_evidence(connection, owner, mode)
    for noun in (stored.BELIEFS, stored.CELLS, stored.CELL_CHECKPOINTS, stored.DAYS):
        stored.clear(connection, noun, owner, mode=mode)
    transaction.derive_new(stored.BELIEFS, records.beliefs)
    transaction.derive_new(stored.EVIDENCE, records.evidence)
    transaction.derive_new(stored.BELIEF_CHECKPOINTS, records.checkpoints)
    transaction.derive_new(stored.CELLS, records.cells)
    transaction.derive_new(stored.DAYS, records.days)
    _keep_cells(connection, owner, mode)
    return records


def beliefs_at(view: View, mode: Mode, *, weighting: Weighting = "count") -> BeliefRecords:
    """Learn the beliefs of a mode from the episodes, statements and retirements that a view shows."""
    return beliefs_from(view, mode, stored_memories.teaching_trades(view, mode=mode), weighting=weighting)


def beliefs_from(
    view: View,
    mode: Mode,
    trades: Sequence[Episode],
    *,
    weighting: Weighting = "count",
    keep_cells: Mapping[int, Place] | None = None,
) -> BeliefRecords:
    """Learn the beliefs of a mode from these episodes, and the statements and retirements that a view shows."""
    return learn_beliefs(
        trades,
        owner_id=view.owner,
        mode=mode,
        stated=stored.stated_beliefs(view, mode),
        retired=stored.retirements(view),
        weighting=weighting,
        keep_cells=keep_cells,
    )


def _any_belief(_belief: Belief) -> bool:
    return True


def current_beliefs(view: View, mode: Mode, *, concerns: Callable[[Belief], bool] = _any_belief) -> list[BeliefRecord]:
    """The beliefs of a mode as of a view that concern the caller.

    The stored rows answer where they are of the view's instant. For an earlier instant, checkpoints and the evidence
    since answer. Only where the view shows other versions of trades than the current ones, because they were corrected,
    withdrawn or recorded after it, are the beliefs learned again from all its episodes.
    """
    if stored.is_current(view):
        records = stored.beliefs(view.connection, view.owner, mode)
    elif shows_current_trades(view, mode):
        records = _beliefs_from_checkpoints(view, mode, concerns)
    else:
        records = list(beliefs_at(view, mode).beliefs)
    return [record for record in records if concerns(record.standing.belief)]


def shows_current_trades(view: View, mode: Mode) -> bool:
    """Whether a view shows the current version of every trade of a mode that was known at its instant."""
    if stored_memories.first_difference(view, mode) is not None:
        return False
    return not stored.retirements_hidden_from(view)


def _beliefs_from_checkpoints(view: View, mode: Mode, concerns: Callable[[Belief], bool]) -> list[BeliefRecord]:
    stated = {each.id for each in stored.stated_beliefs(view, mode)}
    records = []
    for record in stored.beliefs(view.connection, view.owner, mode):
        belief = record.standing.belief
        is_known = belief.known_at <= view.as_of and (belief.source == "induced" or belief.id in stated)
        if not is_known or not concerns(belief):
            continue
        if belief.retired_at is not None and belief.retired_at > view.as_of:
            belief = replace(belief, retired_at=None)
        standing = replace(record.standing, belief=belief)
        if standing.last_evidence_at > view.as_of:
            standing = stored.standing_as_of(view.connection, standing, view.as_of)
        records.append(belief_record(standing))
    return records


def beliefs_changed_by(view: View, mode: Mode, episode_id: str) -> tuple[BeliefChange, ...]:
    """The beliefs that an episode is evidence of, as of a view."""
    if stored.is_current(view):
        pairs = stored.beliefs_with_evidence_from(view.connection, view.owner, episode_id)
    elif shows_current_trades(view, mode):
        current = stored.beliefs_with_evidence_from(view.connection, view.owner, episode_id)
        evidence_of = {row.evidence.belief_id: row for row, _ in current if row.evidence.known_at <= view.as_of}
        known = _beliefs_from_checkpoints(view, mode, lambda belief: belief.id in evidence_of)
        pairs = [(evidence_of[record.standing.belief.id], record) for record in known]
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
