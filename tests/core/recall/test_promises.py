"""What a recall promises whatever else is remembered."""

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
ASKED = Situation(symbol="XAUUSD", direction="long", context=NOW)


def unlike(rng: random.Random, number: int) -> Episode:
    """A trade of the last 300 days, at most .2 like what is asked."""
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
    episodes = [unlike(rng, number) for number in range(MANY)]
    likest = max(
        similarity(ASKED, symbol=each.symbol, direction=each.direction, context=each.context)
        for each in episodes[:1000]
    )
    assert likest <= 0.2
    match = an_episode(id="match", pnl_r=3.0, direction="long", context=NOW, known_at=T0 - timedelta(days=400))
    lost = an_episode(id="lost", pnl_r=-3.0, direction="long", context=NOW, known_at=T0 - timedelta(days=350))
    return columns_of([*episodes, match, lost])


def test_a_perfect_match_of_400_days_ago_is_first_behind_a_hundred_thousand_newer_ones(many: Columns) -> None:
    found = scan(many, ASKED, horizon=Horizon(as_of=T0))
    assert found.candidates == MANY + 2
    assert found.memories[0].id == "match"
    assert {hit.id for hit in found.nearest[:2]} == {"match", "lost"}
    alone = scan(many, ASKED, horizon=Horizon(as_of=T0 - timedelta(days=350, microseconds=1)))
    assert [hit.id for hit in alone.nearest] == ["match"]


def test_a_loss_of_3_r_in_the_same_context_is_a_warning_whatever_the_winners(many: Columns) -> None:
    found = scan(many, ASKED, horizon=Horizon(as_of=T0))
    assert [hit.id for hit in found.warnings] == ["lost"]
    assert found.warnings[0].factors.Sim == 1.0
