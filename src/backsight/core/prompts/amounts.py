"""Format money, prices, percentages and times for the prompt: short, and the same text for the same number."""

import math
from datetime import datetime, timedelta

from backsight.core.instants import nearest_minute
from backsight.core.numbers import signed
from backsight.core.text.untrusted_text import name

UNKNOWN = "?"
DIGITS = 6
"""Significant digits of a price below 100,000 or an amount below a cent."""
HUGE = 1e15
"""Larger numbers, and smaller ones than one in so many, are shown as a bound."""
LARGEST_R = 999.0
MOST_PERCENT = 9_999.0
HOUR, DAY, TEN_DAYS = 60, 1_440, 14_400
MOST_DAYS = 99_999
YEARLESS = timedelta(days=300)
"""A day within this time is clear without its year."""


def price(value: float | None) -> str:
    """A price with six significant digits.

    >>> [price(value) for value in (65_200.0, 3438.25, 1.08456, 0.000000001234, 1e9, None)]
    ['65,200', '3,438.25', '1.08456', '0.000000001234', '1,000,000,000', '?']
    >>> price(2.5e18), price(-2.5e18), price(1e-20)
    ('999,999,999,999,999+', '-999,999,999,999,999+', '0.000000000000001')
    """
    return UNKNOWN if value is None else _number(value, places=_places(value, DIGITS))


def money(value: float | None, currency: str | None) -> str:
    """An amount of money; from 100 on without decimals.

    >>> money(2500.4, "USD"), money(8.5, "USD"), money(2500, "EUR"), money(0.00012, "BTC"), money(7, None)
    ('$2,500', '$8.50', '2,500 EUR', '0.00012 BTC', '7')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return _in_currency(_amount(abs(value)), currency, sign="-" if value < 0 else "")


def gain(value: float | None, currency: str | None, *, cents: bool = False) -> str:
    """A profit or loss with its sign; with `cents`, amounts below 10,000 have two decimals.

    >>> gain(28.37, "USD", cents=True), gain(-9.7, "USD", cents=True), gain(22, "USD"), gain(-8, "EUR"), gain(0, "USD")
    ('+$28.37', '-$9.70', '+$22', '-8 EUR', '$0')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    text = f"{size:,.2f}" if cents and 0.01 <= size < 10_000 else _amount(size)
    return _in_currency(text, currency, sign="" if value == 0 else "+" if value > 0 else "-")


def percent(share: float | None) -> str:
    """A fraction as a signed percentage.

    >>> percent(0.01135), percent(-0.0004), percent(0.0), percent(1e9), percent(None)
    ('+1.1%', '-0.04%', '0.0%', '>+9999%', '?')
    """
    if share is None or not math.isfinite(share):
        return UNKNOWN
    value = share * 100
    if abs(value) > MOST_PERCENT:
        return f"{'>+' if value > 0 else '<-'}{MOST_PERCENT:.0f}%"
    return f"{signed(value, 1 if abs(value) >= 0.1 or abs(value) < 0.005 else 2)}%"


def multiple(value: float | None) -> str:
    """A factor, like a leverage, with two significant digits.

    >>> multiple(2.93213), multiple(10.0), multiple(0.5), multiple(125.0), multiple(None)
    ('2.9×', '10×', '0.5×', '125×', '?')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{_number(value, places=max(0, _places(value, 2) if abs(value) < 1 else int(abs(value) < 10)))}×"


def share(part: float | None, *, most: float = 1.0) -> str:
    """A share without a sign, like a drawdown; a share above `most` is shown as a bound.

    >>> share(0.0623), share(0.0004), share(0.25), share(1.0), share(7.0), share(None)
    ('6.2%', '0.04%', '25%', '100%', '>100%', '?')
    """
    if part is None or not math.isfinite(part):
        return UNKNOWN
    value = 100.0 * part
    if abs(part) > most:
        return f">{100.0 * most:.0f}%"
    places = 0 if abs(value) >= 10 or value == 0 else 1 if abs(value) >= 0.1 else 2
    return f"{_number(round(value, places), places=places)}%"


def day_and_time(at: datetime | None, *, now: datetime) -> str:
    """An instant of the last 300 days without the year, and an earlier one as a date.

    >>> from datetime import timedelta
    >>> now = datetime(2026, 6, 4, 10)
    >>> day_and_time(now - timedelta(days=2), now=now), day_and_time(now - timedelta(days=301), now=now)
    ('06-02 10:00', '2025-08-07')
    >>> day_and_time(now - timedelta(microseconds=1), now=now)
    '06-04 10:00'
    """
    if at is None:
        return UNKNOWN
    return nearest_minute(at).strftime("%m-%d %H:%M" if abs(now - at) < YEARLESS else "%Y-%m-%d")


def span(minutes: float | None) -> str:
    """A duration in its two largest units; from ten days on in days.

    >>> span(45.2), span(150), span(120), span(1_439.6), span(3_270), span(50_000), span(1e30)
    ('45m', '2h 30m', '2h', '1d', '2d 6h', '34d', '>99999d')
    """
    if minutes is None or not math.isfinite(minutes):
        return UNKNOWN
    if minutes > MOST_DAYS * DAY:
        return f">{MOST_DAYS}d"
    whole = round(max(0.0, minutes))
    days, hours, rest = whole // DAY, whole % DAY // HOUR, whole % HOUR
    parts = (f"{days}d", f"{hours}h" if hours and whole < TEN_DAYS else "") if days else (
        f"{hours}h" if hours else "", f"{rest}m" if rest or not hours else ""
    )  # fmt: skip
    return " ".join(part for part in parts if part)


def in_r(value: float) -> str:
    """A result in multiples of the risk, with two decimals below 10R; large ones as a bound.

    >>> in_r(0.1249), in_r(-0.001), in_r(-12.34), in_r(4e9)
    ('+0.12R', '0.00R', '-12.3R', '>+999R')
    """
    if abs(value) > LARGEST_R:
        return f"{'>+' if value > 0 else '<-'}{LARGEST_R:.0f}R"
    return f"{signed(value, 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0)}R"


def figure(value: float) -> str:
    """A measurement with three significant digits, like a usual range.

    >>> figure(31.249), figure(0.000123456), figure(1_234.5)
    ('31.2', '0.000123', '1,234')
    """
    digits = 0 if value == 0 or not math.isfinite(value) else 2 - math.floor(math.log10(abs(value)))
    return _number(value, places=max(0, digits))


def instant(at: datetime | None) -> str:
    """An instant to the minute, in UTC."""
    return UNKNOWN if at is None else nearest_minute(at).strftime("%Y-%m-%dT%H:%M")


def stretch(start: datetime | None, end: datetime | None) -> str:
    """The start and the end of a period; the end has no date if it is the same day.

    >>> from datetime import timedelta
    >>> start = datetime(2026, 6, 4, 10)
    >>> stretch(start, start + timedelta(minutes=150)), stretch(None, start)
    ('2026-06-04T10:00 → 12:30', '? → 2026-06-04T10:00')
    >>> stretch(start, start + timedelta(days=1))
    '2026-06-04T10:00 → 2026-06-05T10:00'
    """
    first, last = instant(start), instant(end)
    same_day = start is not None and end is not None and first[:10] == last[:10]
    return f"{first} → {last[11:] if same_day else last}"


def _amount(size: float) -> str:
    if size == 0 or (size >= 1 and size == int(size)):
        return _number(size, places=0)
    if size >= 100:
        return _number(size, places=0)
    return f"{size:.2f}" if size >= 0.01 else _number(size, places=_places(size, 2))


def _number(value: float, *, places: int) -> str:
    """A number with thousands separators and without trailing zeros."""
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) >= HUGE:
        return f"{'-' if value < 0 else ''}{HUGE - 1:,.0f}+"
    if 0 < abs(value) < 1 / HUGE:
        value, places = math.copysign(1 / HUGE, value), 15
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _places(value: float, digits: int) -> int:
    """The decimal places needed for this many significant digits; at least two below 100,000.

    >>> _places(65_200.0, 6), _places(1.08456, 6), _places(0.00001234, 6)
    (2, 5, 10)
    """
    if value == 0 or not math.isfinite(value):
        return 0
    before = math.floor(math.log10(abs(value))) + 1
    return max(2 if before <= DIGITS - 1 else 0, digits - before)


def _in_currency(text: str, currency: str | None, *, sign: str) -> str:
    if currency == "USD":
        return f"{sign}${text}"
    return f"{sign}{text}" if currency is None else f"{sign}{text} {name(currency, most=8)}"
