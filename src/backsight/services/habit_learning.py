"""Bring the stored habits of a strategy up to date with the episodes of its closed trades.

`update_habits` adds episodes that follow all others of their mode; `rebuild_habits` learns all episodes of the strategy
again. Both ways end in equal rows.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from backsight.core.memory.drift import settle
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    HabitRecords,
    HabitsRecord,
    in_teaching_order,
    learn_habits,
    practice_from_record,
    trade_figures,
)
from backsight.core.memory.procedural import PastClose, Practice, Record, Skill, WindowTrade, record_of, window_of
from backsight.core.portfolio import Mode
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View


class SkillKey(NamedTuple):
    """What habits belong to: a strategy in one mode."""

    owner_id: str
    mode: Mode
    strategy_name: str


def skill_key(episode: Episode) -> SkillKey:
    """The strategy and mode of an episode."""
    return SkillKey(episode.owner_id, episode.mode, episode.strategy_name)


def update_habits(transaction: Transaction, key: SkillKey, episodes: Sequence[Episode]) -> HabitRecords:
    """Learn episodes of a strategy that follow all others of their mode, and write the rows they change."""
    connection = transaction.connection
    load = _load_window if len(episodes) == 1 else _load_practice
    symbols = {symbol: load(connection, key, symbol) for symbol in sorted({episode.symbol for episode in episodes})}
    skill = Skill(
        strategy_name=key.strategy_name,
        record=stored.strategy_record(connection, *key),
        symbols={symbol: practice for symbol, practice in symbols.items() if practice is not None},
        closes=_load_closes(connection, key, episodes),
    )
    records = learn_habits(episodes, **key._asdict(), skill=skill)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive(stored.HABITS, records.habits)
    return records


def _load_closes(
    connection: Connection, key: SkillKey, episodes: Sequence[Episode]
) -> dict[str, tuple[PastClose, ...]]:
    """Read the closes that some episodes may follow, by deployment: from the last one before the first entry on."""
    entries: dict[str, datetime] = {}
    for episode in episodes:
        entry, deployment = episode.opened_at or episode.first_known_at, episode.deployment_id
        entries[deployment] = min(entry, entries.get(deployment, entry))
    return {
        deployment: stored.closes_from(
            connection, *key, deployment_id=deployment, at=entry, with_later=len(episodes) > 1
        )
        for deployment, entry in entries.items()
    }


def _load_window(connection: Connection, key: SkillKey, symbol: str) -> Practice | None:
    """Read what one more trade in a symbol needs: the trades of the window, and the record before the window."""
    habits = stored.habits_of(connection, *key, symbol)
    if habits is None:
        return None
    recent = stored.recent_trades(connection, *key, symbol, most=window_of(habits.habits.stability) - 1)
    earlier = stored.record_before_trade(connection, *key, symbol, back=len(recent) - 1)
    return practice_from_record(habits, [WindowTrade(trade=trade, earlier=earlier) for trade in recent])


def _load_practice(connection: Connection, key: SkillKey, symbol: str) -> Practice | None:
    """Read everything that is stored about how a strategy is traded in a symbol."""
    habits = stored.habits_of(connection, *key, symbol)
    if habits is None:
        return None
    recent = stored.recent_trades_with_records(connection, *key, symbol)
    return practice_from_record(habits, [WindowTrade(trade=row.trade, earlier=row.earlier) for row in recent])


def rebuild_habits(transaction: Transaction, key: SkillKey) -> HabitRecords:
    """Learn all episodes of a strategy again and replace its rows; the answer has every alarm there ever was."""
    connection, (owner, mode, strategy_name) = transaction.connection, key
    episodes = stored_memories.current_teaching_trades(connection, owner, mode=mode, strategy_name=strategy_name)
    records = learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy_name)
    for noun in (stored.PRACTISED, stored.HABITS):
        stored.clear(connection, noun, owner, mode=mode, strategy_name=strategy_name)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive_new(stored.HABITS, records.habits)
    return records


def habits_at(view: View, mode: Mode, *, strategy_name: str | None, symbol: str | None) -> list[HabitsRecord]:
    """Habits as of a view, by strategy and symbol.

    The stored rows answer where they are of the view's instant. Otherwise the habits are learned from the episodes that
    the view shows.
    """
    if stored.is_current(view):
        return stored.habits(view.connection, view.owner, mode, strategy_name=strategy_name, symbol=symbol)
    rows: list[HabitsRecord] = []
    episodes = stored_memories.teaching_trades(view, mode=mode, strategy_name=strategy_name)
    for name, own in episodes_by_strategy(episodes).items():
        rows += learn_habits(own, owner_id=view.owner, mode=mode, strategy_name=name).habits
    return sorted(
        (row for row in rows if symbol in (None, row.symbol)), key=lambda row: (row.strategy_name, row.symbol)
    )


def record_at(view: View, mode: Mode, strategy_name: str) -> Record:
    """The trades, wins and outcomes of a strategy as of a view."""
    if stored.is_current(view):
        return stored.strategy_record(view.connection, view.owner, mode, strategy_name)
    episodes = in_teaching_order(stored_memories.teaching_trades(view, mode=mode, strategy_name=strategy_name))
    return record_of([trade_figures(episode) for episode in episodes])


def episodes_by_strategy(episodes: Iterable[Episode]) -> dict[str, list[Episode]]:
    """Episodes by the name of their strategy, in alphabetical order of the names."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.strategy_name, []).append(episode)
    return dict(sorted(groups.items()))


def falling_outcomes_since(view: View, mode: Mode, *, strategy_name: str, symbol: str) -> datetime | None:
    """Since when the outcomes in R of a strategy in a symbol have been falling; None where they are not."""
    if stored.is_current(view):
        rows = stored.habits(view.connection, view.owner, mode, strategy_name=strategy_name, symbol=symbol)
    else:
        episodes = stored_memories.teaching_trades(view, mode=mode, strategy_name=strategy_name, symbol=symbol)
        rows = list(learn_habits(episodes, owner_id=view.owner, mode=mode, strategy_name=strategy_name).habits)
    detectors = [settle(row.drift["R"], now=view.as_of).detector for row in rows if "R" in row.drift]
    falls = [each.latest.since for each in detectors if each.degrading and each.latest is not None]
    return max(falls, default=None)
