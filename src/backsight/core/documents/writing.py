"""Writings: notes that agents added and edits they proposed, with the author, the run and the owner's decision."""

from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from typing import Literal

from backsight.core.errors import Conflict

WritingKind = Literal["note", "edit"]
WritingStatus = Literal["pending", "written", "failed", "proposed", "approved", "rejected"]
"""A note is pending until it is written to its file or has failed. An edit is proposed until the owner decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A note, or a proposed edit and its status."""

    owner_id: str
    id: str
    kind: WritingKind
    path: str
    text: str
    """The entry that a note adds, or the whole file as an edit proposes it."""
    diff: str
    """Unified diff of an edit; empty for a note."""
    base_hash: str | None
    """Hash of the file that the edit was proposed for; None if there was no file."""
    reason: str | None
    agent: str
    run_id: str | None
    status: WritingStatus
    decided_at: datetime | None
    decided_reason: str | None
    made_at: datetime
    """When the note was written or the edit was proposed."""
    known_at: datetime
    """When the writing got its status."""
    recorded_at: datetime

    def with_status(self, status: WritingStatus, *, now: datetime) -> "Writing":
        """The version of this writing that has another status from now on."""
        return replace(self, status=status, known_at=now, recorded_at=now)


def decide(writing: Writing, status: Literal["approved", "rejected"], *, reason: str | None, now: datetime) -> Writing:
    """The edit with the owner's decision; an edit is decided once."""
    if writing.kind != "edit":
        raise Conflict(
            f"{writing.id} is a note and already written; only edits are approved or rejected", field="edit_id"
        )
    if writing.status != "proposed":
        raise Conflict(f"{writing.id} is already {writing.status}; propose a new edit", field="edit_id")
    return replace(writing.with_status(status, now=now), decided_at=now, decided_reason=reason)


def diff_of(before: str, after: str, path: str) -> str:
    """Unified diff of two texts.

    >>> print(diff_of("cap 2%\\n", "cap 1%\\n", "TRADING_MANUAL.md"), end="")
    --- a/TRADING_MANUAL.md
    +++ b/TRADING_MANUAL.md
    @@ -1 +1 @@
    -cap 2%
    +cap 1%
    """
    lines = unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
