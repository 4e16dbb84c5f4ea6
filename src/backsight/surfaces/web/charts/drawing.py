"""What charts share: elements of SVG with escaped text, scales, ticks, and a chart with its table."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from backsight.surfaces.web.visible_text import shown

WIDE, NARROW = 860, 340
LETTER = 7.3
"""The width of a letter in units of the drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRow:
    """One row of a chart's table: its cells, and where the point lies in each drawing, as shares of its width."""

    cells: tuple[str, ...]
    place: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SvgChart:
    """A chart for two widths, and its table, through which the arrow keys step."""

    name: str
    """What the chart shows, in a sentence."""
    wide: Markup
    narrow: Markup
    headings: tuple[str, ...]
    rows: tuple[ChartRow, ...]
    note: str = ""


def element(tag: str, content: Iterable[Markup] | str = (), **attributes: object) -> Markup:
    """An element; an attribute's underscores become hyphens, and `class_` is class.

    >>> element("text", "a<b", x=1.0, class_="axis")
    Markup('<text x="1" class="axis">a&lt;b</text>')
    """
    texts = (
        f' {name.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = escape(shown(content)) if isinstance(content, str) else Markup("").join(content)
    return Markup(f"<{tag}{''.join(texts)}>{inner}</{tag}>")  # noqa: S704 (every part is escaped)


def _number(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) and abs(value) < 1e5 else str(value)


def drawing(width: int, height: int, parts: Iterable[Markup]) -> Markup:
    """A whole SVG; the figure around it has the name, so that readers hear it once."""
    return element("svg", parts, viewBox=f"0 0 {width} {height}", width=width, height=height, aria_hidden="true")


def both(draw: Callable[[int], Markup]) -> tuple[Markup, Markup]:
    """The same chart for a wide and for a narrow page."""
    return draw(WIDE), draw(NARROW)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        return self.start if span == 0 else self.start + (value - self.low) / span * (self.end - self.start)

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, margin: float = 0.04) -> "Scale":
        """A scale with a margin around the values."""
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(finite), max(finite)
        space = (high - low) * margin or abs(high) * margin or 1.0
        return cls(low - space, high + space, start, end)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` + 1 round values between two bounds.

    >>> ticks(0.0, 10.0, 5), ticks(-1.2, 3.9, 4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 2.0])
    """
    if high <= low:
        return [low]
    raw = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def number_label(value: float, step: float) -> str:
    """A tick's label, with as many decimals as the distance of ticks needs."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    return f"{value:,.{decimals}f}".replace("-", "−")


def value_axis(scale: Scale, left: float, right: float, *, most: int = 4, suffix: str = "") -> list[Markup]:
    """Horizontal lines with their labels, at the left."""
    marks = ticks(scale.low, scale.high, most)
    step = marks[1] - marks[0] if len(marks) > 1 else abs(marks[0]) or 1.0
    parts: list[Markup] = []
    for mark in marks:
        place = scale(mark)
        parts.append(element("line", x1=left, x2=right, y1=place, y2=place, class_="grid" if mark else "zero"))
        parts.append(
            element(
                "text", number_label(mark, step) + suffix, x=left - 6, y=place + 4, class_="axis", text_anchor="end"
            )
        )
    return parts


def axis_width(scale: Scale, suffix: str = "", *, most: int = 4) -> float:
    """The room that the labels of a value axis need."""
    marks = ticks(scale.low, scale.high, most)
    step = marks[1] - marks[0] if len(marks) > 1 else abs(marks[0]) or 1.0
    return 12 + LETTER * max(len(number_label(mark, step) + suffix) for mark in marks)


MONDAY = 345_600
"""The first Monday of 1970 in seconds: weeks begin there."""


def seconds_of(at: datetime) -> float:
    return at.timestamp()


HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 336)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)


def time_marks(low: float, high: float, most: int) -> tuple[list[datetime], str]:
    """At most `most` + 1 round instants between two, and the format of their labels: hours, days or months in UTC.

    >>> year = [datetime(2025, 1, 6, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)]
    >>> marks, form = time_marks(*map(seconds_of, year), 4)
    >>> [f"{mark:{form}}" for mark in marks]
    ['2025-04', '2025-07', '2025-10', '2026-01']
    """
    for hours in HOURS:
        step = 3_600 * hours
        if (high - low) / step <= most:
            first = math.ceil((low - MONDAY) / step) * step + MONDAY
            form = "%Y-%m-%d" if hours >= 24 else "%m-%d %H:%M"
            return [datetime.fromtimestamp(at, UTC) for at in range(int(first), int(high) + 1, step)], form
    start, end = (datetime.fromtimestamp(at, UTC) for at in (low, high))
    last = 12 * end.year + end.month - 1
    months = next((each for each in MONTHS if (last - 12 * start.year - start.month + 1) / each <= most), MONTHS[-1])
    first_month = -(-(12 * start.year + start.month) // months) * months  # the month after the first instant
    marks = [datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) for month in range(first_month, last + 1, months)]
    return marks, "%Y-%m"


def time_axis(scale: Scale, y: float) -> list[Markup]:
    """Labels of round instants below a chart, as many as do not overlap, but one at least; in UTC."""
    most = max(1, int((scale.end - scale.start) / (LETTER * 13)))
    marks, form = time_marks(scale.low, scale.high, most)
    if most == 1:  # a narrow chart: of finer marks, the one in the middle
        finer, form = time_marks(scale.low, scale.high, 3)
        marks = finer[len(finer) // 2 :][:1]
    half = LETTER * len(f"{datetime(2025, 1, 1, tzinfo=UTC):{form}}") / 2
    places = [(scale(seconds_of(mark)), f"{mark:{form}}") for mark in marks]
    return [
        element("text", text, x=max(scale.start, min(scale.end, x)), y=y, class_="axis", text_anchor="middle")
        for x, text in places
        if scale.start + half / 2 <= x <= scale.end
    ]


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` of a path through points."""
    text = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return text + "Z" if closed else text


def apart(labels: Sequence[tuple[float, str]], *, distance: float, low: float, high: float) -> list[tuple[float, str]]:
    """Labels moved so that none covers another, in order of their places.

    >>> apart([(10.0, "a"), (12.0, "b")], distance=14.0, low=0.0, high=100.0)
    [(10.0, 'a'), (24.0, 'b')]
    """
    placed: list[tuple[float, str]] = []
    for place, text in sorted(labels):
        placed.append((max(place, low, placed[-1][0] + distance if placed else low), text))
    over = placed[-1][0] - high if placed else 0.0
    if over <= 0:
        return placed
    moved: list[tuple[float, str]] = []
    for place, text in reversed(placed):
        moved.append((min(place, high if not moved else moved[-1][0] - distance), text))
    return moved[::-1]
