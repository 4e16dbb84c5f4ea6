"""Small files of every program: each is read by its own format, and damage to one costs a row or the file."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backsight.core.errors import BacksightError
from backsight.importers.formats import FileRow, FillRow, ReadOptions, head_of
from backsight.importers.registry import FORMATS, format_named
from backsight.importers.trades import TradeRow
from export_samples import SAMPLES
from program_samples.files import PROGRAM_FILES, Writer, text_file

CASES = [
    pytest.param(name, write, id=f"{name}-{number}")
    for name, writers in PROGRAM_FILES.items()
    for number, write in enumerate(writers)
]


def imported(path: Path, name: str) -> list[FileRow]:
    """The fills and trades that a format reads in a file; none if it refuses the file."""
    try:
        rows = list(format_named(name).read(path, ReadOptions()))
    except BacksightError:
        return []
    return [row for row in rows if isinstance(row, FillRow | TradeRow)]


@pytest.mark.parametrize(("name", "write"), CASES)
def test_a_file_is_recognised_by_its_format_and_by_no_other(tmp_path: Path, name: str, write: Writer) -> None:
    path = write(tmp_path)
    head = head_of(path)
    assert [each.name for each in FORMATS if each.recognises(head) and not each.generic] == [name]
    assert imported(path, name)


@pytest.mark.parametrize("name", PROGRAM_FILES)
def test_files_of_other_formats_give_nothing(tmp_path: Path, name: str) -> None:
    own = name.partition("-")[0]
    others = [write for other, writers in PROGRAM_FILES.items() if other.partition("-")[0] != own for write in writers]
    texts = [text_file(text) for texts in SAMPLES.values() for text in texts]
    assert not [row for write in (*others, *texts) for row in imported(write(tmp_path), name)]


@pytest.mark.parametrize(("name", "write"), CASES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), length=st.integers(0, 40), noise=st.binary(max_size=12))
@example(place=0.5, length=10**9, noise=b"")
@example(place=0.0, length=10**9, noise=b"")
def test_damage_to_a_file_is_a_row_or_a_refusal(
    tmp_path: Path, name: str, write: Writer, place: float, length: int, noise: bytes
) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    at = int(place * len(content))
    path.write_bytes(content[:at] + noise + content[at + length :])
    for each in FORMATS:
        each.recognises(head_of(path))
    imported(path, name)
