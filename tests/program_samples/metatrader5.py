"""History reports of MetaTrader 5."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape


def cells(text: str) -> list[str]:
    return text.split("|")


HIDDEN = "\0"
"""A cell that the terminal does not show."""

POSITIONS = cells("Time|Position|Symbol|Type|Volume|Price|S / L|T / P|Time|Price|Commission|Swap|Profit")

ORDERS = cells("Open Time|Order|Symbol|Type|Volume|Price|S / L|T / P|Time|State||Comment")

DEALS = cells("Time|Deal|Symbol|Type|Direction|Volume|Price|Order|Commission|Fee|Swap|Profit|Balance|Comment")

BALANCE = cells("2026.01.01 09:00:00|1||balance||||||||10 000.00|10 000.00|deposit")

Cells = Sequence[str]


def a_deal(time: str, number: int, kind: str, way: str, *cells: str, symbol: str = "EURUSD") -> list[str]:
    """Cells: volume, price, order, commission, swap, profit, comment."""
    volume, price, order, commission, swap, profit, comment = (*cells, *[""] * (7 - len(cells)))
    money = [commission or "0.00", "0.00", swap or "0.00", profit or "0.00", "10 000.00", comment]
    return [f"2026.01.{time}", str(number), symbol, kind, way, volume, price, order, *money]


ENTRY = a_deal("02 10:00:00", 11, "buy", "in", "0.50", "1.10000", "1001", "-1.75")

EXIT = a_deal("02 12:00:00", 12, "sell", "out", "0.50", "1.10200", "1002", "-1.75", "-0.40", "100.00", "[tp 1.10200]")


def a_table(*deals: Cells, positions: Sequence[Cells] = (), book: str = "Netting") -> list[Cells]:
    return [
        ["Trade History Report"],
        ["Account:", f"12345\N{NO-BREAK SPACE}(USD, Broker-Demo, demo, {book})"],
        ["Positions"],
        POSITIONS,
        *positions,
        ["Orders"],
        ORDERS,
        cells("2026.01.02 10:00:00|1001|EURUSD|buy|0.50 / 0.50|market|||2026.01.02 10:00:00|filled||robot|"),
        ["Deals"],
        DEALS,
        *deals,
        ["", "", "", "", "", "", "", "", "-3.50", "0.00", "-0.40", "100.00", "10 096.10", ""],
        ["Results"],
    ]


def as_html(rows: Sequence[Cells]) -> str:
    def cell(text: str) -> str:
        return '<td class="hidden" colspan="8">robot</td>' if text == HIDDEN else f"<td><b>{escape(text)}</b></td>"

    lines = (f"<tr bgcolor='#fff'>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<html><head><title>x</title></head><body><table>{''.join(lines)}</table></body></html>"


def as_xlsx(path: Path, rows: Sequence[Cells], *, prolog: str = "") -> Path:
    texts = sorted({cell for row in rows for cell in row})
    strings = "".join(f"<si><t>{escape(text)}</t></si>" for text in texts)
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = [
            f'<c r="{chr(65 + place)}{number}" t="s"><v>{texts.index(cell)}</v></c>'
            if number % 2
            else f'<c r="{chr(65 + place)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            for place, cell in enumerate(row)
            if cell
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/sharedStrings.xml", f'<?xml version="1.0"?>\n{prolog}<sst {space}>{strings}</sst>')
        archive.writestr(
            "xl/worksheets/sheet1.xml", f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        )
    return path
