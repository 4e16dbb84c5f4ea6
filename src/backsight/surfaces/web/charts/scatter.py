"""How far each trade went against it and in its favour: MAE against MFE; a rectangle drawn over it filters trades."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from backsight.surfaces.web.charts.drawing import (
    ChartRow,
    Scale,
    SvgChart,
    axis_width,
    both,
    drawing,
    element,
    number_label,
    ticks,
    value_axis,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One trade."""

    mae: float
    mfe: float
    won: bool
    cells: tuple[str, ...]


def scatter_chart(name: str, dots: Sequence[Dot], headings: tuple[str, ...], note: str = "") -> SvgChart:
    """MAE from right to left and MFE upwards, both in R: a win is a filled dot, a loss a ring."""

    def draw(width: int) -> Markup:
        return _draw(width, dots)

    wide, narrow = both(draw)
    rows = tuple(ChartRow(cells=dot.cells) for dot in dots)
    return SvgChart(name=name, wide=wide, narrow=narrow, headings=headings, rows=rows, note=note)


def _draw(width: int, dots: Sequence[Dot]) -> Markup:
    height, bottom = 260, 226
    up = Scale.over([0.0, *(dot.mfe for dot in dots)], bottom, 10)
    left = axis_width(up, "R")
    across = Scale.over([0.0, *(dot.mae for dot in dots)], left, width - 12)
    parts = value_axis(up, left, width - 12, suffix="R")
    marks = ticks(across.low, across.high, 8 if width > 500 else 4)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    for mark in marks:
        parts.append(
            element(
                "text",
                number_label(mark, step) + "R",
                x=across(mark),
                y=bottom + 16,
                class_="axis",
                text_anchor="middle",
            )
        )
    for dot in dots:
        parts.append(element("circle", cx=across(dot.mae), cy=up(dot.mfe), r=3, class_="win" if dot.won else "lost"))
    parts.append(element("text", "↑ in favour (MFE)", x=left + 4, y=20, class_="label"))
    parts.append(element("text", "against (MAE)", x=width - 12, y=bottom + 32, class_="label", text_anchor="end"))
    sides = {"data_x0": across.start, "data_x1": across.end, "data_low": across.low, "data_high": across.high}
    ends = {"data_y0": up.start, "data_y1": up.end, "data_bottom": up.low, "data_top": up.high}
    area = {"x": left, "y": 10, "width": across.end - left, "height": bottom - 10}
    parts.append(element("rect", (), class_="brush", **area, **sides, **ends))
    return drawing(width, height, parts)
