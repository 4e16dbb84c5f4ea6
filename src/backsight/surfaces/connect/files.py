"""Write a file of a client as a whole or not at all, with a backup beside it."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backsight.core.errors import Conflict, Invalid, Unavailable

BACKUP = ".before-backsight"
"""What the name of a backup ends with."""
PRIVATE = 0o600


class FileChange(NamedTuple):
    """A file with its text and its new text; None where there is no file."""

    path: Path
    old: str | None
    new: str | None

    @property
    def backup(self) -> Path:
        """Where the file as it was is."""
        target = self.path.resolve()
        return target.with_name(target.name + BACKUP)

    @property
    def is_needed(self) -> bool:
        return self.old != self.new


def read_text(path: Path) -> str | None:
    """The text of a file with its line breaks as they are; None if there is no file."""
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8 text; save it as such", field="configuration") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", field="configuration") from None


def addition(path: Path, edit: Callable[[str], str]) -> FileChange:
    """The change of a file by an edit that adds something."""
    old = read_text(path)
    return FileChange(path, old, edit(old or ""))


def removal(path: Path, remove: Callable[[str], str], add_again: Callable[[str], str]) -> FileChange:
    """The change that takes an addition out: the file as it was, if nothing else was changed since, else an edit.

    `add_again` makes the present text from the text before.
    """
    change = FileChange(path, read_text(path), None)
    if change.old is None:
        return change
    before = read_text(change.backup)
    if before is not None and before != change.old and is_edit(add_again, before, change.old):
        return change._replace(new=before)
    if before is None and is_edit(add_again, "", change.old):
        return change  # the file had nothing else in it
    return change._replace(new=remove(change.old))


def is_edit(edit: Callable[[str], str], before: str, now: str) -> bool:
    """Whether an edit makes the present text from an earlier one."""
    try:
        return edit(before) == now
    except (Conflict, Invalid):
        return False


def write(change: FileChange, *, keep_backup: bool) -> Path | None:
    """Make a change; where the backup of the file is, if there was a file. `keep_backup` leaves an earlier one."""
    target = change.path.resolve()  # a link to a file elsewhere stays a link
    if read_text(change.path) != change.old:
        raise Conflict(f"{change.path} was changed by another program meanwhile; run the command again", field="file")
    try:
        mode = target.stat().st_mode & 0o777 if change.old is not None else PRIVATE
        if change.old is not None and not keep_backup:
            _replace(change.backup, change.old, mode)
        if change.new is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, change.new, mode)
    except OSError as error:
        raise Unavailable(f"{change.path} cannot be written: {error.strerror}", field="configuration") from None
    return None if change.old is None else change.backup


def _replace(target: Path, text: str, mode: int) -> None:
    """Put a text in the place of a file at once: a reader finds the old file or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
