"""Formats by name and by content."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import FileFormat, FileRow, FillRow, LeftOutRow, ReadOptions, head_of
from backsight.importers.registry import FORMATS, format_named, recognised_format
from export_samples import SAMPLES


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


FILES = [
    pytest.param(name, text, id=f"{name}-{number}") for name in SAMPLES for number, text in enumerate(SAMPLES[name])
]
"""A small file of each shape that a format reads, with the name of the format."""


def _written(folder: Path, text: str) -> Path:
    path = folder / "export.txt"
    path.write_text(text, encoding="utf-8")
    return path


def _counts(path: Path, name: str) -> tuple[int, int]:
    rows = list(format_named(name).read(path, ReadOptions()))
    broken = sum(isinstance(row, LeftOutRow) and row.broken for row in rows)
    return sum(isinstance(row, FillRow) for row in rows), broken


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_file_is_recognised_by_its_format_and_by_no_other(tmp_path: Path, name: str, text: str) -> None:
    head = head_of(_written(tmp_path, text))
    assert [each.name for each in FORMATS if each.recognises(head) and not each.generic] == [name]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_file_of_another_format_gives_no_fills(tmp_path: Path, name: str, text: str) -> None:
    path = _written(tmp_path, text)
    for other in {*SAMPLES} - {name}:
        try:
            fills, _ = _counts(path, other)
        except Invalid:
            continue
        assert fills == 0, other


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_file_that_is_cut_off_gives_fewer_fills_and_a_broken_row_or_is_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    fills, broken = _counts(_written(tmp_path, text), name)
    assert (fills > 0, broken) == (True, 0)
    last_row = text.rstrip().rindex("{" if text.startswith(("{", "[")) else "\n")
    try:
        fewer, broken = _counts(_written(tmp_path, text[: last_row + 4]), name)
    except Invalid:
        return
    assert fewer <= fills
    assert broken == 1


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02" * 999, b"PK\x03\x04\xff\xfe", b"\x1f\x8b\x08"])
def test_an_empty_or_binary_file_is_not_recognised_and_gives_no_fills(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / "export.txt"
    path.write_bytes(content)
    assert not format_named(name).recognises(head_of(path))
    try:
        fills, broken = _counts(path, name)
    except Invalid:
        return
    assert (fills, broken) == (0, 1), "the file is named as unreadable"


@pytest.mark.parametrize(
    "entry", ["[2026-01-15 | NVDA | Buy | pending]", "[2024-05-10 | NVDA | Overweight | +2.9% | +1.2% | 5d]"]
)
def test_the_decision_log_of_tradingagents_is_refused_with_what_to_do(tmp_path: Path, entry: str) -> None:
    path = _written(tmp_path, f"{entry}\n\nDECISION:\n**Rating**: Buy\n\n<!-- ENTRY_END -->\n")
    with pytest.raises(Invalid, match=r"TradingAgents is not read: .* no price or size.* record_decision"):
        recognised_format(path)


@pytest.mark.parametrize(("name", "remedy"), [("tradingagents", "record_decision"), ("tradier-csv", "as JSON")])
def test_a_format_that_is_not_read_says_what_to_do_instead(name: str, remedy: str) -> None:
    with pytest.raises(Invalid, match=f"is not read: .*{remedy}"):
        format_named(name)
