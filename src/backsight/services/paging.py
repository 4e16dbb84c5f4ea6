"""Cursors: where a page ended, bound to the query it belongs to."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import format_instant, parse_instant


def cursor_after(at: datetime, last_id: str, *, query: dict[str, object]) -> str:
    """The cursor of a page that ended with this instant and id."""
    return sealed([format_instant(at), last_id], query=query)


def read_cursor(cursor: str, *, query: dict[str, object]) -> tuple[datetime, str]:
    """Where the page before this cursor ended; a cursor of another query is refused."""
    position = opened(cursor, query=query)
    try:
        at, last_id = position
        return parse_instant(at, field="cursor"), str(last_id)
    except (ValueError, TypeError, AttributeError, Invalid):
        raise _not_a_cursor() from None


def sealed(position: Sequence[object], *, query: dict[str, object]) -> str:
    """A cursor that holds a position among the answers to a query."""
    content = canonical_json([*position, digest(query)[:16]])
    return base64.urlsafe_b64encode(content.encode()).decode()


def opened(cursor: str, *, query: dict[str, object]) -> list[str]:
    """The position that a cursor holds, as JSON has it."""
    position: list[str]
    try:
        *position, belongs = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise _not_a_cursor() from None
    if belongs != digest(query)[:16]:
        raise Invalid("belongs to another query; repeat the arguments it came with, or give none", field="cursor")
    return position


def _not_a_cursor() -> Invalid:
    return Invalid("not a cursor; give the next_cursor of the page before, or none", field="cursor")
