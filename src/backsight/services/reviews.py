"""Reads everything that the review of a period reports."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from backsight.core.instants import JUST_BEFORE, Horizon
from backsight.core.memory.drift_report import SIZE, drift_report
from backsight.core.reflection.patterns import TradeEvidence
from backsight.core.reflection.periods import Period
from backsight.core.reflection.reviews import PeriodRecord, SymbolDrift, period_start
from backsight.core.strategies import Deployment
from backsight.services.deployments import account_of
from backsight.services.habit_learning import habits_at
from backsight.services.reflection import read_evidence
from backsight.store import notes as stored
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.trades.columns import ClosedTradeColumns

ALL = 1_000_000
"""A limit on rows that no period reaches."""


def read_period(
    view: View, columns: "ClosedTradeColumns", deployment: Deployment, period: Period
) -> tuple[PeriodRecord, TradeEvidence]:
    """The trades, evidence, lessons and reflections of a period, as known at its end; and the evidence again."""
    evidence, _ = read_evidence(view, columns, deployment)
    results = read_results(view.connection, deployment, period, view.as_of, seen_at=view.seen_at)
    return replace(results, evidence=evidence, drift=_outcome_drift(view, deployment)), evidence


def read_results(
    connection: Connection, deployment: Deployment, period: Period, end: datetime, *, seen_at: datetime | None = None
) -> PeriodRecord:
    """The trades, lessons and reflections of a period, as known at its end, without testing evidence.

    A test of evidence takes a hundred times as long as everything else in a review.
    """
    view = View(connection, deployment.owner_id, Horizon(as_of=end, seen_at=seen_at))
    start = period_start(period, end)
    after = start + JUST_BEFORE
    lessons = stored.active_text(view, deployment.id)
    reflections = stored.reflections(view, limit=ALL, deployment_id=deployment.id, since=after)
    trades = stored_trades.trades(
        view,
        limit=ALL,
        since=after,
        until=end + JUST_BEFORE,
        deployment_id=deployment.id,
    )
    return PeriodRecord(
        deployment=deployment.name,
        mode=deployment.mode,
        currency=account_of(connection, deployment).currency,
        period=period,
        start=start,
        end=end,
        trades=trades,
        lessons=None if lessons is None else lessons.lessons_text,
        reflections=tuple(reversed(reflections)),
    )


def _outcome_drift(view: View, deployment: Deployment) -> tuple[SymbolDrift, ...]:
    """The drift of the strategy's outcomes in each symbol, in the mode of a deployment."""
    rows = habits_at(view, deployment.mode, strategy_name=deployment.strategy_name, symbol=None)
    return tuple(
        SymbolDrift(symbol=row.symbol, drift=drift_report(series, detector, now=view.as_of))
        for row in rows
        for series, detector in sorted(row.drift.items())
        if series != SIZE
    )
