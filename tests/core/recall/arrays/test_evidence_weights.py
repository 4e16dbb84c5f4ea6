"""Evidence weights in arrays equal those of the plain score, in single precision up to rounding."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.columns import NUMBERS, columns_of, micros
from backsight.core.recall.arrays.evidence_weights import BUFFERS, EvidenceWeights, positions_of
from backsight.core.recall.score import Situation, number_similarity, recency
from backsight.testing import T0, an_episode

DAY = timedelta(days=1)


def weights(trades: Sequence[Episode], query: Situation, *, kind: Any = np.float64) -> list[float]:
    columns = columns_of(trades)
    symbols, values = columns.labels("symbol")
    same = positions_of(np.array(values)[symbols] == query.symbol)
    kernel = EvidenceWeights(columns, query, np.empty((BUFFERS, len(trades)), kind))
    with np.errstate(all="ignore"):
        kernel_weights = kernel.of(slice(0, len(trades)), micros(T0) - columns.ended_at, offset=0, same_symbol=same)
    return [float(weight) for weight in kernel_weights]


def a_trade(number: int = 1, *, symbol: str = "XAUUSD", days_ago: float = 0.0, **numbers: Any) -> Episode:
    return an_episode(number, symbol=symbol, ended_at=T0 - days_ago * DAY, context=ContextVector(**numbers))


VALUES = st.none() | st.just(0.0) | st.floats(1e-3, 1e6) | st.sampled_from([5000.0, 1e-9, -3.0, 1e12, 1e-12])
CONTEXTS = st.builds(
    ContextVector,
    price=VALUES,
    atr_d1=VALUES,
    atr_h1=VALUES,
    spread_as_atr_pct=VALUES,
    drawdown_pct=st.none() | st.just(0.0) | st.floats(0, 1),
)


@given(
    CONTEXTS,
    st.lists(st.tuples(CONTEXTS, st.sampled_from(["BTC", "ETH"]), st.floats(0, 3000)), min_size=1, max_size=8),
    st.booleans(),
)
def test_weights_are_those_of_the_score(context: ContextVector, rows: list[Any], single: bool) -> None:
    trades = [
        an_episode(n, context=trade_context, symbol=symbol, ended_at=T0 - days_ago * DAY)
        for n, (trade_context, symbol, days_ago) in enumerate(rows)
    ]
    query = Situation(symbol="BTC", context=context)
    plain = [number_similarity(query, symbol=e.symbol, context=e.context) * recency(e.ended_at, now=T0) for e in trades]
    if single:
        assert weights(trades, query, kind=np.float32) == pytest.approx(plain, rel=1e-5, abs=1e-7)
    else:
        assert weights(trades, query) == pytest.approx(plain, rel=1e-9, abs=1e-12)


def test_atrs_are_compared_as_a_share_of_price() -> None:
    then = [a_trade(price=2000.0, atr_d1=20.0, symbol="ETH"), a_trade(2, atr_d1=50.0)]
    assert weights(then, Situation(context=ContextVector(price=5000.0, atr_d1=50.0))) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("price", [5000.0, 1e-9, 60_000.0, 1e-20, -40.0])
def test_single_precision_takes_gold_and_the_smallest_coin(price: float) -> None:
    then = [
        a_trade(n, days_ago=n, price=price * (1 + 0.01 * n), atr_d1=abs(price) * 0.01 * (1 + n), drawdown_pct=0.01 * n)
        for n in range(8)
    ]
    query = Situation(symbol="XAUUSD", context=ContextVector(price=price, atr_d1=abs(price) * 0.03, drawdown_pct=0.02))
    assert weights(then, query, kind=np.float32) == pytest.approx(weights(then, query), rel=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_number_that_is_missing_weighs_nothing_and_one_that_is_far_away_something(name: str, kind: Any) -> None:
    near: dict[str, Any] = {name: 1e-6}
    far: dict[str, Any] = {name: 0.9}
    query = Situation(symbol="XAUUSD", context=ContextVector(**near))
    missing, distant = weights([a_trade(1), a_trade(2, **far)], query, kind=kind)
    assert (missing, 0.0 < distant < 1e-3) == (0.0, True)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sizes_that_single_precision_cannot_hold_are_as_far_away_as_can_be(kind: Any) -> None:
    then = [a_trade(n, atr_d1=atr) for n, atr in enumerate((1e-300, 0.0, 1.0, 1e300))]
    tiny, nothing, same, huge = weights(then, Situation(context=ContextVector(atr_d1=1.0)), kind=kind)
    assert same == pytest.approx(1.0)
    assert tiny == nothing == pytest.approx(huge, rel=1e-4)
    assert 0.0 < nothing < 1e-9
