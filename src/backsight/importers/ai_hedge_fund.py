"""ai-hedge-fund: the records of its cycles, with the fills of each.

A record (`CycleRecord` in `v2/pipeline/models.py`) is one tick of a fund: `{"fund", "as_of", "marks", "signals",
"orders", "fills", "positions", "cash", "nav"}`. A file has one record, a list of them, one a line, or the result of a
backtest (`FundBacktestResult` in `v2/backtesting/fund.py`), which has them as `records`. Fills of a cycle must lead
from the positions of the record before to its own; a cycle of which they do not is named.

A cycle sees the close of its day, so its fills count from the end of that day. Signals and weights are left out: only
what was traded is imported.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from backsight.core.orders import ReportedFill
from backsight.importers.cells import ContentIds, Row, file_rows, number_in, optional_number_in, text_in, value_in
from backsight.importers.formats import FileFormat, FileHead, FileRow, FillRow, LeftOutRow, ReadOptions
from backsight.importers.json_rows import json_rows

_Filled = tuple[str, float, float, float]
"""The ticker, the signed shares, the price and the commission of a fill."""
SIDES: Mapping[str, int] = {"buy": 1, "cover": 1, "sell": -1, "short": -1}
RECORD, RESULT = ('"fund"', '"as_of"', '"marks"'), ('"fund"', '"benchmark_nav"', '"rebalance"')


def _recognises(head: FileHead) -> bool:
    text = head.text.lstrip()
    return text.startswith(("{", "[")) and any(all(key in text for key in keys) for keys in (RECORD, RESULT))


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    ids = ContentIds("ai-hedge-fund")
    positions: dict[str, dict[str, float]] = {}

    def read_row(number: int, record: Row) -> Iterable[FileRow]:
        fund, at = text_in(record, "fund"), _end_of_day(text_in(record, "as_of"), options)
        fills = [_fill(fill) for fill in _objects(record, "fills")]
        shares_after = _numbers(record, "positions")
        if fund in positions and not _lead_to(positions[fund], fills, shares_after):
            raise ValueError("the fills do not lead to the positions of the record")
        positions[fund] = shares_after
        if not fills:
            return [LeftOutRow(number=number, reason="a cycle without fills")]
        return [_fill_row(number, fund, at, fill) for fill in fills]

    def _fill_row(number: int, fund: str, at: datetime, fill: _Filled) -> FileRow:
        ticker, quantity, price, fee = fill
        reported = ReportedFill(
            id=ids.next_id(at, fund, ticker, quantity, price),
            at=at,
            sequence=ids.sequence,
            kind="trade",
            position_key=ticker,
            symbol=ticker,
            quantity=quantity,
            price=price,
            fee=fee,
        )
        return FillRow(number=number, fill=reported)

    with path.open("rb") as file:
        is_result = b'"benchmark_nav"' in file.read(65_536)
    rows = json_rows(path, "records") if is_result else json_rows(path)
    return file_rows(((number, row.content) for number, row in rows), read_row)


def _end_of_day(text: str, options: ReadOptions) -> datetime:
    try:
        day = datetime.fromisoformat(text[:10])
    except ValueError:
        raise ValueError("as_of is not a day") from None
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=options.zone) - timedelta(seconds=1)


def _objects(record: Row, name: str) -> list[dict[str, Any]]:
    objects = value_in(record, name) or []
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise ValueError(f"{name} is not a list of objects")
    return objects


def _numbers(record: Row, name: str) -> dict[str, float]:
    numbers = value_in(record, name) or {}
    if not isinstance(numbers, dict):
        raise ValueError(f"{name} is not an object")
    return {key: number_in(numbers, key) for key in numbers}


def _fill(fill: Row) -> _Filled:
    side = text_in(fill, "side", "action").casefold()
    if side not in SIDES:
        raise ValueError("the side of a fill is neither buy nor sell")
    shares, price = number_in(fill, "shares", "quantity", "filled"), number_in(fill, "price")
    if shares <= 0 or price <= 0:
        raise ValueError("shares or price of a fill are not above 0")
    return text_in(fill, "ticker"), SIDES[side] * shares, price, optional_number_in(fill, "commission", "fee") or 0.0


def _lead_to(before: Mapping[str, float], fills: Iterable[_Filled], after: Mapping[str, float]) -> bool:
    shares = dict(before)
    for ticker, quantity, *_ in fills:
        shares[ticker] = shares.get(ticker, 0.0) + quantity
    return all(abs(shares.get(ticker, 0.0) - after.get(ticker, 0.0)) < 1e-6 for ticker in {*shares, *after})


FORMATS = (
    FileFormat(
        name="ai-hedge-fund",
        title="ai-hedge-fund cycle records (JSON)",
        rows="fills",
        recognises=_recognises,
        read=_read,
    ),
)
