"""What closed trades teach: episodes are kept, and beliefs, habits, mood and plans brought to where they lead.

One more trade at the end of the order is learned from what is kept. A trade that became known earlier than others, one
that was corrected or taken back: what it concerns is learned again from all episodes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from backsight.core.audit import Finding
from backsight.core.instants import Horizon
from backsight.core.memory import procedural, semantic
from backsight.core.memory.affective import (
    CloseVersion,
    EquitySeen,
    Mood,
    MoodRow,
    Transferred,
    account_row,
    account_rows,
    closed_of,
    mood_from,
    strategy_row,
    strategy_rows,
)
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    Beliefs,
    KeptBelief,
    KeptDay,
    KeptEvidence,
    PractisedTrade,
    cell_of,
    figures_of,
    holds,
    in_place,
    kept_belief,
    kept_cell,
    kept_habits,
    learn_beliefs,
    learn_habits,
    practice_of,
)
from backsight.core.memory.procedural import Drifted, Practice, Skill, window_of
from backsight.core.memory.prospective import MOOD_BEGINS
from backsight.core.memory.semantic import Belief, Domain, Evidence, Knowledge
from backsight.core.portfolio import Mode
from backsight.core.strategies import Deployment
from backsight.ops.planning import drop_plans, note_outcomes, plan_for
from backsight.ops.strategies import deployment_named
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
class Learned:
    """What one closed trade changed in each memory."""

    episode_id: str
    """Episodic: the episode it left behind."""
    evidence: tuple[BeliefChange, ...]
    """Semantic: the beliefs that it is evidence for or against."""
    induced: tuple[Belief, ...]
    retired: tuple[Belief, ...]
    habits: int
    """Procedural: how many trades the habits of this strategy and symbol now rest on."""
    drifted: tuple[Drifted, ...]
    mood: Mood
    """Affective: as it is now."""
    plans: tuple[str, ...]
    """Prospective: the plans that were made of it."""


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
) -> tuple[Learned, ...]:
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


def learn_many(transaction: Transaction, episodes: Sequence[Episode]) -> None:
    """Keep the episodes of many closed trades that are not there yet, and learn once from all of them."""
    placed = _placed(transaction.connection, episodes)
    transaction.add_all(stored_memories.EPISODES, placed)
    _remake(transaction, [_Change(episode=episode) for episode in placed])


def _placed(connection: Connection, episodes: Sequence[Episode]) -> list[Episode]:
    """New episodes, each numbered among those of its instant."""
    lasts = {mode: stored_memories.last_place(connection, owner, mode) for owner, mode in _modes(episodes)}
    numbers: dict[tuple[Mode, datetime], int] = {}
    placed: list[Episode] = []
    for episode in sorted(episodes, key=lambda each: (each.known_at, each.ended_at, each.id)):
        instant, last = (episode.mode, episode.known_at), lasts[episode.mode]
        if instant not in numbers:
            met = last is not None and last[0] >= episode.known_at
            numbers[instant] = stored_memories.next_sequence(connection, episode.owner_id, *instant) if met else 0
        placed.append(replace(episode, first_known_at=episode.known_at, sequence=numbers[instant]))
        numbers[instant] += 1
    return placed


def _modes(episodes: Iterable[Episode]) -> set[tuple[str, Mode]]:
    return {(episode.owner_id, episode.mode) for episode in episodes}


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
    last = stored_memories.last_place(connection, owner, episode.mode)
    number = 0
    if last is not None and last[0] >= episode.known_at:
        number = stored_memories.next_sequence(connection, owner, episode.mode, episode.known_at)
    placed = replace(episode, first_known_at=episode.known_at, sequence=number)
    transaction.add(stored_memories.EPISODES, placed)
    return _Change(episode=placed), last is None or last < placed.place


def _learn_one(transaction: Transaction, episode: Episode) -> Learned:
    """Learn one episode that follows all others of its mode."""
    connection = transaction.connection
    home = _home(connection, episode)
    taught = episode.teaching
    learned = _learn_beliefs(transaction, taught)
    habits, drifted = _learn_habits(transaction, taught)
    _learn_mood(transaction, taught, home)
    return _told(
        transaction,
        episode,
        home,
        fed=bool(learned.evidence or learned.induced),
        habits=habits,
        induced=learned.induced,
        retired=learned.retired,
        drifted=drifted,
    )


def _told(
    transaction: Transaction,
    episode: Episode,
    home: Deployment,
    *,
    fed: bool,
    habits: int,
    induced: tuple[Belief, ...],
    retired: tuple[Belief, ...],
    drifted: tuple[Drifted, ...],
) -> Learned:
    """What was learned from an episode, with the plans that follow from it; `fed` where it may be evidence."""
    connection = transaction.connection
    told = stored.fed_by(connection, episode.owner_id, episode.id) if fed else []
    now = max(episode.known_at, episode.recorded_at)
    mood = mood_at(connection, home, now)
    note_outcomes(transaction, home, episode, recorded_at=episode.recorded_at)
    drop_plans(transaction, home.owner_id, [belief.id for belief in retired], now=now)
    plans: tuple[str, ...] = ()
    if now - episode.known_at <= HISTORY:
        plans = plan_for(transaction, home, [held for _, held in told], mood, now=now)
    return Learned(
        episode_id=episode.id,
        evidence=tuple(_change(each.evidence, held) for each, held in told),
        induced=induced,
        retired=retired,
        habits=habits,
        drifted=drifted,
        mood=mood,
        plans=plans,
    )


def _learn_beliefs(transaction: Transaction, episode: Episode) -> semantic.Learned:
    """Bring cells, evidence and beliefs to where one more episode leads."""
    connection = transaction.connection
    owner, mode, domains = episode.owner_id, episode.mode, semantic.cells_of(episode)
    before = _knowledge(connection, episode, domains)
    retired = stored.retirements(connection, owner, Horizon(as_of=episode.known_at)) if before.standings else {}
    learned = semantic.learn_all((episode,), knowledge=before, holds=holds, retirements=retired)
    after, day = learned.knowledge, semantic.day_of(episode)
    transaction.derive(stored.CELLS, [kept_cell(d, after.cells[d], owner_id=owner, mode=mode) for d in domains])
    transaction.derive(
        stored.DAYS,
        [
            KeptDay(owner_id=owner, mode=mode, domain=d.text(), day=day.isoformat(), count=after.cells[d].days[day])
            for d in domains
        ],
    )
    changed = [standing for name, standing in after.standings.items() if standing is not before.standings.get(name)]
    transaction.derive(stored.BELIEFS, map(kept_belief, changed))
    evidence = list(learned.evidence)
    for belief in learned.induced:
        of_strategy = stored_memories.trades_taught(connection, owner, mode=mode, strategy_name=belief.domain.strategy)
        evidence += semantic.founding_evidence(after.standings[belief.id], in_place(of_strategy))
    transaction.derive(stored.EVIDENCE, [KeptEvidence(owner_id=owner, evidence=each) for each in evidence])
    return learned


def _knowledge(connection: Connection, episode: Episode, domains: Sequence[Domain]) -> Knowledge:
    """What is known, as far as one more episode needs it."""
    owner, mode = episode.owner_id, episode.mode
    texts = {domain.text(): domain for domain in domains}
    rows = stored.cells(connection, owner, mode, list(texts))
    days = stored.days(connection, owner, mode, list(texts), day=semantic.day_of(episode).isoformat())
    looked_at = [text for text, row in rows.items() if texts[text].width and semantic.is_look(row.tally.n + 1)]
    seen: dict[int, int] = {}
    if looked_at:
        seen = stored.cells_seen(connection, owner, mode)
        whole = [domains[0].text(), *looked_at]
        days |= stored.days(connection, owner, mode, whole)
    held = stored.beliefs_about(connection, owner, mode, episode.strategy_name)
    return Knowledge(
        owner_id=owner,
        mode=mode,
        cells={texts[text]: cell_of(row, days[text]) for text, row in rows.items()},
        seen=seen,
        standings={each.standing.belief.id: each.standing for each in held},
    )


def _learn_habits(transaction: Transaction, episode: Episode) -> tuple[int, tuple[Drifted, ...]]:
    """Bring habits to where one more episode leads; how many trades they rest on, and the alarms."""
    connection = transaction.connection
    owner, mode, trade = episode.owner_id, episode.mode, figures_of(episode)
    strategy, symbol = trade.strategy_name, trade.symbol
    record = stored.record_of(connection, owner, mode, strategy)
    practice = _practice(connection, owner, mode, strategy, symbol)
    symbols = {} if practice is None else {symbol: practice}
    learned = procedural.learn(Skill(strategy_name=strategy, record=record, symbols=symbols), trade)
    kept = kept_habits(learned.skill.symbols[symbol], trade, owner_id=owner, mode=mode)
    practised = PractisedTrade(owner_id=owner, mode=mode, sequence=episode.sequence, trade=trade, earlier=record)
    transaction.derive(stored.PRACTISED, [practised])
    transaction.derive(stored.HABITS, [kept])
    return kept.habits.n, learned.alarms


def _practice(connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str) -> Practice | None:
    """How a strategy is traded in a symbol, as far as one more trade needs it."""
    held = stored.habits_of(connection, owner, mode, strategy, symbol)
    if held is None:
        return None
    recent = stored.practised(connection, owner, mode, strategy, symbol)
    back = min(len(recent), window_of(held.habits.stability) - 1) - 1
    earlier = stored.earlier(connection, owner, mode, strategy, symbol, back=max(0, back))
    return practice_of(held, recent, earlier)


def _learn_mood(transaction: Transaction, episode: Episode, home: Deployment) -> None:
    """Add the row that one more close makes; where later ones are there already, make all of them again."""
    close = closed_of(episode)
    if close is None:
        return
    last = stored.mood_row(transaction.connection, home.owner_id, home.account_id, home.strategy_name, FOREVER)
    if last is not None and last.order > (close.known_at, close.sequence, close.id):
        remake_strategy_moods(transaction, home)
        return
    row = strategy_row(
        last, close, owner_id=home.owner_id, account_id=home.account_id, strategy_name=home.strategy_name
    )
    transaction.derive(stored.MOODS, [row])


def see_equity(
    transaction: Transaction, owner: str, account_id: str, fact: EquitySeen | Transferred, *, recorded_at: datetime
) -> None:
    """Add the row that one more look at an account makes, and the plans that a deep drawdown calls for.

    Where later rows are there already, all of them are made again.
    """
    last = stored.mood_row(transaction.connection, owner, account_id, "", FOREVER)
    if last is not None and last.order > (fact.known_at, fact.sequence, fact.id):
        remake_account_moods(transaction, owner, account_id)
        return
    row = account_row(last, fact, owner_id=owner, account_id=account_id)
    transaction.derive(stored.MOODS, [row])
    now = max(fact.known_at, recorded_at)
    if (row.drawdown_state or 0.0) >= MOOD_BEGINS and now - fact.known_at <= HISTORY:
        for home in stored_strategies.deployments_of(transaction.connection, owner, account_id):
            plan_for(transaction, home, [], mood_at(transaction.connection, home, now), now=now)


def remake_account_moods(transaction: Transaction, owner: str, account_id: str) -> None:
    """Make the rows of an account again from all that was seen of it."""
    connection = transaction.connection
    facts = stored_state.worth_of(connection, owner, EVERYTHING, account_id)
    stored.clear(connection, stored.MOODS, owner, account_id=account_id, strategy_name="")
    transaction.derive(stored.MOODS, account_rows(facts, owner_id=owner, account_id=account_id))


def _learn_again(transaction: Transaction, changes: Sequence[_Change]) -> tuple[Learned, ...]:
    """Learn all again that some episodes concern."""
    connection = transaction.connection
    modes = _modes(change.episode for change in changes)
    before = _by_id(belief for each in modes for belief in stored.beliefs(connection, *each))
    drifted = _remake(transaction, changes)
    after = _by_id(belief for each in modes for belief in stored.beliefs(connection, *each))
    homes = {change.episode.id: _home(connection, change.episode) for change in changes}
    induced = tuple(each.standing.belief for name, each in after.items() if name not in before)
    retired = tuple(each.standing.belief for each in after.values() if _newly_retired(each, before))
    return tuple(
        _told(
            transaction,
            change.episode,
            homes[change.episode.id],
            fed=True,
            habits=_practised(connection, change.episode),
            induced=induced,
            retired=retired,
            drifted=tuple(
                each
                for each in drifted[change.episode.strategy_name]
                if each.symbol == change.episode.symbol and each.alarm.at == change.episode.first_known_at
            ),
        )
        for change in changes
        if not change.gone
    )


def _remake(transaction: Transaction, changes: Sequence[_Change]) -> dict[str, tuple[Drifted, ...]]:
    """Make beliefs, habits and moods again that some episodes concern; the alarms of each strategy."""
    for owner, mode in _modes(change.episode for change in changes):
        remake_beliefs(transaction, owner, mode)
    skills = {_skill(change.episode) for change in changes}
    drifted = {strategy: remake_habits(transaction, owner, mode, strategy) for owner, mode, strategy in skills}
    deployments = {change.episode.deployment_id: change.episode for change in changes}
    homes = [_home(transaction.connection, episode) for episode in deployments.values()]
    for home in {(each.account_id, each.strategy_name): each for each in homes}.values():
        remake_strategy_moods(transaction, home)
    return drifted


def beliefs_at(
    connection: Connection,
    owner: str,
    mode: Mode,
    horizon: Horizon,
    *,
    weighting: semantic.Weighting = "count",
) -> Beliefs:
    """All that was known of beliefs at a horizon, from the episodes as they stood then."""
    return learn_beliefs(
        stored_memories.trades_taught(connection, owner, horizon, mode=mode),
        owner_id=owner,
        mode=mode,
        stated=stored.stated(connection, owner, mode, horizon),
        retired=stored.retirements(connection, owner, horizon),
        weighting=weighting,
    )


def remake_beliefs(transaction: Transaction, owner: str, mode: Mode) -> None:
    """Learn the beliefs of a mode again from all episodes."""
    connection = transaction.connection
    made = beliefs_at(connection, owner, mode, EVERYTHING)
    stored.clear_evidence(connection, owner, mode)
    for noun in (stored.BELIEFS, stored.CELLS, stored.DAYS):
        stored.clear(connection, noun, owner, mode=mode)
    transaction.derive(stored.BELIEFS, made.beliefs)
    transaction.derive(stored.EVIDENCE, made.evidence)
    transaction.derive(stored.CELLS, made.cells)
    transaction.derive(stored.DAYS, made.days)


def remake_habits(transaction: Transaction, owner: str, mode: Mode, strategy: str) -> tuple[Drifted, ...]:
    """Learn the habits of a strategy again from all episodes; the alarms there ever were."""
    connection = transaction.connection
    episodes = stored_memories.trades_taught(connection, owner, mode=mode, strategy_name=strategy)
    made = learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy)
    for noun in (stored.PRACTISED, stored.HABITS):
        stored.clear(connection, noun, owner, mode=mode, strategy_name=strategy)
    transaction.derive(stored.PRACTISED, made.trades)
    transaction.derive(stored.HABITS, made.habits)
    return made.alarms


def remake_strategy_moods(transaction: Transaction, home: Deployment) -> None:
    """Make the rows of a strategy on an account again from all that was ever known of its closes."""
    connection = transaction.connection
    rows = strategy_moods(connection, home)
    stored.clear(connection, stored.MOODS, home.owner_id, account_id=home.account_id, strategy_name=home.strategy_name)
    transaction.derive(stored.MOODS, rows)


def strategy_moods(connection: Connection, home: Deployment, *, seen_at: datetime | None = None) -> list[MoodRow]:
    """The rows of a strategy on an account, of what was recorded by an instant."""
    named = {"owner_id": home.owner_id, "account_id": home.account_id, "strategy_name": home.strategy_name}
    return strategy_rows(close_versions(connection, home, seen_at=seen_at), **named)


def close_versions(connection: Connection, home: Deployment, *, seen_at: datetime | None = None) -> list[CloseVersion]:
    """All that was ever known of the closes of a strategy on an account, of what was recorded by an instant."""
    siblings = stored_strategies.deployments_of(connection, home.owner_id, home.account_id)
    ids = [each.id for each in siblings if each.strategy_name == home.strategy_name]
    found = stored_memories.versions(connection, home.owner_id, ids, seen_at=seen_at)
    begun = {(each.episode.id, each.episode.known_at) for each in found}
    told = [
        CloseVersion(
            close=closed_of(each.episode),
            id=each.episode.id,
            sequence=each.episode.sequence,
            known_at=each.episode.known_at,
            first=each.episode.known_at == each.episode.first_known_at,
        )
        for each in found
    ]
    return told + [
        CloseVersion(close=None, id=each.episode.id, sequence=each.episode.sequence, known_at=each.until, first=False)
        for each in found
        if each.until is not None and (each.episode.id, each.until) not in begun
    ]


def beliefs_fed(
    connection: Connection, owner: str, mode: Mode, episode_id: str, horizon: Horizon
) -> tuple[BeliefChange, ...]:
    """The beliefs that an episode was evidence of, as they stood then."""
    if is_current(connection, owner, horizon):
        fed = [(each.evidence, held) for each, held in stored.fed_by(connection, owner, episode_id)]
    else:
        then = beliefs_at(connection, owner, mode, horizon)
        by_id = {each.standing.belief.id: each for each in then.beliefs}
        told = (each.evidence for each in then.evidence if each.evidence.episode_id == episode_id)
        fed = [(evidence, by_id[evidence.belief_id]) for evidence in told]
    return tuple(sorted((_change(*each) for each in fed), key=lambda change: change.belief_id))


def is_current(connection: Connection, owner: str, horizon: Horizon) -> bool:
    """Whether what is kept now is what was known at a horizon: nothing is known since, or recorded after it."""
    return horizon.seen_at is None and not stored.known_after(connection, owner, horizon.as_of)


def mode_asked(
    connection: Connection, owner: str, deployment: str | None, mode: Mode | None
) -> tuple[Deployment | None, Mode]:
    """The deployment that is named, and the mode that is meant: as asked, else the deployment's, else live."""
    home = None if deployment is None else deployment_named(connection, owner, deployment)
    return home, mode or (home.mode if home is not None else "live")


def mood_at(connection: Connection, home: Deployment, as_of: datetime) -> Mood:
    """The mood of a deployment as it was known at an instant."""
    account = stored.mood_row(connection, home.owner_id, home.account_id, "", as_of)
    strategy = stored.mood_row(connection, home.owner_id, home.account_id, home.strategy_name, as_of)
    return mood_from(account, strategy)


def derived(connection: Connection, owner: str) -> dict[Noun[Any], list[Any]]:
    """Every derived row of an owner, made again from facts."""
    made: dict[Noun[Any], list[Any]] = {noun: [] for noun in stored.DERIVED}
    for mode in stored.modes(connection, owner):
        beliefs = beliefs_at(connection, owner, mode, EVERYTHING)
        made[stored.BELIEFS] += beliefs.beliefs
        made[stored.EVIDENCE] += beliefs.evidence
        made[stored.CELLS] += beliefs.cells
        made[stored.DAYS] += beliefs.days
        episodes = stored_memories.trades_taught(connection, owner, mode=mode)
        for strategy in sorted({episode.strategy_name for episode in episodes}):
            own = [episode for episode in episodes if episode.strategy_name == strategy]
            practices = learn_habits(own, owner_id=owner, mode=mode, strategy_name=strategy)
            made[stored.PRACTISED] += practices.trades
            made[stored.HABITS] += practices.habits
    homes = stored_strategies.deployments(connection, owner, EVERYTHING)
    for account_id in sorted({home.account_id for home in homes}):
        worth = stored_state.worth_of(connection, owner, EVERYTHING, account_id)
        made[stored.MOODS] += account_rows(worth, owner_id=owner, account_id=account_id)
    for home in {(each.account_id, each.strategy_name): each for each in homes}.values():
        made[stored.MOODS] += strategy_moods(connection, home)
    return made


def differences(connection: Connection, owner: str) -> list[Finding]:
    """Where a derived row is not what the facts make of it."""
    return [
        finding
        for noun, values in derived(connection, owner).items()
        for finding in stored.compare(connection, noun, owner, values)
    ]


def remake(transaction: Transaction, owner: str) -> None:
    """Make every derived row of an owner again from facts."""
    for noun, values in derived(transaction.connection, owner).items():
        stored.clear(transaction.connection, noun, owner)
        transaction.derive(noun, values)


def _home(connection: Connection, episode: Episode) -> Deployment:
    home = stored_strategies.deployment(connection, episode.owner_id, episode.deployment_id)
    if home is None:  # an episode is kept within its deployment
        raise AssertionError(f"episode {episode.id!r} has no deployment")
    return home


def _change(evidence: Evidence, held: KeptBelief) -> BeliefChange:
    return BeliefChange(
        belief_id=evidence.belief_id,
        proposition=held.standing.belief.proposition,
        confirms=evidence.confirms,
        founding=evidence.founding,
        credibility=held.posterior.credibility,
        n=held.posterior.n,
    )


def _practised(connection: Connection, episode: Episode) -> int:
    held = stored.habits_of(connection, episode.owner_id, episode.mode, episode.strategy_name, episode.symbol)
    return 0 if held is None else held.habits.n


def _skill(episode: Episode) -> tuple[str, Mode, str]:
    return episode.owner_id, episode.mode, episode.strategy_name


def _by_id(beliefs: Iterable[KeptBelief]) -> dict[str, KeptBelief]:
    return {each.standing.belief.id: each for each in beliefs}


def _newly_retired(belief: KeptBelief, before: dict[str, KeptBelief]) -> bool:
    held = belief.standing.belief
    former = before.get(held.id)
    return held.retired_at is not None and former is not None and former.standing.belief.retired_at is None
