"""Laws of the recall score."""

import math
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.recall.score import RecallMood, Situation, quality, recency, similarity
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.trades.trade import Outcome
from backsight.testing import T0, an_episode
from backsight.testing.recall import rank_plainly, score_factors, sigmas

NUMBERS = st.none() | st.floats(0, 1e6) | st.just(0.0)
CONTEXTS = st.builds(
    ContextVector,
    price=NUMBERS,
    atr_d1=NUMBERS,
    atr_h1=NUMBERS,
    regime=st.sampled_from([None, *REGIMES]),
    volatility_regime=st.sampled_from([None, *VOLATILITY_REGIMES]),
    session=st.sampled_from([None, *SESSIONS]),
    spread_as_atr_pct=NUMBERS,
    drawdown_pct=st.none() | st.floats(0, 1),
)
OUTCOMES = st.builds(Outcome, value=st.floats(-1e300, 1e300), unit=st.sampled_from(["R", "vol", "pct"]))


def sim(query: ContextVector, memory: ContextVector, symbol: str = "XAUUSD") -> float:
    return similarity(Situation(symbol="XAUUSD", context=query), symbol=symbol, direction="long", context=memory)


@given(CONTEXTS)
def test_a_context_is_like_itself(context: ContextVector) -> None:
    assert math.isclose(sim(context, context), 1.0 if context.known else 0.5)


@given(CONTEXTS, CONTEXTS)
def test_similarity_lies_between_0_and_1(query: ContextVector, memory: ContextVector) -> None:
    assert 0.0 <= sim(query, memory) <= 1.0


@given(st.data(), CONTEXTS)
def test_similarity_is_symmetric_where_both_have_the_same_fields(data: st.DataObject, one: ContextVector) -> None:
    values = {name: getattr(one, name) for name in one.known}
    changed: dict[str, Any] = {
        name: data.draw(st.floats(0, 1e6)) if isinstance(value, float) else value for name, value in values.items()
    }
    other = ContextVector(**changed)
    assert math.isclose(sim(one, other), sim(other, one), abs_tol=1e-12)


def test_a_field_the_memory_lacks_scores_nothing() -> None:
    query = ContextVector(regime="ranging", session="london")
    assert sim(query, ContextVector(regime="ranging")) == 0.25 / 0.35


def test_a_field_the_query_lacks_does_not_count() -> None:
    memory = ContextVector(regime="ranging", session="london", atr_d1=50.0)
    assert sim(ContextVector(regime="ranging"), memory) == 1.0


def test_atrs_are_compared_as_a_share_of_price_where_both_prices_are_known() -> None:
    then, now = ContextVector(price=2000.0, atr_d1=20.0), ContextVector(price=5000.0, atr_d1=50.0)
    without = sim(ContextVector(atr_d1=50.0), then)
    assert sim(now, then, symbol="SILVER") == 1.0
    assert without < 0.1


def test_price_counts_only_for_the_same_symbol() -> None:
    query, memory = ContextVector(regime="ranging", price=100.0), ContextVector(regime="ranging", price=900.0)
    assert sim(query, memory, symbol="SILVER") == 1.0
    assert sim(query, memory) < 0.75


def test_direction_counts_when_the_query_has_one() -> None:
    query = Situation(direction="short", context=ContextVector(regime="ranging"))
    memory = ContextVector(regime="ranging")
    assert similarity(query, symbol="X", direction="long", context=memory) == 0.25 / 0.35
    assert similarity(query, symbol="X", direction="short", context=memory) == 1.0


@given(st.lists(OUTCOMES, min_size=1))
def test_quality_lies_between_0_and_1_and_follows_the_sign(outcomes: list[Outcome]) -> None:
    sigma = sigmas(outcomes)
    for outcome in outcomes:
        q = quality(outcome, sigma=sigma)
        assert 0.0 <= q <= 1.0
        assert (q >= 0.5) if outcome.value >= 0 else (q <= 0.5)


def test_units_do_not_mix() -> None:
    mixed = [Outcome(value=3.0, unit="R"), Outcome(value=0.01, unit="pct")]
    assert sigmas(mixed) == sigmas(mixed[:1]) | sigmas(mixed[1:])


def test_an_episode_that_ends_after_now_has_full_recency() -> None:
    assert recency(T0 + timedelta(days=3), now=T0) == 1.0


def test_ranking_scores_every_candidate_not_the_newest() -> None:
    here = ContextVector(regime="ranging", atr_d1=50.0)
    old = an_episode(0, pnl_r=2.0, context=here, known_at=T0 - timedelta(days=400))
    newer = [an_episode(n, pnl_r=2.0, context=ContextVector(regime="volatile")) for n in range(1, 500)]
    best = rank_plainly([*newer, old], Situation(symbol="XAUUSD", context=here), now=T0, limit=1).memories
    assert best[0].id == old.id


def test_ties_break_by_id() -> None:
    same = [an_episode(n) for n in (5, 3, 9, 1)]
    ranked = rank_plainly(same, Situation(symbol="XAUUSD"), now=T0, limit=3).memories
    assert [memory.id for memory in ranked] == ["episode-000001", "episode-000003", "episode-000005"]


def test_the_score_is_the_product_of_its_factors() -> None:
    (memory,) = rank_plainly([an_episode()], Situation(symbol="XAUUSD"), now=T0 + timedelta(days=90), limit=1).memories
    f = memory.factors
    assert memory.score == f.Q * f.Sim * f.Rec * f.Conf * f.Aff * f.Period
    assert (f.Sim, f.Rec, f.Conf, f.Aff, f.Period) == (0.5, 0.5, 0.75, 1.0, 1.0)


def test_the_mood_colours_recall() -> None:
    loss = an_episode(pnl_r=-2.0)
    calm = score_factors(loss, Situation(), now=T0, sigma={"R": 1.5}, mood=RecallMood())
    down = score_factors(loss, Situation(), now=T0, sigma={"R": 1.5}, mood=RecallMood(drawdown_state=0.6))
    assert down.score == calm.score * 1.15
