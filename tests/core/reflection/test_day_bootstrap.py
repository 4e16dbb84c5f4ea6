"""Revisions of the lessons compared with no lessons: worked averages, and intervals clustered by day."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.reflection import day_bootstrap
from backsight.core.reflection.lessons_comparison import LessonsComparison
from backsight.core.reflection.patterns import UNITS
from backsight.core.reflection.trades_under_lessons import NO_UNIT, TradesUnderLessons
from backsight.core.trades.trade import OutcomeUnit

FIRST = 20_458


class LessonsTrade(NamedTuple):
    lessons: str | None
    day: int
    r: float
    unit: OutcomeUnit | None = "R"
    pnl: float | None = None
    won: float = np.nan


def a_trade(lessons: str | None, *, day: int, r: float) -> LessonsTrade:
    return LessonsTrade(lessons, FIRST + day, r, pnl=100.0 * r, won=float(r > 0))


def compare_revisions(trades: Sequence[LessonsTrade]) -> LessonsComparison:
    return day_bootstrap.compare_revisions(
        TradesUnderLessons(
            hashes=tuple(each.lessons for each in trades),
            revision=np.arange(len(trades)),
            day=np.array([each.day for each in trades], np.int64),
            unit=np.array([NO_UNIT if each.unit is None else UNITS.index(each.unit) for each in trades], np.int64),
            outcome=np.array([each.r for each in trades], np.float64),
            pnl=np.array([each.pnl for each in trades], np.float64),
            pnl_usd=np.full(len(trades), np.nan),
            won=np.array([each.won for each in trades], np.float64),
        )
    )


NONE = [a_trade(None, day=day, r=r) for day, r in enumerate([1.0, -1.0, 0.5, -1.0, -0.5])]
FIRST_NOTE = [a_trade("aa", day=5 + n // 2, r=r) for n, r in enumerate([1.0, 2.0, -1.0, 1.0])]


def test_averages_by_hand() -> None:
    comparison = compare_revisions(FIRST_NOTE + NONE)
    none, first = comparison.revisions
    assert (none.lessons_hash, none.trades, none.days, none.win_rate) == (None, 5, 5, 0.4)
    assert none.mean == pytest.approx(-0.2)
    assert (none.mean_pnl, none.difference, none.interval) == (-20.0, None, None)
    assert (first.lessons_hash, first.trades, first.days, first.win_rate) == ("aa", 4, 2, 0.75)
    assert first.difference == pytest.approx(0.95)
    assert (first.mean, first.mean_pnl, first.interval) == (0.75, 75.0, None)
    assert comparison.caution.startswith("This compares periods of time, not random arms")


def test_no_lessons_come_first_and_revisions_follow_by_time() -> None:
    trades = [a_trade("zz", day=1, r=1.0), a_trade("aa", day=2, r=1.0)]
    assert [each.lessons_hash for each in compare_revisions(trades).revisions] == [None, "zz", "aa"]
    empty = compare_revisions([])
    assert (empty.unit, len(empty.revisions), empty.revisions[0].mean) == (None, 1, None)


def test_the_interval_is_that_of_days() -> None:
    """Ten copies of every trade on its day are no more evidence than one."""
    rng = random.Random(1)
    once = [a_trade(None if day < 30 else "aa", day=day, r=rng.gauss(day >= 30, 1.0)) for day in range(60)]
    wide, same = (compare_revisions(trades).revisions[1].interval for trades in (once, once * 10))
    assert wide is not None
    assert same == pytest.approx(wide, abs=0.12)
    error = (2 / 30) ** 0.5
    assert wide[1] - wide[0] == pytest.approx(2 * 1.645 * error, rel=0.2)


def test_units_do_not_mix_and_what_is_not_known_is_left_out() -> None:
    other = LessonsTrade("aa", FIRST + 9, 40.0, unit="pct")
    first = compare_revisions([*NONE, *FIRST_NOTE, other]).revisions[1]
    assert (first.trades, first.days, first.mean, first.mean_pnl, first.win_rate) == (5, 3, 0.75, 75.0, 0.75)
    assert first.mean_pnl_usd is None


rows = st.lists(
    st.tuples(st.sampled_from((None, "aa", "bb")), st.integers(0, 15), st.sampled_from((-1.0, 0.3, 2.0))), max_size=50
)


@settings(max_examples=40, deadline=None)
@given(rows, st.randoms())
def test_the_order_of_trades_does_not_matter(
    given_rows: list[tuple[str | None, int, float]], rng: random.Random
) -> None:
    trades = [a_trade(lessons, day=day, r=r) for lessons, day, r in given_rows]
    comparison = compare_revisions(trades)
    assert compare_revisions(rng.sample(trades, len(trades))) == comparison
    assert all(each.interval is None or each.interval[0] <= each.interval[1] for each in comparison.revisions)
