"""Means clustered by day."""

import numpy as np
import pytest

from backsight.core.reflection.day_clusters import compare_with_rest


def test_days_that_both_share_cancel_in_the_difference() -> None:
    """A good day for all trades is no difference: both sides move alike, so the difference does not vary."""
    values = np.array([1.0, 1.0, -1.0, -1.0] * 4)
    members = np.array([[1.0], [0.0]] * 8)
    figures = compare_with_rest(values, members, np.repeat(np.arange(8), 2), 8)
    assert figures.half_width[0] > 0.3
    assert figures.difference_half_width[0] == pytest.approx(0.0)
