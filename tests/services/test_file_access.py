"""Callers of a server name regular files below the configured folders only, and errors quote nothing of a file."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from backsight.core.errors import BacksightError, Invalid, Refused
from backsight.core.keys import Authority
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.services import file_access
from backsight.testing import T0, FakeClock

BARS = "time,open,high,low,close,volume\n2026-06-04T08:00:00Z,10,12,9,11,5\n"
ZONE = {"import_positions": {"timezone": "UTC"}}
TAKING_FILES = [operation for operation in OPERATIONS.values() if operation.file_arguments]


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Memory]:
    """The owner over a wire, who may name files in `allowed`."""
    (tmp_path / "allowed").mkdir()
    (tmp_path / "outside.csv").write_text("hidden,words\nof,somebody\n")
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        memory.file_folders = (str(tmp_path / "allowed"),)
        yield memory.for_caller(Authority(audience="owner", may_write=True), actor="key")


def test_a_file_in_the_folder_is_imported(caller: Memory, tmp_path: Path) -> None:
    (tmp_path / "allowed/bars.csv").write_text(BARS)
    assert caller.import_bars(path=str(tmp_path / "allowed/bars.csv"), symbol="X", interval_seconds=3600).symbols


def test_other_files_are_refused_by_every_operation_that_takes_one(caller: Memory, tmp_path: Path) -> None:
    (tmp_path / "allowed/link.csv").symlink_to(tmp_path / "outside.csv")
    (tmp_path / "allowed/folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "allowed/pipe.csv")
    (tmp_path / "allowed/zero.csv").symlink_to("/dev/zero")
    assert {operation.name for operation in TAKING_FILES} >= {"import_trades", "export_data", "backup", "restore"}
    for path in ("link.csv", "../outside.csv", "folder/outside.csv", "pipe.csv", "zero.csv", "/etc/passwd"):
        for operation in TAKING_FILES:
            sent = {**ZONE.get(operation.name, {}), "path": str(tmp_path / "allowed" / path)}
            with pytest.raises(Refused, match=r"outside the folders|not a regular file"):
                caller.run(operation, sent)


def test_a_folder_with_a_link_to_a_file_elsewhere_is_refused(caller: Memory, tmp_path: Path) -> None:
    (tmp_path / "allowed/export").mkdir()
    (tmp_path / "allowed/export/trade_history.jsonl").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(Refused, match="outside the folders"):
        caller.import_data(path=str(tmp_path / "allowed/export"))


def test_every_argument_that_names_a_file_is_marked() -> None:
    for operation in OPERATIONS.values():
        texts = {name: str(field.description) for name, field in operation.arguments.model_fields.items()}
        named = {name for name, text in texts.items() if "on this machine" in text or text.startswith("Path of")}
        assert named <= operation.file_arguments, operation.name


def test_a_second_file_is_confined_too(caller: Memory, tmp_path: Path) -> None:
    (tmp_path / "allowed/log.jsonl").write_text("{}\n")
    with pytest.raises(Refused, match=r"bars: .* outside the folders"):
        caller.import_positions(
            path=str(tmp_path / "allowed/log.jsonl"), timezone="UTC", bars=str(tmp_path / "outside.csv")
        )


def test_without_folders_no_file_may_be_named(caller: Memory, tmp_path: Path) -> None:
    caller.file_folders = ()
    with pytest.raises(Refused, match="BACKSIGHT_FILE_FOLDERS"):
        caller.import_bars(path=str(tmp_path / "allowed/bars.csv"))


def test_an_error_quotes_nothing_of_the_file(caller: Memory, tmp_path: Path) -> None:
    file = tmp_path / "allowed/secret.csv"
    for text in ("hidden,words\nof,somebody\n", BARS.replace("12", "hidden"), "hidden\n", "{hidden"):
        file.write_text(text)
        for operation in TAKING_FILES:
            with pytest.raises(BacksightError) as caught:
                caller.run(operation, {**ZONE.get(operation.name, {}), "path": str(file)})
            assert "hidden" not in caught.value.message, operation.name


def test_a_file_that_is_too_large_is_refused(caller: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "MAX_FILE_BYTES", 10)
    (tmp_path / "allowed/bars.csv").write_text(BARS)
    with pytest.raises(Refused, match="more than 10 bytes"):
        caller.import_bars(path=str(tmp_path / "allowed/bars.csv"), symbol="X")


@pytest.mark.parametrize("operation", ["import_bars", "import_trades", "import_fills"])
def test_a_small_parquet_file_that_repeats_a_long_text_is_refused(operation: str, tmp_path: Path) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    repeated = arrow.DictionaryArray.from_arrays(arrow.array([0] * 20_000), arrow.array(["x" * 1_000_000]))
    names = ["time", "open", "high", "low", "close", "volume", "symbol"]
    parquet.write_table(arrow.table([repeated] * 7, names=names), path)  # 140 GB as text
    assert path.stat().st_size < 1_000_000
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory, pytest.raises(Invalid):
        getattr(memory, operation)(path=str(path))
