"""How much an owner has stored: trades and decisions by mode."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select

from backsight.store.decisions import DECISIONS
from backsight.store.mapping import Noun
from backsight.store.reading import known
from backsight.store.trades import TRADES
from backsight.store.view import View


class ModeCount(NamedTuple):
    """The rows of one mode, and the instant of the last of them; None for rows without an instant."""

    mode: str
    rows: int
    last_at: datetime | None


def trades_by_mode(view: View) -> list[ModeCount]:
    """The trades that were known, by mode, and when the last of them was closed."""
    return _by_mode(view, TRADES, "exit_tick_at")


def decisions_by_mode(view: View) -> list[ModeCount]:
    """The decisions that were known, by mode, and the instant of the last tick."""
    return _by_mode(view, DECISIONS, "at")


def _by_mode(view: View, noun: Noun[Any], instant: str) -> list[ModeCount]:
    c = known(noun, view.owner, view.horizon).subquery().c
    last = func.max(c[instant], type_=c[instant].type)
    counted = select(c.mode, func.count(), last).group_by(c.mode).order_by(c.mode)
    return [ModeCount(*row) for row in view.connection.execute(counted)]
