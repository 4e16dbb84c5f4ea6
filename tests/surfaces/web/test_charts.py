"""Charts without a browser: escaped text, labels apart, and a table of the same figures."""

import itertools
import re
from datetime import UTC, date, datetime, timedelta

from backsight.core.market import Bar
from backsight.surfaces.web.charts.bars import small_bar
from backsight.surfaces.web.charts.calendar import calendar_chart
from backsight.surfaces.web.charts.candles import Level, Mark, candle_chart
from backsight.surfaces.web.charts.drawing import NARROW, WIDE, Scale, SvgChart, time_axis
from backsight.surfaces.web.charts.lines import Panel, SeriesLine, line_chart
from backsight.surfaces.web.charts.ranges import Group, range_chart
from backsight.surfaces.web.charts.scatter import Dot, scatter_chart

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = "<b>\u202e"


def drawings(chart: SvgChart) -> list[str]:
    return [str(chart.wide), str(chart.narrow)]


def test_text_in_a_chart_is_escaped_and_its_hidden_characters_are_shown() -> None:
    chart = range_chart("by tag", [Group(label=HOSTILE, n=3, mean=0.5, bounds=(0.1, 0.9))], suffix="R")
    for drawing in drawings(chart):
        assert "&lt;b&gt;⟨U+202E⟩" in drawing
        assert "<b>" not in drawing


def test_the_labels_of_lines_and_levels_never_cover_each_other() -> None:
    bars = [
        Bar(
            symbol="X",
            interval_seconds=3600,
            opened_at=START + n * timedelta(hours=1),
            open=100,
            high=101,
            low=99,
            close=100,
        )
        for n in range(30)
    ]
    levels = [Level(label=f"level {n}", price=100 + n / 100, since=START, until=bars[-1].closes_at) for n in range(6)]
    chart = candle_chart("bars", bars, levels, [Mark(label="in", at=START, price=100, up=True)])
    for drawing in drawings(chart):
        places = sorted(float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="label">level', drawing))
        assert len(places) == 6
        assert all(later - earlier >= 12.9 for earlier, later in itertools.pairwise(places))
    assert len(chart.rows) == 30


def test_the_labels_of_a_time_axis_do_not_overlap_at_any_width_and_span() -> None:
    for width in (WIDE, NARROW, 260):
        for days in (0.1, 0.3, 1.5, 20, 150, 4_000):
            start = START.timestamp() + 5_000
            labels = "".join(time_axis(Scale(start, start + days * 86_400, 60, width - 60), 10))
            texts = re.findall(r'x="([\d.]+)".*?text-anchor="(\w+)">([^<]+)<', labels)
            assert texts, (width, days)
            ends = [(_left(float(x), anchor, text), text) for x, anchor, text in texts]
            assert all(a + 6.7 * len(text) < b for (a, text), (b, _) in itertools.pairwise(ends)), (
                width,
                days,
            )


def _left(x: float, anchor: str, text: str) -> float:
    return x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * 6.7 * len(text)


def test_the_calendar_begins_with_the_first_month_until_there_is_no_room_for_all() -> None:
    def drawn(first: date, days: int) -> list[tuple[str, str]]:
        results = {first + timedelta(days=n): 1.0 for n in range(days)}
        chart = calendar_chart("days", results, text_of=str, link=str)
        return re.findall(r'<text x="(\d+)" y="10" class="axis">(\w+)<', chart.wide)

    assert drawn(date(2026, 6, 17), 30) == [("28", "Jun"), ("93", "Jul")]  # 1 June is a Monday
    assert drawn(date(2026, 7, 20), 3) == [("41", "Jul")]  # 1 July is in a week that began in June
    assert drawn(date(2026, 6, 2), 1) == [("28", "Jun")]
    long = drawn(date(2020, 1, 1), 1_500)
    assert 12 <= len(long) <= 16
    assert long[-1][1] == "2024"  # February has no room for its name


def test_every_chart_has_its_figures_in_a_table() -> None:
    points = tuple((START + timedelta(days=n), float(n)) for n in range(5))
    rows = [(at, (str(value),)) for at, value in points]
    line = line_chart("line", [Panel(lines=(SeriesLine(label="x", points=points),), height=50)], rows, ("x",))
    assert [row.cells for row in line.rows] == [("0.0",), ("1.0",), ("2.0",), ("3.0",), ("4.0",)]
    assert (line.rows[0].place, line.rows[-1].place) == (0.0, 1.0)
    days = {date(2026, 1, day): float(day - 3) for day in (1, 2, 5)}
    calendar = calendar_chart("days", days, text_of=str, link=lambda day: f"/trades?since={day}")
    assert [row.cells[0] for row in calendar.rows] == ["2026-01-05", "2026-01-02", "2026-01-01"]
    assert 'class="day gain' in calendar.wide
    assert 'class="day loss' in calendar.wide
    dots = [Dot(mae=-1.0, mfe=2.0, won=True, cells=("a",)), Dot(mae=-0.5, mfe=0.1, won=False, cells=("b",))]
    scatter = scatter_chart("dots", dots, ("trade",))
    assert 'class="win"' in scatter.wide
    assert 'class="lost"' in scatter.wide
    assert small_bar(None) == ""
