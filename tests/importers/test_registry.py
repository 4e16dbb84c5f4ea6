"""Formats by name and by content."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import FileFormat, FileRow, ReadOptions
from backsight.importers.registry import format_named, recognised_format


def _no_rows(_path: Path, _options: ReadOptions) -> Iterator[FileRow]:
    return iter(())


def _format(name: str, word: str) -> FileFormat:
    return FileFormat(name=name, title=name, rows="fills", recognises=lambda head: word in head.text, read=_no_rows)


FRUIT = (_format("apples", "apple"), _format("pears", "pear"))


def test_a_format_is_recognised_by_content(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("a pear")
    assert recognised_format(path, FRUIT).name == "pears"


@pytest.mark.parametrize(
    ("text", "message"), [("apple and pear", "several formats"), ("plum", "no format that is known")]
)
def test_a_file_that_fits_several_or_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(Invalid, match=f"{message}.*apples, pears"):
        recognised_format(path, FRUIT)


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    assert format_named("pears", FRUIT).name == "pears"
    with pytest.raises(Invalid, match="did you mean 'pears'"):
        format_named("pear", FRUIT)
