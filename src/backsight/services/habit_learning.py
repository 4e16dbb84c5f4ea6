"""Bring the stored habits of a strategy up to date with the episodes of its closed trades.

`update_habits` adds episodes that follow all others of their mode; `rebuild_habits` learns all episodes of the strategy
again. Both ways end in equal rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from backsight.core.memory.drift import Detector, settle
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    HabitRecords,
    HabitsRecord,
    StrategyDriftRecord,
    in_teaching_order,
    learn_habits,
    outcome_detectors,
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

if TYPE_CHECKING:
    from backsight.core.recall.arrays.selection import TradeFilter


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
    whole = stored.strategy_drift(connection, *key)
    skill = Skill(
        strategy_name=key.strategy_name,
        record=stored.strategy_record(connection, *key),
        outcome_drift={} if whole is None else outcome_detectors(whole.drift),
        symbols={symbol: practice for symbol, practice in symbols.items() if practice is not None},
        closes=_load_closes(connection, key, episodes),
    )
    records = learn_habits(episodes, **key._asdict(), skill=skill)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive(stored.HABITS, records.habits)
    transaction.derive(stored.STRATEGY_DRIFT, records.strategies)
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
    for noun in (stored.PRACTISED, stored.HABITS, stored.STRATEGY_DRIFT):
        stored.clear(connection, noun, owner, mode=mode, strategy_name=strategy_name)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive_new(stored.HABITS, records.habits)
    transaction.derive_new(stored.STRATEGY_DRIFT, records.strategies)
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


def strategy_drift_at(view: View, mode: Mode, strategy_name: str) -> StrategyDriftRecord | None:
    """The drift tests of a strategy as a whole as of a view; None without trades."""
    if stored.is_current(view):
        return stored.strategy_drift(view.connection, view.owner, mode, strategy_name)
    return next(iter(_learned_at(view, mode, strategy_name).strategies), None)


def evidence_filter(view: View, mode: Mode, *, strategy_name: str, symbol: str) -> "TradeFilter":
    """The trades of a strategy that base rates and sizes in a symbol rest on: those since results declined."""
    from backsight.core.recall.arrays.selection import TradeFilter

    declines = falling_outcomes_since(view, mode, strategy_name=strategy_name, symbol=symbol)
    return TradeFilter(strategy_name=strategy_name, mode=mode, falling_since=declines)


def falling_outcomes_since(
    view: View, mode: Mode, *, strategy_name: str, symbol: str
) -> dict[tuple[str, str | None], datetime]:
    """Since when the outcomes in R of a strategy have been falling: in a symbol, and, without a symbol, as a whole.

    Empty where they are not. A decline lasts until the trades after it speak for themselves.
    """
    if stored.is_current(view):
        habits = stored.habits_of(view.connection, view.owner, mode, strategy_name, symbol)
        whole = stored.strategy_drift(view.connection, view.owner, mode, strategy_name)
    else:
        learned = _learned_at(view, mode, strategy_name)
        habits = next((row for row in learned.habits if row.symbol == symbol), None)
        whole = next(iter(learned.strategies), None)
    series: dict[str | None, HabitsRecord | StrategyDriftRecord | None] = {symbol: habits, None: whole}
    declines: dict[tuple[str, str | None], datetime] = {}
    for name, row in series.items():
        drift: Mapping[str, Detector] = {} if row is None else row.drift
        detector = settle(drift["R"], now=view.as_of).detector if "R" in drift else None
        if detector is not None and detector.degrading and detector.latest is not None:
            declines[strategy_name, name] = detector.latest.since
    return declines


def _learned_at(view: View, mode: Mode, strategy_name: str) -> HabitRecords:
    episodes = stored_memories.teaching_trades(view, mode=mode, strategy_name=strategy_name)
    return learn_habits(episodes, owner_id=view.owner, mode=mode, strategy_name=strategy_name)
