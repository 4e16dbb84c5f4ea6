"""Market events: what is scheduled, which instruments it concerns, and how prices moved at past events of the kind."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Literal, get_args

from backsight.core.errors import Invalid, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.numbers import written_number
from backsight.core.portfolio import Direction

EventKind = Literal[
    "fomc",
    "cpi",
    "ppi",
    "nfp",
    "jobless_claims",
    "gdp",
    "pce",
    "ecb_rate",
    "boe_rate",
    "boj_rate",
    "crypto_unlock",
    "exchange_listing",
    "halving",
    "mainnet_launch",
    "regulatory",
    "earnings",
    "other",
]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
USUAL_IMPORTANCE: Mapping[EventKind, float] = {
    **dict.fromkeys(("fomc", "cpi", "nfp", "halving"), 0.9),
    **dict.fromkeys(("ppi", "gdp", "pce", "ecb_rate", "boe_rate", "boj_rate", "earnings", "regulatory"), 0.6),
    "other": 0.3,
}
"""The importance of an event whose file gives none; 0.4 for the kinds that are not listed."""
MOST_SYMBOLS = 100
MOVE_AFTER = timedelta(hours=4)
FEWEST_EVENTS = 3
COARSEST_SECONDS = 3_600
"""The longest bars from which the move after an event is told."""
QUOTES = ("USDT", "USDC", "USD", "EUR")
WORDS: Mapping[str, EventKind] = {
    "fomc": "fomc",
    "federal funds": "fomc",
    "cpi": "cpi",
    "consumer price": "cpi",
    "ppi": "ppi",
    "producer price": "ppi",
    "non-farm": "nfp",
    "nonfarm": "nfp",
    "nfp": "nfp",
    "jobless": "jobless_claims",
    "gdp": "gdp",
    "pce": "pce",
    "ecb": "ecb_rate",
    "bank of england": "boe_rate",
    "bank of japan": "boj_rate",
    "unlock": "crypto_unlock",
    "listing": "exchange_listing",
    "halving": "halving",
    "mainnet": "mainnet_launch",
    "earnings": "earnings",
}
"""Words in the title of an event whose kind is not given, and their kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketEvent:
    """One version of a market event."""

    owner_id: str
    id: str
    kind: EventKind
    scheduled_at: datetime
    symbols: tuple[str, ...]
    """Instruments or their bases; empty for everything."""
    importance: float
    """From 0 to 1."""
    title: str
    source: str
    source_id: str | None
    actual: str | None
    """The published value; never known before `scheduled_at`."""
    forecast: str | None
    previous: str | None
    known_at: datetime
    """When it was imported; for an event of the past, when it happened."""
    recorded_at: datetime
    cancelled: bool = False
    """Its calendar cancelled it, so it is no longer read; it is as of before."""


def event_id(
    owner: str, *, source: str, source_id: str | None, kind: str, at: datetime, symbols: Sequence[str], title: str
) -> str:
    """The id of an event: by the id that its source gives it, else by kind, hour, symbols and title."""
    if source_id is not None:
        return derive_id("market event", owner, source, source_id)
    hour = at.replace(minute=0, second=0, microsecond=0)
    return derive_id("market event", owner, kind, format_instant(hour), *sorted(symbols), title.casefold())


def checked_kind(text: str) -> EventKind:
    """The kind with this name; `Invalid` with the nearest one.

    >>> checked_kind(" CPI ")
    'cpi'
    """
    name = text.strip().lower().replace(" ", "_")
    for kind in EVENT_KINDS:
        if kind == name:
            return kind
    raise Invalid(f"{text[:40]!r} is not a kind of event; {did_you_mean(name, EVENT_KINDS)}", field="kind")


def kind_from_title(title: str) -> EventKind:
    """The kind that the words of a title name, else `other`.

    >>> kind_from_title("US Core CPI (MoM)"), kind_from_title("Company picnic")
    ('cpi', 'other')
    """
    lower = title.lower()
    return next((kind for word, kind in WORDS.items() if re.search(rf"\b{re.escape(word)}\b", lower)), "other")


def base_of(symbol: str) -> str:
    """The base of an instrument.

    >>> [base_of(symbol) for symbol in ("BTC/USDT:PERP", "btc-usd", "ETHUSDT", "XAUUSD", "AAPL")]
    ['BTC', 'BTC', 'ETH', 'XAU', 'AAPL']
    """
    head = re.split(r"[/\-_:]", symbol.upper(), maxsplit=1)[0]
    quote = next((each for each in QUOTES if head.endswith(each) and len(head) > len(each) + 1), "")
    return head.removesuffix(quote)


def concerns(event: MarketEvent, symbol: str) -> bool:
    """Whether an event concerns an instrument: it names the instrument or its base, or nothing at all."""
    names = {symbol.upper(), base_of(symbol)}
    return not event.symbols or any(each.upper() in names or base_of(each) in names for each in event.symbols)


def outcome_figures(events: Iterable[MarketEvent], *, symbol: str | None, at: datetime) -> dict[str, float]:
    """The figures of the last event of every kind by then, like `nfp.actual`; those that are not known are left out.

    `surprise` is actual less forecast, `change` is actual less previous. Of several rows of one print the most
    important counts; a figure about which equally important rows differ is not known.
    """
    last: dict[str, list[MarketEvent]] = {}
    for event in events:
        if event.scheduled_at > at or not (symbol is None or concerns(event, symbol)):
            continue
        rows = last.setdefault(event.kind, [])
        rank = event.scheduled_at, event.importance
        if rows and rank > (rows[0].scheduled_at, rows[0].importance):
            rows.clear()
        if not rows or rank == (rows[0].scheduled_at, rows[0].importance):
            rows.append(event)
    figures: dict[str, float] = {}
    for kind, rows in last.items():
        actual, forecast, previous = (
            _figure({getattr(row, name) for row in rows}) for name in ("actual", "forecast", "previous")
        )
        values = {
            "actual": actual,
            "forecast": forecast,
            "previous": previous,
            "surprise": None if actual is None or forecast is None else round(actual - forecast, 12),
            "change": None if actual is None or previous is None else round(actual - previous, 12),
            "hours_since": (at - rows[0].scheduled_at).total_seconds() / 3_600.0,
        }
        figures |= {f"{kind}.{name}": value for name, value in values.items() if value is not None}
    return figures


def _figure(texts: set[str | None]) -> float | None:
    """The number that all rows of a print agree on; of a percentage, the number before the sign."""
    text = texts.pop() if len(texts) == 1 else None
    number = None if text is None else written_number(text)
    return None if number is None else number[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What an event may mean for an open position, by past events of its kind."""

    event_id: str
    symbol: str
    position_side: Direction
    notional: float | None
    """In the currency of the account."""
    currency: str
    notional_usd: float | None
    """None if no rate to the dollar is known."""
    similar_events_back: int
    """Past events of the kind that concern the symbol and have bars; events of one instant count as one."""
    median_abs_move: float | None
    """As a share of the price, from the event to four hours after; None below three events."""
    worst_move: float | None
    """The worst of these moves for the position: negative is bad for it."""
    missing: str | None
    """Why the moves are not known."""


def moves_of(
    moves: Iterable[float], direction: Direction, *, why_fewer: str | None
) -> tuple[int, float | None, float | None, str | None]:
    """The number of past moves, their median size, the worst for a position, and why they are not known.

    >>> moves_of([0.01, -0.03, 0.02], "short", why_fewer=None)
    (3, 0.02, -0.02, None)
    >>> moves_of([0.01], "long", why_fewer=None)
    (1, None, None, '1 past event with bars; 3 are needed')
    """
    known = list(moves)
    if len(known) < FEWEST_EVENTS:
        plural = "" if len(known) == 1 else "s"
        reason = why_fewer or f"{len(known)} past event{plural} with bars; {FEWEST_EVENTS} are needed"
        return len(known), None, None, reason
    sign = 1.0 if direction == "long" else -1.0
    return len(known), median(map(abs, known)), min(sign * move for move in known), None
