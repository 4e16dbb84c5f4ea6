"""Cursors: the position after a page, bound to the query that produced the page."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import format_instant, parse_instant


def cursor_after(at: datetime, last_id: str, *, query: dict[str, object]) -> str:
    """The cursor after a page whose last row has this instant and id."""
    return encode_cursor([format_instant(at), last_id], query=query)


def read_cursor(cursor: str, *, query: dict[str, object]) -> tuple[datetime, str]:
    """The instant and id of the last row before a cursor; a cursor of another query is refused."""
    position = decode_cursor(cursor, query=query)
    try:
        at, last_id = position
        return parse_instant(at, field="cursor"), str(last_id)
    except (ValueError, TypeError, AttributeError, Invalid):
        raise _not_a_cursor() from None


def encode_cursor(position: Sequence[object], *, query: dict[str, object]) -> str:
    """A cursor for a position in the results of a query."""
    content = canonical_json([*position, digest(query)[:16]])
    return base64.urlsafe_b64encode(content.encode()).decode()


def decode_cursor(cursor: str, *, query: dict[str, object]) -> list[str]:
    """The position in a cursor, as JSON values; a cursor of another query is refused."""
    position: list[str]
    try:
        *position, query_digest = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise _not_a_cursor() from None
    if query_digest != digest(query)[:16]:
        raise Invalid("belongs to another query; repeat its arguments, or leave the cursor out", field="cursor")
    return position


def _not_a_cursor() -> Invalid:
    return Invalid("is not a cursor; give the next_cursor of the previous page, or leave it out", field="cursor")
