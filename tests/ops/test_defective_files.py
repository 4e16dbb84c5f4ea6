"""Every format at the door: a valid file, one with a broken row, one cut off, another format's file, an empty file.

Whatever a file is, every row of it is imported, or the answer names what is not, or the file is refused with what to do
and nothing is written.
"""

import gzip
import json
import re
import sqlite3
import zipfile
from codecs import BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.importers import nofx as nofx_format
from backsight.importers.archives import ZIP
from backsight.importers.files import GZIP
from backsight.importers.registry import FORMATS, format_named
from backsight.importers.sqlite_files import SQLITE
from backsight.importers.tables import PARQUET
from backsight.memory import Memory
from backsight.ops.fills import ImportedFills
from backsight.ops.trades import ImportedTrades
from backsight.testing import FakeClock, open_memory
from export_samples import SAMPLES
from program_samples import nofx, tables
from program_samples.files import PROGRAM_FILES, Writer, text_file
from support import dump

RECORD = nofx.a_record(nofx.OPEN) | {
    "id": 1,
    "trader_id": "x",
    "decisions": json.dumps([nofx.OPEN]),
    "account_state": "",
}
FILES: dict[str, list[Writer]] = {
    **{name: [text_file(text) for text in texts] for name, texts in SAMPLES.items()},
    **PROGRAM_FILES,
    "nofx-decisions": [
        *PROGRAM_FILES["nofx-decisions"],
        lambda folder: nofx.a_database(folder / "n.db", "decision_records", RECORD),
    ],
    "fills-table": [
        *map(text_file, (tables.COMMAS, tables.SEMICOLONS, tables.OBJECTS, tables.ARRAY)),
        tables.as_utf_16,
        tables.as_gzip,
        tables.as_parquet,
    ],
    "trades-table": [text_file(tables.TRADES)],
}
CASES = [
    pytest.param(name, write, id=f"{name}-{number}")
    for name, writers in FILES.items()
    for number, write in enumerate(writers)
]
TIMES = re.compile(r"\d\d\.\d\d\.20\d\d|20\d\d[-.]?\d\d[-.]?\d\d[\d:;. T]*|\b\d\d-\d\d-\d\d |\b1\d{12}\b")
FIRST_ROW = frozenset({"bybit", "bybit-log", "okx", "ibkr-flex-csv", "hyperliquid"})
"""Formats whose samples end with a row that is of no use whatever its time, or that follows from the rows before."""
TIME_COLUMNS = {"freqtrade": "close_date", "nofx": "exit_time", "nofx-decisions": "timestamp"}
REMEDY = re.compile(
    r"correct the file|export it again|it is complete|copy it again|repair it|give an?|name one of|save the file"
)


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    """A memory that nothing is written into: every file is refused or rehearsed."""
    with open_memory("sqlite://", clock=FakeClock(datetime(2027, 1, 1, tzinfo=UTC))) as store:
        yield store


def imported(memory: Memory, path: Path, name: str, **options: Any) -> ImportedFills | ImportedTrades:
    """The answer of the operation that a format needs."""
    options = {"path": str(path), "mode": "sim", **options}
    if format_named(name).rows == "fills":
        return memory.import_fills(account=name, **options)
    return memory.import_trades(**{"format": name, "strategy_name": "S", **options})


def rehearsed(memory: Memory, path: Path, name: str, **options: Any) -> ImportedFills | ImportedTrades:
    return imported(memory, path, name, dry_run=True, **options)


def refusal(memory: Memory, path: Path, name: str, **options: Any) -> str:
    """The message with which a file is refused; it says what to do, and nothing was written."""
    with pytest.raises(Invalid) as error:
        imported(memory, path, name, **options)
    assert REMEDY.search(error.value.message), error.value.message
    assert memory.verify_audit().links == 0
    return error.value.message


def left_out(answer: ImportedFills | ImportedTrades, *, broken: bool) -> int:
    return sum(each.rows for each in answer.left_out if each.broken == broken)


def break_a_row(path: Path, name: str) -> None:
    """Write a word in place of a time in a file."""
    content = path.read_bytes()
    if content.startswith(SQLITE):
        table = {"freqtrade": "trades", "nofx": nofx_format.POSITIONS}.get(name, nofx_format.DECISIONS)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE {table} SET {TIME_COLUMNS[name]} = 'someday'")
    elif content.startswith(ZIP):
        with zipfile.ZipFile(path) as archive:
            texts = {member: archive.read(member).decode() for member in archive.namelist()}
        last = max(time for text in texts.values() for time in TIMES.findall(text))
        with zipfile.ZipFile(path, "w") as archive:
            for member, text in texts.items():
                archive.writestr(member, text.replace(last, "someday"))
    elif content.startswith(PARQUET):
        tables.as_parquet(path.parent, [*tables.FILLS[:-1], tables.FILLS[-1] | {"time": "someday"}])
    elif content.startswith(GZIP):
        path.write_bytes(gzip.compress(with_a_word(gzip.decompress(content).decode(), name).encode()))
    else:
        encoding = "utf-16" if content.startswith(BOM_UTF16_LE) else "utf-8"
        path.write_text(with_a_word(path.read_text(encoding), name), encoding)


def with_a_word(text: str, name: str) -> str:
    """A text with a word in place of the time of its last row, or of its first row."""
    time = list(TIMES.finditer(text))[0 if name in FIRST_ROW else -1]
    is_number = text[time.start() - 1] == " " and len(time[0]) == 13
    return text[: time.start()] + ('"someday"' if is_number else "someday") + text[time.end() :]


@pytest.mark.parametrize(("name", "write"), CASES)
def test_a_broken_row_is_named_and_costs_no_other(memory: Memory, tmp_path: Path, name: str, write: Writer) -> None:
    path = write(tmp_path)
    valid = rehearsed(memory, path, name)
    assert (valid.added > 0, left_out(valid, broken=True)) == (True, 0)
    break_a_row(path, name)
    message = refusal(memory, path, name)
    assert re.search(r"1 row cannot be imported \((line|row) [0-9]+: [\w ]*(time|date|as_of|ts_|_at)", message), message
    rest = rehearsed(memory, path, name, skip_broken=True)
    assert left_out(rest, broken=True) == 1
    assert valid.added + left_out(valid, broken=False) - rest.added - left_out(rest, broken=False) in (1, 2)


@pytest.mark.parametrize(("name", "write"), CASES)
def test_a_file_that_is_cut_off_is_refused_or_remarked(
    memory: Memory, tmp_path: Path, name: str, write: Writer
) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    for share in (0.5, 0.98):
        path.write_bytes(content[: int(share * len(content))].rstrip(b"\r\n\0")[:-1])
        answer = answer_or_refusal(memory, path, name)
        if answer is not None and not left_out(answer, broken=True):
            assert "The last line does not end with a line break" in " ".join(answer.notes)


def answer_or_refusal(memory: Memory, path: Path, name: str) -> ImportedFills | ImportedTrades | None:
    """The answer to the rehearsal of a file in a given format; None if it is refused with what to do."""
    try:
        return rehearsed(memory, path, name, format=name)
    except Invalid:
        refusal(memory, path, name, format=name)
        return None


@pytest.mark.parametrize("name", [each.name for each in FORMATS if not each.generic])
def test_the_file_of_another_format_is_refused_or_gives_nothing(memory: Memory, tmp_path: Path, name: str) -> None:
    names = list(FILES)
    for other in (names[names.index(name) - 1], names[(names.index(name) + 1) % len(names)]):
        answer = answer_or_refusal(memory, FILES[other][0](tmp_path), name)
        assert answer is None or answer.added == 0


@pytest.mark.parametrize("name", FILES)
def test_an_empty_file_is_refused(memory: Memory, tmp_path: Path, name: str) -> None:
    for content in (b"", b" \n\n"):
        (tmp_path / "empty").write_bytes(content)
        assert "is empty; give a file with rows" in refusal(memory, tmp_path / "empty", name, format=name)


def test_an_empty_file_is_refused_whatever_its_format(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_bytes(b"\xef\xbb\xbf\r\n")
    for name in ("fills-table", "trades-table"):
        assert "is empty; give a file with rows" in refusal(memory, tmp_path / "empty.csv", name, format=None)


def test_every_format_is_tried() -> None:
    assert set(FILES) == {each.name for each in FORMATS}


def test_nothing_was_written(memory: Memory) -> None:
    with open_memory("sqlite://", clock=FakeClock(datetime(2027, 1, 1, tzinfo=UTC))) as fresh:
        assert dump(memory) == dump(fresh)
