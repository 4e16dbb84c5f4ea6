"""What closed trades teach: episodes are kept, and beliefs, habits, mood and plans brought to where they lead.

One more trade at the end of the order is learned from what is kept. A trade that became known earlier than others, one
that was corrected or taken back: what it concerns is learned again from all episodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from backsight.core.audit import Finding
from backsight.core.instants import Horizon
from backsight.core.memory import semantic
from backsight.core.memory.affective import (
    EquityFact,
    Mood,
    TransferFact,
    account_row,
    account_rows,
    close_fact,
    next_strategy_rows,
)
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    BeliefRecord,
    BeliefRecords,
    CellRecord,
    EvidenceRecord,
    HabitRecords,
    belief_record,
    cell_from_record,
    changed_cells,
    conditions_held,
    in_teaching_order,
    learn_beliefs,
    learn_habits,
    practice_from_record,
)
from backsight.core.memory.procedural import DriftAlarm, Practice, Skill, WindowTrade, window_of
from backsight.core.memory.prospective import MOOD_BEGINS
from backsight.core.memory.semantic import Belief, BeliefEvidence, Domain, Knowledge
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.services.deployments import deployment_named
from backsight.services.mood import is_current, mood_at, strategy_moods
from backsight.services.plans import cancel_plans_from_beliefs, make_plans, record_outcome, record_outcomes
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.mapping import Noun
from backsight.store.transaction import Transaction

FOREVER = datetime.max.replace(tzinfo=UTC)
EVERYTHING = Horizon(as_of=FOREVER)
HISTORY = timedelta(days=1)
"""What is told later than this is history: it teaches, and makes no plans."""

_Skill = tuple[str, Mode, str]
"""An owner, a mode and a strategy: what habits are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefChange:
    """What an episode did to a belief."""

    belief_id: str
    proposition: str
    confirms: bool
    founding: bool
    """Whether the belief was induced from it."""
    credibility: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningReport:
    """What one closed trade changed in each memory."""

    episode_id: str
    """Episodic: the episode it left behind."""
    evidence: tuple[BeliefChange, ...]
    """Semantic: the beliefs that it is evidence for or against."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: int
    """Procedural: how many trades the habits of this strategy and symbol now rest on."""
    drifted: tuple[DriftAlarm, ...]
    mood: Mood
    """Affective: as it is now."""
    plans: tuple[str, ...]
    """Prospective: the plans that were made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkLearningReport:
    """What many closed trades changed in each memory."""

    episodes: int
    """Episodic: those that they left behind."""
    evidence: int
    """Semantic: how often one of them is evidence for or against a belief."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: int
    """Procedural: how many strategies and symbols they are of, whose habits changed."""
    moods: int
    """Affective: how many strategies on accounts they are of, whose moods changed."""
    plans: tuple[str, ...]
    """Prospective: the plans that were made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taught:
    """What episodes changed in beliefs and habits."""

    evidence: tuple[BeliefEvidence, ...]
    """Those of these episodes."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    practices: Mapping[_Skill, HabitRecords]
    """Of all trades that were learned on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """An episode that is new, or that replaces or takes back a former one."""

    episode: Episode
    former: Episode | None = None
    gone: bool = False

    @property
    def teaches(self) -> bool:
        return self.former is None or self.gone or self.former.teaching != self.episode.teaching


def learn_trades(
    transaction: Transaction,
    episodes: Iterable[Episode],
    *,
    withdrawn: Sequence[Episode] = (),
) -> tuple[LearningReport, ...]:
    """Keep the episodes of closed trades and learn from them; say what that changed.

    `withdrawn` are those that were taken back, since their trades are closed no longer. Many at once: `learn_many`.
    """
    changes = [_Change(episode=episode, gone=True) for episode in withdrawn]
    in_order = not withdrawn
    for episode in sorted(episodes, key=lambda each: (each.ended_at, each.id)):
        change, follows = _kept(transaction, episode)
        changes.append(change)
        in_order = in_order and (follows or not change.teaches)
    taught = [change for change in changes if change.teaches]
    if in_order:
        return tuple(_learn_one(transaction, change.episode) for change in taught)
    return _learn_again(transaction, taught)


def learn_many(transaction: Transaction, episodes: Sequence[Episode]) -> BulkLearningReport:
    """Keep the episodes of many closed trades that are not there yet, and learn from all of them at once.

    Beliefs, habits and moods are then what they would be had the episodes come one by one, in the order in which they
    became known, those of one instant as they are given. Plans are made once, of what all of them lead to.
    """
    connection = transaction.connection
    lasts = {each: stored_memories.last_teaching_place(connection, *each) for each in _modes(episodes)}
    placed = _placed(connection, episodes, lasts)
    transaction.add_all(stored_memories.EPISODES, placed)
    follow = all(last is None or last < _of_mode(placed, mode)[0].place for (_, mode), last in lasts.items())
    taught = _learn_next(transaction, placed) if follow else _learn_past(transaction, placed)
    homes = _homes(connection, placed)
    return BulkLearningReport(
        episodes=len(placed),
        evidence=len(taught.evidence),
        induced=taught.induced,
        retired=taught.retired,
        habits=len({(episode.mode, episode.strategy_name, episode.symbol) for episode in placed}),
        moods=len(_series(homes.values())),
        plans=_told_to_plans(transaction, homes, placed, taught),
    )


def _placed(
    connection: Connection,
    episodes: Iterable[Episode],
    lasts: Mapping[tuple[str, Mode], tuple[datetime, int, str] | None],
) -> list[Episode]:
    """New episodes in the order in which they teach, each numbered among those of its instant."""
    numbers: dict[tuple[Mode, datetime], int] = {}
    placed: list[Episode] = []
    for episode in sorted(episodes, key=lambda each: each.known_at):
        instant, last = (episode.mode, episode.known_at), lasts[episode.owner_id, episode.mode]
        if instant not in numbers:
            met = last is not None and last[0] >= episode.known_at
            numbers[instant] = stored_memories.next_sequence(connection, episode.owner_id, *instant) if met else 0
        placed.append(_numbered(episode, numbers[instant]))
        numbers[instant] += 1
    return placed


def _numbered(episode: Episode, number: int) -> Episode:
    """A new episode at its place among those of its instant."""
    if (episode.first_known_at, episode.sequence) == (episode.known_at, number):
        return episode
    return replace(episode, first_known_at=episode.known_at, sequence=number)


def _modes(episodes: Iterable[Episode]) -> set[tuple[str, Mode]]:
    return {(episode.owner_id, episode.mode) for episode in episodes}


def _of_mode(episodes: Iterable[Episode], mode: Mode) -> list[Episode]:
    return [episode for episode in episodes if episode.mode == mode]


def _kept(transaction: Transaction, episode: Episode) -> tuple[_Change, bool]:
    """Write an episode in its place; whether that is after all others of its mode."""
    connection, owner = transaction.connection, episode.owner_id
    former = stored_memories.episode(connection, owner, episode.id)
    if former is not None:
        placed = replace(
            episode,
            first_known_at=former.first_known_at,
            sequence=former.sequence,
            archived_at=former.archived_at,
        )
        transaction.revise(stored_memories.EPISODES, placed)
        return _Change(episode=placed, former=former), False
    last = stored_memories.last_teaching_place(connection, owner, episode.mode)
    (placed,) = _placed(connection, [episode], {(owner, episode.mode): last})
    transaction.add(stored_memories.EPISODES, placed)
    return _Change(episode=placed), last is None or last < placed.place


def _learn_one(transaction: Transaction, episode: Episode) -> LearningReport:
    """Learn one episode that follows all others of its mode."""
    taught = _learn_next(transaction, [episode])
    return _told(transaction, episode, taught, drifted=taught.practices[_skill(episode)].alarms)


def _learn_next(transaction: Transaction, episodes: Sequence[Episode]) -> _Taught:
    """Learn episodes that follow all others of their modes."""
    evidence, induced, retired = list[BeliefEvidence](), list[Belief](), list[Belief]()
    for owner, mode in _modes(episodes):
        learned = _learn_beliefs(transaction, owner, mode, _of_mode(episodes, mode))
        evidence += learned.evidence
        induced += learned.induced
        retired += learned.retired
    practices = {skill: _learn_habits(transaction, skill, own) for skill, own in _by_skill(episodes).items()}
    homes = _homes(transaction.connection, episodes)
    series: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        home = homes[episode.deployment_id]
        series.setdefault((home.account_id, home.strategy_name), []).append(episode)
    for own in series.values():
        _learn_moods(transaction, homes[own[0].deployment_id], own)
    return _Taught(
        evidence=_evidence_of(episodes, evidence),
        induced=tuple(induced),
        retired=tuple(retired),
        practices=practices,
    )


def _learn_past(transaction: Transaction, episodes: Sequence[Episode]) -> _Taught:
    """Learn all again that some episodes concern, whose place is before others or which were corrected."""
    connection, evidence = transaction.connection, list[EvidenceRecord]()
    modes = _modes(episodes)
    before = _by_id(belief for each in modes for belief in stored.beliefs(connection, *each))
    for owner, mode in modes:
        evidence += rebuild_beliefs(transaction, owner, mode).evidence
    after = _by_id(belief for each in modes for belief in stored.beliefs(connection, *each))
    practices = {skill: rebuild_habits(transaction, *skill) for skill in _by_skill(episodes)}
    for home in _series(_homes(connection, episodes).values()):
        rebuild_strategy_moods(transaction, home)
    return _Taught(
        evidence=_evidence_of(episodes, (each.evidence for each in evidence)),
        induced=tuple(each.standing.belief for name, each in after.items() if name not in before),
        retired=tuple(each.standing.belief for each in after.values() if _newly_retired(each, before)),
        practices=practices,
    )


def _evidence_of(episodes: Iterable[Episode], evidence: Iterable[BeliefEvidence]) -> tuple[BeliefEvidence, ...]:
    """The evidence that some episodes are."""
    named = {episode.id for episode in episodes}
    return tuple(each for each in evidence if each.episode_id in named)


def _homes(connection: Connection, episodes: Iterable[Episode]) -> dict[str, Deployment]:
    """The deployments of episodes, by id."""
    one_each = {episode.deployment_id: episode for episode in episodes}
    return {name: _home(connection, episode) for name, episode in one_each.items()}


def _series(homes: Iterable[Deployment]) -> list[Deployment]:
    """One deployment of each strategy on an account: deployments of both share a series of moods."""
    return list({(home.account_id, home.strategy_name): home for home in homes}.values())


def _told(
    transaction: Transaction, episode: Episode, taught: _Taught, *, drifted: tuple[DriftAlarm, ...]
) -> LearningReport:
    """What was learned from an episode, with the plans that follow from it."""
    connection = transaction.connection
    home = _home(connection, episode)
    is_evidence = any(each.episode_id == episode.id for each in taught.evidence)
    fed = stored.beliefs_with_evidence_from(connection, episode.owner_id, episode.id) if is_evidence else []
    now = max(episode.known_at, episode.recorded_at)
    mood = mood_at(connection, home, now)
    record_outcome(transaction, home, episode, recorded_at=episode.recorded_at)
    cancel_plans_from_beliefs(transaction, home.owner_id, [belief.id for belief in taught.retired], now=now)
    plans: tuple[str, ...] = ()
    if now - episode.known_at <= HISTORY:
        plans = make_plans(transaction, home, [held for _, held in fed], mood, now=now)
    habits = taught.practices[_skill(episode)].habits
    return LearningReport(
        episode_id=episode.id,
        evidence=tuple(_change(each.evidence, held) for each, held in fed),
        induced=taught.induced,
        retired=taught.retired,
        habits=next((each.habits.n for each in habits if each.symbol == episode.symbol), 0),
        drifted=drifted,
        mood=mood,
        plans=plans,
    )


def _told_to_plans(
    transaction: Transaction, homes: Mapping[str, Deployment], episodes: Sequence[Episode], taught: _Taught
) -> tuple[str, ...]:
    """Tell plans what many episodes bring, and make those that follow from what is no history; which are new."""
    if not episodes:
        return ()
    connection, owner = transaction.connection, episodes[0].owner_id
    now = max(max(episode.known_at, episode.recorded_at) for episode in episodes)
    record_outcomes(transaction, homes, episodes)
    cancel_plans_from_beliefs(transaction, owner, [belief.id for belief in taught.retired], now=now)
    recent = {episode.id: episode.deployment_id for episode in episodes if now - episode.known_at <= HISTORY}
    fed: dict[str, set[str]] = {deployment_id: set() for deployment_id in recent.values()}
    for each in taught.evidence:
        if each.episode_id in recent:
            fed[recent[each.episode_id]].add(each.belief_id)
    made: list[str] = []
    for deployment_id, beliefs in fed.items():
        home = homes[deployment_id]
        held = (stored.belief(connection, owner, belief_id) for belief_id in sorted(beliefs))
        mood = mood_at(connection, home, now)
        made += make_plans(transaction, home, [each for each in held if each is not None], mood, now=now)
    return tuple(made)


def _learn_beliefs(
    transaction: Transaction, owner: str, mode: Mode, episodes: Sequence[Episode]
) -> semantic.BeliefUpdate:
    """Bring cells, evidence and beliefs to where more episodes lead; the founding evidence is among what is said."""
    connection = transaction.connection
    before = _knowledge(connection, owner, mode, episodes)
    retired = stored.retirements(connection, owner, EVERYTHING)
    learned = semantic.learn_all(
        in_teaching_order(episodes), knowledge=before, holds=conditions_held, retirements=retired
    )
    after = learned.knowledge
    changed = changed_cells(before, after)
    transaction.derive(stored.CELLS, changed.cells)
    transaction.derive(stored.DAYS, changed.days)
    transaction.derive_new(stored.DAYS, changed.new_days)
    fed = [standing for name, standing in after.standings.items() if standing is not before.standings.get(name)]
    transaction.derive(stored.BELIEFS, map(belief_record, fed))
    evidence = list(learned.evidence)
    for belief in learned.induced:
        standing = after.standings[belief.id]
        evidence += semantic.founding_evidence(
            standing, in_teaching_order(stored.founding_episodes(connection, standing))
        )
    transaction.derive_new(stored.EVIDENCE, [EvidenceRecord(owner_id=owner, evidence=each) for each in evidence])
    return replace(learned, evidence=tuple(evidence))


def _knowledge(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> Knowledge:
    """What is known, as far as more episodes need it."""
    met = {domain.text(): (domain, n) for domain, n in semantic.cells_met(episodes).items()}
    rows = stored.cells(connection, owner, mode, list(met))
    on = sorted({semantic.day_of(episode).isoformat() for episode in episodes})
    days = stored.days(connection, owner, mode, list(rows), between=(on[0], on[-1]))
    looked_at = [text for text, (domain, n) in met.items() if domain.width and _is_looked_at(rows.get(text), n)]
    if looked_at:
        strategies = {Domain(strategy=met[text][0].strategy).text() for text in looked_at}
        days |= stored.days(connection, owner, mode, [text for text in (*strategies, *looked_at) if text in rows])
    spoken = _spoken_of(connection, owner, mode, episodes)
    return Knowledge(
        owner_id=owner,
        mode=mode,
        cells={met[text][0]: cell_from_record(row, days[text]) for text, row in rows.items()},
        seen=stored.count_cells_by_width(connection, owner, mode) if looked_at else {},
        standings={each.standing.belief.id: each.standing for each in spoken},
    )


def _spoken_of(connection: Connection, owner: str, mode: Mode, episodes: Sequence[Episode]) -> list[BeliefRecord]:
    """The beliefs that may speak of some episodes."""
    if len(episodes) == 1:
        return stored.beliefs_about_episode(connection, episodes[0])
    strategies = sorted({episode.strategy_name for episode in episodes})
    return [
        each for strategy in strategies for each in stored.beliefs_about_strategy(connection, owner, mode, strategy)
    ]


def _is_looked_at(row: CellRecord | None, more: int) -> bool:
    return semantic.is_looked_at(0 if row is None else row.tally.n, more=more)


def _learn_habits(transaction: Transaction, named: _Skill, episodes: Sequence[Episode]) -> HabitRecords:
    """Bring the habits of a strategy to where more of its episodes lead."""
    connection, (owner, mode, strategy) = transaction.connection, named
    read = _practice if len(episodes) == 1 else _whole_practice
    symbols = {symbol: read(connection, named, symbol) for symbol in sorted({each.symbol for each in episodes})}
    skill = Skill(
        strategy_name=strategy,
        record=stored.strategy_record(connection, owner, mode, strategy),
        symbols={symbol: practice for symbol, practice in symbols.items() if practice is not None},
    )
    made = learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy, skill=skill)
    transaction.derive_new(stored.PRACTISED, made.trades)
    transaction.derive(stored.HABITS, made.habits)
    return made


def _practice(connection: Connection, named: _Skill, symbol: str) -> Practice | None:
    """How a strategy is traded in a symbol, as far as one more trade needs it: its window, and the record before."""
    held = stored.habits_of(connection, *named, symbol)
    if held is None:
        return None
    recent = stored.recent_trades(connection, *named, symbol, most=window_of(held.habits.stability) - 1)
    earlier = stored.record_before_trade(connection, *named, symbol, back=len(recent) - 1)
    return practice_from_record(held, [WindowTrade(trade=each, earlier=earlier) for each in recent])


def _whole_practice(connection: Connection, named: _Skill, symbol: str) -> Practice | None:
    """How a strategy is traded in a symbol, with all that is kept of it."""
    held = stored.habits_of(connection, *named, symbol)
    if held is None:
        return None
    recent = stored.recent_trades_with_records(connection, *named, symbol)
    return practice_from_record(held, [WindowTrade(trade=each.trade, earlier=each.earlier) for each in recent])


def _learn_moods(transaction: Transaction, home: Deployment, episodes: Iterable[Episode]) -> None:
    """Add the rows that more closes make; where later ones are there already, make all of them again."""
    closes = [close for episode in in_teaching_order(episodes) if (close := close_fact(episode)) is not None]
    if not closes:
        return
    named = {"owner_id": home.owner_id, "account_id": home.account_id, "strategy_name": home.strategy_name}
    last = stored.mood_row(transaction.connection, home.owner_id, home.account_id, home.strategy_name, FOREVER)
    if last is not None and last.order > (closes[0].known_at, closes[0].sequence, closes[0].id):
        rebuild_strategy_moods(transaction, home)
        return
    rows = next_strategy_rows(last, closes, **named)
    transaction.derive(stored.MOODS, rows[: -len(closes)])
    transaction.derive_new(stored.MOODS, rows[-len(closes) :])


def learn_equity(
    transaction: Transaction, owner: str, account_id: str, fact: EquityFact | TransferFact, *, recorded_at: datetime
) -> None:
    """Add the row that one more look at an account makes, and the plans that a deep drawdown calls for.

    Where it was seen before, or later rows are there already, all of them are made again.
    """
    last = stored.mood_row(transaction.connection, owner, account_id, "", FOREVER)
    if last is not None and last.order >= (fact.known_at, fact.sequence, fact.id):
        rebuild_account_moods(transaction, owner, account_id)
        return
    row = account_row(last, fact, owner_id=owner, account_id=account_id)
    transaction.derive_new(stored.MOODS, [row])
    now = max(fact.known_at, recorded_at)
    if (row.drawdown_state or 0.0) >= MOOD_BEGINS and now - fact.known_at <= HISTORY:
        for home in stored_strategies.deployments_of(transaction.connection, owner, account_id):
            make_plans(transaction, home, [], mood_at(transaction.connection, home, now), now=now)


def rebuild_account_moods(transaction: Transaction, owner: str, account_id: str) -> None:
    """Make the rows of an account again from all that was seen of it."""
    connection = transaction.connection
    facts = stored_state.equity_facts(connection, owner, EVERYTHING, account_id)
    stored.clear(connection, stored.MOODS, owner, account_id=account_id, strategy_name="")
    transaction.derive_new(stored.MOODS, account_rows(facts, owner_id=owner, account_id=account_id))


def _learn_again(transaction: Transaction, changes: Sequence[_Change]) -> tuple[LearningReport, ...]:
    """Learn all again that some changes concern."""
    taught = _learn_past(transaction, [change.episode for change in changes])
    return tuple(
        _told(transaction, change.episode, taught, drifted=_drifted_at(change.episode, taught))
        for change in changes
        if not change.gone
    )


def _drifted_at(episode: Episode, taught: _Taught) -> tuple[DriftAlarm, ...]:
    """The alarms of an episode's symbol that are of the instant at which it became known."""
    alarms = taught.practices[_skill(episode)].alarms
    return tuple(each for each in alarms if each.symbol == episode.symbol and each.alarm.at == episode.first_known_at)


def beliefs_at(
    connection: Connection,
    owner: str,
    mode: Mode,
    horizon: Horizon,
    *,
    weighting: semantic.Weighting = "count",
) -> BeliefRecords:
    """All that was known of beliefs at a horizon, from the episodes as they stood then."""
    return learn_beliefs(
        stored_memories.teaching_trades(connection, owner, horizon, mode=mode),
        owner_id=owner,
        mode=mode,
        stated=stored.stated(connection, owner, mode, horizon),
        retired=stored.retirements(connection, owner, horizon),
        weighting=weighting,
    )


def rebuild_beliefs(transaction: Transaction, owner: str, mode: Mode) -> BeliefRecords:
    """Learn the beliefs of a mode again from all episodes."""
    connection = transaction.connection
    made = beliefs_at(connection, owner, mode, EVERYTHING)
    stored.clear_evidence(connection, owner, mode)
    for noun in (stored.BELIEFS, stored.CELLS, stored.DAYS):
        stored.clear(connection, noun, owner, mode=mode)
    transaction.derive_new(stored.BELIEFS, made.beliefs)
    transaction.derive_new(stored.EVIDENCE, made.evidence)
    transaction.derive_new(stored.CELLS, made.cells)
    transaction.derive_new(stored.DAYS, made.days)
    return made


def rebuild_habits(transaction: Transaction, owner: str, mode: Mode, strategy: str) -> HabitRecords:
    """Learn the habits of a strategy again from all episodes, with all alarms there ever were."""
    connection = transaction.connection
    episodes = stored_memories.teaching_trades(connection, owner, mode=mode, strategy_name=strategy)
    made = learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy)
    for noun in (stored.PRACTISED, stored.HABITS):
        stored.clear(connection, noun, owner, mode=mode, strategy_name=strategy)
    transaction.derive_new(stored.PRACTISED, made.trades)
    transaction.derive_new(stored.HABITS, made.habits)
    return made


def rebuild_strategy_moods(transaction: Transaction, home: Deployment) -> None:
    """Make the rows of a strategy on an account again from all that was ever known of its closes."""
    connection = transaction.connection
    rows = strategy_moods(connection, home)
    stored.clear(connection, stored.MOODS, home.owner_id, account_id=home.account_id, strategy_name=home.strategy_name)
    transaction.derive_new(stored.MOODS, rows)


def beliefs_changed_by(
    connection: Connection, owner: str, mode: Mode, episode_id: str, horizon: Horizon
) -> tuple[BeliefChange, ...]:
    """The beliefs that an episode was evidence of, as they stood then."""
    if is_current(connection, owner, horizon):
        fed = [(each.evidence, held) for each, held in stored.beliefs_with_evidence_from(connection, owner, episode_id)]
    else:
        then = beliefs_at(connection, owner, mode, horizon)
        by_id = {each.standing.belief.id: each for each in then.beliefs}
        told = (each.evidence for each in then.evidence if each.evidence.episode_id == episode_id)
        fed = [(evidence, by_id[evidence.belief_id]) for evidence in told]
    return tuple(sorted((_change(*each) for each in fed), key=lambda change: change.belief_id))


def deployment_and_mode(
    connection: Connection, owner: str, deployment: str | None, mode: Mode | None
) -> tuple[Deployment | None, Mode]:
    """The deployment that is named, and the mode that is meant: as asked, else the deployment's, else live."""
    home = None if deployment is None else deployment_named(connection, owner, deployment)
    return home, mode or (home.mode if home is not None else "live")


def derive_rows(connection: Connection, owner: str) -> dict[Noun[Any], list[Any]]:
    """Every derived row of an owner, made again from facts."""
    made: dict[Noun[Any], list[Any]] = {noun: [] for noun in stored.DERIVED}
    for mode in stored.modes(connection, owner):
        beliefs = beliefs_at(connection, owner, mode, EVERYTHING)
        made[stored.BELIEFS] += beliefs.beliefs
        made[stored.EVIDENCE] += beliefs.evidence
        made[stored.CELLS] += beliefs.cells
        made[stored.DAYS] += beliefs.days
        episodes = stored_memories.teaching_trades(connection, owner, mode=mode)
        for strategy in sorted({episode.strategy_name for episode in episodes}):
            own = [episode for episode in episodes if episode.strategy_name == strategy]
            practices = learn_habits(own, owner_id=owner, mode=mode, strategy_name=strategy)
            made[stored.PRACTISED] += practices.trades
            made[stored.HABITS] += practices.habits
    homes = stored_strategies.deployments(connection, owner, EVERYTHING)
    for account_id in sorted({home.account_id for home in homes}):
        worth = stored_state.equity_facts(connection, owner, EVERYTHING, account_id)
        made[stored.MOODS] += account_rows(worth, owner_id=owner, account_id=account_id)
    for home in {(each.account_id, each.strategy_name): each for each in homes}.values():
        made[stored.MOODS] += strategy_moods(connection, home)
    return made


def find_differences(connection: Connection, owner: str) -> list[Finding]:
    """Where a derived row is not what the facts make of it."""
    return [
        finding
        for noun, values in derive_rows(connection, owner).items()
        for finding in stored.compare(connection, noun, owner, values)
    ]


def rebuild_rows(transaction: Transaction, owner: str) -> None:
    """Make every derived row of an owner again from facts."""
    for noun, values in derive_rows(transaction.connection, owner).items():
        stored.clear(transaction.connection, noun, owner)
        transaction.derive_new(noun, values)


def _home(connection: Connection, episode: Episode) -> Deployment:
    home = stored_strategies.deployment(connection, episode.owner_id, episode.deployment_id)
    if home is None:  # an episode is kept within its deployment
        raise AssertionError(f"episode {episode.id!r} has no deployment")
    return home


def _change(evidence: BeliefEvidence, held: BeliefRecord) -> BeliefChange:
    return BeliefChange(
        belief_id=evidence.belief_id,
        proposition=held.standing.belief.proposition,
        confirms=evidence.confirms,
        founding=evidence.founding,
        credibility=held.posterior.credibility,
        n=held.posterior.n,
    )


def _skill(episode: Episode) -> _Skill:
    return episode.owner_id, episode.mode, episode.strategy_name


def _by_skill(episodes: Iterable[Episode]) -> dict[_Skill, list[Episode]]:
    found: dict[_Skill, list[Episode]] = {}
    for episode in episodes:
        found.setdefault(_skill(episode), []).append(episode)
    return found


def _by_id(beliefs: Iterable[BeliefRecord]) -> dict[str, BeliefRecord]:
    return {each.standing.belief.id: each for each in beliefs}


def _newly_retired(belief: BeliefRecord, before: dict[str, BeliefRecord]) -> bool:
    held = belief.standing.belief
    former = before.get(held.id)
    return held.retired_at is not None and former is not None and former.standing.belief.retired_at is None
