"""What agents wrote or proposed to write, as it is kept: by whom, in which run, and what the owner said to it."""

from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from typing import Literal

from backsight.core.errors import Conflict

WritingKind = Literal["note", "edit"]
WritingStatus = Literal["pending", "written", "failed", "proposed", "approved", "rejected"]
"""A note is pending until it stands in its file, or could not; an edit is proposed, and the owner decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A note, or an edit and what has become of it."""

    owner_id: str
    id: str
    kind: WritingKind
    path: str
    text: str
    """The entry that was added, or the whole file as it would be."""
    diff: str
    """What an edit changes, line by line."""
    base_hash: str | None
    """Of the file that an edit was made of; None where there was none."""
    reason: str | None
    agent: str
    run_id: str | None
    status: WritingStatus
    decided_at: datetime | None
    decided_reason: str | None
    known_at: datetime
    recorded_at: datetime

    def at(self, instant: datetime) -> "Writing":
        """The writing as it stood at an instant: what was decided later was not decided yet."""
        if self.decided_at is None or self.decided_at <= instant:
            return self
        return replace(self, status="proposed", decided_at=None, decided_reason=None)


def decided(writing: Writing, status: Literal["approved", "rejected"], *, reason: str | None, now: datetime) -> Writing:
    """An edit with what the owner said to it; it is said once."""
    if writing.kind != "edit":
        raise Conflict(f"{writing.id} is a note; it is written already", field="edit_id")
    if writing.status != "proposed":
        raise Conflict(f"{writing.id} was {writing.status} already; propose another edit", field="edit_id")
    return replace(writing, status=status, decided_at=now, decided_reason=reason, recorded_at=now)


def diff_of(before: str, after: str, path: str) -> str:
    """What changes between two texts, as a unified diff.

    >>> print(diff_of("cap 2 %\\n", "cap 1 %\\n", "TRADING_MANUAL.md"), end="")
    --- a/TRADING_MANUAL.md
    +++ b/TRADING_MANUAL.md
    @@ -1 +1 @@
    -cap 2 %
    +cap 1 %
    """
    lines = unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
