"""Formats that files are known by but not read: why, and what to do instead."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from backsight.importers.formats import FileHead

_TRADINGAGENTS_ENTRY = re.compile(
    r"^\[\d{4}-\d\d-\d\d \| [^|\]]+ \| [^|\]]+ \| (pending|[+-]?[\d.]+%( \| [^|\]]+)*)\]$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFormat:
    """A format that is recognised, or asked for by name, and refused with its remedy."""

    name: str
    title: str
    recognises: Callable[[FileHead], bool]
    remedy: str
    """Why it is not read, and what to do instead."""


def _is_tradingagents(head: FileHead) -> bool:
    """Whether the first line is the head of an entry: `[2026-01-15 | NVDA | Buy | pending]`."""
    return bool(head.first_lines) and _TRADINGAGENTS_ENTRY.match(head.first_lines[0].strip()) is not None


UNREAD_FORMATS = (
    UnreadFormat(
        name="tradingagents",
        title="the decision log of TradingAgents",
        recognises=_is_tradingagents,
        remedy="it has ratings and returns but no price or size, so no trade follows from it; "
        "record its ratings with record_decision, and import the fills of the account that traded",
    ),
    UnreadFormat(
        name="tradier-csv",
        title="Tradier's CSV export",
        recognises=lambda _: False,
        remedy="its columns are not documented; save the account history of Tradier's API as JSON (format tradier), "
        "or read the file as fills-table and give the fields of its columns",
    ),
)
