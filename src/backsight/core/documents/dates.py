"""Dates: when an entry of a journal was written, as its heading or its file name says."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from backsight.core.documents.chunk import blocks_of

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?(?!\d)")


def entry_instant(path: str, heading: Iterable[str], text: str) -> datetime | None:
    """The instant of the last dated heading of a text, else of the headings above it, else of the file name.

    >>> entry_instant("memory/notes.md", ("Notes",), "## 2026-06-04T10:00:00Z\\n\\nGold fell.\\n").isoformat()
    '2026-06-04T10:00:00+00:00'
    >>> entry_instant("journal/2026-06-03.md", (), "Quiet.").isoformat(), entry_instant("SOUL.md", (), "Slow.")
    ('2026-06-03T00:00:00+00:00', None)
    """
    inside = [block.heading[-1] for block in blocks_of(text) if block.is_heading and block.heading]
    candidates = [*reversed(inside), *reversed(list(heading)), path.rpartition("/")[2]]
    return next((instant for each in candidates if (instant := _instant(each)) is not None), None)


def _instant(text: str) -> datetime | None:
    match = _INSTANT.match(text)
    if match is None:
        return None
    try:
        instant = datetime.fromisoformat(match[0])
    except ValueError:
        return None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
