"""What closed trades teach each of the five memories.

Whatever closes, corrects or withdraws trades calls `learn_trades` in its own transaction:

1. **Episodic.** Write each trade's episode at its place in the teaching order (first_known_at, sequence, id).
2. **Semantic, procedural, affective.** If the new episodes follow all others of their mode, update the stored beliefs
   (`belief_learning`), habits (`habit_learning`) and moods (`mood`). If an episode belongs before others, was corrected
   or was withdrawn, rebuild the rows of its mode, its strategy and its account from all episodes.
3. **Prospective.** Record the outcome with the plans that held when the trade was opened. End plans and withdraw
   proposals that the trades no longer support. Make the plan that a deep drawdown calls for, and propose the plans that
   credible beliefs suggest (`proposals`).
4. Report what changed in each memory.

`learn_many` and `BulkLearning` do the same for a whole history, at once or in parts. `learn_equity` does it for what an
account is worth.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backsight.core.memory.affective import EquityFact, Mood, TransferFact
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import BeliefRecord, HabitRecords
from backsight.core.memory.mood_series import account_row
from backsight.core.memory.plan_origins import MOOD_BEGINS
from backsight.core.memory.procedural import DriftAlarm
from backsight.core.memory.semantic import Belief, BeliefEvidence
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import Proposal
from backsight.core.strategies import Deployment
from backsight.services.belief_learning import (
    BeliefChange,
    belief_change,
    rebuild_beliefs,
    relearn_beliefs,
    update_beliefs,
)
from backsight.services.deployments import deployment_of
from backsight.services.habit_learning import SkillKey, rebuild_habits, relearn_habits, skill_key, update_habits
from backsight.services.mood import (
    correct_strategy_moods,
    mood_at,
    rebuild_account_moods,
    rebuild_strategy_moods,
    relearn_strategy_moods,
    update_strategy_moods,
)
from backsight.services.plan_learning import make_mood_plan, record_outcome, record_outcomes
from backsight.services.proposals import end_advice_of_beliefs, propose_from_beliefs, review_advice
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import everything

HISTORY = timedelta(days=1)
"""A fact that is recorded later than this after it became known teaches, and makes no plans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReport:
    """What one closed trade changed in each memory."""

    episode_id: str
    """Episodic: the trade's episode."""
    evidence: tuple[BeliefChange, ...]
    """Semantic: the beliefs that the episode is evidence for or against."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: int
    """Procedural: how many trades the habits of this strategy and symbol now rest on."""
    drifted: tuple[DriftAlarm, ...]
    mood: Mood
    """Affective: the mood after the trade."""
    plans: tuple[str, ...]
    """Prospective: the ids of the plans that the trade led to."""
    proposals: tuple[str, ...]
    """Prospective: the ids of the plans that beliefs about the trade propose; list_proposals shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkLearningReport:
    """What many closed trades changed in each memory."""

    episodes: int
    """Episodic: how many episodes were written."""
    evidence: int
    """Semantic: how many pieces of evidence for or against beliefs the episodes are."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: int
    """Procedural: for how many pairs of strategy and symbol the habits changed."""
    moods: int
    """Affective: for how many strategies on accounts the mood changed."""
    plans: tuple[str, ...]
    """Prospective: the ids of the plans that the trades led to."""
    proposals: tuple[str, ...]
    """Prospective: the ids of the plans that beliefs about the trades propose; list_proposals shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemoryChanges:
    """What episodes changed in beliefs and habits."""

    evidence: tuple[BeliefEvidence, ...]
    """The evidence that these episodes are, founding evidence included."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: Mapping[SkillKey, HabitRecords]
    """By strategy; where habits were rebuilt, with the alarms of all earlier trades too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EpisodeChange:
    """An episode that is new, that corrects a former version, or that was withdrawn."""

    episode: Episode
    former: Episode | None = None
    withdrawn: bool = False

    @property
    def is_new(self) -> bool:
        return self.former is None and not self.withdrawn

    @property
    def learned_version(self) -> Episode | None:
        """The version that other memories learned before the change."""
        return self.episode if self.withdrawn else self.former

    @property
    def teaches(self) -> bool:
        """Whether memories other than the episodic one depend on what changed."""
        return self.former is None or self.withdrawn or self.former.teaching != self.episode.teaching


def learn_trades(
    transaction: Transaction, episodes: Iterable[Episode], *, withdrawn: Sequence[Episode] = ()
) -> tuple[LearningReport, ...]:
    """Write the episodes of closed trades, learn from them, and report what each of them changed.

    `withdrawn` are episodes that were deleted because their trades are no longer closed. For many trades at once, see
    `learn_many`.
    """
    changes = [_EpisodeChange(episode=episode, withdrawn=True) for episode in withdrawn]
    in_order = not withdrawn
    for episode in sorted(episodes, key=lambda each: (each.ended_at, each.id)):
        change, is_last = _write_episode(transaction, episode)
        changes.append(change)
        in_order = in_order and (is_last or not change.teaches)
    teaching = [change for change in changes if change.teaches]
    if in_order:
        return tuple(_learn_next(transaction, change.episode) for change in teaching)
    return _learn_again(transaction, teaching)


def learn_many(transaction: Transaction, episodes: Sequence[Episode]) -> BulkLearningReport:
    """Write the episodes of many closed trades that are not stored yet, and learn from all of them at once.

    Beliefs, habits and moods end as if the episodes had come one by one in the order in which they became known;
    episodes of one instant count in the order given. Plans are made once, from the beliefs and moods at the end.
    """
    learning = BulkLearning(transaction)
    learning.add(episodes)
    return learning.finish()


class BulkLearning:
    """Learning from a history of closed trades that comes in parts: nothing is learned twice.

    Parts that follow all stored episodes of their mode are learned as they come. From the first part that does not, the
    episodes are only written, and `finish` learns everything again, once.
    """

    def __init__(self, transaction: Transaction, *, again: bool = False) -> None:
        self._transaction = transaction
        self._again = again
        """Whether `finish` has to learn everything again."""
        self._waiting: list[Episode] = []
        """Written by a tick, and not learned yet."""
        self._ids: list[str] = []
        """Of the episodes of each part, joined by spaces: a set of all of them would take four times as much memory."""
        self._modes: set[tuple[str, Mode]] = set()
        self._skills: dict[SkillKey, set[str]] = {}
        """The symbols that were traded, by strategy."""
        self._deployments: dict[str, Deployment] = {}
        self._recent: dict[str, Episode] = {}
        """Episodes that plans may still be made of, by id."""
        self._recent_evidence: list[BeliefEvidence] = []
        self._evidence = 0
        self._induced: list[Belief] = []
        self._retired: list[Belief] = []
        self._now: datetime | None = None

    def add(self, episodes: Sequence[Episode]) -> None:
        """Write new episodes and learn from them; those of one instant count in the order given."""
        connection = self._transaction.connection
        last_places = {key: stored_memories.last_teaching_place(connection, *key) for key in _modes(episodes)}
        placed = _assign_places(connection, episodes, last_places)
        self._transaction.add_all(stored_memories.EPISODES, placed)
        follow = all(last is None or last < _of_mode(placed, mode)[0].place for (_, mode), last in last_places.items())
        self._note(placed)
        record_outcomes(self._transaction, self._deployments, placed)
        self._again = self._again or not follow
        if not self._again:
            self._count(_update_memories(self._transaction, placed))

    def add_of_tick(self, episodes: Iterable[Episode], *, withdrawn: Sequence[Episode]) -> None:
        """Write the episodes of trades that a tick closed; only the mood, which the next tick reads, learns at once."""
        for episode in withdrawn:
            self.withdraw(episode)
        for episode in sorted(episodes, key=lambda each: (each.ended_at, each.id)):
            change, is_last = _write_episode(self._transaction, episode)
            self._again = self._again or (change.teaches and not is_last)
            self._note([change.episode])
            self._waiting.append(change.episode)
            record_outcomes(self._transaction, self._deployments, [change.episode])
            deployment = self._deployments[episode.deployment_id]
            if change.former is None:
                update_strategy_moods(self._transaction, deployment, [change.episode])
            else:
                correct_strategy_moods(self._transaction, deployment, episode.id)

    def correct(self, episode: Episode) -> None:
        """Write the corrected episode of a closed trade; everything is learned again at the end."""
        change, _ = _write_episode(self._transaction, episode)
        self._again = True
        self._note([change.episode])

    def withdraw(self, episode: Episode) -> None:
        """Learn everything again at the end, since an episode was withdrawn."""
        self._again = True
        self._note([episode])

    def finish(self) -> BulkLearningReport:
        """Learn what was not learned yet, tell the plans, and report what changed in each memory."""
        ids = {episode_id for part in self._ids for episode_id in part.split()}
        if self._again:
            self._learn_again(ids)
        elif self._waiting:
            self._count(_update_beliefs_and_habits(self._transaction, self._waiting))
        plans, proposals = self._update_plans()
        return BulkLearningReport(
            episodes=len(ids),
            evidence=self._evidence,
            induced=tuple(self._induced),
            retired=tuple(self._retired),
            habits=sum(len(symbols) for symbols in self._skills.values()),
            moods=len(_one_per_mood_series(self._deployments.values())),
            plans=plans,
            proposals=proposals,
        )

    def _note(self, episodes: Sequence[Episode]) -> None:
        """Record what some episodes concern."""
        if not episodes:
            return
        self._now = max(max(each.known_at, each.recorded_at, self._now or each.known_at) for each in episodes)
        self._modes |= _modes(episodes)
        self._ids.append(" ".join([episode.id for episode in episodes]))
        for episode in episodes:
            self._skills.setdefault(skill_key(episode), set()).add(episode.symbol)
            if episode.deployment_id not in self._deployments:
                self._deployments[episode.deployment_id] = deployment_of(self._transaction.connection, episode)
            if self._now - episode.known_at <= HISTORY:
                self._recent[episode.id] = episode

    def _count(self, changes: _MemoryChanges) -> None:
        self._evidence += len(changes.evidence)
        self._induced += changes.induced
        self._retired += changes.retired
        self._recent_evidence += [each for each in changes.evidence if each.episode_id in self._recent]

    def _learn_again(self, ids: Collection[str]) -> None:
        """Learn all episodes of the modes and strategies concerned, instead of what was counted so far."""
        changes = _rebuild_beliefs_and_habits(self._transaction, self._modes, self._skills, ids)
        for deployment in _one_per_mood_series(self._deployments.values()):
            rebuild_strategy_moods(self._transaction, deployment)
        self._evidence, self._recent_evidence = 0, []
        self._count(changes)

    def _update_plans(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the plans, and of the proposals, that recent episodes led to."""
        if self._now is None:
            return (), ()
        transaction, now = self._transaction, self._now
        connection, owner = transaction.connection, next(iter(self._deployments.values())).owner_id
        end_advice_of_beliefs(transaction, owner, [belief.id for belief in self._retired], now=now)
        for deployment in self._deployments.values():
            review_advice(transaction, deployment, now=now)
        # Of each deployment with recent trades: the beliefs that these trades are evidence of.
        recent = {key: each.deployment_id for key, each in self._recent.items() if now - each.known_at <= HISTORY}
        belief_ids: dict[str, set[str]] = {deployment_id: set() for deployment_id in recent.values()}
        for evidence in self._recent_evidence:
            if evidence.episode_id in recent:
                belief_ids[recent[evidence.episode_id]].add(evidence.belief_id)
        plans, proposals = list[str](), list[str]()
        for deployment_id, ids in belief_ids.items():
            deployment = self._deployments[deployment_id]
            beliefs = (stored.belief(connection, owner, belief_id) for belief_id in sorted(ids))
            credible = [each for each in beliefs if each is not None]
            proposed = propose_from_beliefs(transaction, deployment, credible, now=now, only_if_due=False)
            plans += _made(proposed)
            plans += make_mood_plan(transaction, deployment, mood_at(connection, deployment, now), now=now)
            proposals += (proposal.id for proposal in proposed)
        return tuple(plans), tuple(proposals)


def learn_equity(
    transaction: Transaction, owner: str, account_id: str, fact: EquityFact | TransferFact, *, recorded_at: datetime
) -> None:
    """Add the mood row that one more equity fact makes, and the plans that a deep drawdown calls for.

    If the fact is already stored, or the series has later rows, the account's rows are rebuilt with the fact instead.
    """
    connection = transaction.connection
    last = stored.mood_row(everything(connection, owner), account_id, "")
    if last is not None and last.order >= (fact.known_at, fact.sequence, fact.id):
        rebuild_account_moods(transaction, owner, account_id, more=fact)
        return
    row = account_row(last, fact, owner_id=owner, account_id=account_id)
    stored.add_account_mood(transaction, row)
    now = max(fact.known_at, recorded_at)
    if (row.drawdown_state or 0.0) >= MOOD_BEGINS and now - fact.known_at <= HISTORY:
        for deployment in stored_strategies.deployments_of(connection, owner, account_id):
            make_mood_plan(transaction, deployment, mood_at(connection, deployment, now), now=now)


# Step 1: episodes at their places in the teaching order.

_Places = Mapping[tuple[str, Mode], tuple[datetime, int, str] | None]
"""By owner and mode: the place of the last trade in the teaching order; None where there is no trade."""


def _write_episode(transaction: Transaction, episode: Episode) -> tuple[_EpisodeChange, bool]:
    """Write an episode at its place; say also whether that place is after all others of its mode."""
    connection, owner = transaction.connection, episode.owner_id
    former = stored_memories.current_episode(connection, owner, episode.id)
    if former is not None:
        corrected = replace(
            episode,
            first_known_at=former.first_known_at,
            sequence=former.sequence,
            archived_at=former.archived_at,
        )
        transaction.revise(stored_memories.EPISODES, corrected)
        return _EpisodeChange(episode=corrected, former=former), False
    last = stored_memories.last_teaching_place(connection, owner, episode.mode)
    (placed,) = _assign_places(connection, [episode], {(owner, episode.mode): last})
    transaction.add(stored_memories.EPISODES, placed)
    return _EpisodeChange(episode=placed), last is None or last < placed.place


def _assign_places(connection: Connection, episodes: Iterable[Episode], last_places: _Places) -> list[Episode]:
    """New episodes in teaching order, each with its number among the episodes of its instant."""
    ordered = sorted(episodes, key=lambda each: each.known_at)
    next_numbers: dict[tuple[Mode, datetime], int] = {}
    for (owner, mode), last in last_places.items():
        own = {each.known_at for each in ordered if each.mode == mode}
        taken = {at for at in own if last is not None and last[0] >= at}
        stored_numbers = stored_memories.next_sequences(connection, owner, mode, taken)
        next_numbers |= {(mode, at): stored_numbers.get(at, 0) for at in own}
    placed: list[Episode] = []
    for episode in ordered:
        instant = episode.mode, episode.known_at
        number = next_numbers[instant]
        if (episode.first_known_at, episode.sequence) != (episode.known_at, number):
            episode = replace(episode, first_known_at=episode.known_at, sequence=number)
        placed.append(episode)
        next_numbers[instant] += 1
    return placed


# Step 2: beliefs, habits and moods.


def _learn_next(transaction: Transaction, episode: Episode) -> LearningReport:
    """Learn one episode that follows all others of its mode."""
    changes = _update_memories(transaction, [episode])
    return _report(transaction, episode, changes, alarms=changes.habits[skill_key(episode)].alarms)


def _learn_again(transaction: Transaction, changes: Sequence[_EpisodeChange]) -> tuple[LearningReport, ...]:
    """Rebuild what some episodes concern, and report on those that were not withdrawn."""
    rebuilt = _relearn_memories(transaction, changes)
    return tuple(
        _report(transaction, change.episode, rebuilt, alarms=_alarms_at(change.episode, rebuilt))
        for change in changes
        if not change.withdrawn
    )


def _alarms_at(episode: Episode, changes: _MemoryChanges) -> tuple[DriftAlarm, ...]:
    """The alarms in an episode's symbol and strategy that were raised when the episode became known."""
    alarms = changes.habits[skill_key(episode)].alarms
    concerned = (None, episode.symbol)
    return tuple(each for each in alarms if each.symbol in concerned and each.alarm.at == episode.first_known_at)


def _update_memories(transaction: Transaction, episodes: Sequence[Episode]) -> _MemoryChanges:
    """Learn episodes that follow all others of their modes."""
    changes = _update_beliefs_and_habits(transaction, episodes)
    deployments = _deployments_of(transaction.connection, episodes)
    series: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        deployment = deployments[episode.deployment_id]
        series.setdefault((deployment.account_id, deployment.strategy_name), []).append(episode)
    for own in series.values():
        update_strategy_moods(transaction, deployments[own[0].deployment_id], own)
    return changes


def _update_beliefs_and_habits(transaction: Transaction, episodes: Sequence[Episode]) -> _MemoryChanges:
    evidence, induced, retired = list[BeliefEvidence](), list[Belief](), list[Belief]()
    for owner, mode in _modes(episodes):
        update = update_beliefs(transaction, owner, mode, _of_mode(episodes, mode))
        evidence += update.evidence
        induced += update.induced
        retired += update.retired
    habits = {key: update_habits(transaction, key, own) for key, own in _by_skill(episodes).items()}
    return _MemoryChanges(
        evidence=_evidence_of({episode.id for episode in episodes}, evidence),
        induced=tuple(induced),
        retired=tuple(retired),
        habits=habits,
    )


def _relearn_memories(transaction: Transaction, changes: Sequence[_EpisodeChange]) -> _MemoryChanges:
    """Learn again whatever episodes concern that come before others, were corrected or were withdrawn.

    Beliefs and habits are learned again from the last checkpoint before these episodes.
    """
    connection, episodes = transaction.connection, [change.episode for change in changes]
    modes, evidence = _modes(episodes), list[BeliefEvidence]()
    before = _by_id(belief for key in modes for belief in stored.beliefs(connection, *key))
    for owner, mode in modes:
        own = [change for change in changes if change.episode.mode == mode]
        former = [version for change in own if (version := change.learned_version) is not None]
        evidence += relearn_beliefs(transaction, owner, mode, changed=[change.episode for change in own], former=former)
    after = _by_id(belief for key in modes for belief in stored.beliefs(connection, *key))
    habits = {
        key: relearn_habits(transaction, key, min(episode.place for episode in own))
        for key, own in _by_skill(episodes).items()
    }
    _relearn_moods(transaction, changes)
    return _MemoryChanges(
        evidence=_evidence_of({episode.id for episode in episodes}, evidence),
        induced=tuple(belief for belief_id, belief in after.items() if belief_id not in before),
        retired=tuple(belief for belief in after.values() if _is_newly_retired(belief, before)),
        habits=habits,
    )


def _relearn_moods(transaction: Transaction, changes: Sequence[_EpisodeChange]) -> None:
    deployments = _deployments_of(transaction.connection, [change.episode for change in changes])
    series: dict[tuple[str, str], list[_EpisodeChange]] = {}
    for change in changes:
        deployment = deployments[change.episode.deployment_id]
        series.setdefault((deployment.account_id, deployment.strategy_name), []).append(change)
    for own in series.values():
        deployment = deployments[own[0].episode.deployment_id]
        if all(change.is_new for change in own):
            relearn_strategy_moods(transaction, deployment, [change.episode for change in own])
        elif len(own) == 1:
            correct_strategy_moods(transaction, deployment, own[0].episode.id)
        else:
            rebuild_strategy_moods(transaction, deployment)


def _rebuild_beliefs_and_habits(
    transaction: Transaction, modes: Collection[tuple[str, Mode]], skills: Collection[SkillKey], ids: Collection[str]
) -> _MemoryChanges:
    """Learn all episodes of some modes and strategies again; the evidence is that of the episodes with the ids."""
    connection, evidence, habits = transaction.connection, list[BeliefEvidence](), dict[SkillKey, HabitRecords]()
    before = _by_id(belief for key in modes for belief in stored.beliefs(connection, *key))
    for owner, mode in modes:
        trades = stored_memories.current_teaching_trades(connection, owner, mode=mode)
        evidence += (record.evidence for record in rebuild_beliefs(transaction, owner, mode, trades).evidence)
        by_skill = _by_skill(trades)
        for key in skills:
            if (key.owner_id, key.mode) == (owner, mode):
                habits[key] = rebuild_habits(transaction, key, by_skill.get(key, []))
    after = _by_id(belief for key in modes for belief in stored.beliefs(connection, *key))
    return _MemoryChanges(
        evidence=_evidence_of(ids, evidence),
        induced=tuple(belief for belief_id, belief in after.items() if belief_id not in before),
        retired=tuple(belief for belief in after.values() if _is_newly_retired(belief, before)),
        habits=habits,
    )


def _is_newly_retired(belief: Belief, before: Mapping[str, Belief]) -> bool:
    former = before.get(belief.id)
    return belief.retired_at is not None and former is not None and former.retired_at is None


# Steps 3 and 4: plans, and the report.


def _report(
    transaction: Transaction, episode: Episode, changes: _MemoryChanges, *, alarms: tuple[DriftAlarm, ...]
) -> LearningReport:
    """Tell the plans about an episode, and say what it changed in every memory."""
    connection = transaction.connection
    deployment = deployment_of(connection, episode)
    is_evidence = any(each.episode_id == episode.id for each in changes.evidence)
    pairs = stored.beliefs_with_evidence_from(connection, episode.owner_id, episode.id) if is_evidence else []
    now = max(episode.known_at, episode.recorded_at)
    mood = mood_at(connection, deployment, now)
    record_outcome(transaction, deployment, episode, recorded_at=episode.recorded_at)
    end_advice_of_beliefs(transaction, episode.owner_id, [belief.id for belief in changes.retired], now=now)
    review_advice(transaction, deployment, now=now, only_if_due=True)
    proposals, plans = tuple[Proposal, ...](), tuple[str, ...]()
    if now - episode.known_at <= HISTORY:
        proposals = propose_from_beliefs(transaction, deployment, [belief for _, belief in pairs], now=now)
        plans = (*_made(proposals), *make_mood_plan(transaction, deployment, mood, now=now))
    habits = changes.habits[skill_key(episode)].habits
    return LearningReport(
        episode_id=episode.id,
        evidence=tuple(belief_change(record.evidence, belief) for record, belief in pairs),
        induced=changes.induced,
        retired=changes.retired,
        habits=next((row.habits.n for row in habits if row.symbol == episode.symbol), 0),
        drifted=alarms,
        mood=mood,
        plans=plans,
        proposals=tuple(proposal.id for proposal in proposals),
    )


def _made(proposals: Iterable[Proposal]) -> tuple[str, ...]:
    """The ids of the plans that were made from proposals."""
    return tuple(proposal.made_id for proposal in proposals if proposal.made_id is not None)


# Grouping episodes.


def _modes(episodes: Iterable[Episode]) -> set[tuple[str, Mode]]:
    return {(episode.owner_id, episode.mode) for episode in episodes}


def _of_mode(episodes: Iterable[Episode], mode: Mode) -> list[Episode]:
    return [episode for episode in episodes if episode.mode == mode]


def _by_skill(episodes: Iterable[Episode]) -> dict[SkillKey, list[Episode]]:
    groups: dict[SkillKey, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(skill_key(episode), []).append(episode)
    return groups


def _by_id(records: Iterable[BeliefRecord]) -> dict[str, Belief]:
    return {record.standing.belief.id: record.standing.belief for record in records}


def _evidence_of(ids: Collection[str], evidence: Iterable[BeliefEvidence]) -> tuple[BeliefEvidence, ...]:
    """The evidence that the episodes with these ids are."""
    return tuple(each for each in evidence if each.episode_id in ids)


def _deployments_of(connection: Connection, episodes: Iterable[Episode]) -> dict[str, Deployment]:
    """The deployments of episodes, by id."""
    one_each = {episode.deployment_id: episode for episode in episodes}
    return {deployment_id: deployment_of(connection, episode) for deployment_id, episode in one_each.items()}


def _one_per_mood_series(deployments: Iterable[Deployment]) -> list[Deployment]:
    """One deployment for each pair of account and strategy, since all deployments of a pair share one mood series."""
    return list({(each.account_id, each.strategy_name): each for each in deployments}.values())
