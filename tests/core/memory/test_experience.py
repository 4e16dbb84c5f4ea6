"""Rows of beliefs and habits: they follow from the episodes in teaching order, given in any order."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    belief_from_statement,
    conditions_held,
    episodes_where,
    in_teaching_order,
    learn_beliefs,
    learn_habits,
    statement_of,
    trade_figures,
)
from backsight.core.memory.semantic import BeliefDraft, Domain, seed_belief
from backsight.testing import T0, an_episode

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EPISODES = [
    an_episode(n, pnl_r=1.0 if n % 3 else -1.0, known_at=T0 + n * DAY, context=ContextVector(regime="ranging"))
    for n in range(1, 15)
]
BELIEF = seed_belief(
    BeliefDraft(proposition="ranges lose", domain=Domain(regime="ranging"), claims="below"), owner_id="ana", known_at=T0
)


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_episodes_are_given_does_not_matter(rng: Random) -> None:
    shuffled = rng.sample(EPISODES, len(EPISODES))
    stated = [statement_of(BELIEF, recorded_at=T0)]
    assert learn_beliefs(shuffled, owner_id="ana", mode="live", stated=stated) == learn_beliefs(
        EPISODES, owner_id="ana", mode="live", stated=stated
    )
    habits = {"owner_id": "ana", "mode": "live", "strategy_name": "VolBreakout"}
    assert learn_habits(shuffled, **habits) == learn_habits(EPISODES, **habits)  # type: ignore[arg-type]


def test_a_statement_gives_its_belief_back() -> None:
    statement = statement_of(BELIEF, recorded_at=T0 + DAY)
    assert belief_from_statement(statement) == BELIEF
    assert belief_from_statement(statement, retired_at=T0).retired_at == T0
    assert statement.recorded_at == T0 + DAY


def test_a_corrected_trade_teaches_where_it_was_first_known() -> None:
    first, second = an_episode(1, known_at=T0), an_episode(2, known_at=T0 + DAY)
    corrected = replace(first, known_at=T0 + 9 * DAY)
    assert [episode.id for episode in in_teaching_order([second, corrected])] == [first.id, second.id]
    assert in_teaching_order([an_episode(3, kind="call")]) == []


def test_conditions_are_judged_by_the_context_at_entry() -> None:
    episode = an_episode(1, context=ContextVector(regime="ranging"), direction="short")
    assert conditions_held(parse_condition({"regime": "ranging", "direction": "short"}), episode)
    assert not conditions_held(parse_condition({"regime": "ranging", "direction": "long"}), episode)
    assert not conditions_held(parse_condition({"field": "atr_d1", "op": ">", "value": 1}), episode)


def test_the_gain_of_a_trade_is_before_costs_where_that_is_known() -> None:
    episode = an_episode(1)
    assert trade_figures(episode).gain == episode.pnl
    assert trade_figures(replace(episode, gross=7.0)).gain == 7.0


CONDITIONS = [
    {"regime": "ranging", "direction": "short"},
    {"not": {"session": "asia"}},
    {"any": [{"symbol": "BTC"}, {"volatility_regime": "high"}]},
    {"all": [{"strategy": "Fade"}, {"field": "hour", "op": ">", "value": 11}]},
]
ANY_EPISODE = st.builds(
    lambda n, opened, **values: an_episode(n, opened_at=None if opened is None else T0 + opened * HOUR, **values),
    st.integers(1, 99),
    st.none() | st.integers(0, 23),
    symbol=st.sampled_from(["BTC", "ETH"]),
    strategy_name=st.sampled_from(["Fade", "Break"]),
    direction=st.sampled_from(["long", "short"]),
    context=st.builds(
        ContextVector,
        regime=st.sampled_from(["ranging", "trending_up", None]),
        volatility_regime=st.sampled_from(["high", None]),
        session=st.sampled_from(["asia", "london", None]),
    ),
)


@given(st.lists(ANY_EPISODE, max_size=20), st.sampled_from(CONDITIONS))
def test_judging_each_place_once_finds_the_episodes_that_judging_each_finds(
    episodes: list[Episode], condition: dict[str, Any]
) -> None:
    parsed = parse_condition(condition)
    assert episodes_where(parsed, episodes) == [each for each in episodes if conditions_held(parsed, each)]
