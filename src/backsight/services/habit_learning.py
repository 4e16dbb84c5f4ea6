"""Bring the stored habits of a strategy up to date with the episodes of its closed trades.

`update_habits` adds episodes that follow all others of their mode; `rebuild_habits` learns all episodes of the strategy
again. Both ways end in equal rows.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from backsight.core.memory.checkpoints import Place
from backsight.core.memory.drift import Detector, settle
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    HabitRecords,
    HabitsRecord,
    StrategyDriftRecord,
    habits_record,
    in_teaching_order,
    learn_habits,
    outcome_detectors,
    practice_at,
    practice_from_record,
    trade_figures,
)
from backsight.core.memory.procedural import (
    LONGEST_WINDOW,
    PastClose,
    Practice,
    Record,
    Skill,
    WindowTrade,
    practise,
    record_of,
    watch_outcomes,
    window_of,
)
from backsight.core.portfolio import Mode
from backsight.services.belief_learning import shows_current_trades
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.unchanged import unchanged
from backsight.store.view import View, everything

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
        trades=0 if whole is None else whole.trades,
        symbols={symbol: practice for symbol, practice in symbols.items() if practice is not None},
        closes=_load_closes(connection, key, episodes),
    )
    records = learn_habits(episodes, **key._asdict(), skill=skill)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive(stored.HABITS, records.habits)
    transaction.derive(stored.STRATEGY_DRIFT, records.strategies)
    transaction.derive_new(stored.HABIT_CHECKPOINTS, records.checkpoints)
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


def relearn_habits(transaction: Transaction, key: SkillKey, place: Place) -> HabitRecords:
    """Learn the trades of a strategy again from a place on; the answer has the alarms since then."""
    connection, (owner, mode, strategy_name) = transaction.connection, key
    symbols = stored.forget_trades_from(connection, owner, mode, strategy_name, place)
    view = everything(connection, owner)
    for symbol in symbols:
        row = _habits_from_checkpoint(view, mode, strategy_name, symbol)
        if row is None:
            stored.clear(connection, stored.HABITS, owner, mode=mode, strategy_name=strategy_name, symbol=symbol)
        else:
            transaction.derive(stored.HABITS, [row])
    whole = _strategy_drift_from_checkpoint(view, mode, strategy_name)
    if whole is None:
        stored.clear(connection, stored.STRATEGY_DRIFT, owner, mode=mode, strategy_name=strategy_name)
    else:
        transaction.derive(stored.STRATEGY_DRIFT, [whole])
    just_before = (place[0], place[1], "")
    tail = stored_memories.teaching_trades_after(connection, owner, mode, just_before, strategy_name=strategy_name)
    return update_habits(transaction, key, tail)


def rebuild_habits(transaction: Transaction, key: SkillKey, episodes: Sequence[Episode]) -> HabitRecords:
    """Replace the rows of a strategy by those that all its trades make; the answer has every alarm there ever was."""
    connection, (owner, mode, strategy_name) = transaction.connection, key
    records = learn_habits(episodes, owner_id=owner, mode=mode, strategy_name=strategy_name)
    for noun in (stored.PRACTISED, stored.HABITS, stored.STRATEGY_DRIFT, stored.HABIT_CHECKPOINTS):
        stored.clear(connection, noun, owner, mode=mode, strategy_name=strategy_name)
    transaction.derive_new(stored.PRACTISED, records.trades)
    transaction.derive_new(stored.HABITS, records.habits)
    transaction.derive_new(stored.STRATEGY_DRIFT, records.strategies)
    transaction.derive_new(stored.HABIT_CHECKPOINTS, records.checkpoints)
    return records


def habits_at(view: View, mode: Mode, *, strategy_name: str | None, symbol: str | None) -> list[HabitsRecord]:
    """Habits as of a view, by strategy and symbol.

    The stored rows answer where they are of the view's instant. For an earlier instant, checkpoints and the trades
    since answer, unless the view shows other versions of trades than the current ones: then the habits are learned from
    all episodes that it shows.
    """
    rows: list[HabitsRecord] = []
    if stored.is_current(view):
        return stored.habits(view.connection, view.owner, mode, strategy_name=strategy_name, symbol=symbol)
    if shows_current_trades(view, mode):
        series = stored.habit_keys(view.connection, view.owner, mode, strategy_name=strategy_name, symbol=symbol)
        rows += (row for name, each in series if (row := _habits_from_checkpoint(view, mode, name, each)) is not None)
        return rows
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
    if shows_current_trades(view, mode):
        return stored.strategy_record_as_of(view.connection, view.owner, mode, strategy_name, view.as_of)
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
    if shows_current_trades(view, mode):
        return _strategy_drift_from_checkpoint(view, mode, strategy_name)
    return next(iter(_learned_at(view, mode, strategy_name).strategies), None)


def evidence_filter(view: View, mode: Mode, *, strategy_name: str, symbols: Collection[str]) -> "TradeFilter":
    """The trades of a strategy that base rates and sizes in some symbols rest on: those since results declined."""
    from backsight.core.recall.arrays.selection import TradeFilter

    declines = falling_outcomes_since(view, mode, strategy_name=strategy_name, symbols=symbols)
    return TradeFilter(strategy_name=strategy_name, mode=mode, falling_since=declines)


def falling_outcomes_since(
    view: View, mode: Mode, *, strategy_name: str, symbols: Collection[str]
) -> dict[tuple[str, str | None], datetime]:
    """Since when the outcomes in R of a strategy have been falling: in each symbol, and, without a symbol, as a whole.

    Empty where they are not. A decline lasts until the trades after it speak for themselves.
    """
    series: dict[str | None, Mapping[str, Detector]]
    if stored.is_current(view):
        connection, owner = view.connection, view.owner
        rows = {symbol: stored.habits_of(connection, owner, mode, strategy_name, symbol) for symbol in symbols}
        series = {symbol: row.drift for symbol, row in rows.items() if row is not None}
        whole = stored.strategy_drift(connection, owner, mode, strategy_name)
        series |= {} if whole is None else {None: whole.drift}
    elif shows_current_trades(view, mode):
        key = SkillKey(view.owner, mode, strategy_name)
        series = {symbol: _outcome_drift_as_of(view, key, symbol).drift for symbol in symbols}
        series[None] = _strategy_outcome_drift_as_of(view, key).drift
    else:
        learned = _learned_at(view, mode, strategy_name)
        series = {row.symbol: row.drift for row in learned.habits if row.symbol in symbols}
        series |= {None: learned.strategies[0].drift} if learned.strategies else {}
    declines: dict[tuple[str, str | None], datetime] = {}
    for name, drift in series.items():
        detector = settle(drift["R"], now=view.as_of).detector if "R" in drift else None
        if detector is not None and detector.degrading and detector.latest is not None:
            declines[strategy_name, name] = detector.latest.since
    return declines


class _OutcomeDrift(NamedTuple):
    """The drift of outcomes as of an instant, and the trades that it rests on."""

    drift: dict[str, Detector]
    trades: int
    known_at: datetime | None
    """When the last trade became known."""


def _outcome_drift_as_of(view: View, key: SkillKey, symbol: str) -> _OutcomeDrift:
    """The drift of outcomes in a symbol, or, with an empty symbol, of the strategy as a whole."""
    checkpoint = stored.habit_checkpoint(view.connection, *key, symbol, as_of=view.as_of)
    outcomes = stored.outcomes_between(view.connection, *key, symbol, after=checkpoint, as_of=view.as_of)
    detectors = watch_outcomes({} if checkpoint is None else outcome_detectors(checkpoint.drift), outcomes)
    last = outcomes[-1][0] if outcomes else None if checkpoint is None else checkpoint.known_at
    trades = len(outcomes) + (0 if checkpoint is None else checkpoint.trades)
    return _OutcomeDrift({str(unit): detector for unit, detector in detectors.items()}, trades, last)


def _strategy_outcome_drift_as_of(view: View, key: SkillKey) -> _OutcomeDrift:
    """The drift of a strategy's outcomes as a whole, which every symbol of a prompt needs: computed once."""
    return unchanged(
        view.connection,
        view.owner,
        ("outcome drift", key, view.as_of),
        (stored.PRACTISED, stored.HABIT_CHECKPOINTS),
        lambda: _outcome_drift_as_of(view, key, ""),
    )


def _strategy_drift_from_checkpoint(view: View, mode: Mode, strategy_name: str) -> StrategyDriftRecord | None:
    drift, trades, known_at = _strategy_outcome_drift_as_of(view, SkillKey(view.owner, mode, strategy_name))
    if known_at is None:
        return None
    return StrategyDriftRecord(
        owner_id=view.owner, mode=mode, strategy_name=strategy_name, known_at=known_at, trades=trades, drift=drift
    )


def _habits_from_checkpoint(view: View, mode: Mode, strategy_name: str, symbol: str) -> HabitsRecord | None:
    """The habits of a strategy in a symbol as of an instant: the last checkpoint and the trades since."""
    connection, key = view.connection, SkillKey(view.owner, mode, strategy_name)
    checkpoint = stored.habit_checkpoint(connection, *key, symbol, as_of=view.as_of)
    trades = stored.recent_trades_as_of(
        connection, *key, symbol, after=checkpoint, as_of=view.as_of, before=LONGEST_WINDOW
    )
    if not trades:
        return None
    since = 0 if checkpoint is None else bisect_right(trades, checkpoint.place, key=itemgetter(0))
    before, later = ([trade for _, trade in part] for part in (trades[:since], trades[since:]))
    practice = practise(practice_at(checkpoint, before[-LONGEST_WINDOW:]), later)
    window = practice.recent[-window_of(practice.previous_stability) :]
    earlier = stored.record_before_trade_as_of(connection, *key, symbol, back=len(window) - 1, as_of=view.as_of)
    recent = tuple(WindowTrade(trade=each.trade, earlier=earlier) for each in practice.recent)
    return habits_record(replace(practice, recent=recent), trades[-1][1], owner_id=view.owner, mode=mode)


def _learned_at(view: View, mode: Mode, strategy_name: str) -> HabitRecords:
    episodes = stored_memories.teaching_trades(view, mode=mode, strategy_name=strategy_name)
    return learn_habits(episodes, owner_id=view.owner, mode=mode, strategy_name=strategy_name)
