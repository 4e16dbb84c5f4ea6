"""Bars of a regular CSV file, read in bulk into NumPy columns.

A file is regular if every row has a cell for each column, every cell holds what its column needs, and no instant has
two different bars. For any other file, and for bars of a day or longer outside UTC, the functions raise
`IrregularError`: the reader that goes row by row then reads the file, or names the row and its fault.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backsight.core.bar_columns import VALUES

ROWS_AT_ONCE = 5_000
FIRST_YEAR, LAST_YEAR = 1701, 8999
"""Years that are within the accepted ones in every time zone."""
EPOCH_DIGITS = {10: (1_000_000, 1), 13: (1_000, 1), 16: (1, 1), 19: (1, 1_000)}
"""Digits of a whole number since 1970, and the factor and the divisor that give microseconds."""

Floats = NDArray[np.float64]
Times = NDArray[np.int64]


class IrregularError(Exception):
    """The file needs the reader that goes row by row."""


class RowColumns:
    """The rows of one symbol in the order of the file."""

    def __init__(self) -> None:
        self._columns = {"time": bytearray(), **{name: bytearray() for name in VALUES}}

    def add(self, part: dict[str, NDArray[Any]]) -> None:
        for name, column in self._columns.items():
            column += part[name].data

    def joined(self) -> dict[str, NDArray[Any]]:
        """The columns of all parts, without another copy of them in memory."""
        types = {"time": np.int64}
        return {name: np.frombuffer(column, types.get(name, np.float64)) for name, column in self._columns.items()}


def read_regular(
    path: Path,
    columns_of: Callable[[Sequence[str]], Mapping[Any, int]],
    *,
    symbol: str | None,
    checked_symbol: Callable[[str], str],
    zone: tzinfo,
) -> tuple[dict[str, RowColumns], int]:
    """The rows of a file by symbol, and the number of rows of other symbols than the requested one.

    `columns_of` gives the positions of the columns from the header, `checked_symbol` the symbol in a cell.
    """
    series: dict[str, RowColumns] = {}
    others = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = _reader(file)
            columns = columns_of(next(row for row in reader if any(cell.strip() for cell in row)))
            while chunk := list(islice(reader, ROWS_AT_ONCE)):
                cells = _cells([row for row in chunk if row])
                for name, part in _parts(cells, columns, symbol=symbol, checked_symbol=checked_symbol, zone=zone):
                    if symbol in (None, name):
                        series.setdefault(name, RowColumns()).add(part)
                    else:
                        others += len(part["time"])
    except (ValueError, OSError, OverflowError, csv.Error, StopIteration):
        raise IrregularError from None
    if not series:
        raise IrregularError
    return series, others


def _reader(file: Any) -> Any:
    first = next(line for line in file if line.strip())
    file.seek(0)
    return csv.reader(file, delimiter=max(",;\t", key=first.count), strict=True)


def _cells(rows: list[list[str]]) -> list[tuple[str, ...]]:
    """The columns of rows that all have the same number of cells."""
    return list(zip(*rows, strict=True))


def _parts(
    cells: Sequence[Sequence[str]],
    columns: Mapping[Any, int],
    *,
    symbol: str | None,
    checked_symbol: Callable[[str], str],
    zone: tzinfo,
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """The columns of a chunk, for each symbol in it."""
    if not cells:
        return
    values: dict[str, NDArray[Any]] = {name: _floats(cells[columns[name]]) for name in VALUES[:-1]}
    values["volume"] = _volumes(cells[columns["volume"]]) if "volume" in columns else np.full(len(cells[0]), np.nan)
    values["time"] = _times(cells[columns["time"]], zone)
    _check(values)
    if "symbol" not in columns:
        yield symbol or "", values
        return
    names = cells[columns["symbol"]]
    symbols = {cell: checked_symbol(cell) for cell in dict.fromkeys(names)}
    codes = {name: code for code, name in enumerate(dict.fromkeys(symbols.values()))}
    code_of_cell = {cell: codes[name] for cell, name in symbols.items()}
    code_of_row = np.fromiter(map(code_of_cell.__getitem__, names), dtype=np.int64, count=len(names))
    for row_symbol, code in codes.items():
        chosen = code_of_row == code
        yield row_symbol, {name: column[chosen] for name, column in values.items()}


def _floats(cells: Sequence[str]) -> Floats:
    """Numbers as Python reads them, without negative zero; Python accepts underscores, which no number here has."""
    if "_" in "".join(cells):
        raise IrregularError
    return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells)) + 0.0


def _volumes(cells: Sequence[str]) -> Floats:
    return _floats([cell if cell.strip() else "nan" for cell in cells])


def _times(cells: Sequence[str], zone: tzinfo) -> Times:
    """Microseconds since 1970."""
    if len(set(map(len, cells))) == 1 and len(cells[0]) in EPOCH_DIGITS and "".join(cells).isdecimal():
        factor, divisor = EPOCH_DIGITS[len(cells[0])]
        numbers = np.fromiter(map(int, cells), dtype=np.int64, count=len(cells))
        if not "".join(cells).isascii() or numbers.min() < 10 ** (len(cells[0]) - 1):
            raise IrregularError
        return numbers * factor // divisor
    in_utc = _times_in_utc(cells, zone)
    if in_utc is not None:
        return in_utc
    if any(map(str.isdecimal, cells)):
        raise IrregularError
    instants = [datetime.fromisoformat(cell.strip()) for cell in cells]
    if not FIRST_YEAR <= min(instants, key=_year).year <= max(instants, key=_year).year <= LAST_YEAR:
        raise IrregularError
    naive = [_in_utc(at, zone) for at in instants]
    return np.array(naive, dtype="datetime64[us]").astype(np.int64)


ISO = "0000-00-00?00:00:00"
"""A time to the second: digits, marks, and T or a space."""
UTC_MARKS = ("Z", "+00:00")


def _times_in_utc(cells: Sequence[str], zone: tzinfo) -> Times | None:
    """The times of cells that are all written like 2026-06-04T10:00:00Z, in UTC; None if a cell is not."""
    mark = cells[0][len(ISO) :]
    if not (mark in UTC_MARKS or (not mark and zone is UTC)) or set(map(len, cells)) != {len(ISO) + len(mark)}:
        return None
    letters = np.array(cells).view(np.uint32).reshape(len(cells), -1)
    for place, kind in enumerate(ISO + mark):
        column = letters[:, place]
        allowed = (ord("0"), ord("9")) if kind == "0" and place < len(ISO) else (ord(kind), ord(kind))
        fits = np.isin(column, (ord("T"), ord(" "))) if kind == "?" else (allowed[0] <= column) & (column <= allowed[1])
        if not fits.all():
            return None
    years = letters[:, :4].astype(np.int64) @ (1000, 100, 10, 1) - ord("0") * 1111
    if years.min() < FIRST_YEAR or years.max() > LAST_YEAR:
        raise IrregularError
    texts = [cell[: len(ISO)] for cell in cells] if mark else cells
    return np.array(texts, dtype="datetime64[us]").astype(np.int64)


def _year(at: datetime) -> int:
    return at.year


def _in_utc(at: datetime, zone: tzinfo) -> datetime:
    """The wall-clock time in UTC of a time with an offset, or else of a time in the given zone."""
    own = at.tzinfo or zone
    if own is UTC:
        return at.replace(tzinfo=None)
    return at.replace(tzinfo=own).astimezone(UTC).replace(tzinfo=None)


def _check(values: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a chunk in which a price or a volume is not one."""
    low, high, volume = values["low"], values["high"], values["volume"]
    bad = ~(np.isfinite(low) & np.isfinite(high)) | np.isinf(volume) | (volume < 0)
    for name in ("open", "close"):
        bad |= ~((low <= values[name]) & (values[name] <= high))
    if bad.any():
        raise IrregularError


def sorted_unique(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rows by time, without identical duplicates."""
    time = columns["time"]
    if np.all(time[1:] > time[:-1]):
        return dict(columns)
    order = np.argsort(time, kind="stable")
    ordered = {name: column[order] for name, column in columns.items()}
    again = np.flatnonzero(ordered["time"][1:] == ordered["time"][:-1]) + 1
    for name in VALUES:
        column = ordered[name]
        same = (column[again] == column[again - 1]) | (np.isnan(column[again]) & np.isnan(column[again - 1]))
        if not same.all():
            raise IrregularError
    return {name: np.delete(column, again) for name, column in ordered.items()}


def out_of_order(time: Times) -> int:
    """Rows that came after a later bar.

    >>> out_of_order(np.array([1, 3, 2, 3, 4]))
    1
    """
    return int(np.count_nonzero(time[1:] < np.maximum.accumulate(time)[:-1]))
