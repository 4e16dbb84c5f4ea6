"""The hours of a market are found in its bars: only bars within them are missing, whole sessions are named apart."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.instants import EPOCH
from backsight.importers.bars import BarsReport, read_bars
from backsight.importers.sessions import THURSDAY, gaps_within_hours

NEW_YORK = ZoneInfo("America/New_York")
MINUTES = 30
SLOT = timedelta(minutes=MINUTES)
HOLIDAYS = (date(2025, 1, 20), date(2025, 2, 17), date(2025, 4, 18), date(2025, 5, 26))


def session(day: date) -> list[datetime]:
    """The opens of the bars of a trading day: 9:30 to 16:00 in New York."""
    opens = datetime.combine(day, time(9, 30), tzinfo=NEW_YORK).astimezone(UTC)
    return [opens + number * SLOT for number in range(13)]


def trading_days(weeks: int = 22) -> list[date]:
    days = [date(2025, 1, 6) + timedelta(days=number) for number in range(7 * weeks)]
    return [day for day in days if day.weekday() < 5 and day not in HOLIDAYS]


def report_of(
    tmp_path: Path, instants: list[datetime], *, timezone: str = "UTC", interval_seconds: int = 60 * MINUTES
) -> BarsReport:
    path = tmp_path / "bars.csv"
    path.write_text("time,open,high,low,close\n" + "".join(f"{at.isoformat()},1,1,1,1\n" for at in instants))
    return read_bars(path, symbol="SPY", interval_seconds=interval_seconds, timezone=timezone).report


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
def test_a_complete_file_of_stocks_lacks_nothing_but_holidays(tmp_path: Path, timezone: str) -> None:
    instants = [at for day in trading_days() for at in session(day)]  # clocks go forward on 9 March
    report = report_of(tmp_path, instants, timezone=timezone)
    assert (report.missing, report.gap_count) == (0, 0)
    assert [each.opens_at for each in report.sessions] == [session(day)[0] for day in HOLIDAYS]
    assert [each.bars for each in report.sessions] == [13] * 4
    assert report.closed > 4_000
    assert "closed and not counted" in report.counting


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
def test_bars_lost_within_sessions_and_an_outage_of_weeks_are_missing(tmp_path: Path, timezone: str) -> None:
    days = trading_days()
    lost = {session(days[10])[5], session(days[30])[0], session(days[40])[12], *session(days[50])[3:7]}
    outage = {at for day in days[80:90] for at in session(day)}
    instants = [at for day in days for at in session(day) if at not in lost | outage]
    report = report_of(tmp_path, instants, timezone=timezone)
    assert report.missing == len(lost) + len(outage) == 7 + 130
    assert report.session_count == len(HOLIDAYS)


def test_daily_bars_have_weekends_and_holidays(tmp_path: Path) -> None:
    days = [datetime.combine(day, time(), tzinfo=UTC) for day in trading_days()]
    report = report_of(tmp_path, days, interval_seconds=86_400)
    assert report.missing == 0
    assert [each.opens_at.date() for each in report.sessions] == list(HOLIDAYS)


def test_a_short_file_is_compared_day_by_day(tmp_path: Path) -> None:
    days = trading_days(weeks=2)
    lost = session(days[3])[4]
    report = report_of(tmp_path, [at for day in days for at in session(day) if at != lost])
    assert (report.missing, report.session_count) == (1, 0)


def test_a_market_that_never_closes_has_every_gap(tmp_path: Path) -> None:
    hours = [datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(24 * 60)]
    report = report_of(tmp_path, hours[:500] + hours[548:], interval_seconds=3600)
    assert (report.missing, report.session_count, report.closed) == (48, 0, 0)
    assert report.counting == "Every interval between two bars is counted."


def test_clock_changes_are_no_gaps_in_a_market_that_never_closes(tmp_path: Path) -> None:
    hours = [datetime(2025, 2, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(24 * 300)]
    report = report_of(tmp_path, hours[:100] + hours[101:], timezone="America/New_York", interval_seconds=3600)
    assert (report.missing, report.session_count) == (1, 0)


def test_too_few_bars_to_know_the_hours_count_every_interval(tmp_path: Path) -> None:
    days = trading_days(weeks=1)[:2]
    report = report_of(tmp_path, [at for day in days for at in session(day)])
    assert report.missing == 48 - 13
    assert report.counting == "Every interval between two bars is counted."


@settings(max_examples=40)
@given(st.sets(st.integers(0, 13 * 40 - 1), max_size=12))
def test_every_lost_bar_is_missing_exactly_once(lost: set[int]) -> None:
    days = [day for day in range(56) if (day + 3) % 7 < 5]
    slots = [48 * day + 19 + number for day in days for number in range(13)]
    assert len(slots) == 13 * 40
    inner = {number for number in lost if 0 < number < len(slots) - 1}
    left = [slot for number, slot in enumerate(slots) if number not in inner]
    gaps = gaps_within_hours(left, per_day=48)
    assert gaps is not None
    counted = list(gaps)
    assert sum(gap.missing for gap in counted) == len(inner)
    assert not any(gap.sessions for gap in counted)


def test_the_epoch_is_a_thursday() -> None:
    assert EPOCH.weekday() == THURSDAY


def test_a_gap_before_a_last_week_that_is_not_whole_is_missing(tmp_path: Path) -> None:
    days = [day for day in trading_days(weeks=6) if day <= date(2025, 2, 12)]  # a Wednesday
    lost = session(date(2025, 2, 7))[4]  # the Friday before
    report = report_of(tmp_path, [at for day in days for at in session(day) if at != lost])
    assert report.missing == 1
