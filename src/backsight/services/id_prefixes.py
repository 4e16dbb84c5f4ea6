"""Ids by their beginning: answers show six characters of an id, and every operation accepts them."""

import re
from typing import Any

from backsight.core.errors import Invalid, NotFound
from backsight.core.ids import SHORT_ID
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode, episode_id_of
from backsight.core.trades.trade import Trade
from backsight.store import memories as stored
from backsight.store.database import Connection
from backsight.store.mapping import Noun
from backsight.store.memories import EPISODES
from backsight.store.reading import ids_beginning_with
from backsight.store.trades import TRADES, trade_then
from backsight.store.view import View

PREFIX = re.compile(rf"(?=.{{{SHORT_ID},35}}$)[0-9a-f]{{1,8}}(-[0-9a-f-]*)?")
"""The characters of an id that answers show, or more of them, but not all."""


def whole_id(connection: Connection, owner: str, noun: Noun[Any], key: str, *, field: str) -> str:
    """The id that begins with a key; the key itself if no id does. `Invalid` if several ids begin with it."""
    if not PREFIX.fullmatch(key):
        return key
    matches = ids_beginning_with(connection, noun, owner, key)
    if len(matches) > 1:
        raise Invalid(f"{key!r} begins several ids: {', '.join(matches)}; give more characters", field=field)
    return matches[0] if matches else key


def whole_episode_id(connection: Connection, owner: str, key: str, *, field: str) -> str:
    """The id of an episode, from the beginning of its id or of the id of its trade."""
    episode = whole_id(connection, owner, EPISODES, key, field=field)
    if episode != key:
        return episode
    trade = whole_id(connection, owner, TRADES, key, field=field)
    return key if trade == key else episode_id_of(trade)


def episode_known_then(view: View, key: str) -> Episode | None:
    """The episode with an id, or the beginning of one, as of a view; of a series of inactions, the last one.

    None if a trade's id begins so, or no episode's.
    """
    if whole_id(view.connection, view.owner, TRADES, key, field="trade_id") != key:
        return None
    known = stored.episode(view, whole_id(view.connection, view.owner, EPISODES, key, field="trade_id"))
    return known if known is None or known.kind != "inaction" else stored.last_of_series(view, known)


def trade_known_then(connection: Connection, owner: str, key: str, horizon: Horizon) -> Trade:
    """The trade with an id, or the beginning of one, as of a horizon; `NotFound` if it was not known then."""
    trade_id = whole_id(connection, owner, TRADES, key, field="trade_id")
    trade = trade_then(View(connection, owner, horizon), trade_id)
    if trade is None:
        raise NotFound(f"no trade {trade_id!r} was known then; list_trades shows them", field="trade_id")
    return trade
