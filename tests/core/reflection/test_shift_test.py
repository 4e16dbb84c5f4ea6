"""The test of patterns: deals of labels keep outcomes and days, shifts keep persistence."""

import numpy as np
import pytest

from backsight.core.reflection.day_clusters import Floats
from backsight.core.reflection.shift_test import (
    TradingDays,
    dealt_statistics,
    p_value,
    persistence,
    separate_runs,
    unexplained,
)

NO_PATTERN = np.empty((60, 0))


def spells(rng: np.random.Generator, *, days: int, length: int) -> Floats:
    """0 or 1 for each day, the same for as many days as a spell lasts."""
    return np.repeat(rng.integers(0, 2, days // length + 1).astype(float), length)[:days]


def test_a_known_pattern_explains_its_complement() -> None:
    rng = np.random.default_rng(1)
    label = (rng.random(60) < 0.4).astype(float)[:, None]
    values = -2.0 * label[:, 0] + rng.normal(size=60)
    outcome, labels = unexplained(values, 1.0 - label, NO_PATTERN)
    assert abs(float(outcome @ labels[:, 0])) > 0.5
    _, nothing = unexplained(values, 1.0 - label, label)
    assert nothing == pytest.approx(np.zeros((60, 1)))


def test_the_p_value_of_one_trade_a_day_is_that_of_a_permutation_test() -> None:
    """Five winners among twenty trades, all in a group of ten: C(10, 5) / C(20, 5) on either side."""
    values, label = np.repeat([1.0, 0.0], [5, 15]), np.repeat([[1.0], [0.0]], 10, axis=0)
    outcome, labels = unexplained(values, label, np.empty((20, 0)))
    null = dealt_statistics(outcome, labels, TradingDays.of(np.arange(20)))[:, 0]
    statistic = np.sqrt(19.0) * float(outcome @ labels[:, 0])
    assert p_value(statistic, null) == pytest.approx(2 * 252 / 15504, rel=0.25)


def test_copies_of_one_signal_count_as_one_day() -> None:
    """Four equal trades a day in a group that is chosen by day: T varies as that of the days does, twice as much."""
    rng = np.random.default_rng(2)
    values, label = np.repeat(rng.normal(size=50), 4), np.repeat(rng.integers(0, 2, 50), 4).astype(float)[:, None]
    outcome, labels = unexplained(values, label, np.empty((200, 0)))
    dealt = dealt_statistics(outcome, labels, TradingDays.of(np.repeat(np.arange(50), 4)))
    assert np.sqrt(np.square(dealt).mean()) == pytest.approx(2.0, rel=0.1)


def test_days_of_different_sizes_may_be_dealt() -> None:
    rng = np.random.default_rng(3)
    codes = np.sort(rng.integers(0, 60, 200))
    outcome, labels = unexplained(rng.normal(size=200), rng.integers(0, 2, (200, 3)).astype(float), np.empty((200, 0)))
    dealt = dealt_statistics(outcome, labels, TradingDays.of(codes))
    assert np.sqrt(np.square(dealt).mean(axis=0)) == pytest.approx(np.ones(3), rel=0.15)


def test_spells_of_label_and_outcome_together_widen_the_statistic() -> None:
    rng = np.random.default_rng(4)
    label = spells(rng, days=300, length=8)[:, None]
    values = rng.normal(size=300) + 2.0 * spells(rng, days=300, length=8)
    outcome, labels = unexplained(values, label, np.empty((300, 0)))
    days, runs = TradingDays.of(np.arange(300)), separate_runs(label)
    assert persistence(outcome, labels, days, runs)[0] > 1.7
    outcome, labels = unexplained(rng.normal(size=300), label, np.empty((300, 0)))
    assert persistence(outcome, labels, days, runs)[0] < 1.3, "outcomes that do not persist"


def test_spells_show_behind_a_pattern_within_the_day() -> None:
    """Of three trades a day the last wins: outcomes three trades apart are alike, and neighbours are not."""
    rng = np.random.default_rng(7)
    label, level = (np.repeat(spells(rng, days=150, length=6), 3) for _ in range(2))
    values = rng.normal(size=450) + 1.5 * level + np.tile([-1.5, -1.5, 3.0], 150)
    outcome, labels = unexplained(values, label[:, None], np.empty((450, 0)))
    runs = separate_runs(label[:, None])
    assert persistence(outcome, labels, TradingDays.of(np.repeat(np.arange(150), 3)), runs)[0] > 1.4


def test_independent_outcomes_take_little_from_a_label_that_comes_round() -> None:
    """Shifts of weekdays repeat after a week; six of them used to estimate the deviation, and took a tenth of T."""
    rng, days = np.random.default_rng(8), np.arange(280) // 2
    label = (days % 7 == 0).astype(float)[:, None]
    deviations = []
    for _ in range(50):
        outcome, labels = unexplained(rng.normal(size=280), label, np.empty((280, 0)))
        deviations.append(float(persistence(outcome, labels, TradingDays.of(days), separate_runs(label))[0]))
    assert np.mean(deviations) < 1.03


def test_a_label_that_alternates_is_not_hidden_by_its_own_effect() -> None:
    """Every second trade loses: under every second shift the labels meet the same outcomes again."""
    rng = np.random.default_rng(5)
    label = np.tile([1.0, 0.0], 30)[:, None]
    outcome, labels = unexplained(rng.normal(size=60) - 2.0 * label[:, 0], label, NO_PATTERN)
    assert persistence(outcome, labels, TradingDays.of(np.arange(60)), np.array([30.0])) == pytest.approx(1.0)


def test_the_same_trades_have_the_same_deals() -> None:
    rng = np.random.default_rng(6)
    outcome, labels = unexplained(rng.normal(size=60), rng.integers(0, 2, (60, 2)).astype(float), NO_PATTERN)
    days = TradingDays.of(np.arange(60) // 2)
    assert np.array_equal(dealt_statistics(outcome, labels, days), dealt_statistics(outcome, labels, days))
