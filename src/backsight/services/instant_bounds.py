"""Bounds of instants: a time that a caller reports must not be later than our clock allows."""

from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.market import EPOCH
from backsight.core.orders import BrokerSnapshot
from backsight.core.portfolio import Account
from backsight.services.context import Context


def check_instant(ctx: Context, at: datetime, *, field: str) -> None:
    """Refuse the instant of a tick that is in the future, or before 1970."""
    check_not_future(ctx, at, field=field)
    if at < EPOCH:
        raise Invalid(f"{format_instant(at)} is before 1970; give the instant of the tick", field=field)


def check_not_future(ctx: Context, at: datetime, *, field: str) -> None:
    """Refuse an instant that is later than now and the clock skew: one such row would block all later ones."""
    if at > ctx.now + ctx.clock_skew:
        skew = f"clocks may differ by {ctx.clock_skew.total_seconds():g} s (setting clock_skew)"
        message = f"{format_instant(at)} is in the future: it is {format_instant(ctx.now)} here, and {skew}"
        raise Invalid(f"{message}; check both clocks", field=field)


def check_snapshot_instant(ctx: Context, account: Account, snapshot: BrokerSnapshot, *, field: str) -> None:
    """Refuse a broker's snapshot from the future, except on a simulated account, whose broker has its own time."""
    if account.mode != "sim":
        check_not_future(ctx, snapshot.portfolio.at, field=f"{field}.portfolio.at")
