"""Every format that files are recognised by."""

from collections.abc import Sequence
from pathlib import Path

from backsight.core.errors import Invalid, nearest
from backsight.importers import (
    ai_hedge_fund,
    binance,
    bybit,
    freqtrade,
    hyperliquid,
    ibkr,
    metatrader5,
    nautilus,
    nofx,
    okx,
    pyfolio,
)
from backsight.importers.formats import FileFormat, head_of

FORMATS: tuple[FileFormat, ...] = (
    *ai_hedge_fund.FORMATS,
    *binance.FORMATS,
    *bybit.FORMATS,
    *freqtrade.FORMATS,
    *hyperliquid.FORMATS,
    *ibkr.FORMATS,
    *metatrader5.FORMATS,
    *nautilus.FORMATS,
    *nofx.FORMATS,
    *okx.FORMATS,
    *pyfolio.FORMATS,
)
"""Special formats first; a file that fits none of them may still be a table with known columns."""


def format_named(name: str, formats: Sequence[FileFormat] = FORMATS) -> FileFormat:
    """The format with a name."""
    by_name = {each.name: each for each in formats}
    if name not in by_name:
        match = nearest(name, by_name)
        remedy = f"did you mean {match!r}?" if match else f"give one of {', '.join(sorted(by_name))}"
        raise Invalid(f"{name!r} is not a format; {remedy}", field="format")
    return by_name[name]


def recognised_format(path: Path, formats: Sequence[FileFormat] = FORMATS) -> FileFormat:
    """The only format that fits the content of a file."""
    head = head_of(path)
    fitting = [each for each in formats if each.recognises(head)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(each.name for each in fitting or formats)
    reason = "fits several formats" if fitting else "fits no format that is known"
    raise Invalid(f"{path} {reason}; name one of them: {names}", field="format")
