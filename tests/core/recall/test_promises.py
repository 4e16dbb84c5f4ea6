"""Guarantees of a recall that hold for any number of other memories."""

import random
from datetime import timedelta

import pytest

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.columns import Columns, columns_of
from backsight.core.recall.arrays.scan import scan
from backsight.core.recall.score import Situation, similarity
from backsight.testing import T0, an_episode

MANY = 100_000
NOW = ContextVector(regime="ranging", volatility_regime="low", session="london", atr_d1=50.0, atr_h1=10.0, price=2000.0)
QUERY = Situation(symbol="XAUUSD", direction="long", context=NOW)


def a_dissimilar_trade(rng: random.Random, number: int) -> Episode:
    """A trade of the last 300 days whose similarity to the query is at most .2."""
    context = ContextVector(
        regime="volatile",
        volatility_regime="extreme",
        session=rng.choice(("asia", "newyork")),
        atr_d1=rng.uniform(400.0, 900.0),
        atr_h1=rng.uniform(80.0, 160.0),
        price=rng.uniform(1900.0, 2100.0),
    )
    at = T0 - timedelta(days=300.0 * number / MANY)
    return an_episode(number, pnl_r=3.0, direction="short", context=context, known_at=at)


@pytest.fixture(scope="module")
def many() -> Columns:
    rng = random.Random(7)
    episodes = [a_dissimilar_trade(rng, number) for number in range(MANY)]
    most_similar = max(
        similarity(QUERY, symbol=episode.symbol, direction=episode.direction, context=episode.context)
        for episode in episodes[:1000]
    )
    assert most_similar <= 0.2
    match = an_episode(id="match", pnl_r=3.0, direction="long", context=NOW, known_at=T0 - timedelta(days=400))
    lost = an_episode(id="lost", pnl_r=-3.0, direction="long", context=NOW, known_at=T0 - timedelta(days=350))
    return columns_of([*episodes, match, lost])


def test_a_perfect_match_of_400_days_ago_is_first_behind_a_hundred_thousand_newer_ones(many: Columns) -> None:
    result = scan(many, QUERY, horizon=Horizon(as_of=T0))
    assert result.candidates == MANY + 2
    assert result.memories[0].id == "match"
    assert {hit.id for hit in result.nearest[:2]} == {"match", "lost"}
    alone = scan(many, QUERY, horizon=Horizon(as_of=T0 - timedelta(days=350, microseconds=1)))
    assert [hit.id for hit in alone.nearest] == ["match"]


def test_a_loss_of_3_r_in_the_same_context_is_a_warning_whatever_the_winners(many: Columns) -> None:
    result = scan(many, QUERY, horizon=Horizon(as_of=T0))
    assert [hit.id for hit in result.warnings] == ["lost"]
    assert result.warnings[0].factors.Sim == 1.0
