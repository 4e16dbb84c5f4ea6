"""Missing outcomes: the exact test by hand and by enumeration, its level, and its words."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core import missing_outcomes
from backsight.core.missing_outcomes import LEVEL, KnownOutcomes


def test_the_p_value_is_the_share_of_ways_to_miss_r() -> None:
    """Three winners and three losers, R of four known: in how many of the 15 ways are at most one loser's known?"""
    ways = [sum(trade >= 3 for trade in known) for known in itertools.combinations(range(6), 4)]
    expected = sum(losers <= 1 for losers in ways) / len(ways)
    assert KnownOutcomes(won=3, lost=3, known_won=3, known_lost=1).p_value == pytest.approx(expected)


@pytest.mark.parametrize(
    "known",
    [
        KnownOutcomes(),
        KnownOutcomes(won=30, lost=30, known_won=30, known_lost=30),
        KnownOutcomes(won=30, lost=30),
        KnownOutcomes(won=30, known_won=10),
        KnownOutcomes(lost=30, known_lost=10),
        KnownOutcomes(won=30, lost=30, known_won=10, known_lost=30),
        KnownOutcomes(won=2, lost=1, known_won=2, known_lost=0),
    ],
    ids=["no trades", "all known", "none known", "no losers", "no winners", "winners hide", "too few to tell"],
)
def test_losers_do_not_hide(known: KnownOutcomes) -> None:
    assert not known.hides_losers
    assert known.n == known.known + known.unknown


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_fewer_known_losers_are_more_suspicious(won: int, lost: int, data: st.DataObject) -> None:
    known_won, known_lost = data.draw(st.integers(0, won)), data.draw(st.integers(1, lost))
    more = KnownOutcomes(won=won, lost=lost, known_won=known_won, known_lost=known_lost)
    fewer = KnownOutcomes(won=won, lost=lost, known_won=known_won, known_lost=known_lost - 1)
    assert 0.0 <= more.p_value <= 1.0 + 1e-12
    if more.unknown and fewer.known:
        assert fewer.p_value <= more.p_value + 1e-12


@given(st.integers(200, 250), st.integers(200, 250), st.integers(120, 160), st.integers(120, 160))
def test_many_trades_are_tested_nearly_exactly(won: int, lost: int, known_won: int, known_lost: int) -> None:
    known = KnownOutcomes(won=won, lost=lost, known_won=known_won, known_lost=known_lost)
    with pytest.MonkeyPatch.context() as patch:
        exact = known.p_value
        patch.setattr(missing_outcomes, "MOST_EXACT", 0)
        assert known.p_value == pytest.approx(exact, abs=0.005)


def test_r_that_is_missing_at_random_is_refused_in_one_history_of_twenty() -> None:
    rng, refused = random.Random(1), 0
    for _ in range(400):
        shown = [sum(rng.random() < 0.6 for _ in range(50)) for _ in range(2)]
        refused += KnownOutcomes(won=50, lost=50, known_won=shown[0], known_lost=shown[1]).hides_losers
    assert refused <= 1.6 * LEVEL * 400
