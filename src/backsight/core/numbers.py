"""Small numeric functions: one zero, a stable sigmoid, numbers as text."""

import math


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


def short(value: float, digits: int = 2) -> str:
    """A share as text without the leading zero.

    >>> short(0.914), short(1), short(0)
    ('.91', '1.00', '.00')
    """
    return f"{value:.{digits}f}".removeprefix("0") if 0 <= value < 1 else f"{value:.{digits}f}"
