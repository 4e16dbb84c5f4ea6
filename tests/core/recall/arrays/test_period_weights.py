"""Period weights of arrays agree with the plain weights."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.instants import Horizon
from backsight.core.recall.arrays.candidates import Filters, candidates_of
from backsight.core.recall.arrays.columns import columns_of
from backsight.testing import T0, an_episode
from backsight.testing.recall import period_weights
from core.recall.test_period import GOOD, OUTCOMES


def test_the_earliest_possible_date_has_a_weight() -> None:
    start = datetime.min.replace(tzinfo=T0.tzinfo)
    early = [an_episode(n, pnl_r=r, ended_at=start, known_at=start) for n, r in enumerate(GOOD)]
    assert set(period_weights(early, early).values()) == {2.0}


@given(
    st.lists(st.tuples(OUTCOMES, st.integers(0, 24 * 90), st.sampled_from(["A", "B"])), min_size=5, max_size=60),
    st.sampled_from([4, 8_192]),
)
def test_the_weights_of_arrays_agree_with_the_plain_weights(rows: list[tuple[float, int, str]], block: int) -> None:
    episodes = [
        an_episode(n, pnl_r=r, strategy_name=name, ended_at=T0 + timedelta(hours=hours))
        for n, (r, hours, name) in enumerate(rows)
    ]
    columns, expected = columns_of(episodes, block=block), period_weights(episodes, episodes)
    with np.errstate(all="ignore"):
        periods = candidates_of(columns, Filters(), Horizon(as_of=T0), period_weight=True).periods
    assert periods is not None
    wanted = [expected[columns.id(row)] for row in range(len(columns))]
    assert periods.weights.tolist() == pytest.approx(wanted, rel=1e-12)
    assert [periods.exact_weight(columns, row) for row in range(len(columns))] == wanted
