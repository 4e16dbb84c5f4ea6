"""The mood of a deployment: reading it as of an instant, and writing the rows that closes and equity add.

The mood is stored as two series: one for the account (equity and drawdown), one for each strategy on the account
(confidence and streaks).
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter

from backsight.core.instants import Horizon
from backsight.core.memory.affective import (
    WINDOW,
    CloseFact,
    EquityFact,
    Mood,
    StrategyMood,
    TransferFact,
    close_fact,
)
from backsight.core.memory.checkpoints import Place
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import in_teaching_order, outcome_detectors
from backsight.core.memory.mood_series import (
    CloseVersion,
    MoodRow,
    account_row,
    account_rows,
    correction_row,
    mood_from,
    next_strategy_rows,
    strategy_row,
    strategy_rows,
    without_recent,
)
from backsight.core.strategies import Deployment, manual_account_id
from backsight.core.trades.trade import OutcomeUnit
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything

FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)


def mood_at(connection: Connection, deployment: Deployment, as_of: datetime) -> Mood:
    """The mood of a deployment as it was known at an instant."""
    return mood_in(View(connection, deployment.owner_id, Horizon(as_of=as_of)), deployment)


def mood_in(view: View, deployment: Deployment) -> Mood:
    """The mood of a deployment as of a view."""
    return mood_from(*mood_rows(view, deployment))


def mood_rows(view: View, deployment: Deployment) -> tuple[MoodRow | None, MoodRow | None]:
    """The last row of the account and the last row of the strategy on it, as of a view.

    The stored rows follow from everything that is recorded by now. A view of an earlier state of the store (`seen_at`)
    therefore derives its rows from the facts recorded by then, unless no close was recorded later.
    """
    if view.seen_at is None:
        return stored.mood_pair(view, deployment.account_id, deployment.strategy_name)
    account = _account_row(view, deployment.account_id)
    if stored_memories.are_all_recorded(view):
        return account, stored.mood_row(view, deployment.account_id, deployment.strategy_name)
    series = strategy_moods(view.connection, deployment, seen_at=view.seen_at)
    strategy = [row for row in series if row.known_at <= view.as_of]
    return account, strategy[-1] if strategy else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoodFacts:
    """What a tick tells the moods of an account and of a strategy on it."""

    equity: EquityFact | TransferFact
    closed: Sequence[Episode] = ()
    """New closes of the strategy."""
    corrected: Sequence[Episode] = ()
    withdrawn: Collection[str] = ()
    """The episodes of closes that no longer count."""


def mood_after(view: View, deployment: Deployment, ticks: Sequence[MoodFacts]) -> Mood:
    """The mood of a deployment as of a view, after some ticks that are not stored."""
    account, strategy = mood_rows(view, deployment)
    series = {"owner_id": view.owner, "account_id": deployment.account_id}
    for facts in ticks:
        account = account_row(account, facts.equity, **series)
    if any(facts.corrected or facts.withdrawn for facts in ticks):
        # A correction may concern any close, so all are folded again.
        versions = _versions_then(view, deployment)
        for facts in ticks:
            versions += _new_versions(facts, versions)
        rows = strategy_rows(versions, strategy_name=deployment.strategy_name, **series)
        return mood_from(account, rows[-1] if rows else None)
    closes = [close for facts in ticks for close in _new_closes(facts)]
    if closes and strategy is not None and not (strategy.strategy or StrategyMood()).recent:
        strategy = _with_recent_outcomes(view.connection, deployment, strategy)
    for close in closes:
        strategy = strategy_row(strategy, close, strategy_name=deployment.strategy_name, **series)
    return mood_from(account, strategy)


def _close_facts(episodes: Iterable[Episode]) -> list[CloseFact]:
    """The closes in episodes, in the order in which they teach."""
    ordered = sorted(episodes, key=lambda each: (each.ended_at, each.id))
    return [close for episode in ordered if (close := close_fact(episode)) is not None]


def _new_closes(facts: MoodFacts) -> list[CloseFact]:
    return [replace(close, sequence=number) for number, close in enumerate(_close_facts(facts.closed))]


def _versions_then(view: View, deployment: Deployment) -> list[CloseVersion]:
    versions = _close_versions(view.connection, deployment, seen_at=view.seen_at)
    return [version for version in versions if version.known_at <= view.as_of]


def _new_versions(facts: MoodFacts, known: Sequence[CloseVersion]) -> list[CloseVersion]:
    """The versions of closes that a tick adds to those that are known; a correction keeps the place of its close."""
    at, former = facts.equity.known_at, {version.id: version for version in known}
    versions = [
        CloseVersion(close=close, id=close.id, sequence=close.sequence, known_at=at, first=True)
        for close in _new_closes(facts)
    ]
    for close in _close_facts(facts.corrected):
        first = former.get(close.id)
        place = close if first is None or first.close is None else first.close
        close = replace(close, known_at=place.known_at, sequence=place.sequence)
        sequence = close.sequence if first is None else first.sequence
        versions.append(CloseVersion(close=close, id=close.id, sequence=sequence, known_at=at, first=first is None))
    for episode_id in sorted(former.keys() & set(facts.withdrawn)):
        sequence = former[episode_id].sequence
        versions.append(CloseVersion(close=None, id=episode_id, sequence=sequence, known_at=at, first=False))
    return versions


def mood_series(
    view: View, deployment: Deployment, *, since: datetime | None, limit: int
) -> tuple[list[MoodRow], list[MoodRow]]:
    """The rows of the account and of the strategy on it that are known in a view, oldest first.

    Of a longer series, every second, third … row, so that about `limit` rows are left, and the last one.
    """
    at_start: tuple[MoodRow | None, MoodRow | None] = (None, None)
    if since is not None:
        earlier = Horizon(as_of=min(view.as_of, since), seen_at=view.seen_at)
        at_start = mood_rows(View(view.connection, view.owner, earlier), deployment)
    ends = mood_rows(view, deployment)
    steps = [_step(first, last, limit) for first, last in zip(at_start, ends, strict=True)]
    if view.seen_at is None:
        names = ("", deployment.strategy_name)
        account, strategy = (
            stored.thinned_moods(view, deployment.account_id, name, since=since, step=step)
            for name, step in zip(names, steps, strict=True)
        )
        return account, strategy
    facts = stored_state.equity_facts(view, deployment.account_id)
    every = (
        account_rows(facts, owner_id=view.owner, account_id=deployment.account_id),
        strategy_moods(view.connection, deployment, seen_at=view.seen_at),
    )
    account, strategy = (_thinned(view, rows, since, step) for rows, step in zip(every, steps, strict=True))
    return account, strategy


def _step(first: MoodRow | None, last: MoodRow | None, limit: int) -> int:
    rows = (0 if last is None else last.n) - (0 if first is None else first.n)
    return max(1, -(-rows // limit))


def _thinned(view: View, rows: Sequence[MoodRow], since: datetime | None, step: int) -> list[MoodRow]:
    """As `thinned_moods` of the store."""
    known_then = [row for row in rows if row.known_at <= view.as_of]
    return [
        row
        for row in known_then
        if (since is None or row.known_at >= since) and row.n % step == known_then[-1].n % step
    ]


def last_known(rows: Sequence[MoodRow], at: datetime) -> MoodRow | None:
    """The last row known at an instant."""
    count = bisect_right(rows, at, key=attrgetter("known_at"))
    return rows[count - 1] if count else None


def manual_account_row(view: View) -> MoodRow | None:
    """The last row of the account for live trades that are reported without a deployment, as of a view."""
    return _account_row(view, manual_account_id(view.owner, "live"))


def _account_row(view: View, account_id: str) -> MoodRow | None:
    if view.seen_at is None:
        return stored.mood_row(view, account_id, "")
    rows = account_rows(stored_state.equity_facts(view, account_id), owner_id=view.owner, account_id=account_id)
    return rows[-1] if rows else None


def strategy_moods(
    connection: Connection,
    deployment: Deployment,
    *,
    seen_at: datetime | None = None,
    more: Iterable[CloseFact] = (),
) -> list[MoodRow]:
    """All rows of a strategy on an account, derived from the closes recorded by `seen_at` and from `more` closes."""
    new = (
        CloseVersion(close=close, id=close.id, sequence=close.sequence, known_at=close.known_at, first=True)
        for close in more
    )
    return strategy_rows(
        [*_close_versions(connection, deployment, seen_at=seen_at), *new],
        owner_id=deployment.owner_id,
        account_id=deployment.account_id,
        strategy_name=deployment.strategy_name,
    )


def _close_versions(
    connection: Connection, deployment: Deployment, *, seen_at: datetime | None = None, episode_id: str | None = None
) -> list[CloseVersion]:
    """Every version of every close of a strategy on an account, and an empty version where a close was withdrawn.

    With an id, only the versions of one close.
    """
    ids = _deployments_of_series(connection, deployment)
    episodes = stored_memories.episode_versions(
        connection, deployment.owner_id, ids, seen_at=seen_at, episode_id=episode_id
    )
    versions = [
        CloseVersion(
            close=close_fact(version.episode),
            id=version.episode.id,
            sequence=version.episode.sequence,
            known_at=version.episode.known_at,
            first=version.episode.known_at == version.episode.first_known_at,
        )
        for version in episodes
    ]
    begins = {(version.episode.id, version.episode.known_at) for version in episodes}
    # A version that ends without a successor was withdrawn.
    withdrawn = [
        CloseVersion(
            close=None,
            id=version.episode.id,
            sequence=version.episode.sequence,
            known_at=version.until,
            first=False,
        )
        for version in episodes
        if version.until is not None and (version.episode.id, version.until) not in begins
    ]
    return versions + withdrawn


def _deployments_of_series(connection: Connection, deployment: Deployment) -> list[str]:
    """The ids of all deployments of a strategy on an account, which share one series."""
    on_account = stored_strategies.deployments_of(connection, deployment.owner_id, deployment.account_id)
    return [each.id for each in on_account if each.strategy_name == deployment.strategy_name]


def update_strategy_moods(transaction: Transaction, deployment: Deployment, episodes: Iterable[Episode]) -> None:
    """Add the rows that more closes make; rebuild the series if it already has later rows."""
    closes = [close for episode in in_teaching_order(episodes) if (close := close_fact(episode)) is not None]
    if not closes:
        return
    view = everything(transaction.connection, deployment.owner_id)
    last = stored.mood_row(view, deployment.account_id, deployment.strategy_name)
    if last is not None and last.order > (closes[0].known_at, closes[0].sequence, closes[0].id):
        rebuild_strategy_moods(transaction, deployment)
        return
    rows = next_strategy_rows(
        last,
        closes,
        owner_id=deployment.owner_id,
        account_id=deployment.account_id,
        strategy_name=deployment.strategy_name,
    )
    # The former last row is among `rows`, without the recent outcomes that only a last row carries.
    transaction.derive(stored.MOODS, rows[: -len(closes)])
    transaction.derive_new(stored.MOODS, rows[-len(closes) :])


def relearn_strategy_moods(transaction: Transaction, deployment: Deployment, episodes: Sequence[Episode]) -> None:
    """Insert the rows of new closes that come before others, and fold the later rows of the series again.

    A series with corrections is rebuilt: the fold after a correction does not follow from the row before it.
    """
    connection, owner = transaction.connection, deployment.owner_id
    series = (owner, deployment.account_id, deployment.strategy_name)
    if stored.corrections(connection, *series):
        rebuild_strategy_moods(transaction, deployment)
        return
    place, ids = min(episode.place for episode in episodes), _deployments_of_series(connection, deployment)
    last = stored.truncate_moods(connection, *series, place)
    if last is not None:
        outcomes = _outcomes_before(connection, deployment, place)
        mood = StrategyMood() if last.strategy is None else last.strategy
        transaction.derive(stored.MOODS, [replace(last, strategy=replace(mood, recent=outcomes))])
    name, just_before = deployment.strategy_name, (place[0], place[1], "")
    tail = stored_memories.teaching_trades_after(connection, owner, deployment.mode, just_before, strategy_name=name)
    update_strategy_moods(transaction, deployment, [episode for episode in tail if episode.deployment_id in ids])


def correct_strategy_moods(transaction: Transaction, deployment: Deployment, episode_id: str) -> None:
    """Add the row of a close that was corrected or withdrawn after all other rows of its series.

    The row is folded from the last row that is still valid before the close; nothing before it is read. Any other
    correction rebuilds the series.
    """
    connection, owner = transaction.connection, deployment.owner_id
    series = (owner, deployment.account_id, deployment.strategy_name)
    last = stored.mood_row(everything(connection, owner), deployment.account_id, deployment.strategy_name)
    versions = sorted(_close_versions(connection, deployment, episode_id=episode_id), key=attrgetter("known_at"))
    if last is None or len(versions) < 2 or versions[-1].first or versions[-1].order <= last.order:
        rebuild_strategy_moods(transaction, deployment)
        return
    former, version = versions[-2:]
    if former.close == version.close:
        return  # the correction changed nothing that the mood depends on
    corrections = stored.corrections(connection, *series)
    places = stored_memories.first_places(connection, owner, {episode_id, *(row.id for row in corrections)})
    start = stored.last_mood_before(connection, *series, places[episode_id])
    # A row is no longer valid if a close before it was corrected after it.
    while start is not None and (
        outdated := [places[row.id] for row in corrections if places[row.id] <= start.order < row.order]
    ):
        start = stored.last_mood_before(connection, *series, min(outdated))
    row = correction_row(
        _with_recent_outcomes(connection, deployment, start),
        _closes_after(connection, deployment, start),
        version,
        owner_id=owner,
        account_id=deployment.account_id,
        strategy_name=deployment.strategy_name,
    )
    transaction.derive(stored.MOODS, [without_recent(last)])
    transaction.derive_new(stored.MOODS, [row])


def _closes_after(connection: Connection, deployment: Deployment, row: MoodRow | None) -> list[CloseFact]:
    """The current closes of a series after a row, in order."""
    place = (FIRST_INSTANT, 0, "") if row is None else row.order
    episodes = stored_memories.teaching_trades_after(
        connection, deployment.owner_id, deployment.mode, place, strategy_name=deployment.strategy_name
    )
    ids = _deployments_of_series(connection, deployment)
    facts = (close_fact(episode) for episode in episodes if episode.deployment_id in ids)
    return [fact for fact in facts if fact is not None]


def _with_recent_outcomes(connection: Connection, deployment: Deployment, row: MoodRow | None) -> MoodRow | None:
    """A row with the recent outcomes up to it, which only the last row of a series has in the store."""
    if row is None:
        return None
    known_at, sequence, row_id = row.order
    just_after = (known_at, sequence, row_id + "\x01")
    mood = StrategyMood() if row.strategy is None else row.strategy
    return replace(row, strategy=replace(mood, recent=_outcomes_before(connection, deployment, just_after)))


def _outcomes_before(
    connection: Connection, deployment: Deployment, place: Place
) -> dict[OutcomeUnit, tuple[float, ...]]:
    owner, mode = deployment.owner_id, deployment.mode
    whole = stored.strategy_drift(connection, owner, mode, deployment.strategy_name)
    units = () if whole is None else outcome_detectors(whole.drift)  # the units that the strategy's outcomes have
    ids = _deployments_of_series(connection, deployment)
    return stored_memories.outcomes_before(connection, owner, mode, ids, place, units=units, most=WINDOW)


def rebuild_strategy_moods(transaction: Transaction, deployment: Deployment) -> None:
    """Replace the rows of a strategy on an account by those that all its closes make."""
    connection = transaction.connection
    rows = strategy_moods(connection, deployment)
    stored.clear(
        connection,
        stored.MOODS,
        deployment.owner_id,
        account_id=deployment.account_id,
        strategy_name=deployment.strategy_name,
    )
    transaction.derive_new(stored.MOODS, rows)


def rebuild_account_moods(
    transaction: Transaction, owner: str, account_id: str, *, more: EquityFact | TransferFact | None = None
) -> None:
    """Replace the rows of an account by those that all its equity facts make.

    `more` is a fact whose row the transaction has not written yet: a tick learns its equity before it is stored.
    """
    connection = transaction.connection
    facts = stored_state.equity_facts(everything(connection, owner), account_id)
    if more is not None:
        facts = [*(fact for fact in facts if fact.id != more.id), more]
    stored.clear(connection, stored.MOODS, owner, account_id=account_id, strategy_name="")
    transaction.derive_new(stored.MOODS, account_rows(facts, owner_id=owner, account_id=account_id))
