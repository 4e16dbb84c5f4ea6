"""A calendar of days: the sign and size of each day's result; a day opens its trades."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import groupby

from markupsafe import Markup

from backsight.surfaces.web.charts.drawing import WIDE, ChartRow, SvgChart, both, drawing, element

CELL = 13
LEVELS = 4


def calendar_chart(
    name: str, results: Mapping[date, float], *, text_of: Callable[[float], str], link: Callable[[date], str]
) -> SvgChart:
    """Weeks as columns and weekdays as rows; a gain is filled, a loss is an outline, the more the stronger."""
    days = sorted(results)
    largest = max(map(abs, results.values()), default=0.0) or 1.0

    def draw(width: int) -> Markup:
        return _draw(width, days, results, largest, text_of, link)

    wide, narrow = both(draw)
    first = _first_monday(days, WIDE)
    drawn = [day for day in reversed(days) if day >= first]
    rows = tuple(ChartRow(cells=(f"{day:%Y-%m-%d}", text_of(results[day]))) for day in drawn)
    note = "A filled day gained, an outlined one lost; the stronger, the more."
    return SvgChart(name=name, wide=wide, narrow=narrow, headings=("day", "result"), rows=rows, note=note)


def _draw(
    width: int,
    days: list[date],
    results: Mapping[date, float],
    largest: float,
    text_of: Callable[[float], str],
    link: Callable[[date], str],
) -> Markup:
    weeks_shown, monday = _weeks_shown(width), _first_monday(days, width)
    parts = [
        element("text", text, x=0, y=28 + CELL * row, class_="axis") for row, text in ((0, "Mo"), (2, "We"), (4, "Fr"))
    ]
    shown = [day for day in days if day >= monday]
    for day in shown:
        value = results[day]
        column, row = (_monday(day) - monday).days // 7, day.weekday()
        level = max(1, round(LEVELS * abs(value) / largest)) if value else 0
        box = element(
            "rect",
            [element("title", f"{day:%Y-%m-%d}: {text_of(value)}")],
            x=28 + CELL * column,
            y=18 + CELL * row,
            width=CELL - 2,
            height=CELL - 2,
            class_=f"day {'gain' if value > 0 else 'loss'} level{level}",
        )
        parts.append(element("a", [box], href=link(day), tabindex="-1"))
    months = [list(weeks) for _, weeks in groupby(_weeks(monday, days[-1]), key=lambda each: (each.year, each.month))]
    for number, (first, *others) in enumerate(months):
        column = (first - monday).days // 7
        hides_next = number == 0 and len(others) < 2 and len(months) > 1
        if not hides_next and column + 3 <= weeks_shown:
            text = f"{first:%b}" if first.month != 1 else str(first.year)
            parts.append(element("text", text, x=28 + CELL * column, y=10, class_="axis"))
    return drawing(width, 24 + 7 * CELL, parts)


def _weeks_shown(width: int) -> int:
    return (width - 40) // CELL


def _first_monday(days: list[date], width: int) -> date:
    """The first week that is drawn: that of the first day's month, or a later one if there is no room for all."""
    return max(_monday(days[0].replace(day=1)), _monday(days[-1]) - timedelta(weeks=_weeks_shown(width) - 1))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weeks(monday: date, last: date) -> list[date]:
    return [monday + timedelta(weeks=number) for number in range((last - monday).days // 7 + 1)]
