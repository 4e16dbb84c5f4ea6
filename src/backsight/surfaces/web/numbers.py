"""Numbers, instants and intervals as the pages write them: fixed decimals, so that columns align on the point."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Literal

from markupsafe import Markup

from backsight.answers.values import price_digits
from backsight.core.instants import format_instant, nearest_minute
from backsight.core.trades.trade import Trade

Unit = Literal["money", "percent", "R"]
UNITS: tuple[Unit, ...] = ("money", "percent", "R")
UNIT_LABELS: dict[Unit, str] = {"money": "$", "percent": "%", "R": "R"}
UNKNOWN = "–"
MINUS = "−"


def signed(value: float | None, decimals: int = 2, suffix: str = "") -> str:
    """A number with its sign, thousands apart.

    >>> signed(1234.5), signed(-0.004), signed(None), signed(-2.0, 1, "R")
    ('+1,234.50', '0.00', '–', '−2.0R')
    """
    if value is None:
        return UNKNOWN
    text = f"{value:+,.{decimals}f}"
    digits = text[1:]
    sign = "" if not any(digit in "123456789" for digit in digits) else MINUS if text[0] == "-" else "+"
    return sign + digits + suffix


def plain(value: float | None, decimals: int = 2) -> str:
    """A number, thousands apart."""
    return UNKNOWN if value is None else f"{value:,.{decimals}f}".replace("-", MINUS)


def share(value: float | None, decimals: int = 0) -> str:
    """A share as a percentage."""
    return UNKNOWN if value is None else f"{100 * value:.{decimals}f}%".replace("-", MINUS)


def price(value: float | None) -> str:
    """A price with as many decimals as markets quote, so that a column aligns on the point."""
    return UNKNOWN if value is None else f"{value:.{price_digits(value)}f}"


def interval(bounds: Sequence[float] | None, decimals: int = 2, scale: float = 1.0) -> str:
    """The bounds of a 90 % interval.

    >>> interval((-0.2, 0.9)), interval(None)
    ('−0.20 to +0.90', '–')
    """
    return UNKNOWN if bounds is None else " to ".join(signed(scale * bound, decimals) for bound in bounds)


def in_unit(trade: Trade, unit: Unit) -> float | None:
    """The result of a trade in a unit; None where it is not known in that unit."""
    match unit:
        case "money":
            return trade.pnl if trade.currency is None else None
        case "percent":
            equity = trade.entry.equity
            return None if trade.pnl is None or not equity or trade.currency is not None else 100 * trade.pnl / equity
        case "R":
            outcome = trade.outcome
            return outcome.value if outcome is not None and outcome.unit == "R" else None


def time_tag(at: datetime | None, *, seconds: bool = False) -> Markup | str:
    """An instant in UTC, which a script turns into the viewer's zone; the title has UTC."""
    if at is None:
        return UNKNOWN
    utc = at.astimezone(UTC)
    text = f"{utc:%Y-%m-%d %H:%M:%S}" if seconds else f"{nearest_minute(utc):%Y-%m-%d %H:%M}"
    full = f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(format_instant(utc), full, text)


def day_text(day: date) -> str:
    return f"{day:%Y-%m-%d}"


def holding(minutes: float | None) -> str:
    """How long a trade was held in minutes, hours or days.

    >>> holding(30.0), holding(300.0), holding(4_000.0), holding(None)
    ('30 min', '5.0 h', '2.8 d', '–')
    """
    if minutes is None:
        return UNKNOWN
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h" if minutes < 2880 else f"{minutes / 1440:.1f} d"


def short(identifier: str | None) -> str:
    """The beginning of an id, which every operation accepts."""
    return UNKNOWN if identifier is None else identifier[:8]
