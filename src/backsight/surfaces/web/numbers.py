"""Numbers, instants and intervals as the pages write them: fixed decimals, so that columns align on the point."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Literal

from markupsafe import Markup, escape

from backsight.answers.values import price_digits
from backsight.core.instants import format_instant, nearest_minute
from backsight.core.trades.trade import OutcomeUnit, Trade, unit_suffix

Unit = Literal["money", "percent", "R"]
UNITS: tuple[Unit, ...] = ("money", "percent", "R")
UNIT_LABELS: dict[Unit, str] = {"money": "money", "percent": "%", "R": "R"}
OUTCOME_SCALES: dict[OutcomeUnit, float] = {"pct": 100.0}
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


def size(value: float | None) -> str:
    """A quantity with at most six significant digits."""
    return UNKNOWN if value is None else f"{value:.6g}".replace("-", MINUS)


def aligned(column: Iterable[str]) -> list[Markup]:
    """Numbers of a column with different decimals, padded so that a column that ends at the right aligns on the point.

    >>> aligned(["2812.22", "1.08000", "–"])
    [Markup('2812.22\u2007\u2007\u2007'), Markup('1.08000'), Markup('–')]
    """
    texts = list(column)
    decimals = [len(text.partition(".")[2]) for text in texts]
    most = max(decimals, default=0)
    padding = [
        0 if text == UNKNOWN else most - own + (own == 0 < most) for text, own in zip(texts, decimals, strict=True)
    ]
    return [escape(text) + "\u2007" * spaces for text, spaces in zip(texts, padding, strict=True)]


def interval(bounds: Sequence[float] | None, decimals: int = 2, scale: float = 1.0) -> str:
    """The bounds of a 90% interval.

    >>> interval((-0.2, 0.9)), interval(None)
    ('−0.20 to +0.90', '–')
    """
    return UNKNOWN if bounds is None else " to ".join(signed(scale * bound, decimals) for bound in bounds)


def outcome(value: float | None, unit: OutcomeUnit) -> str:
    """An outcome with its unit; a share is written in percent.

    >>> outcome(-0.0123, "pct"), outcome(1.5, "R"), outcome(None, "R")
    ('−1.23%', '+1.50R', '–')
    """
    return UNKNOWN if value is None else signed(value * OUTCOME_SCALES.get(unit, 1.0), 2, unit_suffix(unit))


def outcome_interval(bounds: Sequence[float] | None, unit: OutcomeUnit) -> str:
    """The bounds of the 90% interval of a mean outcome, in the unit of `outcome`."""
    return interval(bounds, 2, OUTCOME_SCALES.get(unit, 1.0))


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


def day(day: date) -> str:
    return f"{day:%Y-%m-%d}"


def holding(minutes: float | None) -> str:
    """How long a trade was held, in hours and minutes, or in days and hours from two days on.

    >>> holding(30.0), holding(300.5), holding(4_000.0), holding(None)
    ('0h 30m', '5h 00m', '2d 18h', '–')
    """
    if minutes is None:
        return UNKNOWN
    hours, rest = divmod(int(minutes), 60)
    return f"{hours}h {rest:02}m" if hours < 48 else f"{hours // 24}d {hours % 24:02}h"


def short(identifier: str | None) -> str:
    """The beginning of an id, which every operation accepts."""
    return UNKNOWN if identifier is None else identifier[:8]
