"""Bars: the prices of a market over equal intervals; checks, closed bars and longer bars."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant, to_utc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of one symbol, from its opening instant up to, but not including, its closing instant.

    >>> Bar(symbol="BTC", interval_seconds=300, opened_at=datetime(2026, 6, 4, 10, tzinfo=UTC),
    ...     open=100.0, high=102.0, low=99.0, close=101.0).closes_at.isoformat()
    '2026-06-04T10:05:00+00:00'
    """

    symbol: str
    """The instrument."""
    interval_seconds: int
    """The length of the bar."""
    opened_at: datetime
    """The first instant of the bar."""
    open: float
    """The first price. Prices may be negative, as futures prices have been."""
    high: float
    """The highest price."""
    low: float
    """The lowest price."""
    close: float
    """The last price."""
    volume: float | None = None
    """None if the volume is not known."""

    @property
    def closes_at(self) -> datetime:
        """The first instant at which the whole bar is known."""
        opened_at = self.opened_at if self.opened_at.tzinfo is UTC else to_utc(self.opened_at, field="opened_at")
        try:
            return opened_at + timedelta(seconds=self.interval_seconds)
        except OverflowError:
            message = f"{self.interval_seconds} after {self.opened_at.isoformat()} is out of range; give fewer seconds"
            raise Invalid(message, field="interval_seconds") from None

    @property
    def prices(self) -> tuple[float, float, float, float]:
        """Open, high, low and close."""
        return self.open, self.high, self.low, self.close


def check_bars(bars: Sequence[Bar], *, field: str = "bars") -> None:
    """Raise `Invalid` unless the bars are one valid series of one symbol and interval, oldest first.

    Gaps are valid, because markets close. Negative prices and a volume of zero are valid too.

    >>> bar = Bar(symbol="BTC", interval_seconds=300, opened_at=EPOCH, open=1.0, high=2.0, low=1.0, close=2.5)
    >>> check_bars([bar])
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: bars[0].close: 2.5 is outside low 1.0 to high 2.0; correct the bar or leave it out
    """
    for number, bar in enumerate(bars):
        fault = _fault(bar) or (_fault_after(bars[number - 1], bar) if number else None)
        if fault:
            name, message = fault
            raise Invalid(message, field=f"{field}[{number}].{name}")


def bars_closed_by(bars: Sequence[Bar], *, at: datetime) -> list[Bar]:
    """The bars that close at or before an instant, in the given order; only these were known then.

    >>> bars = [Bar(symbol="BTC", interval_seconds=60, opened_at=EPOCH + timedelta(minutes=minute),
    ...             open=1.0, high=1.0, low=1.0, close=1.0) for minute in range(5)]
    >>> [bar.opened_at.minute for bar in bars_closed_by(bars, at=EPOCH + timedelta(minutes=2, seconds=59))]
    [0, 1]
    """
    at = to_utc(at, field="at")
    return [bar for bar in bars if bar.closes_at <= at]


LONGER_INTERVALS = (3_600, 86_400)
"""Hourly and daily bars are stored beside shorter ones, because the ATRs of a context need them."""
RESTING = 2
"""Bars without which a market counts as resting: a single one may only be late."""


def with_longer_intervals(bars: Sequence[Bar], *, until: datetime | None = None) -> list[Bar]:
    """The bars of a series and the complete hourly and daily bars made from them; `until` as in `aggregate`.

    Backtests, live loops and replays store the same bars, and so show the same prompts.
    """
    longer = [
        bar
        for seconds in LONGER_INTERVALS
        if bars and bars[0].interval_seconds < seconds and seconds % bars[0].interval_seconds == 0
        for bar in aggregate(bars, interval_seconds=seconds, until=until)
    ]
    return [*bars, *longer]


def aggregate(bars: Sequence[Bar], *, interval_seconds: int, until: datetime | None = None) -> list[Bar]:
    """The complete longer bars of the same market: whole UTC hours or days (multiples of the interval since 1970).

    A longer bar is complete if the given bars reach both its ends: one opens at its start or before, and one closes at
    its end or after. Hours without trades inside it are normal: gold rests an hour a day, stocks most of the day. A bar
    that crosses an end belongs to neither side, so both sides are left out. The bars must pass `check_bars`.

    If the bars are those that had closed `until` an instant, a market that gave none for two intervals rests: then the
    hour or day is complete without a further bar.

    >>> minutes = [Bar(symbol="BTC", interval_seconds=60, opened_at=EPOCH + timedelta(minutes=n), open=n,
    ...                high=n + 2.0, low=n - 1.0, close=n + 1.0, volume=10.0) for n in range(8)]
    >>> [(bar.open, bar.high, bar.low, bar.close, bar.volume) for bar in aggregate(minutes, interval_seconds=300)]
    [(0, 6.0, -1.0, 5.0, 50.0)]
    """
    if not bars or interval_seconds == bars[0].interval_seconds:
        return list(bars)
    if interval_seconds < 1 or interval_seconds % bars[0].interval_seconds:
        message = f"{interval_seconds} is not a multiple of the {bars[0].interval_seconds} seconds of these bars"
        raise Invalid(f"{message}; give a multiple", field="interval_seconds")
    length = timedelta(seconds=interval_seconds)
    parts = {number: list(part) for number, part in groupby(bars, key=lambda bar: (bar.opened_at - EPOCH) // length)}
    crossing = {number for number, part in parts.items() if part[-1].closes_at > EPOCH + (number + 1) * length}
    incomplete = crossing | {number + 1 for number in crossing}
    first, last = min(parts), max(parts)
    if bars[0].opened_at > EPOCH + first * length:
        incomplete.add(first)
    reach, interval = bars[-1].closes_at, timedelta(seconds=bars[0].interval_seconds)
    if until is not None and until - reach >= RESTING * interval:
        reach = until
    if reach < EPOCH + (last + 1) * length:
        incomplete.add(last)
    return [
        _joined(part, opened_at=EPOCH + number * length, interval_seconds=interval_seconds)
        for number, part in parts.items()
        if number not in incomplete
    ]


def _joined(bars: Sequence[Bar], *, opened_at: datetime, interval_seconds: int) -> Bar:
    volumes = [bar.volume for bar in bars if bar.volume is not None]
    return Bar(
        symbol=bars[0].symbol,
        interval_seconds=interval_seconds,
        opened_at=opened_at,
        open=bars[0].open,
        high=max(bar.high for bar in bars),
        low=min(bar.low for bar in bars),
        close=bars[-1].close,
        volume=sum(volumes) if len(volumes) == len(bars) else None,
    )


def _fault(bar: Bar) -> tuple[str, str] | None:
    """The first fault of a bar: the field, and the message with its remedy."""
    if bar.interval_seconds < 1:
        return "interval_seconds", f"{bar.interval_seconds} is not a length; give whole seconds"
    if bar.opened_at.utcoffset() != timedelta(0):
        return "opened_at", f"{bar.opened_at.isoformat()} is not in UTC; convert it, like 2026-06-04T10:00:00+00:00"
    remedy = "correct the bar or leave it out"
    for name, price in zip(("open", "high", "low", "close"), bar.prices, strict=True):
        if not math.isfinite(price):
            return name, f"{price} is not a price; {remedy}"
    if bar.high < bar.low:
        return "high", f"{bar.high} is below low {bar.low}; {remedy}"
    for name, price in (("open", bar.open), ("close", bar.close)):
        if not bar.low <= price <= bar.high:
            return name, f"{price} is outside low {bar.low} to high {bar.high}; {remedy}"
    if bar.volume is not None and not 0 <= bar.volume < math.inf:
        return "volume", f"{bar.volume} is not a volume; give zero or more, or none"
    return None


def _fault_after(earlier: Bar, later: Bar) -> tuple[str, str] | None:
    """The first fault of a bar as the successor of another bar."""
    if later.symbol != earlier.symbol:
        return "symbol", f"{later.symbol!r} follows {earlier.symbol!r}; give one symbol at a time"
    if later.interval_seconds != earlier.interval_seconds:
        message = f"{later.interval_seconds} follows {earlier.interval_seconds}; give one interval at a time"
        return "interval_seconds", message
    if later.opened_at < earlier.closes_at:
        opened, closed = format_instant(later.opened_at), format_instant(earlier.closes_at)
        message = f"{opened} is before {closed}, the close of the previous bar; sort the bars and give each once"
        return "opened_at", message
    return None
