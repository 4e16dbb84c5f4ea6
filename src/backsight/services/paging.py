"""Cursors: the position after a page, bound to the query and to the horizon of the first page."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import Horizon, format_instant, parse_instant

P = TypeVar("P")


def cursor_after(position: Sequence[object], horizon: Horizon, *, now: datetime, query: dict[str, object]) -> str:
    """The cursor after the last row of a page.

    It fixes `seen_at`, so that a later record neither shifts the next pages nor changes a default of the query, such as
    its mode.
    """
    instants = [format_instant(horizon.as_of), format_instant(horizon.seen_at or now)]
    content = canonical_json([*position, *instants, digest(query)[:16]])
    return base64.urlsafe_b64encode(content.encode()).decode()


def read_cursor(cursor: str, read_position: Callable[..., P], *, query: dict[str, object]) -> tuple[P, Horizon]:
    """The position of the last row before a cursor, and the horizon of its pages.

    `read_position` takes the values of the position as they are in JSON. A cursor of another query is refused.
    """
    try:
        *position, as_of, seen_at, query_digest = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        if query_digest == digest(query)[:16]:
            horizon = Horizon(as_of=parse_instant(as_of), seen_at=parse_instant(seen_at))
            return read_position(*position), horizon
    except (ValueError, TypeError, AttributeError, RecursionError, Invalid, binascii.Error):
        raise _not_a_cursor() from None
    raise Invalid("belongs to another query; repeat its arguments, or leave the cursor out", field="cursor")


def instant_and_id(at: str, last_id: str) -> tuple[datetime, str]:
    """The position in a list that is ordered by instant and id."""
    return parse_instant(at), str(last_id)


def _not_a_cursor() -> Invalid:
    return Invalid("is not a cursor; give the next_cursor of the previous page, or leave it out", field="cursor")
