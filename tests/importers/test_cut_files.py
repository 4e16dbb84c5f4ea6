"""Files that are empty or cut off, as their ends tell it."""

from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.cut_files import last_line_remark, whole_head_of
from backsight.importers.formats import head_of
from program_samples import freqtrade, tables
from program_samples.files import PROGRAM_FILES, Writer


def a_database(folder: Path) -> Path:
    return freqtrade.a_database(folder / "a.sqlite", freqtrade.OLD, freqtrade.OLD_TRADE)


@pytest.mark.parametrize("write", [a_database, tables.as_parquet, *PROGRAM_FILES["freqtrade-backtest"][1:]])
def test_a_file_without_its_end_is_refused(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    assert whole_head_of(path).start
    for size in (60, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(Invalid, match=r"is cut off: .*; download or copy it again"):
            whole_head_of(path)


def test_changes_that_are_still_in_the_log_of_a_database_are_no_missing_end(tmp_path: Path) -> None:
    path = a_database(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    (tmp_path / "a.sqlite-wal").write_bytes(b"log")
    assert whole_head_of(path).start


@pytest.mark.parametrize("content", [b"", b" \r\n", b"\xef\xbb\xbf\n", "\n".encode("utf-16")])
def test_a_file_without_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Invalid, match="is empty; give a file with rows"):
        whole_head_of(tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "remarked"),
    [
        (b"a,b\n1,2", True),
        (b"a,b\r\n1,2\r\n", False),
        ("a,b\n1,2\n".encode("utf-16"), False),
        ("a,b\n1,2".encode("utf-16"), True),
        (b'{"a": 1}', False),
        (b"[1]", False),
        (b"<html></html>", False),
        (b"PK\3\4\0", False),
    ],
)
def test_the_last_line_of_a_table_must_end(tmp_path: Path, content: bytes, remarked: bool) -> None:
    (tmp_path / "file").write_bytes(content)
    remark = last_line_remark(head_of(tmp_path / "file"))
    assert (remark is not None) == remarked
