"""pyfolio: a table of transactions with their time, symbol, amount and price, plain or compressed with gzip.

The shape is that of `pyfolio.txn` (`transactions` in `create_full_tear_sheet`): an index of times, `amount` (bought is
positive), `price` and `symbol`; zipline adds `sid`, `commission`, `order_id` and `txn_dollars`. There are no ids.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from backsight.core.orders import ReportedFill
from backsight.importers.cells import (
    ContentIds,
    Row,
    csv_rows,
    file_rows,
    header_of,
    instant_in,
    number_in,
    optional_number_in,
    optional_text_in,
    text_in,
)
from backsight.importers.formats import FileFormat, FileHead, FileRow, FillRow, LeftOutRow, ReadOptions

TIMES = ("time", "date", "dt", "timestamp", "index", "datetime", "")
NEEDED = frozenset({"amount", "price", "symbol"})
OTHERS = frozenset({"sid", "txn_dollars", "commission", "order_id"})


def _recognises(head: FileHead) -> bool:
    names = {name.casefold() for name in header_of(head.first_lines[0])} if head.first_lines else set()
    return names >= NEEDED and len(names & set(TIMES)) == 1 and names <= NEEDED | OTHERS | set(TIMES)


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    ids = ContentIds("pyfolio")

    def read_row(number: int, row: Row) -> Iterable[FileRow]:
        at, symbol = instant_in(row, *TIMES, zone=options.zone), _symbol(text_in(row, "symbol"))
        amount, price = number_in(row, "amount"), number_in(row, "price")
        if amount == 0:
            return [LeftOutRow(number=number, reason="amount is 0")]
        fill = ReportedFill(
            id=ids.next_id(at, symbol, amount, price, optional_text_in(row, "order_id")),
            at=at,
            sequence=ids.sequence,
            kind="trade",
            position_key=symbol,
            symbol=symbol,
            quantity=amount,
            price=price,
            fee=optional_number_in(row, "commission") or 0.0,
            order_id=optional_text_in(row, "order_id"),
        )
        return [FillRow(number=number, fill=fill)]

    return file_rows(csv_rows(path, lower=True), read_row)


def _symbol(text: str) -> str:
    """The ticker; zipline writes an asset as `Equity(24 [AAPL])`.

    >>> _symbol("Equity(24 [AAPL])"), _symbol("AAPL")
    ('AAPL', 'AAPL')
    """
    return text.partition("[")[2].rstrip("])") if text.endswith("])") else text


FORMATS = (
    FileFormat(name="pyfolio", title="pyfolio transactions (CSV)", rows="fills", recognises=_recognises, read=_read),
)
