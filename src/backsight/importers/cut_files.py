"""Files that are empty, or were cut off while they were downloaded or copied, as far as their ends tell it."""

import zipfile
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.importers.archives import ZIP
from backsight.importers.files import GZIP, empty_file
from backsight.importers.formats import FileHead, head_of
from backsight.importers.sqlite_files import SQLITE, size_in_header, write_ahead_log
from backsight.importers.tables import PARQUET

BLANK = b" \t\r\n\0\xef\xbb\xbf\xff\xfe"
"""Bytes of a file without any text, byte order marks included."""
LINE_ENDS = (b"\n", b"\r", b"\n\0", b"\r\0")
"""How lines end, also in UTF-16."""


def whole_head_of(path: Path) -> FileHead:
    """The beginning of a file; an error if it is empty, or a database, an archive or a Parquet file without its end."""
    head = head_of(path)
    if not head.start.strip(BLANK):
        raise empty_file(path)
    if head.start.startswith(SQLITE) and not write_ahead_log(path):
        size, expected = path.stat().st_size, size_in_header(head.start)
        if size < expected:
            raise _cut_off(path, f"the database has {size:,} of {expected:,} bytes")
    if head.start.startswith(ZIP) and not zipfile.is_zipfile(path):
        raise _cut_off(path, "an archive or a workbook without its end")
    if head.start.startswith(PARQUET) and _last_bytes(path, len(PARQUET)) != PARQUET:
        raise _cut_off(path, "a Parquet file without its end")
    return head


def last_line_remark(head: FileHead) -> str | None:
    """A sentence if the last line of a table of text does not end; None if nothing is wrong.

    A number or an id that is cut off is still one, so the row cannot be refused: many programs end no last line.
    """
    is_table = bool(head.text) and head.text.lstrip()[:1] not in ("[", "{", "<")
    if not is_table or head.start.startswith(GZIP) or _last_bytes(head.path, 2).endswith(LINE_ENDS):
        return None
    return (
        "The last line does not end with a line break. If the file was cut off there, the last row is not what it was: "
        "compare it with its source."
    )


def _cut_off(path: Path, reason: str) -> Invalid:
    return Invalid(f"{path} is cut off: {reason}; download or copy it again", field="path")


def _last_bytes(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - count))
        return file.read()
