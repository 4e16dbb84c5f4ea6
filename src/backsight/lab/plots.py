"""Plots as SVG text: curves, a histogram and points. The same numbers give the same text."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from backsight.lab.equity import Floats

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 34, 44
COLOURS = ("#1b1b1b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f")
"""Colours that people with colour blindness can tell apart (Okabe & Ito 2008)."""
TICKS = 5
MOST_POINTS = 400
BINS = 40
LOWEST = 0.1
FEW_POWERS = 1.5
"""A logarithmic axis over fewer powers of ten has ticks at 1, 2 and 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a plot: its meaning, its range in numbers and in pixels."""

    label: str
    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    """Whether the range is in powers of ten."""

    def place(self, value: float) -> float:
        """The pixel of a value."""
        at = math.log10(value) if self.is_log else value
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def ticks(self) -> Iterator[float]:
        """Round numbers in the range."""
        if self.is_log:
            factors = (1.0, 2.0, 5.0) if self.high - self.low < FEW_POWERS else (1.0,)
            powers = range(math.floor(self.low), math.ceil(self.high) + 1)
            values = (factor * 10.0**power for power in powers for factor in factors)
            return (value for value in values if self.low <= math.log10(value) <= self.high)
        step = _round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return (step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1))


def log_line_plot(title: str, curves: Mapping[str, Sequence[float]], *, x_label: str, y_label: str) -> str:
    """Curves over 0, 1, 2, …, with a legend and a logarithmic axis; values below 0.1 are drawn there."""
    curves = {name: [max(LOWEST, value) for value in values] for name, values in curves.items()}
    longest = max((len(values) for values in curves.values()), default=1)
    low, high = _range([[math.log10(value) for value in values] for values in curves.values()])
    x, y = _axes(x_label, (0.0, float(max(1, longest - 1))), y_label, (low, high))
    y = replace(y, is_log=True)
    parts = []
    for number, (name, values) in enumerate(curves.items()):
        places = sorted({round(at) for at in np.linspace(0, len(values) - 1, min(MOST_POINTS, len(values)))})
        points = " ".join(f"{x.place(at):.1f},{y.place(values[at]):.1f}" for at in places)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{points}"/>')
        parts += _legend(number, name, colour)
    return _svg(title, x, y, parts)


def histogram(title: str, values: Floats, *, mark: float, mark_label: str, x_label: str) -> str:
    """A histogram, and a vertical line at one value."""
    low, high = _range([values.tolist(), [mark]])
    counts, edges = np.histogram(values, bins=BINS, range=(low, high))
    x, y = _axes(x_label, (low, high), "draws", (0.0, float(max(1, counts.max()))))
    parts = []
    for count, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if count:
            left, top = x.place(start), y.place(count)
            size = f'width="{x.place(end) - left - 0.5:.1f}" height="{y.place(0.0) - top:.1f}"'
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="#b8c4ce"/>')
    at = x.place(mark)
    parts.append(
        f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#d55e00" stroke-width="2"/>'
    )
    parts += _legend(0, mark_label, "#d55e00")
    return _svg(title, x, y, parts)


def scatter_plot(title: str, xs: Floats, ys: Floats, *, x_label: str, y_label: str) -> str:
    """Points, and a line at 0 on the vertical axis."""
    x, y = _axes(x_label, _range([xs.tolist()]), y_label, _range([ys.tolist(), [0.0]]))
    zero = y.place(0.0)
    parts = [f'<line x1="{LEFT}" y1="{zero:.1f}" x2="{WIDTH - RIGHT}" y2="{zero:.1f}" stroke="#888888"/>']
    parts += [
        f'<circle cx="{x.place(at):.1f}" cy="{y.place(value):.1f}" r="2.2" fill="#0072b2" fill-opacity="0.45"/>'
        for at, value in dict.fromkeys(zip(xs.round(6).tolist(), ys.round(4).tolist(), strict=True))
    ]
    return _svg(title, x, y, parts)


def _axes(x_label: str, xs: tuple[float, float], y_label: str, ys: tuple[float, float]) -> tuple[Axis, Axis]:
    x = Axis(label=x_label, low=xs[0], high=xs[1], start=LEFT, end=WIDTH - RIGHT)
    return x, Axis(label=y_label, low=ys[0], high=ys[1], start=HEIGHT - BOTTOM, end=TOP)


def _range(series: Iterable[Sequence[float]]) -> tuple[float, float]:
    """The range of all finite values, a little wider; never empty."""
    values = [value for each in series for value in each if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.04 * (high - low) or max(0.5, 0.05 * abs(high))
    return low - margin, high + margin


def _round_step(width: float) -> float:
    """The next step of 1, 2 or 5 times a power of ten.

    >>> [_round_step(width) for width in (0.3, 1.2, 23.0)]
    [0.5, 2.0, 50.0]
    """
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= width * (1 - 1e-9))


def _svg(title: str, x: Axis, y: Axis, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="11"><title>{escape(title)}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>'
    )
    return "\n".join([head, *_grid(x, y), *parts, "</svg>"]) + "\n"


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in y.ticks:
        at = y.place(value)
        yield f'<line x1="{LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#e4e4e4"/>'
        yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(value)}</text>'
    for value in x.ticks:
        at = x.place(value)
        yield f'<line x1="{at:.1f}" y1="{bottom}" x2="{at:.1f}" y2="{bottom + 4}" stroke="#888888"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_number(value)}</text>'
    yield f'<line x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#888888"/>'
    yield f'<text x="{(LEFT + right) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>'
    middle = (TOP + bottom) / 2
    turn = f'text-anchor="middle" transform="rotate(-90 14 {middle:.1f})"'
    yield f'<text x="14" y="{middle:.1f}" {turn}>{escape(y.label)}</text>'


def _legend(number: int, name: str, colour: str) -> list[str]:
    top, left = TOP + 10 + 18 * number, WIDTH - RIGHT + 12
    return [
        f'<rect x="{left}" y="{top - 8}" width="12" height="4" fill="{colour}"/>',
        f'<text x="{left + 18}" y="{top - 2}">{escape(name)}</text>',
    ]


def _number(value: float) -> str:
    return f"{value:.6g}".replace("-0", "0", 1) if abs(value) < 1e-12 else f"{value:.4g}"
