"""What a period in review is made of."""

from datetime import datetime

from backsight.core.instants import JUST_BEFORE, Horizon
from backsight.core.reflection.reviews import Period, PeriodRecord, period_start
from backsight.core.strategies import Deployment
from backsight.services.deployments import account_of
from backsight.services.reflection import evidence_at
from backsight.store import notes as stored
from backsight.store import trades as stored_trades
from backsight.store.database import Connection

ALL = 1_000_000
"""Trades of a period: more than there are."""


def read_period(
    connection: Connection, home: Deployment, period: Period, end: datetime, *, seen_at: datetime | None = None
) -> PeriodRecord:
    """All that the review of a period tells; nothing that became known after its end is in it."""
    start, then = period_start(period, end), Horizon(as_of=end, seen_at=seen_at)
    owner, after = home.owner_id, start + JUST_BEFORE
    evidence, _ = evidence_at(connection, home, then)
    note = stored.active_note(connection, owner, home.id, then)
    attempts = stored.reflections(connection, owner, then, limit=ALL, deployment_id=home.id, since=after)
    return PeriodRecord(
        deployment=home.name,
        mode=home.mode,
        currency=account_of(connection, home).currency,
        period=period,
        start=start,
        end=end,
        trades=stored_trades.trades(
            connection, owner, then, limit=ALL, since=after, until=end + JUST_BEFORE, deployment_id=home.id
        ),
        evidence=evidence,
        lessons=None if note is None else note.lessons_text,
        reflections=tuple(reversed(attempts)),
    )
