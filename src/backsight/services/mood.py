"""The mood of a deployment: reading it as of an instant, and writing the rows that closes and equity add.

The mood is stored as two series: one for the account (equity and drawdown), one for each strategy on the account
(confidence and streaks).
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from backsight.core.instants import Horizon
from backsight.core.memory.affective import CloseFact, Mood, close_fact
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import in_teaching_order
from backsight.core.memory.mood_series import (
    CloseVersion,
    MoodRow,
    account_rows,
    mood_from,
    next_strategy_rows,
    strategy_rows,
)
from backsight.core.strategies import Deployment, manual_account_id
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import state as stored_state
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything


def mood_at(connection: Connection, deployment: Deployment, as_of: datetime) -> Mood:
    """The mood of a deployment as it was known at an instant."""
    return mood_in(View(connection, deployment.owner_id, Horizon(as_of=as_of)), deployment)


def mood_in(view: View, deployment: Deployment) -> Mood:
    """The mood of a deployment as of a view."""
    return mood_from(*mood_rows(view, deployment))


def mood_rows(view: View, deployment: Deployment) -> tuple[MoodRow | None, MoodRow | None]:
    """The last row of the account and the last row of the strategy on it, as of a view.

    The stored rows follow from everything that is recorded by now. A view of an earlier state of the store (`seen_at`)
    therefore derives its rows from the facts recorded by then.
    """
    if view.seen_at is None:
        return stored.mood_pair(view, deployment.account_id, deployment.strategy_name)
    account = _account_row(view, deployment.account_id)
    series = strategy_moods(view.connection, deployment, seen_at=view.seen_at)
    strategy = [row for row in series if row.known_at <= view.as_of]
    return account, strategy[-1] if strategy else None


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


def _close_versions(connection: Connection, deployment: Deployment, *, seen_at: datetime | None) -> list[CloseVersion]:
    """Every version of every close of a strategy on an account, and an empty version where a close was withdrawn."""
    on_account = stored_strategies.deployments_of(connection, deployment.owner_id, deployment.account_id)
    ids = [each.id for each in on_account if each.strategy_name == deployment.strategy_name]
    episodes = stored_memories.episode_versions(connection, deployment.owner_id, ids, seen_at=seen_at)
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


def rebuild_account_moods(transaction: Transaction, owner: str, account_id: str) -> None:
    """Replace the rows of an account by those that all its equity facts make."""
    connection = transaction.connection
    facts = stored_state.equity_facts(everything(connection, owner), account_id)
    stored.clear(connection, stored.MOODS, owner, account_id=account_id, strategy_name="")
    transaction.derive_new(stored.MOODS, account_rows(facts, owner_id=owner, account_id=account_id))
