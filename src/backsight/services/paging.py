"""Cursors: the position after a page, bound to the query and to the horizon of the first page."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from backsight.core.errors import Invalid
from backsight.core.ids import digest
from backsight.core.instants import EPOCH, Horizon

P = TypeVar("P")
DIGEST = 8
"""Characters of the digest of a query: enough to notice a cursor that belongs to another one."""
SHORT = (",", ":")


def cursor_after(position: Sequence[object], horizon: Horizon, *, now: datetime, query: dict[str, object]) -> str:
    """The cursor after the last row of a page.

    It fixes `seen_at`, so that a later record neither shifts the next pages nor changes a default of the query, such as
    its mode. Instants are microseconds, since a model pays for every character of a cursor.
    """
    values = [*position, horizon.as_of, horizon.seen_at or now, digest(query)[:DIGEST]]
    content = json.dumps(
        [microseconds(each) if isinstance(each, datetime) else each for each in values], separators=SHORT
    )
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_cursor(cursor: str, read_position: Callable[..., P], *, query: dict[str, object]) -> tuple[P, Horizon]:
    """The position of the last row before a cursor, and the horizon of its pages.

    `read_position` takes the values of the position as they are in JSON. A cursor of another query is refused.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        *position, as_of, seen_at, query_digest = json.loads(base64.urlsafe_b64decode(padded.encode()))
        if query_digest == digest(query)[:DIGEST]:
            horizon = Horizon(as_of=instant_of(as_of), seen_at=instant_of(seen_at))
            return read_position(*position), horizon
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError, Invalid, binascii.Error):
        raise _not_a_cursor() from None
    raise Invalid("belongs to another query; repeat its arguments, or leave the cursor out", field="cursor")


def instant_and_id(at: int, last_id: str) -> tuple[datetime, str]:
    """The position in a list that is ordered by instant and id."""
    return instant_of(at), str(last_id)


def microseconds(at: datetime) -> int:
    """Microseconds since 1970.

    >>> microseconds(EPOCH + timedelta(seconds=1)), instant_of(1_000_000) - EPOCH
    (1000000, datetime.timedelta(seconds=1))
    """
    return (at - EPOCH) // timedelta(microseconds=1)


def instant_of(number: int) -> datetime:
    """The instant so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=number)


def _not_a_cursor() -> Invalid:
    return Invalid("is not a cursor; give the next_cursor of the previous page, or leave it out", field="cursor")
