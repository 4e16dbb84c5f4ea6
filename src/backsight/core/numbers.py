"""Small numeric functions: one zero, a stable sigmoid, numbers as text."""

import math
import re


def positive_zero(value: float) -> float:
    """The value, with −0.0 replaced by 0.0, so that equal numbers have equal bits.

    >>> str(positive_zero(-0.0))
    '0.0'
    """
    return value + 0.0


def sigmoid(x: float) -> float:
    """The logistic function 1 / (1 + e^−x), without overflow.

    >>> sigmoid(0.0), sigmoid(800.0), sigmoid(-800.0)
    (0.5, 1.0, 0.0)
    """
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    z = math.exp(x)
    return z / (1.0 + z)


def signed(value: float, digits: int = 1) -> str:
    """A number as text with its sign, and zero without a sign.

    >>> signed(3), signed(-1.26), signed(-0.04)
    ('+3.0', '-1.3', '0.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def with_margin(mean: str, half_width: float | None, *, suffix: str = "", digits: int = 2) -> str:
    """A mean, half the width of its interval and its unit; a margin never reads as zero.

    A margin below the digits shown gets more digits. Without variation the data say nothing about the margin.

    >>> with_margin("+0.21", 0.18, suffix="R"), with_margin("+0.21", 0.0032, suffix="R"), with_margin("-1.23", None)
    ('+0.21 ± 0.18R', '+0.21 ± 0.003R', '-1.23')
    >>> with_margin("+1.00", 0.0, suffix="R")
    '+1.00R (margin unknown)'
    """
    if half_width is None:
        return f"{mean}{suffix}"
    if not half_width > 0.0:
        return f"{mean}{suffix} (margin unknown)"
    text = f"{half_width:.{digits}f}"
    if float(text) == 0.0:
        text = f"{half_width:.{-math.floor(math.log10(half_width))}f}"
    return f"{mean} ± {text}{suffix}"


def half_width(interval: tuple[float, float] | None, *, scale: float = 1.0) -> float | None:
    """Half the width of an interval; None without one.

    >>> half_width((-1.0, 3.0)), half_width((0.25, 0.75), scale=100.0), half_width(None)
    (2.0, 25.0, None)
    """
    return None if interval is None else scale * (interval[1] - interval[0]) / 2.0


def short(value: float, digits: int = 2) -> str:
    """A share as text without the leading zero.

    >>> short(0.914), short(1), short(0)
    ('.91', '1.00', '.00')
    """
    return f"{value:.{digits}f}".removeprefix("0") if 0 <= value < 1 else f"{value:.{digits}f}"


_WRITTEN = re.compile(r"([-+]?(?:\d[\d,]*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,3})?)\s*+(?:([kmbKMB])\s*+)?(%?)")
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}


def written_number(text: str) -> tuple[float, bool] | None:
    """The number that a text writes, and whether as a percentage; None for other text.

    >>> written_number("200K"), written_number(" 1,250.5"), written_number("3.2%"), written_number("5.25-5.50")
    ((200000.0, False), (1250.5, False), (3.2, True), None)
    """
    match = _WRITTEN.fullmatch(text[:100].strip())
    if match is None:
        return None
    number = positive_zero(float(match[1].replace(",", "")) * _SCALES[(match[2] or "").lower()])
    return (number, bool(match[3])) if math.isfinite(number) else None
