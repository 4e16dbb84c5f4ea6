"""Read a text as a file of a format."""

from pathlib import Path
from typing import TypeVar

from backsight.core.orders import ReportedFill
from backsight.importers.files import zone_named
from backsight.importers.formats import FileRow, FillRow, ReadOptions
from backsight.importers.registry import format_named

R = TypeVar("R", bound=FileRow)


def rows_read(folder: Path, name: str, text: str) -> list[FileRow]:
    path = folder / "export"
    path.write_text(text, encoding="utf-8")
    chosen = format_named(name)
    return list(chosen.read(path, ReadOptions(zone=zone_named(chosen.timezone))))


def of_type(rows: list[FileRow], kind: type[R]) -> list[R]:
    return [row for row in rows if isinstance(row, kind)]


def fills_read(folder: Path, name: str, text: str) -> list[ReportedFill]:
    return [row.fill for row in of_type(rows_read(folder, name, text), FillRow)]
