"""Rows of cells from reports that are made to be looked at: tables in HTML, and the first sheet of an XLSX workbook.

Both are read by the standard library. A document type in XML is refused, since it can define entities that grow.
"""

import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from backsight.core.errors import Invalid
from backsight.importers.archives import ZIP_ERRORS
from backsight.importers.cells import UnreadableError
from backsight.importers.files import text_stream
from backsight.importers.formats import HEAD_BYTES

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
LARGEST_PART = 2**28
"""Bytes of the largest part of a workbook that is read."""
MOST_COLUMNS = 200
CHUNK = 1 << 16


def html_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of all tables of a page, numbered from 1, with the text of the cells that are not hidden."""
    parser, number = _TableParser(), 0
    with text_stream(path) as stream:
        while chunk := stream.read(CHUNK):
            parser.feed(chunk)
            for row in parser.take_rows():
                number += 1
                yield number, row
    if parser.unfinished:
        raise UnreadableError("the report is cut off", number + 1)


def xlsx_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of the first sheet of a workbook with their numbers; an empty cell is an empty text."""
    try:
        with zipfile.ZipFile(path) as archive:
            strings = _shared_strings(archive) if STRINGS in archive.namelist() else []
            with _part(archive, SHEET) as part:
                yield from _sheet_rows(part, strings)
    except ElementTree.ParseError:
        raise UnreadableError("the sheet of the workbook is not XML, or cut off") from None
    except (KeyError, *ZIP_ERRORS):
        raise UnreadableError("the workbook is cut off or damaged") from None


def beginning_of_xlsx(path: Path) -> str:
    """The beginnings of the texts and of the first sheet of a workbook; empty if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in (STRINGS, SHEET) if name in archive.namelist()]
            return "".join(archive.open(name).read(HEAD_BYTES).decode("utf-8", errors="ignore") for name in names)
    except ZIP_ERRORS:
        return ""


class _TableParser(HTMLParser):
    """Collects the rows of tables; a cell of the class `hidden` is none."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._rows: list[list[str]] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._tables = 0

    @property
    def unfinished(self) -> bool:
        return self._row is not None or self._tables > 0

    def take_rows(self) -> list[list[str]]:
        rows, self._rows = self._rows, []
        return rows

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._tables += 1
        elif tag == "tr":
            self._end_row()
            self._row = []
        elif tag in ("td", "th") and self._row is not None:
            self._end_cell()
            hidden = "hidden" in (dict(attrs).get("class") or "").split()
            self._cell = None if hidden else []

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._end_row()
            self._tables -= 1
        elif tag == "tr":
            self._end_row()
        elif tag in ("td", "th"):
            self._end_cell()

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None and self._row is not None:
            self._row.append(_one_line("".join(self._cell)))
        self._cell = None

    def _end_row(self) -> None:
        self._end_cell()
        if self._row:
            self._rows.append(self._row)
        self._row = None


def _one_line(text: str) -> str:
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def _part(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    if archive.getinfo(name).file_size > LARGEST_PART:
        raise Invalid(f"{name} in the workbook is larger than 256 MiB; export a shorter period", field="path")
    return archive.open(name)


def _events(part: IO[bytes]) -> Iterator[Any]:
    """The elements of an XML part, each when it ends."""
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(events=("start", "end"))
    chunk = part.read(CHUNK)
    if chunk and not _begins_with_element(chunk):
        raise Invalid("the workbook has a document type, or is not in UTF-8; save it anew", field="path")
    while chunk:
        parser.feed(chunk)
        yield from parser.read_events()
        chunk = part.read(CHUNK)
    parser.close()


def _begins_with_element(start: bytes) -> bool:
    """Whether nothing but the XML declaration comes before the root element, so no document type can.

    >>> _begins_with_element(b'<?xml version="1.0"?>\\n<sst>'), _begins_with_element(b"<!DOCTYPE sst [")
    (True, False)
    """
    text = start.removeprefix(b"\xef\xbb\xbf")
    text = (text.partition(b"?>")[2] if text.startswith(b"<?xml") else text).lstrip()
    return text[:1] == b"<" and text[1:2].isalpha()


def _shared_strings(archive: zipfile.ZipFile) -> list[str]:
    """The texts that cells refer to by number."""
    strings: list[str] = []
    with _part(archive, STRINGS) as part:
        for event, element in _events(part):
            if event == "end" and _name(element) == "si":
                strings.append(_text_of(element))
                element.clear()
    return strings


def _sheet_rows(part: IO[bytes], strings: list[str]) -> Iterator[tuple[int, list[str]]]:
    number, root = 0, None
    for event, element in _events(part):
        root = element if root is None else root
        if event == "end" and _name(element) == "row":
            number = int(element.get("r", "")) if element.get("r", "").isdecimal() else number + 1
            yield number, _cells(element, strings)
            element.clear()
        elif event == "end" and _name(element) == "sheetData":
            root.clear()


def _cells(row: Any, strings: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row:
        if _name(cell) != "c":
            continue
        place = _column(cell.get("r", "")) if cell.get("r") else len(cells)
        if not len(cells) <= place < MOST_COLUMNS:
            continue
        cells += [""] * (place - len(cells))
        cells.append(_one_line(_cell_text(cell, strings)))
    return cells


def _cell_text(cell: Any, strings: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return _text_of(cell)
    value = next((part.text or "" for part in cell if _name(part) == "v"), "")
    if cell.get("t") != "s":
        return value
    return strings[int(value)] if value.isdecimal() and int(value) < len(strings) else ""


def _text_of(element: Any) -> str:
    return "".join(part.text or "" for part in element.iter() if _name(part) == "t")


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _column(reference: str) -> int:
    """The place of a cell in its row.

    >>> _column("A1"), _column("Z9"), _column("AB12")
    (0, 25, 27)
    """
    place = 0
    for letter in reference:
        if not "A" <= letter <= "Z":
            break
        place = place * 26 + ord(letter) - ord("A") + 1
        if place > MOST_COLUMNS:
            break
    return place - 1
