"""A line over time, labelled at its end: equity, drawdown, confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLine:
    """A named series: instants and values."""

    label: str
    points: tuple[tuple[datetime, float], ...]
    style: str = "main"
    """`main` has the accent colour, `quiet` is grey and `area` is filled down from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines that share a value axis; panels of a chart share their time axis."""

    lines: tuple[SeriesLine, ...]
    height: int
    suffix: str = ""


def line_chart(
    name: str,
    panels: Sequence[Panel],
    rows: Sequence[tuple[datetime, tuple[str, ...]]],
    headings: tuple[str, ...],
    note: str = "",
) -> SvgChart:
    """Panels one above the other over one time axis; `rows` are the table, an instant and its cells each."""
    instants = [seconds_of(at) for panel in panels for line in panel.lines for at, _ in line.points]
    first, last = min(instants), max(instants)

    def draw(width: int) -> Markup:
        return _draw(width, panels, first, last if last > first else first + 1)

    wide, narrow = both(draw)
    span = last - first or 1.0
    table = tuple(ChartRow(cells=cells, place=(seconds_of(at) - first) / span) for at, cells in rows)
    return SvgChart(name=name, wide=wide, narrow=narrow, headings=headings, rows=table, note=note)


def _draw(width: int, panels: Sequence[Panel], first: float, last: float) -> Markup:
    tops, height = [], 8
    for panel in panels:
        tops.append(height)
        height += panel.height + 14
    scales = [
        Scale.over([value for line in panel.lines for _, value in line.points], top + panel.height, top)
        for panel, top in zip(panels, tops, strict=True)
    ]
    left = max(axis_width(scale, panel.suffix) for scale, panel in zip(scales, panels, strict=True))
    longest = max(len(line.label) for panel in panels for line in panel.lines)
    right = width - LETTER * longest - 10
    across = Scale(first, last, left, right)
    parts: list[Markup] = []
    for panel, scale in zip(panels, scales, strict=True):
        parts += value_axis(scale, left, right, suffix=panel.suffix)
        parts += (_line(line, across, scale) for line in panel.lines)
        ends = [(scale(line.points[-1][1]) + 4, line.label) for line in panel.lines]
        for place, label in apart(ends, distance=14.0, low=scale.end + 8, high=scale.start):
            parts.append(element("text", label, x=right + 6, y=place, class_="label"))
    parts += time_axis(across, height + 6)
    parts.append(
        element("line", x1=left, x2=left, y1=4, y2=height - 14, class_="cursor", data_left=left, data_right=right)
    )
    return drawing(width, height + 14, parts)


def _line(line: SeriesLine, across: Scale, scale: Scale) -> Markup:
    points = [(across(seconds_of(at)), scale(value)) for at, value in line.points]
    if line.style == "area":
        base = scale(min(max(0.0, scale.low), scale.high))
        return element(
            "path", d=path([(points[0][0], base), *points, (points[-1][0], base)], closed=True), class_="area"
        )
    return element("path", d=path(points), class_=f"line {line.style}")
