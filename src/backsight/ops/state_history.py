"""The mood of a deployment over time: equity, drawdown, confidence and streaks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from backsight.arguments import AsOf, Instant, Key, SeenAt
from backsight.core.memory.mood_series import MoodRow
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import chosen_deployment
from backsight.services.mood import mood_rows, mood_series

MostPoints = Annotated[int, Field(strict=True, ge=2, le=1_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPoint:
    """What an account was worth at an instant."""

    at: datetime
    equity: float | None
    peak: float | None
    drawdown: float
    """The share that the equity is below its peak."""
    risk_appetite: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPoint:
    """The confidence and the streak of a strategy on an account after a close."""

    at: datetime
    confidence: float
    consecutive_wins: int
    consecutive_losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHistory:
    """The mood over time as two series, oldest first: of the account, and of the strategy on it."""

    deployment: str
    account: tuple[AccountPoint, ...]
    strategy: tuple[StrategyPoint, ...]
    readings: int
    """The number of facts about the account by then."""
    closes: int
    """The number of closed trades by then."""
    message: str
    as_of: datetime


@query(audience=("coach",))
def get_state_history(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    since: Annotated[Instant | None, "Only points at or after this instant."] = None,
    limit: Annotated[MostPoints, "The most points of each series; longer series are thinned evenly."] = 200,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> StateHistory:
    """Get the mood of a deployment over time: equity, drawdown and risk appetite; confidence and streaks."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, notes = chosen_deployment(view, deployment, shows=lambda each: any(mood_rows(view, each)))
        account, strategy = mood_series(view, target, since=since, limit=limit)
    readings, closes = _count(account), _count(strategy)
    counts = f"{count_of(readings, 'fact')} about the account and {count_of(closes, 'close')} by then."
    return StateHistory(
        deployment=target.name,
        account=tuple(_account_point(row) for row in account),
        strategy=tuple(_strategy_point(row) for row in strategy),
        readings=readings,
        closes=closes,
        message=" ".join([*notes, counts]),
        as_of=view.as_of,
    )


def _count(rows: Sequence[MoodRow]) -> int:
    return rows[-1].n if rows else 0


def _account_point(row: MoodRow) -> AccountPoint:
    account = row.account
    return AccountPoint(
        at=row.at,
        equity=None if account is None else account.equity,
        peak=None if account is None else account.peak,
        drawdown=0.0 if account is None else account.drawdown,
        risk_appetite=row.risk_appetite,
    )


def _strategy_point(row: MoodRow) -> StrategyPoint:
    mood = row.strategy
    return StrategyPoint(
        at=row.at,
        confidence=0.5 if mood is None else mood.confidence,
        consecutive_wins=0 if mood is None else mood.consecutive_wins,
        consecutive_losses=0 if mood is None else mood.consecutive_losses,
    )
