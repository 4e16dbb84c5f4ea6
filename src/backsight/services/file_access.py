"""Files that callers of a server may name: regular files below the folders that the owner configured."""

import stat
from collections.abc import Container, Iterable
from pathlib import Path

from backsight.core.errors import Invalid, Refused

MAX_FILE_BYTES = 1_000_000_000
PLAIN_FIELDS = frozenset({"timezone", "format", "mode", "account", "deployment", "currency", "interval_seconds"})
"""Arguments whose errors quote nothing of a file."""
SETTING = "BACKSIGHT_FILE_FOLDERS"


def confined_path(path: str, folders: Iterable[str], *, field: str) -> str:
    """The real path of a file or folder, links resolved; `Refused` unless it is regular and in one of the folders."""
    roots = [Path(folder).resolve() for folder in folders]
    if not roots:
        raise Refused(f"callers of a server may name no files here; the owner can set {SETTING}", field=field)
    try:
        real = Path(path).resolve()
        inside = [each.resolve() for each in real.iterdir()] if _is_below(real, roots) and real.is_dir() else []
    except (OSError, RuntimeError, ValueError):
        raise Invalid(f"{path[:80]!r} is not a path; give the path of a file", field=field) from None
    for each in (real, *inside):
        if not _is_below(each, roots):
            raise Refused(f"{path[:80]!r} is outside the folders that the owner allows ({SETTING})", field=field)
        _refuse_special(each, field=field)
    return str(real)


def _is_below(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _refuse_special(path: Path, *, field: str) -> None:
    """Refuse pipes, devices and sockets, which may never end, and files that are too large."""
    try:
        status = path.stat()
    except OSError:
        return  # there is no such file: the operation says so, or makes it
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise Refused(f"{str(path)[-80:]!r} is not a regular file; give one", field=field)
    if status.st_size > MAX_FILE_BYTES:
        raise Refused(
            f"{str(path)[-80:]!r} has more than {MAX_FILE_BYTES:,} bytes; import it with the command line", field=field
        )


def without_content(error: Invalid, *, arguments: Container[str]) -> Invalid:
    """The error for a caller of a server: it quotes nothing of the file, nor names a column that is no argument."""
    if error.field in PLAIN_FIELDS:
        return error
    return Invalid(
        "the file cannot be read as it is; `backsight import` on the machine of the store says which row and why",
        field=error.field if error.field in arguments else "path",
    )
