"""Behavior: how one strategy is traded in one symbol, as answers show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from backsight.core.memory.drift_report import Drift, drift_report
from backsight.core.memory.experience import HabitsRecord
from backsight.core.memory.procedural import Habits
from backsight.core.portfolio import Mode
from backsight.services.habit_learning import habits_at
from backsight.store import trades as stored_trades
from backsight.store.view import View


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
    versions: tuple[VersionShare, ...]
    """The closed trades of the strategy in the symbol by version; the habits pool all versions."""
    known_at: datetime
    """When the last trade became known."""


def behaviors_at(view: View, mode: Mode, *, strategy_name: str | None, symbol: str | None) -> tuple[Behavior, ...]:
    """The behavior by strategy and symbol as of a view; None matches every strategy or symbol."""
    rows = habits_at(view, mode, strategy_name=strategy_name, symbol=symbol)
    if not rows:
        return ()
    versions = stored_trades.version_counts(view, mode, strategy_name=strategy_name, symbol=symbol)
    return tuple(_behavior(row, versions, now=view.as_of) for row in rows)


def _behavior(
    row: HabitsRecord, versions: Mapping[tuple[str, str], dict[int | None, int]], *, now: datetime
) -> Behavior:
    pooled = versions.get((row.strategy_name, row.symbol), {})
    return Behavior(
        strategy_name=row.strategy_name,
        symbol=row.symbol,
        habits=row.habits,
        drift=tuple(drift_report(series, detector, now=now) for series, detector in sorted(row.drift.items())),
        versions=tuple(
            VersionShare(version=version, trades=trades)
            for version, trades in sorted(pooled.items(), key=lambda each: each[0] or 0)
        ),
        known_at=row.known_at,
    )
