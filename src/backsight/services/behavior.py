"""Behavior: how one strategy is traded in one symbol, as answers show it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backsight.core.instants import Horizon
from backsight.core.memory.drift import Detector
from backsight.core.memory.drift_report import Drift, drift_report
from backsight.core.memory.estimates import FEWEST, Estimate, mean_estimate
from backsight.core.memory.exit_timing import exit_timing as exit_timing_of
from backsight.core.memory.exit_timing import intervals_for, stretch_after
from backsight.core.memory.experience import HabitsRecord
from backsight.core.memory.habit_sentences import HABITS, habit_sentences
from backsight.core.memory.procedural import Habits
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import Trade
from backsight.services.context import Context
from backsight.services.habit_learning import habits_at, strategy_drift_at
from backsight.store import bars as stored_bars
from backsight.store import trades as stored_trades
from backsight.store.instruments import underlyings
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.trades.columns import ClosedTradeColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionShare:
    """How many closed trades one version of the strategy made."""

    version: int | None
    trades: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """How one strategy is traded in one symbol; a figure with fewer than ten trades is null."""

    strategy_name: str
    symbol: str
    habits: Habits
    drift: tuple[Drift, ...]
    exit_timing: Estimate
    """From −1 (after the exit the price only went on in the trade's favour: left early) to +1 (it only turned), over
    as long again as each trade was open; without a value if fewer than ten trades have bars after their exit."""
    sentences: tuple[str, ...]
    """What may be said about the habits: those that chance seldom makes."""
    versions: tuple[VersionShare, ...]
    """The closed trades of the strategy in the symbol by version; the habits pool all versions."""
    known_at: datetime
    """When the last trade became known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDrift:
    """Whether the outcomes of a strategy as a whole, over all symbols, have changed."""

    strategy_name: str
    drift: tuple[Drift, ...]
    known_at: datetime
    """When the last trade became known."""


def strategy_drifts_at(view: View, mode: Mode, strategy_names: Iterable[str]) -> tuple[StrategyDrift, ...]:
    """The drift of these strategies as a whole, as of a view, by name."""
    rows = (strategy_drift_at(view, mode, name) for name in sorted(set(strategy_names)))
    return tuple(
        StrategyDrift(strategy_name=row.strategy_name, drift=_reports(row.drift, now=view.as_of), known_at=row.known_at)
        for row in rows
        if row is not None
    )


def _reports(drift: Mapping[str, Detector], *, now: datetime) -> tuple[Drift, ...]:
    return tuple(drift_report(series, detector, now=now) for series, detector in sorted(drift.items()))


def behaviors_at(
    ctx: Context, view: View, mode: Mode, *, strategy_name: str | None, symbol: str | None
) -> tuple[Behavior, ...]:
    """The behavior by strategy and symbol as of a view; None matches every strategy or symbol.

    What may be said of one symbol depends on the number of symbols in which a habit was estimated, so the habits of all
    symbols are read.
    """
    every = habits_at(view, mode, strategy_name=strategy_name, symbol=None)
    spellings = None if symbol is None else underlyings(view).spellings(symbol)
    rows = [row for row in every if spellings is None or row.symbol in spellings]
    if not rows:
        return ()
    versions = _version_counts(ctx.database.trade_images.at(view), view.horizon, mode)
    symbols = _symbols_by_habit(every)
    return tuple(
        _behavior(
            row,
            versions.get((row.strategy_name, row.symbol), {}),
            exit_timing=_exit_timing(view, row),
            symbols=symbols[row.strategy_name],
            now=view.as_of,
        )
        for row in rows
    )


def _version_counts(
    columns: "ClosedTradeColumns", horizon: Horizon, mode: Mode
) -> dict[tuple[str, str], Counter[int | None]]:
    """The number of closed trades of each strategy version, by strategy name and symbol."""
    from backsight.core.trades.columns import group_counts, known_trades  # imports NumPy

    counts: dict[tuple[str, str], Counter[int | None]] = {}
    rows = known_trades(columns, horizon, lambda group: group.mode == mode)
    for group, trades in group_counts(columns, rows).items():
        counts.setdefault((group.strategy_name, group.symbol), Counter())[group.strategy_version] += trades
    return counts


def _symbols_by_habit(rows: Iterable[HabitsRecord]) -> dict[str, Counter[str]]:
    """In how many symbols each habit was estimated, by strategy; exit timing counts wherever there are ten trades."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        estimated = [name for name in HABITS if getattr(row.habits, name).p_value is not None]
        if row.habits.n >= FEWEST:
            estimated.append("exit_timing")
        counts.setdefault(row.strategy_name, Counter()).update(estimated)
    return counts


def _exit_timing(view: View, row: HabitsRecord) -> Estimate:
    """What the price did after the exits of the trades that the habits rest on, as far as bars known by now tell."""
    intervals = stored_bars.intervals(view.connection, view.owner, row.symbol)
    if not intervals:
        return Estimate(value=None, n=0)
    trades = stored_trades.trades(
        view, limit=row.habits.n, mode=row.mode, strategy_name=row.strategy_name, symbol=row.symbol
    )
    timings = (_timing_of(view, trade, intervals) for trade in reversed(trades))
    return mean_estimate([timing for timing in timings if timing is not None], neutral=0.0)


def _timing_of(view: View, trade: Trade, intervals: Sequence[int]) -> float | None:
    stretch = stretch_after(trade.opened_at, trade.closed_at, now=view.as_of)
    if stretch is None or trade.exit_price is None:
        return None
    for interval in intervals_for(stretch, intervals):
        prices = stored_bars.range_between(
            view, symbol=trade.symbol, interval_seconds=interval, since=stretch.since, until=stretch.until
        )
        timing = exit_timing_of(trade.direction, trade.exit_price, prices, stretch=stretch, interval=interval)
        if timing is not None:
            return timing
    return None


def _behavior(
    row: HabitsRecord,
    pooled: Mapping[int | None, int],
    *,
    exit_timing: Estimate,
    symbols: Mapping[str, int],
    now: datetime,
) -> Behavior:
    return Behavior(
        strategy_name=row.strategy_name,
        symbol=row.symbol,
        habits=row.habits,
        drift=_reports(row.drift, now=now),
        exit_timing=exit_timing,
        sentences=habit_sentences(row.habits, exit_timing, symbols=symbols),
        versions=tuple(
            VersionShare(version=version, trades=trades)
            for version, trades in sorted(pooled.items(), key=lambda each: each[0] or 0)
        ),
        known_at=row.known_at,
    )
