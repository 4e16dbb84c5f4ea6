"""Every format that files are recognised by."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from backsight.core.errors import Invalid, nearest
from backsight.importers import (
    ai_hedge_fund,
    alpaca,
    binance,
    bybit,
    bybit_log,
    freqtrade,
    generic,
    hyperliquid,
    ibkr,
    ibkr_statement,
    metatrader5,
    nautilus,
    nofx,
    okx,
    pyfolio,
    tradier,
)
from backsight.importers.cut_files import whole_head_of
from backsight.importers.formats import FileFormat, RowKind, head_of
from backsight.importers.generic import check_given_columns, is_table_of_fills, is_table_of_trades, missing_columns
from backsight.importers.unread_formats import UNREAD_FORMATS, UnreadFormat

FORMATS: tuple[FileFormat, ...] = (
    *ai_hedge_fund.FORMATS,
    *alpaca.FORMATS,
    *binance.FORMATS,
    *bybit.FORMATS,
    *bybit_log.FORMATS,
    *freqtrade.FORMATS,
    *hyperliquid.FORMATS,
    *ibkr.FORMATS,
    *ibkr_statement.FORMATS,
    *metatrader5.FORMATS,
    *nautilus.FORMATS,
    *nofx.FORMATS,
    *okx.FORMATS,
    *pyfolio.FORMATS,
    *tradier.FORMATS,
    *generic.FORMATS,
)
"""Special formats first; a file that fits none of them may still be a table with known columns."""


def format_named(name: str, formats: Sequence[FileFormat] = FORMATS) -> FileFormat:
    """The format with a name."""
    by_name = {each.name: each for each in formats}
    if name not in by_name:
        for unread in UNREAD_FORMATS:
            if unread.name == name:
                raise _not_read(unread)
        match = nearest(name, by_name)
        remedy = f"did you mean {match!r}?" if match else f"give one of {', '.join(sorted(by_name))}"
        raise Invalid(f"{name!r} is not a format; {remedy}", field="format")
    return by_name[name]


def chosen_format(
    path: Path, name: str | None = None, *, rows: RowKind | None = None, columns: Mapping[str, str] | None = None
) -> FileFormat:
    """The named format, else the one that fits the content of a file; `rows` and given `columns` narrow the choice."""
    candidates = [each for each in FORMATS if rows in (None, each.rows)]
    if name is not None:
        chosen = format_named(name, candidates)
        whole_head_of(path)
        return chosen
    if columns:
        head = whole_head_of(path)
        fits = {"fills": is_table_of_fills, "trades": is_table_of_trades}
        tables = [each for each in candidates if each.generic and fits[each.rows](head, columns)]
        if tables:
            return tables[0]
        if not fitting_formats(path, candidates):
            check_given_columns(head, columns, rows or "fills")
    return recognised_format(path, candidates)


def fitting_formats(path: Path, formats: Sequence[FileFormat] = FORMATS) -> list[FileFormat]:
    """The formats that fit the content of a file; generic ones count only where no other fits."""
    head = whole_head_of(path)
    fitting = [each for each in formats if not each.generic and each.recognises(head)]
    return fitting or [each for each in formats if each.generic and each.recognises(head)]


def recognised_format(path: Path, formats: Sequence[FileFormat] = FORMATS) -> FileFormat:
    """The only format that fits the content of a file."""
    fitting = fitting_formats(path, formats)
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(each.name for each in fitting or formats)
    if fitting:
        raise Invalid(f"{path} fits several formats; name one of them: {names}", field="format")
    head = head_of(path)
    for unread in UNREAD_FORMATS:
        if unread.recognises(head):
            raise _not_read(unread)
    missing = missing_columns(head, {each.rows for each in formats})
    if missing is not None:
        message = f"{path} fits no format that is known; {missing}"
        raise Invalid(f"{message}; give them as COLUMN=field, or name one of {names}", field="columns")
    remedy = f"name one of {names}, or give the fields of its columns"
    raise Invalid(f"{path} fits no format that is known; {remedy}", field="format")


def _not_read(unread: UnreadFormat) -> Invalid:
    return Invalid(f"{unread.title} is not read: {unread.remedy}", field="format")
