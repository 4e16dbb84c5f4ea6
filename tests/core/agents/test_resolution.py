"""The resolver: a table of cases, and agreement with a walk over 1-minute bars wherever the answer is determined."""

import math
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.agents.resolution import Levels, Resolution, levels_of, marked_r, resolve
from backsight.core.market import Bar
from backsight.testing import T0

LONG = Levels(direction="long", entry=100.0, target=110.0, stop=95.0)
SHORT = Levels(direction="short", entry=100.0, target=90.0, stop=105.0)
Prices = tuple[float, float, float, float]
"""Open, high, low, close."""


def bars_of(prices: list[Prices], *, seconds: int = 300, first: int = 0) -> list[Bar]:
    return [
        Bar(
            symbol="BTC",
            interval_seconds=seconds,
            opened_at=T0 + timedelta(seconds=seconds * (first + number)),
            open=open_,
            high=high,
            low=low,
            close=close,
        )
        for number, (open_, high, low, close) in enumerate(prices)
    ]


class Case(NamedTuple):
    """Bars, and what became of the decision after them: status, fill, exit, kind, R."""

    name: str
    levels: Levels
    prices: list[Prices]
    status: str
    fill: float | None = None
    exit_price: float | None = None
    kind: str | None = None
    r: float | None = None
    expire: int = 24


AWAY: Prices = (104.0, 105.0, 103.0, 104.0)
AT: Prices = (101.0, 101.0, 99.0, 100.0)
"""Touches the entry, and neither target nor stop."""
LOW: Prices = (96.0, 97.0, 95.5, 96.0)
CASES = [
    Case("no bars", LONG, [], "pending"),
    Case("not touched yet", LONG, [AWAY], "pending"),
    Case("touched", LONG, [AT], "active", 100.0),
    Case("touched exactly at the low", LONG, [(103, 104, 100, 103)], "active", 100.0),
    Case("touched exactly at the high", LONG, [(99, 100, 98, 99)], "active", 100.0),
    Case("within a tenth of a percent above", LONG, [(101, 102, 100.1, 101)], "active", 100.1),
    Case("just beyond a tenth of a percent", LONG, [(101, 102, 100.11, 101)], "pending"),
    Case("within a tenth of a percent below", LONG, [(98, 99.9, 97, 98)], "active", 99.9),
    Case("just beyond below", LONG, [(98, 99.89, 97, 98)], "pending"),
    Case("target later", LONG, [AT, (105, 110, 104, 109)], "resolved", 100.0, 110.0, "target", 2.0),
    Case("target by a hair not reached", LONG, [AT, (105, 109.99, 104, 109)], "active", 100.0),
    Case("stop later", LONG, [AT, (97, 98, 95, 96)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case("stop by a hair not reached", LONG, [AT, (97, 98, 95.01, 96)], "active", 100.0),
    Case("both in one bar is a loss", LONG, [AT, (100, 111, 94, 110)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case("both in the entry bar is a loss", LONG, [(100, 111, 94, 110)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case("target in the entry bar", LONG, [(100, 111, 99, 110)], "resolved", 100.0, 110.0, "target", 2.0),
    Case("stop in the entry bar", LONG, [(100, 101, 94, 95)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case("opens beyond the stop", LONG, [AT, (90, 92, 89, 91)], "resolved", 100.0, 90.0, "stop", -2.0),
    Case("opens at the stop", LONG, [AT, (95, 96, 94, 95)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case(
        "opens beyond the stop and reaches the target",
        LONG,
        [AT, (90, 111, 89, 110)],
        "resolved",
        100.0,
        90.0,
        "stop",
        -2.0,
    ),
    Case("opens beyond the target", LONG, [AT, (115, 116, 114, 115)], "resolved", 100.0, 110.0, "target", 2.0),
    Case("the entry bar opened beyond the stop", LONG, [(94, 101, 93, 100)], "resolved", 100.0, 95.0, "stop", -1.0),
    Case(
        "first event wins",
        LONG,
        [AT, LOW, (105, 110, 104, 109), (94, 95, 90, 91)],
        "resolved",
        100.0,
        110.0,
        "target",
        2.0,
    ),
    Case("target before the entry does not count", LONG, [(112, 113, 111, 112)], "pending"),
    Case("stop before the entry does not count", LONG, [(94, 94.5, 93, 94)], "pending"),
    Case("entered after a visit beyond the stop", LONG, [(94, 94.5, 93, 94), AT], "active", 100.0),
    Case("unfilled after all bars", LONG, [AWAY] * 3, "expired", expire=3),
    Case("one bar before that", LONG, [AWAY] * 2, "pending", expire=3),
    Case("touched in the last bar", LONG, [AWAY, AWAY, AT], "active", 100.0, expire=3),
    Case("touched one bar too late", LONG, [AWAY, AWAY, AWAY, AT], "expired", expire=3),
    Case("filled and neither reached stays active", LONG, [AT] * 9, "active", 100.0, expire=3),
    Case(
        "reached after the expiry of the entry",
        LONG,
        [AT] * 5 + [(105, 111, 104, 110)],
        "resolved",
        100.0,
        110.0,
        "target",
        2.0,
        3,
    ),
    Case("24 bars by default", LONG, [AWAY] * 24, "expired"),
    Case(
        "R from the real fill", LONG, [(101, 102, 100.1, 101), (97, 98, 95, 96)], "resolved", 100.1, 95.0, "stop", -1.0
    ),
    Case(
        "R of a target from the real fill",
        LONG,
        [(101, 102, 100.1, 101), (105, 111, 104, 110)],
        "resolved",
        100.1,
        110.0,
        "target",
        9.9 / 5.1,
    ),
    Case("short touched", SHORT, [(99, 101, 99, 100)], "active", 100.0),
    Case("short target", SHORT, [(99, 101, 99, 100), (95, 96, 90, 91)], "resolved", 100.0, 90.0, "target", 2.0),
    Case("short stop", SHORT, [(99, 101, 99, 100), (103, 105, 102, 104)], "resolved", 100.0, 105.0, "stop", -1.0),
    Case(
        "short both is a loss", SHORT, [(99, 101, 99, 100), (100, 106, 89, 90)], "resolved", 100.0, 105.0, "stop", -1.0
    ),
    Case(
        "short opens beyond the stop",
        SHORT,
        [(99, 101, 99, 100), (110, 111, 109, 110)],
        "resolved",
        100.0,
        110.0,
        "stop",
        -2.0,
    ),
    Case(
        "short opens beyond the target",
        SHORT,
        [(99, 101, 99, 100), (85, 86, 84, 85)],
        "resolved",
        100.0,
        90.0,
        "target",
        2.0,
    ),
    Case("short expires", SHORT, [(95, 96, 94, 95)] * 24, "expired"),
    Case("short within the touch", SHORT, [(99, 99.9, 98, 99)], "active", 99.9),
    Case(
        "a fill beyond the stop is none",
        Levels(direction="long", entry=100.0, target=110.0, stop=99.95),
        [(99, 99.92, 98, 99)],
        "pending",
    ),
    Case(
        "a fill beyond the target is none",
        Levels(direction="long", entry=100.0, target=100.05, stop=95.0),
        [(101, 102, 100.07, 101)],
        "pending",
    ),
    Case("a flat bar at the entry", LONG, [(100, 100, 100, 100)], "active", 100.0),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_became_of_a_decision(case: Case) -> None:
    states = resolve(case.levels, bars_of(case.prices), decided_at=T0, expire_bars=case.expire)
    last = states[-1] if states else Resolution(status="pending", known_at=T0)
    assert (last.status, last.fill, last.exit_price, last.exit_kind) == (
        case.status,
        case.fill,
        case.exit_price,
        case.kind,
    )
    assert last.outcome_r == (None if case.r is None else pytest.approx(case.r))


def test_there_are_at_least_forty_cases() -> None:
    assert len(CASES) >= 40


def test_bars_that_opened_before_the_decision_are_not_walked() -> None:
    bars = bars_of([AT, AWAY])
    assert resolve(LONG, bars, decided_at=T0 + timedelta(seconds=1)) == ()
    assert resolve(LONG, bars, decided_at=T0)[0].status == "active"


def test_a_state_is_known_at_the_close_of_the_bar_that_decided_it() -> None:
    active, resolved = resolve(LONG, bars_of([AWAY, AT, (105, 110, 104, 109)]), decided_at=T0)
    assert active.known_at == T0 + timedelta(minutes=10)
    assert (resolved.known_at, resolved.exit_at) == (T0 + timedelta(minutes=15), T0 + timedelta(minutes=10))


@pytest.mark.parametrize(
    ("direction", "entry", "target", "stop", "reason"),
    [
        ("long", 100.0, 99.0, 95.0, "a LONG needs"),
        ("long", 100.0, 110.0, 100.0, "a LONG needs"),
        ("short", 100.0, 90.0, 95.0, "a SHORT needs"),
        ("long", None, 110.0, 95.0, "the entry is missing"),
        ("long", 100.0, "high", 95.0, "the target is missing"),
        ("long", 100.0, 110.0, math.nan, "the stop is missing"),
        ("long", True, 110.0, 95.0, "the entry is missing"),
    ],
)
def test_levels_that_cannot_be_have_a_reason(
    direction: str, entry: object, target: object, stop: object, reason: str
) -> None:
    levels = levels_of(direction, entry, target, stop)  # type: ignore[arg-type]
    assert isinstance(levels, str)
    assert levels.startswith(reason)


def test_an_active_decision_is_marked_to_market() -> None:
    (active,) = resolve(LONG, bars_of([AT]), decided_at=T0)
    assert marked_r(LONG, active, 102.5) == 0.5
    assert marked_r(LONG, Resolution(status="expired", known_at=T0), 102.5) is None


@st.composite
def minute_walks(draw: st.DrawFn) -> list[Prices]:
    """Prices of 1-minute bars, each of which opens at the close of the one before; a multiple of five of them."""
    count = 5 * draw(st.integers(1, 12))
    price = draw(st.sampled_from([98.0, 100.0, 102.0, 106.0]))
    prices: list[Prices] = []
    for step in draw(st.lists(st.integers(-16, 16), min_size=count, max_size=count)):
        close = max(80.0, price + step / 8)
        wick = draw(st.sampled_from([0.0, 0.25, 1.0]))
        prices.append((price, max(price, close) + wick, min(price, close) - wick, close))
        price = close
    return prices


def coarse(minutes: list[Prices]) -> list[Prices]:
    """5-minute bars of 1-minute bars."""
    groups = [minutes[first : first + 5] for first in range(0, len(minutes), 5)]
    return [(g[0][0], max(bar[1] for bar in g), min(bar[2] for bar in g), g[-1][3]) for g in groups]


def brute_force(levels: Levels, minutes: list[Prices]) -> tuple[str, int | None, int | None]:
    """The end of a walk minute by minute: the status, the minute of the entry, and the minute of the exit."""
    entry = None
    for number, (_, high, low, _) in enumerate(minutes):
        near = levels.entry * 0.001
        if entry is None and low - near <= levels.entry <= high + near:
            entry = number
        if entry is None:
            continue
        stopped = low <= levels.stop if levels.direction == "long" else high >= levels.stop
        reached = high >= levels.target if levels.direction == "long" else low <= levels.target
        if stopped or reached:
            return ("stop" if stopped else "target"), entry, number
    return ("pending" if entry is None else "active"), entry, None


def reaches(levels: Levels, bar: Prices) -> tuple[bool, bool]:
    """Whether a bar reaches the stop, and the target."""
    _, high, low, _ = bar
    if levels.direction == "long":
        return low <= levels.stop, high >= levels.target
    return high >= levels.stop, low <= levels.target


@given(minute_walks(), st.sampled_from([LONG, SHORT, Levels(direction="long", entry=100.0, target=103.0, stop=98.0)]))
def test_the_resolver_agrees_with_a_walk_over_minutes_where_the_answer_is_determined(
    minutes: list[Prices], levels: Levels
) -> None:
    fives = coarse(minutes)
    ended, entry, exit_minute = brute_force(levels, minutes)
    is_determined = (entry is None or not any(reaches(levels, fives[entry // 5]))) and (
        exit_minute is None or sum(reaches(levels, fives[exit_minute // 5])) == 1
    )
    states = resolve(levels, bars_of(fives), decided_at=T0, expire_bars=len(fives) + 1)
    last = states[-1] if states else None
    status = "pending" if last is None else last.exit_kind or last.status
    if is_determined:
        assert status == ended
        if last is not None and entry is not None:
            assert last.entry_at == T0 + timedelta(minutes=5 * (entry // 5))
            assert last.fill == pytest.approx(levels.entry, rel=0.0011)
        if last is not None and exit_minute is not None:
            assert last.exit_at == T0 + timedelta(minutes=5 * (exit_minute // 5))
    elif ended == "stop" and entry is not None and exit_minute is not None and entry // 5 == exit_minute // 5:
        assert status == "stop"  # the resolver is never kinder than the minutes within one bar


@given(minute_walks(), st.integers(0, 60))
def test_more_bars_never_change_a_state_that_was_known(minutes: list[Prices], cut: int) -> None:
    bars = bars_of(coarse(minutes))
    whole = resolve(LONG, bars, decided_at=T0, expire_bars=4)
    part = resolve(LONG, bars[:cut], decided_at=T0, expire_bars=4)
    assert whole[: len(part)] == part
