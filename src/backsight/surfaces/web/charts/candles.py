"""The bars around a trade, with entry, exit, stop, target, and how far it went either way, each line labelled."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from backsight.core.market import Bar
from backsight.surfaces.web.charts.drawing import (
    LETTER,
    ChartRow,
    Scale,
    SvgChart,
    apart,
    axis_width,
    both,
    drawing,
    element,
    path,
    seconds_of,
    time_axis,
    value_axis,
)
from backsight.surfaces.web.numbers import price

HEIGHT, BOTTOM = 330, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A price that matters, drawn as a line from one instant to another."""

    label: str
    price: float
    since: datetime
    until: datetime
    style: str = "level"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An execution: where the trade began or ended."""

    label: str
    at: datetime
    price: float
    up: bool
    """Whether something was bought."""


def candle_chart(
    name: str, bars: Sequence[Bar], levels: Sequence[Level], marks: Sequence[Mark], note: str = ""
) -> SvgChart:
    """Bars as lines from low to high with a body; a falling bar is filled, a rising one is hollow."""
    first, last = seconds_of(bars[0].opened_at), seconds_of(bars[-1].closes_at)

    def draw(width: int) -> Markup:
        return _draw(width, bars, levels, marks, first, last)

    wide, narrow = both(draw)
    rows = tuple(
        ChartRow(
            cells=(f"{bar.opened_at:%Y-%m-%d %H:%M}", *map(price, bar.prices)),
            place=(seconds_of(bar.opened_at) - first + bar.interval_seconds / 2) / (last - first),
        )
        for bar in bars
    )
    headings = ("opened (UTC)", "open", "high", "low", "close")
    return SvgChart(name=name, wide=wide, narrow=narrow, headings=headings, rows=rows, note=note)


def _draw(
    width: int, bars: Sequence[Bar], levels: Sequence[Level], marks: Sequence[Mark], first: float, last: float
) -> Markup:
    prices = [each for bar in bars for each in (bar.high, bar.low)]
    up = Scale.over([*prices, *(level.price for level in levels), *(mark.price for mark in marks)], BOTTOM, 10)
    left = axis_width(up)
    right = width - LETTER * max((len(level.label) for level in levels), default=0) - 24
    across = Scale(first, last, left, right)
    parts = value_axis(up, left, right)
    thick = max(1.0, min(9.0, 0.7 * (right - left) / len(bars)))
    parts += (_candle(bar, across, up, thick) for bar in bars)
    ordered = sorted(levels, key=lambda level: (up(level.price), level.label))
    labels = apart([(up(level.price) + 4, level.label) for level in ordered], distance=13.0, low=12, high=BOTTOM)
    for level, (place, label) in zip(ordered, labels, strict=True):
        start, end = (min(max(across(seconds_of(at)), left), right) for at in (level.since, level.until))
        end, y = max(end, start + 6), up(level.price)
        parts.append(element("line", x1=start, x2=end, y1=y, y2=y, class_=level.style))
        leader = path([(end, y), (right, y), (right + 14, place - 4)])
        parts.append(element("path", d=leader, class_="leader"))
        parts.append(element("text", label, x=right + 18, y=place, class_="label"))
    for mark in marks:
        x = across(seconds_of(mark.at))
        if left <= x <= right:
            parts += _mark(mark, x, up(mark.price))
    parts += time_axis(across, HEIGHT - 12)
    parts.append(element("line", x1=left, x2=left, y1=6, y2=BOTTOM, class_="cursor", data_left=left, data_right=right))
    return drawing(width, HEIGHT - 4, parts)


def _candle(bar: Bar, across: Scale, up: Scale, thick: float) -> Markup:
    middle = across(seconds_of(bar.opened_at) + bar.interval_seconds / 2)
    top, bottom = up(max(bar.open, bar.close)), up(min(bar.open, bar.close))
    body = element(
        "rect",
        x=middle - thick / 2,
        y=top,
        width=thick,
        height=max(1.0, bottom - top),
        class_="down" if bar.close < bar.open else "up",
    )
    return Markup("").join(
        (element("line", x1=middle, x2=middle, y1=up(bar.high), y2=up(bar.low), class_="wick"), body)
    )


def _mark(mark: Mark, x: float, y: float) -> list[Markup]:
    tip = 7 if mark.up else -7
    shape = f"M{x:.1f} {y:.1f}l-5 {tip}h10z"
    text = element("text", mark.label, x=x, y=y + (20 if mark.up else -12), class_="mark", text_anchor="middle")
    return [element("path", d=shape, class_="execution"), text]
