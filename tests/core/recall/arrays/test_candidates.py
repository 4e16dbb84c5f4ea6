"""Candidates of a recall: what was known at its instant, and its filters."""

from datetime import timedelta

import pytest

from backsight.core.instants import Horizon
from backsight.core.recall.arrays.candidates import Filters
from backsight.core.recall.arrays.columns import columns_of
from backsight.core.recall.arrays.scan import scan
from backsight.core.recall.score import Situation
from backsight.testing import T0, an_episode


@pytest.mark.parametrize("block", [1, 8_192])
def test_since_and_seen_at_include_their_instant_and_until_does_not(block: int) -> None:
    columns = columns_of([an_episode(n, known_at=T0 + timedelta(hours=n)) for n in range(5)], block=block)
    first_hour, third_hour, late = (T0 + timedelta(hours=hours) for hours in (1, 3, 9))
    within = Filters(since=first_hour, until=third_hour)
    assert scan(columns, Situation(), within, horizon=Horizon(as_of=late)).candidates == 2
    assert scan(columns, Situation(), horizon=Horizon(as_of=late, seen_at=T0)).candidates == 5
    unseen = columns_of([an_episode(1), an_episode(2, recorded_at=T0 + timedelta(microseconds=1))], block=block)
    assert scan(unseen, Situation(), horizon=Horizon(as_of=T0, seen_at=T0)).candidates == 1


def test_an_episode_is_known_at_its_close_and_not_before() -> None:
    columns = columns_of([an_episode(1, known_at=T0)])
    assert scan(columns, Situation(), horizon=Horizon(as_of=T0)).candidates == 1
    assert scan(columns, Situation(), horizon=Horizon(as_of=T0 - timedelta(microseconds=1))).candidates == 0
