"""Formats of other people's files: how a file is recognised from its content, and the rows that are read from it.

One module a format; each has a `FORMATS` tuple, and `registry.py` lists them all. A format reads a file row by row and
writes nothing. What cannot be read is not dropped: it becomes a `LeftOutRow` with its reason.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from backsight.core.fills import ClosingPart
from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill
from backsight.core.portfolio import Mode
from backsight.importers.files import GZIP, RowUnit, unreadable
from backsight.importers.trades import TradeRow

HEAD_BYTES = 65_536
"""How much of a file is looked at to recognise its format."""

RowKind = Literal["fills", "trades"]
"""`fills`: executions, payments and corporate actions, of which the ledger makes trades. `trades`: closed trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRow:
    """One fill of a file."""

    number: int
    """The line number in a text file, else the row number."""
    fill: ReportedFill
    """Its sequence is 0 unless the file itself numbers the fills of one instant: the import numbers them by their order
    in the file, from its end if the file is newest first. Its id is empty if the file has none: the import then derives
    one from the content of the row."""
    closes: ClosingPart | None = None
    """How much of the fill closes a position, if the file tells it; a realised PnL alone tells that some of it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentRow:
    """What a file tells of a symbol; it comes before the first fill of the symbol."""

    symbol: str
    kind: InstrumentKind | None = None
    multiplier: float | None = None
    """None if the file does not tell it: what is saved stays, else 1."""
    currency: str | None = None
    underlying: str | None = None
    inverse: bool = False
    """Whether it is priced in one currency and settled in its base asset: the multiplier is then what one unit of size
    is worth in the currency of its prices, and `currency` is the base asset, in which it earns and pays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemarkRow:
    """What a file shows and no row of it says: fills that are missing, a default that was taken, how dates are written.

    The answer shows it.
    """

    text: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that is not imported, and why: a cancelled order, a deposit in a coin, a line that cannot be read."""

    number: int
    reason: str
    """The same words for the same reason, so that rows can be counted by it."""
    broken: bool = False
    """Whether the row cannot be read, rather than being of no use: an import refuses the file unless told to go on."""


FileRow = FillRow | TradeRow | InstrumentRow | RemarkRow | LeftOutRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How the rows of a file are to be understood."""

    zone: tzinfo = UTC
    """The time zone of times without an offset."""
    currency: str | None = None
    """The currency of the account that the rows are imported into; a format whose files name another one refuses it."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Fields by the name of the column that holds them, where the file names them in its own way."""


@dataclass(frozen=True, kw_only=True)
class FileHead:
    """The beginning of a file, from which its format is recognised."""

    path: Path
    start: bytes
    """At most the first 64 KiB."""
    whole: bool
    """Whether that is the whole file."""

    @cached_property
    def text(self) -> str:
        """The beginning as text, also of a text file that is compressed with gzip; empty if the file is not text."""
        start = _start_of_gzip(self.start) if self.start.startswith(GZIP) else self.start
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            return start[: len(start) // 2 * 2].decode("utf-16", errors="ignore")
        return "" if b"\0" in start else start.decode("utf-8-sig", errors="ignore")

    @cached_property
    def first_lines(self) -> list[str]:
        """The first lines that are not blank, at most 50."""
        return [line for line in self.text.splitlines() if line.strip()][:50]

    @cached_property
    def row_unit(self) -> RowUnit:
        """What a row is called in messages: its number is that of a line only where every row begins on its own."""
        text = self.text.lstrip()
        if text.startswith("{"):
            return "line" if len(self.first_lines) > 1 and _is_object(self.first_lines[0]) else "row"
        return "row" if not text or text.startswith("[") or "<table" in text.lower() else "line"

    @cached_property
    def first_object(self) -> Mapping[str, Any] | None:
        """The first JSON object in the file: the only one, the first line, or the first of a list; None without one."""
        text = self.text.lstrip()
        text = text[1:].lstrip() if text.startswith("[") else text
        if not text.startswith("{"):
            return None
        try:
            content, _ = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A format of files: what it is called, how it is recognised, and how it is read."""

    name: str
    """As in `--format`, like `hyperliquid`."""
    title: str
    """What it is, in a few words: `Hyperliquid userFills (JSON)`."""
    rows: RowKind
    recognises: Callable[[FileHead], bool]
    read: Callable[[Path, ReadOptions], Iterator[FileRow]]
    """The rows in file order, one at a time."""
    timezone: str = "UTC"
    """Of times without an offset, unless another one is given."""
    currency: str = "USD"
    """Of the account, unless another one is given."""
    generic: bool = False
    """Whether it reads tables that no program in particular wrote; a file that another format fits is read by that."""
    mode: Mode | None = None
    """The mode of every file of this format, like `sim` for the results of a backtest; None if it must be given."""


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _start_of_gzip(start: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(start, HEAD_BYTES)
    except zlib.error:
        return b""


def head_of(path: Path) -> FileHead:
    """The beginning of a file."""
    try:
        with path.open("rb") as file:
            start = file.read(HEAD_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return FileHead(path=path, start=start[:HEAD_BYTES], whole=len(start) <= HEAD_BYTES)
