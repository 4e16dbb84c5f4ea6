"""Tables of reports: rows of visible cells from HTML and XLSX, and what is refused."""

import zipfile
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.cells import UnreadableError
from backsight.importers.report_tables import SHEET, STRINGS, beginning_of_xlsx, html_rows, xlsx_rows


def a_workbook(path: Path, sheet: str, strings: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(SHEET, sheet)
        if strings is not None:
            archive.writestr(STRINGS, strings)
    return path


def test_cells_of_a_page_are_texts_without_markup_and_hidden_cells(tmp_path: Path) -> None:
    page = (
        "<table><tr><th>a<td class='x hidden'>no</td><td><b>1&nbsp;000</b> <i>&lt;b</i></td></tr>"
        "<tr><td>c</table><p>x</p>"
    )
    (tmp_path / "p.html").write_text(page)
    assert list(html_rows(tmp_path / "p.html")) == [(1, ["a", "1 000 <b"]), (2, ["c"])]


@pytest.mark.parametrize("page", ["<table><tr><td>a</td></tr>", "<table><tr><td>a</td></tr><tr><td>b"])
def test_a_page_that_is_cut_off_is_unreadable(tmp_path: Path, page: str) -> None:
    (tmp_path / "p.html").write_text(page)
    rows = html_rows(tmp_path / "p.html")
    assert next(rows) == (1, ["a"])
    with pytest.raises(UnreadableError, match="cut off"):
        next(rows)


def test_cells_of_a_sheet_are_in_their_columns(tmp_path: Path) -> None:
    sheet = (
        '<worksheet xmlns="x"><sheetData><row r="3"><c r="A3" t="s"><v>1</v></c><c r="C3"><v>1.5</v></c></row>'
        '<row r="4"><c t="inlineStr"><is><r><t>b</t></r><r><t>c</t></r></is></c><c t="s"><v>9</v></c></row>'
        "</sheetData></worksheet>"
    )
    path = a_workbook(tmp_path / "w.xlsx", sheet, '<sst xmlns="x"><si><t>zero</t></si><si><t>one</t></si></sst>')
    assert list(xlsx_rows(path)) == [(3, ["one", "", "1.5"]), (4, ["bc", ""])]
    assert "<t>one</t>" in beginning_of_xlsx(path)


def test_a_cell_far_to_the_right_does_not_fill_memory(tmp_path: Path) -> None:
    sheet = '<worksheet><row r="1"><c r="A1"><v>1</v></c><c r="XFDXFDXFD1"><v>2</v></c></row></worksheet>'
    assert list(xlsx_rows(a_workbook(tmp_path / "w.xlsx", sheet))) == [(1, ["1"])]


@pytest.mark.parametrize(
    "sheet", ['<!DOCTYPE a [<!ENTITY b "c">]><worksheet/>', '<?xml version="1.0"?><!-- x --><worksheet/>', "\0<"]
)
def test_what_comes_before_the_sheet_is_refused(tmp_path: Path, sheet: str) -> None:
    with pytest.raises(Invalid, match="document type"):
        list(xlsx_rows(a_workbook(tmp_path / "w.xlsx", sheet)))


def test_a_damaged_workbook_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="not XML"):
        list(xlsx_rows(a_workbook(tmp_path / "w.xlsx", "<worksheet><row>")))
    (tmp_path / "w.xlsx").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(UnreadableError, match="damaged"):
        list(xlsx_rows(tmp_path / "w.xlsx"))
    assert beginning_of_xlsx(tmp_path / "w.xlsx") == ""
