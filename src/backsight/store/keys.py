"""The table of API keys."""

from sqlalchemy import Connection

from backsight.core.keys import ApiKey
from backsight.store.mapping import noun
from backsight.store.reading import fetch, fetch_one, known, owned
from backsight.store.view import View

KEYS = noun(ApiKey, "api_keys", revised=True)


def key(connection: Connection, owner: str, key_id: str) -> ApiKey | None:
    """The key with this id."""
    return fetch_one(connection, KEYS, owned(KEYS, owner, KEYS.table.c.id == key_id))


def keys(view: View) -> list[ApiKey]:
    """The keys as of a view, newest first."""
    rows = fetch(view.connection, KEYS, known(KEYS, view.owner, view.horizon))
    return sorted(rows, key=lambda each: (each.created_at, each.id), reverse=True)
