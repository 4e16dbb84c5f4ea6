"""Cursors: where a page ended, bound to the query it belongs to."""

import base64
import binascii
import json
from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import format_instant, parse_instant


def cursor_after(at: datetime, last_id: str, *, query: dict[str, object]) -> str:
    """The cursor of a page that ended with this instant and id."""
    content = canonical_json([format_instant(at), last_id, digest(query)[:16]])
    return base64.urlsafe_b64encode(content.encode()).decode()


def read_cursor(cursor: str, *, query: dict[str, object]) -> tuple[datetime, str]:
    """Where the page before this cursor ended; a cursor of another query is refused."""
    try:
        at, last_id, belongs = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        position = parse_instant(at, field="cursor"), str(last_id)
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error, Invalid):
        raise Invalid("not a cursor; give the next_cursor of the page before, or none", field="cursor") from None
    if belongs != digest(query)[:16]:
        raise Invalid("belongs to another query; repeat the arguments it came with, or give none", field="cursor")
    return position
