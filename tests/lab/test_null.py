"""The null deals an arm's own sizes to the trades at random."""

import numpy as np
import pytest

from backsight.lab.equity import trade_times
from backsight.lab.null import DRAWS, null_of
from backsight.lab.planted import planted_trades

TIMES = trade_times(planted_trades("no_edge", trades=120, seed=2).trades)
RECORDED = np.full(120, 0.01)


def test_an_arm_that_knows_the_outcomes_beats_every_draw_and_its_opposite_none() -> None:
    knows = np.where(TIMES.outcome_r > 0, 0.01, 0.0)
    assert null_of(knows, RECORDED, TIMES, np.random.default_rng(1)).place == 1.0
    assert null_of(RECORDED - knows, RECORDED, TIMES, np.random.default_rng(1)).place == 0.0


def test_a_draw_skips_as_many_trades_as_the_arm() -> None:
    skips = np.where(np.arange(120) % 3 == 0, 0.0, 0.01)
    null = null_of(skips, RECORDED, TIMES, np.random.default_rng(1))
    assert (null.daily.trades.sum(axis=1) == 80).all()
    assert len(null.sharpe) == DRAWS


def test_equal_sizes_have_no_place() -> None:
    assert null_of(2 * RECORDED, RECORDED, TIMES, np.random.default_rng(1)).place is None


def test_places_of_blind_arms_are_uniform() -> None:
    places = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        places.append(null_of(np.where(rng.random(120) < 0.5, 0.0, 0.01), RECORDED, TIMES, rng).place or 0.0)
    assert np.mean(places) == pytest.approx(0.5, abs=0.15)
