"""The recalls that this process answered lately, so that an agent can name one by its hash."""

from collections import OrderedDict
from threading import Lock

MOST_RECALLS = 4_096
"""Recalls that are remembered; the oldest are dropped first."""


class RecentRecalls:
    """The handles of the last recalls by owner and hash.

    >>> recent = RecentRecalls()
    >>> recent.add("owner", "r1", "handle")
    >>> recent.handle("owner", "r1"), recent.handle("somebody else", "r1")
    ('handle', None)
    """

    def __init__(self) -> None:
        self._handles: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = Lock()

    def add(self, owner: str, recall_hash: str, handle: str) -> None:
        """Remember the handle of a recall."""
        with self._lock:
            self._handles[owner, recall_hash] = handle
            self._handles.move_to_end((owner, recall_hash))
            while len(self._handles) > MOST_RECALLS:
                self._handles.popitem(last=False)

    def handle(self, owner: str, recall_hash: str) -> str | None:
        """The handle of a recall; None if this process did not answer it, or no longer knows it."""
        with self._lock:
            return self._handles.get((owner, recall_hash))
