"""Take, renew and release the lease of the process that fires heartbeats."""

from datetime import datetime, timedelta

from backsight.core.agents.schedule_lease import ScheduleLease
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.services.context import Context
from backsight.store import agent_sessions as stored

LEASE = timedelta(seconds=60)
SCHEDULE = "schedule"


def take_lease(ctx: Context, holder: str, *, now: datetime) -> None:
    """Take or renew the lease; `Conflict` if another process has it."""
    with ctx.database.writing(ctx.owner) as connection:
        lease = stored.schedule_lease(connection, ctx.owner, SCHEDULE)
        if lease is not None and lease.belongs_to_other(holder, now=now):
            until = format_instant(lease.expires_at)
            raise Conflict(f"{lease.holder!r} fires the heartbeats of this store until {until}; stop it, or wait")
        new = ScheduleLease(owner_id=ctx.owner, name=SCHEDULE, holder=holder, expires_at=now + LEASE)
        stored.save_schedule_lease(connection, new)


def release_lease(ctx: Context, holder: str) -> None:
    """Give the lease up, so that another process can fire at once."""
    with ctx.database.writing(ctx.owner) as connection:
        lease = stored.schedule_lease(connection, ctx.owner, SCHEDULE)
        if lease is not None and lease.holder == holder:
            stored.delete_schedule_lease(connection, ctx.owner, SCHEDULE)
