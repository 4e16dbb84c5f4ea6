"""Cells: the domains that an episode lies in, and the test of a cell against other trades."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.cells import (
    Cell,
    CellCounts,
    DayCount,
    cells_at,
    difference,
    difference_by_runs,
    least_p,
    level_of_look,
)
from backsight.core.memory.semantic import (
    EvidenceTally,
    place_of,
)
from core.memory.test_semantic import DAY, T0, an_episode


def test_an_episode_lies_in_one_cell_of_each_one_and_two_dimensions() -> None:
    full = an_episode(1, regime="ranging", volatility_regime="low", session="asia", direction="long")
    assert [sum(domain.width == width for domain in cells_at(place_of(full))) for width in (0, 1, 2)] == [1, 5, 10]
    assert all(domain.matches(full) for domain in cells_at(place_of(full)))


def test_each_look_after_320_is_at_half_the_former_level() -> None:
    levels = [level_of_look(n, cells=4) for n in (10, 320, 640, 1280)]
    assert levels == pytest.approx([0.05 / 24, 0.05 / 24, 0.05 / 48, 0.05 / 96])


def a_cell(days: Sequence[tuple[int, int]], *, from_day: int = 0) -> Cell:
    """A cell with the given (trades, wins) of each day."""
    day_counts = {(T0 + (from_day + n) * DAY).date(): DayCount(n=a, wins=b) for n, (a, b) in enumerate(days)}
    total, wins = sum(a for a, _ in days), sum(b for _, b in days)
    squares = (sum(a * a for a, _ in days), sum(a * b for a, b in days), sum(b * b for _, b in days))
    tally = EvidenceTally(wins=wins, losses=total - wins, won_weight=wins, lost_weight=total - wins)
    return Cell(tally=tally, days=day_counts, traded_days=len(days), squares=squares)


def test_the_error_of_a_difference_counts_whole_days() -> None:
    """Ten days of three trades that end alike, inside and outside the cell, are ten draws each, not thirty."""
    days = [(3, 3)] * 7 + [(3, 0)] * 3 + [(3, 3)] * 5 + [(3, 0)] * 5
    result = difference(a_cell(days[:10]), a_cell(days))
    assert result is not None
    by_hand = sum((each / 10) ** 2 for each in [0.3] * 7 + [-0.7] * 3 + [0.5] * 10) * 10 / 9
    assert (result.rate, result.elsewhere, result.days) == (0.7, 0.5, 10)
    assert result.error == pytest.approx(by_hand**0.5)


DAYS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)).map(lambda day: (day[0], min(day))), min_size=1)


def counts_of(cell: Cell) -> CellCounts:
    return CellCounts(n=cell.tally.n, wins=cell.tally.wins, traded_days=cell.traded_days)


@given(own=DAYS, others=DAYS)
def test_no_difference_is_more_significant_than_its_bound_without_days(
    own: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    cell, strategy = a_cell(own), a_cell([*own, *others])
    result = difference(cell, strategy)
    assert least_p(counts_of(cell), counts_of(strategy)) <= (1.0 if result is None else result.p * (1.0 + 1e-9))


def test_the_error_of_a_difference_is_never_below_binomial() -> None:
    result = difference(a_cell([(2, 1)] * 10), a_cell([(2, 1)] * 30))
    assert result is not None
    assert result.error == pytest.approx((0.25 * (1 / 20 + 1 / 40)) ** 0.5)
    assert result.p == pytest.approx(1.0)


def test_a_day_that_is_good_for_all_trades_makes_no_difference() -> None:
    """The cell has half the trades of each day, so that the effect of a day cancels."""
    result = difference(a_cell([(4, 4), (4, 0)] * 5), a_cell([(8, 8), (8, 0)] * 5))
    assert result is not None
    assert result.error == pytest.approx((0.25 * (1 / 40 + 1 / 40)) ** 0.5)


def test_a_look_on_fewer_than_eight_days_is_skipped() -> None:
    assert difference(a_cell([(5, 5)] * 7), a_cell([(5, 5)] * 7 + [(5, 0)] * 20)) is None
    assert difference(a_cell([(5, 5)] * 20), a_cell([(5, 5)] * 20 + [(5, 0)] * 7)) is None
    assert difference(a_cell([(5, 5)] * 20), a_cell([(5, 5)] * 20)) is None


def spread(days: Sequence[tuple[int, int]], every: int) -> Cell:
    """A cell with the given days, and as many days between two of its runs of `every` days."""
    whole = a_cell(days)
    dates = {(T0 + (n + n // every * every) * DAY).date(): count for n, count in enumerate(whole.days.values())}
    return replace(whole, days=dates)


def both(first: Cell, second: Cell) -> Cell:
    """The cell of all trades of two cells on different days."""
    days = [(each.n, each.wins) for each in (*first.days.values(), *second.days.values())]
    return replace(a_cell(days), days={**first.days, **second.days})


def shifted(cell: Cell, by: int) -> Cell:
    return replace(cell, days={day + by * DAY: count for day, count in cell.days.items()})


def test_days_of_one_run_of_a_label_count_as_one() -> None:
    """Ten runs of five days each that end alike are ten draws, not fifty days."""
    cell = spread([(1, 1)] * 25 + [(1, 0)] * 25, every=5)
    others = shifted(spread([(1, 0), (1, 1)] * 25, every=5), 5)
    strategy = both(cell, others)
    by_day = difference(cell, strategy)
    assert by_day is not None
    by_run = difference_by_runs(by_day, cell, strategy, (cell,))
    assert by_run is not None
    assert (by_day.days, by_run.days) == (50, 10)
    assert by_run.error > 1.5 * by_day.error


def test_fewer_than_eight_runs_of_a_label_induce_nothing() -> None:
    cell = spread([(1, 1)] * 35, every=5)
    strategy = both(cell, shifted(spread([(1, 0), (1, 0), (1, 1), (1, 0), (1, 0)] * 7, every=5), 5))
    test = difference(cell, strategy)
    assert test is not None
    assert test.p < 1e-6
    assert difference_by_runs(test, cell, strategy, (cell,)) is None


def test_a_day_with_trades_inside_and_outside_is_a_run_of_its_own() -> None:
    cell, strategy = a_cell([(1, 1), (1, 0), (1, 1)] * 10), a_cell([(2, 1), (2, 1), (2, 1)] * 10)
    test = difference(cell, strategy)
    assert test is not None
    assert difference_by_runs(test, cell, strategy, (cell,)) == test


def test_a_strategy_that_always_wins_differs_nowhere() -> None:
    result = difference(a_cell([(1, 1)] * 10), a_cell([(1, 1)] * 30))
    assert result is not None
    assert result.p == 1.0
