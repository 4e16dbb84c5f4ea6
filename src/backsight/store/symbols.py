"""The symbols in which there are episodes or open trades."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from backsight.store.memories import EPISODES
from backsight.store.reading import AS_OF, OWNED, known, parameters
from backsight.store.strategies import DEPLOYMENTS
from backsight.store.trades import TRADES
from backsight.store.unchanged import unchanged
from backsight.store.view import View

_E, _T = EPISODES.table.c, TRADES.table.c


SYMBOLS_OF_EPISODES = "symbols of episodes"
"""The key of the symbols of an owner's episodes, each with when the first was known, see `Database.last_value`."""


def _first_episodes() -> Select[Any]:
    """The symbols of the episodes of each deployment, each with its first episode: two index steps for each pair."""
    d, in_deployment = DEPLOYMENTS.table.c, _E.owner_id == OWNED
    first = select(func.min(_E.symbol)).where(in_deployment, _E.deployment_id == d.id).scalar_subquery()
    pairs = select(d.id, first.label("symbol")).where(d.owner_id == OWNED).cte("pairs", recursive=True)
    after = select(func.min(_E.symbol)).where(in_deployment, _E.deployment_id == pairs.c.id, _E.symbol > pairs.c.symbol)
    every = pairs.union_all(select(pairs.c.id, after.scalar_subquery()).where(pairs.c.symbol.is_not(None)))
    at = select(func.min(_E.first_known_at)).where(
        in_deployment, _E.deployment_id == every.c.id, _E.symbol == every.c.symbol
    )
    return select(every.c.symbol, at.scalar_subquery()).where(every.c.symbol.is_not(None))


_FIRST_EPISODES = _first_episodes()
_OPEN = select(_T.symbol).distinct().where(_T.owner_id == OWNED, _T.status == "open", _T.known_at <= AS_OF)


def symbols_with_trades(view: View) -> list[str]:
    """The symbols in which there are episodes or open trades at a view's horizon, in alphabetical order."""
    if view.seen_at is not None:
        episodes = known(EPISODES, view.owner, view.horizon).subquery()
        symbols = set(view.connection.execute(select(episodes.c.symbol).distinct()).scalars())
    else:
        symbols = {symbol for symbol, at in _symbols_of_episodes(view) if at <= view.as_of}
    opened = view.connection.execute(_OPEN, parameters(view.owner, as_of=view.as_of)).scalars()
    return sorted(symbols.union(opened))


def _symbols_of_episodes(view: View) -> list[tuple[str, datetime]]:
    def read() -> list[tuple[str, datetime]]:
        return [(row[0], row[1]) for row in view.connection.execute(_FIRST_EPISODES, parameters(view.owner))]

    return unchanged(view.connection, view.owner, SYMBOLS_OF_EPISODES, (EPISODES,), read)
