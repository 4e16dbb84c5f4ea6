"""Means with their 90% intervals, one row a group: a dot and a line, and 0 as a vertical line."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from backsight.surfaces.web.charts.drawing import (
    LETTER,
    ChartRow,
    Scale,
    SvgChart,
    both,
    drawing,
    element,
    number_label,
    ticks,
)
from backsight.surfaces.web.numbers import interval, signed

ROW = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group with its mean; None where too little is known."""

    label: str
    n: int
    mean: float | None
    bounds: tuple[float, float] | None


def range_chart(name: str, groups: Sequence[Group], *, suffix: str, note: str = "") -> SvgChart:
    """The mean of each group, its interval and its n."""

    def draw(width: int) -> Markup:
        return _draw(width, groups, suffix)

    wide, narrow = both(draw)
    rows = tuple(
        ChartRow(cells=(group.label, str(group.n), signed(group.mean, 2, suffix), interval(group.bounds)))
        for group in groups
    )
    return SvgChart(
        name=name, wide=wide, narrow=narrow, headings=("group", "n", f"mean, {suffix}", "90%"), rows=rows, note=note
    )


def _draw(width: int, groups: Sequence[Group], suffix: str) -> Markup:
    most = 24 if width > 500 else 13
    labels = [group.label if len(group.label) <= most else group.label[: most - 1] + "…" for group in groups]
    left = LETTER * max(map(len, labels)) + 12 + 6 * LETTER
    values = [0.0, *(end for group in groups for end in group.bounds or ()), *(group.mean or 0.0 for group in groups)]
    across = Scale.over(values, left, width - 14)
    bottom = ROW * len(groups) + 6
    marks = ticks(across.low, across.high, 6 if width > 500 else 3)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts: list[Markup] = []
    for mark in marks:
        place = across(mark)
        parts.append(element("line", x1=place, x2=place, y1=2, y2=bottom, class_="grid" if mark else "zero"))
        parts.append(
            element(
                "text", number_label(mark, step) + suffix, x=place, y=bottom + 14, class_="axis", text_anchor="middle"
            )
        )
    for number, (group, label) in enumerate(zip(groups, labels, strict=True)):
        y = ROW * number + ROW / 2 + 2
        parts.append(element("text", label, x=0, y=y + 4, class_="label"))
        parts.append(element("text", f"n={group.n}", x=left - 8, y=y + 4, class_="axis", text_anchor="end"))
        if group.bounds is not None:
            low, high = map(across, group.bounds)
            parts.append(element("line", x1=low, x2=high, y1=y, y2=y, class_="whisker"))
        if group.mean is not None:
            parts.append(element("circle", cx=across(group.mean), cy=y, r=3.5, class_="win"))
    return drawing(width, bottom + 22, parts)
