"""Market events: imported from three formats, updated with their history, and set against open positions."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from backsight.core.decision import Verdict
from backsight.core.errors import BacksightError
from backsight.core.events import MarketEvent, outcome_figures
from backsight.core.market import Bar
from backsight.memory import Memory
from backsight.ops.events_calendar import ImportedEvents
from backsight.testing import T0, FakeClock, a_position, a_snapshot
from support import deployed, dump

HOUR = timedelta(hours=1)
SYMBOL = "BTC/USDT"


def imported(memory: Memory, folder: Path, content: str, name: str = "macro.csv", **more: Any) -> ImportedEvents:
    path = folder / name
    path.write_text(content)
    return memory.import_events(path=str(path), **more)


def at(hours: float) -> str:
    return (T0 + timedelta(hours=hours)).isoformat()


CSV = "scheduled_at,kind,symbols,importance,title,source_id,actual,forecast,previous\n"


def test_events_are_read_from_csv_json_and_icalendar(memory: Memory, tmp_path: Path) -> None:
    first = imported(
        memory, tmp_path, CSV + f"{at(5)},cpi,,,US CPI,c1,,3.1%,3.0%\n{at(9)},earnings,AAPL,high,Apple,e1,,,\n"
    )
    assert (first.events, first.added, first.changed) == (2, 2, 0)
    as_json = json.dumps({"events": [{"time": at(6), "title": "FOMC rate decision", "symbols": ["BTC", "ETH"]}]})
    assert imported(memory, tmp_path, as_json, "fed.json").added == 1
    calendar = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//
BEGIN:VEVENT
UID:halving-1
DTSTART:{(T0 + 7 * HOUR):%Y%m%dT%H%M%SZ}
SUMMARY:Bitcoin halving
CATEGORIES:BTC
END:VEVENT
BEGIN:VEVENT
UID:claims
DTSTART:{(T0 - timedelta(days=700)):%Y%m%dT123000Z}
RRULE:FREQ=WEEKLY
SUMMARY:Jobless claims
END:VEVENT
END:VCALENDAR
"""
    file = imported(memory, tmp_path, calendar, "crypto.ics")
    assert 150 < file.added <= 155
    assert any("repeats: taken until" in note for note in file.notes)
    events = memory.get_upcoming_events(lookahead_hours=12).events
    assert [(event.kind, event.symbols, event.importance) for event in events if event.kind != "jobless_claims"] == [
        ("cpi", (), 0.9),
        ("fomc", ("BTC", "ETH"), 0.9),
        ("halving", ("BTC",), 0.9),
        ("earnings", ("AAPL",), 0.8),
    ]
    assert memory.verify_audit().intact


def test_events_are_chosen_by_kind_symbol_and_importance(memory: Memory, tmp_path: Path) -> None:
    imported(
        memory,
        tmp_path,
        CSV + f"{at(5)},cpi,,.9,a,1,,,\n{at(6)},other,BTC,.2,b,2,,,\n{at(7)},earnings,AAPL,.6,c,3,,,\n",
    )

    def titles(**arguments: Any) -> list[str]:
        return [event.title for event in memory.get_upcoming_events(**arguments).events]

    assert titles() == ["a", "c"]
    assert titles(min_importance=0.0) == ["a", "b", "c"]
    assert titles(symbols=["BTC/USDT:PERP"], min_importance=0.0) == ["a", "b"]
    assert titles(kinds=["earnings"]) == ["c"]
    assert titles(lookahead_hours=5) == ["a"]
    assert memory.get_upcoming_events(lookahead_hours=1).message.startswith("No events are known within 1 hour")
    assert (
        "2 events within 6 hours of other kinds" in memory.get_upcoming_events(lookahead_hours=6, kinds=["gdp"]).message
    )


def test_an_event_is_updated_and_its_history_stays(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    imported(memory, tmp_path, CSV + f"{at(5)},cpi,,.9,US CPI,c1,,3.1%,3.0%\n{at(-99)},cpi,,.9,US CPI,c0,3.0%,,\n")
    clock.advance(hours=1)
    again = imported(memory, tmp_path, CSV + f"{at(5)},cpi,,.9,US CPI,c1,,3.2%,3.0%\n")
    assert (again.added, again.changed) == (0, 1)
    assert imported(memory, tmp_path, CSV + f"{at(5)},cpi,,.9,US CPI,c1,,3.2%,3.0%\n").changed == 0
    (now,), (then,) = memory.get_upcoming_events().events, memory.get_upcoming_events(as_of=T0).events
    assert (now.forecast, then.forecast) == ("3.2%", "3.1%")
    assert memory.get_upcoming_events(as_of=T0 - HOUR).events == ()  # not imported yet
    clock.advance(hours=5)
    imported(memory, tmp_path, CSV + f"{at(5)},cpi,,.9,US CPI,c1,3.3%,3.2%,3.0%\n")
    assert memory.get_upcoming_events(as_of=T0 + 4 * HOUR).events[0].actual is None
    # A past event without an announcement is known from its own instant, not before.
    before = T0 - timedelta(hours=100)
    assert memory.get_upcoming_events(as_of=before).events == ()


RECURRING = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:x\nDTSTART:{start}\nRRULE:{rule}\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR\n"
)
MANY = " ".join(f"S{number}" for number in range(10_000))
BAD = {
    "no zone": (CSV + "2026-06-04T10:00:00,cpi,,,x,,,,\n", "row 2: 2026-06-04T10:00:00 has no time zone"),
    "importance": (CSV + f"{at(1)},cpi,,1.5,x,,,,\n", "importance '1.5' is out of range"),
    "symbols": (
        CSV + f"{at(1)},cpi,{MANY},,x,,,,\n",
        "10,000 symbols; give at most",
    ),
    "an instant before all": (
        CSV + "0001-01-01T00:00:00+12:00,cpi,,,x,,,,\n",
        "row 2: '0001-.*' is no time that can be",
    ),
    "kind": (CSV + f"{at(1)},cpii,,,x,,,,\n", "'cpii' is not a kind of event; did you mean 'cpi'"),
    "an early actual": (CSV + f"{at(1)},cpi,,,x,,3%,,\n", "an actual value before"),
    "no time": ("title\nx\n", "row 2: the time is missing"),
    "empty": ("", "the file has no events"),
    "a half row after a good one": (CSV + f"{at(1)},cpi,,,x,,,,\nsoon,cpi,,,x,,,,\n", "row 3: 'soon' is not a time"),
    "every second": (RECURRING.format(start="19000101T000000Z", rule="FREQ=SECONDLY"), "days are the shortest"),
    "a calendar without a zone": (RECURRING.format(start="20260101T000000", rule="FREQ=DAILY"), "no time zone"),
    "a broken rule": (RECURRING.format(start="20260101T000000Z", rule="FREQ=DAILY;UNTIL=soon"), "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calendars_are_refused_and_nothing_is_written(memory: Memory, tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    before = dump(memory)
    with pytest.raises(BacksightError, match=message):
        imported(memory, tmp_path, content, "bad.file")
    assert dump(memory) == before


SERIES = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//
BEGIN:VEVENT
UID:briefing
DTSTART;TZID=America/New_York:20260601T083000
RRULE:FREQ=DAILY;COUNT=6
{excluded}SUMMARY:Daily CPI briefing
END:VEVENT
{more}END:VCALENDAR
"""
INSTANCE = """BEGIN:VEVENT
UID:briefing
RECURRENCE-ID:{instance}
DTSTART:{start}
{status}SUMMARY:Daily CPI briefing
END:VEVENT
"""


def days_ahead(memory: Memory, **when: Any) -> list[str]:
    """The events ahead of the first of June; each as its day and hour in UTC."""
    events = memory.get_upcoming_events(lookahead_hours=72, **when).events
    return [f"{event.scheduled_at:%d %H:%M}" for event in events]


def test_excluded_moved_and_cancelled_instances_of_a_calendar(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.at = datetime(2026, 6, 1, tzinfo=UTC)
    moved = INSTANCE.format(instance="20260602T123000Z", start="20260602T150000Z", status="")
    cancelled = INSTANCE.format(instance="20260603T123000Z", start="20260603T123000Z", status="STATUS:CANCELLED\n")
    excluded = "EXDATE;TZID=America/New_York:20260601T083000\nEXDATE;VALUE=DATE:20260604\n"
    first = imported(memory, tmp_path, SERIES.format(excluded=excluded, more=moved + cancelled), "a.ics")
    assert (first.events, first.added, first.cancelled) == (3, 3, 0)
    assert first.message == "3 events: 3 new, 0 changed. The calendar cancels 3 more: 0 of them were stored."
    assert days_ahead(memory) == ["02 15:00"]
    clock.advance(days=3)
    assert days_ahead(memory) == ["05 12:30", "06 12:30"]


def test_an_instance_that_is_cancelled_later_is_known_until_then(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = start = datetime(2026, 6, 1, tzinfo=UTC)
    imported(memory, tmp_path, SERIES.format(excluded="", more=""), "a.ics")
    assert days_ahead(memory) == ["01 12:30", "02 12:30", "03 12:30"]
    clock.advance(hours=1)
    moved = INSTANCE.format(instance="20260602T123000Z", start="20260602T150000Z", status="")
    content = SERIES.format(excluded="EXDATE:20260601T123000Z\n", more=moved)
    again = imported(memory, tmp_path, content, "a.ics")
    assert (again.events, again.added, again.changed, again.cancelled) == (5, 0, 1, 1)
    assert days_ahead(memory) == ["02 15:00", "03 12:30"]
    assert days_ahead(memory, as_of=start) == ["01 12:30", "02 12:30", "03 12:30"]
    repeated = imported(memory, tmp_path, content, "a.ics")
    assert (repeated.added, repeated.changed, repeated.cancelled) == (0, 0, 0)
    whole = SERIES.format(excluded="STATUS:CANCELLED\n", more="")
    assert imported(memory, tmp_path, whole, "a.ics").cancelled == 5
    assert days_ahead(memory) == []
    assert imported(memory, tmp_path, SERIES.format(excluded="", more=""), "a.ics").changed == 6  # takes place again
    assert memory.verify_audit().intact


@pytest.mark.parametrize("until", ["20260605", "20260605T120000", "20260605T120000Z"])
def test_a_rule_ends_on_a_day_or_at_an_instant(memory: Memory, tmp_path: Path, until: str) -> None:
    rule = f"FREQ=DAILY;UNTIL={until}"
    assert imported(memory, tmp_path, RECURRING.format(start="20260601T100000Z", rule=rule), "until.ics").events == 5


def test_a_rule_without_end_is_expanded_within_bounds(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, RECURRING.format(start="19000101T000000Z", rule="FREQ=DAILY"), "daily.ics")
    assert answer.events == 500
    (note,) = answer.notes
    assert note.startswith("Event 1 repeats more than 500 times: only those nearest to now are taken, 2025-09-")
    assert len(memory.get_upcoming_events(lookahead_hours=72, min_importance=0.0).events) == 3


def test_a_huge_file_is_refused_before_it_is_read(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "huge.ics"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(BacksightError, match="the file has 200 MB; give at most 20"):
        memory.import_events(path=str(path))


def with_position(memory: Memory, clock: FakeClock, side: str) -> None:
    deployed(memory)
    position = a_position(symbol=SYMBOL, direction=side, size=0.1, mark=50_000.0)
    for holding in ((), (position,)):
        clock.advance(minutes=1)
        memory.close_tick(
            deployment="VolBreakout@main",
            at=clock.now(),
            before=a_snapshot(*holding, at=clock.now(), marks={SYMBOL: 50_000.0}),
            verdict=Verdict(kind="noop"),
        )


def bars_around(event: datetime, move: float, *, seconds: int = 3_600) -> list[Bar]:
    """Bars that close at the event and four hours after, whose closes differ by a move."""
    length = timedelta(seconds=seconds)
    closes = ((event, 100.0), (event + 4 * HOUR, 100.0 * (1.0 + move)))
    return [
        Bar(
            symbol=SYMBOL,
            interval_seconds=seconds,
            opened_at=closed - length,
            open=price,
            high=price,
            low=price,
            close=price,
            volume=1.0,
        )
        for closed, price in closes
    ]


MOVES = [((-1) ** number) * 0.001 * (number + 1) for number in range(40)]


@pytest.mark.parametrize("side", ["long", "short"])
@pytest.mark.parametrize("count", [0, 2, 3, 40])
def test_the_exposure_equals_a_calculation_by_hand(
    memory: Memory, clock: FakeClock, tmp_path: Path, side: str, count: int
) -> None:
    past = [T0 - timedelta(days=7 * (number + 1)) for number in range(count)]
    rows = [f"{event.isoformat()},cpi,BTC,.9,US CPI,p{number},,," for number, event in enumerate(past)]
    rows += [f"{(T0 - timedelta(days=3)).isoformat()},cpi,AAPL,.9,of another,other,,,"]
    imported(memory, tmp_path, CSV + "\n".join([*rows, f"{at(18)},cpi,,.9,US CPI,next,,,"]))
    memory.record_bars(bars=bars_around(T0 - timedelta(days=3), 0.5))  # of the event that concerns another symbol
    if count:
        planted = [bar for event, move in zip(past, MOVES, strict=False) for bar in bars_around(event, move)]
        planted.sort(key=lambda bar: bar.opened_at)
        memory.record_bars(bars=planted)
    with_position(memory, clock, side)
    (exposure,) = memory.get_upcoming_events(deployment="VolBreakout@main").your_exposure
    own = MOVES[:count]
    sign = 1.0 if side == "long" else -1.0
    assert (exposure.symbol, exposure.position_side, exposure.similar_events_back) == (SYMBOL, side, count)
    assert exposure.notional == pytest.approx(5_000.0)
    if count < 3:
        assert exposure.median_abs_move is exposure.worst_move is None
        unknown = "no past event of the kind cpi that concerns BTC/USDT is known; import_events imports them"
        assert exposure.missing == (f"{count} past events with bars; 3 are needed" if count else unknown)
        return
    assert exposure.median_abs_move == pytest.approx(median(map(abs, own)))
    assert exposure.worst_move == pytest.approx(min(sign * move for move in own))
    assert exposure.missing is None


def test_a_calendar_that_has_ended_says_when(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    none = "No events are known within 24 hours; import_events imports a calendar."
    assert memory.get_upcoming_events().message == none
    imported(memory, tmp_path, CSV + f"{at(-30)},cpi,,.9,a,1,,,\n{at(-48)},cpi,,.9,b,2,,,")
    assert memory.get_upcoming_events().message == f"{none} The last one known was on 2026-06-03."


def test_the_figures_of_one_print_are_one_past_event(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    past = [T0 - timedelta(days=7 * (number + 1)) for number in range(2)]
    figures = [(event, title) for event in past for title in ("CPI m/m", "CPI y/y", "Core CPI")]
    rows = [f"{event.isoformat()},cpi,BTC,.9,{title},,,," for event, title in figures]
    imported(memory, tmp_path, CSV + "\n".join([*rows, f"{at(18)},cpi,,.9,US CPI,next,,,"]))
    for event in reversed(past):
        memory.record_bars(bars=bars_around(event, 0.1))
    with_position(memory, clock, "long")
    (exposure,) = memory.get_upcoming_events(deployment="VolBreakout@main").your_exposure
    assert (exposure.similar_events_back, exposure.median_abs_move) == (2, None)


def test_events_that_concern_no_position_say_so(memory: Memory, tmp_path: Path) -> None:
    deployed(memory)
    imported(memory, tmp_path, CSV + f"{at(18)},cpi,,.9,US CPI,next,,,")
    message = memory.get_upcoming_events(deployment="VolBreakout@main").message
    assert (
        message
        == "1 event within 24 hours. No open position of VolBreakout@main is concerned, so there is no exposure."
    )


def test_daily_bars_are_too_coarse_and_gaps_do_not_count(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    past = [T0 - timedelta(days=7 * (number + 1)) for number in range(4)]
    rows = [f"{event.isoformat()},cpi,BTC,.9,US CPI,p{number},,," for number, event in enumerate(past)]
    imported(memory, tmp_path, CSV + "\n".join([*rows, f"{at(18)},cpi,,.9,US CPI,next,,,"]))
    with_position(memory, clock, "long")

    def reason() -> str | None:
        (exposure,) = memory.get_upcoming_events(deployment="VolBreakout@main").your_exposure
        assert exposure.median_abs_move is None
        return exposure.missing

    assert reason() == "no bars of BTC/USDT are stored; import_bars imports them"
    memory.record_bars(bars=[bars_around(event, 0.1, seconds=86_400)[0] for event in reversed(past)])
    assert reason() == "bars of at most an hour are needed; those of BTC/USDT are of 24 hours"
    complete = [bar for event in past[:2] for bar in bars_around(event, 0.1)]
    in_a_gap = bars_around(past[2] - 2 * HOUR, 0.1)  # no bar ends within an hour before the event
    no_end = bars_around(past[3], 0.1)[:1]
    planted = sorted([*complete, *in_a_gap, *no_end], key=lambda bar: bar.opened_at)
    memory.record_bars(bars=planted)
    assert reason() == "2 past events with bars; 3 are needed"


def test_a_plan_on_an_event_applies_when_the_event_is_near(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    with_position(memory, clock, "long")
    imported(memory, tmp_path, CSV + f"{at(18)},cpi,BTC,.9,US CPI,next,,,\n{at(200)},fomc,,.9,FOMC,later,,,\n")
    memory.create_trading_plan(
        trigger_condition={
            "all": [
                {"field": "event.kind", "op": "==", "value": "cpi"},
                {"field": "hours_to_event", "op": "<", "value": 2.0},
            ]
        },
        planned_action={"type": "skip_trade"},
        reasoning="Prints whip.",
        deployment="VolBreakout@main",
    )
    position = a_position(symbol=SYMBOL, size=0.1, mark=50_000.0)

    def plans_at(hours: float) -> int:
        clock.at = T0 + timedelta(hours=hours)
        before = a_snapshot(position, at=clock.now(), marks={SYMBOL: 50_000.0})
        prompt = memory.open_tick(deployment="VolBreakout@main", at=clock.now(), before=before).text
        checked = memory.check_active_plans(deployment="VolBreakout@main", symbol=SYMBOL, dry_run=True)
        closed = memory.close_tick(
            deployment="VolBreakout@main",
            at=clock.now(),
            before=before,
            verdict=Verdict(kind="noop"),
        )
        assert (
            len(checked.applying) == len(closed.plans) == prompt.count("skip the trade") == prompt.count("Prints whip.")
        )
        return len(closed.plans)

    assert [plans_at(hours) for hours in (10, 17, 19)] == [0, 1, 0]


def test_an_event_time_may_get_its_zone_from_the_call(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, CSV + "2026-06-04T08:30:00,cpi,,,x,1,,,\n", timezone="America/New_York")
    (event,) = memory.get_upcoming_events().events
    assert event.scheduled_at == datetime(2026, 6, 4, 12, 30, tzinfo=UTC)


def a_print(kind: str, hours: float, **more: Any) -> MarketEvent:
    made: dict[str, Any] = {
        "owner_id": "ana",
        "id": f"{kind} {hours}",
        "kind": kind,
        "scheduled_at": T0 + hours * HOUR,
        "symbols": (),
        "importance": 0.9,
        "title": kind,
        "source": "desk",
        "source_id": None,
        "known_at": T0,
        "recorded_at": T0,
        "actual": None,
        "forecast": None,
        "previous": None,
    }
    return MarketEvent(**(made | more))


def test_figures_are_those_of_the_last_print_of_a_kind() -> None:
    events = [
        a_print("nfp", 1, actual="150K", forecast="140K", previous="130K"),
        a_print("nfp", 5, actual="227K", forecast="180K", previous="0.21M"),
        a_print("nfp", 9, forecast="200K"),
        a_print("cpi", 5, actual="3.2%", title="core", importance=0.5),
        a_print("cpi", 5, actual="2.9%", title="headline"),
        a_print("ppi", 5, actual="0.1", title="monthly"),
        a_print("ppi", 5, actual="2.4", title="yearly"),
        a_print("fomc", 5, actual="5.25-5.50"),
        a_print("earnings", 5, actual="1.2", symbols=("AAPL",)),
    ]
    six = T0 + 6 * HOUR
    assert outcome_figures(events, symbol="BTC", at=six) == {
        "nfp.actual": 227_000.0,
        "nfp.forecast": 180_000.0,
        "nfp.previous": 210_000.0,
        "nfp.surprise": 47_000.0,
        "nfp.change": 17_000.0,
        "nfp.hours_since": 1.0,
        "cpi.actual": 2.9,
        "cpi.hours_since": 1.0,
        "ppi.hours_since": 1.0,
        "fomc.hours_since": 1.0,
    }
    assert outcome_figures(events, symbol="AAPL", at=six)["earnings.actual"] == 1.2
    assert outcome_figures(events[:3], symbol=None, at=T0 + 9 * HOUR) == {
        "nfp.forecast": 200_000.0,
        "nfp.hours_since": 0.0,
    }
