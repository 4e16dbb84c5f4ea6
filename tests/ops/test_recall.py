"""Recall through the operation: what is asked, filtered, seen and said."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.memory import Memory, open_memory
from backsight.ops.recall import Recall
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed


def days_ago(days: float, **changes: Any) -> dict[str, Any]:
    return a_trade_call(closed_at=T0 - timedelta(days=days), **changes)


def test_the_seeds_recall_works(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    answer = memory.recall_memories(
        symbol="XAUUSD",
        market_context="Gold above the prior high",
        context_regime="trending_up",
        context_atr_d1=100.0,
        strategy_name="VolBreakout",
        memory_types=["episodic", "semantic"],
        limit=10,
    )
    assert [memory.episode.symbol for memory in answer.memories] == ["XAUUSD"]
    assert answer.memories[0].factors.Sim > 0.75


def test_nothing_remembered_is_said_plainly(memory: Memory) -> None:
    answer = memory.recall_memories(symbol="XAUUSD")
    assert answer.memories == ()
    assert answer.message == "Nothing remembered of XAUUSD (live accounts) that fits."


def test_winners_in_like_contexts_come_first(memory: Memory) -> None:
    memory.remember_trade(**days_ago(1, pnl=-300.0, pnl_r=-1.0))
    memory.remember_trade(**days_ago(2))
    memory.remember_trade(**days_ago(1, context_regime="ranging"))
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up")
    outcomes = [(m.episode.outcome and m.episode.outcome.value, m.episode.context.regime) for m in answer.memories]
    assert outcomes[0] == (3.0, "trending_up")
    assert [m.score for m in answer.memories] == sorted((m.score for m in answer.memories), reverse=True)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {1, 2, 3}),
        ({"strategy_name": "Other"}, {2}),
        ({"tags": ["a"]}, {3}),
        ({"tags": ["a", "b"]}, {3}),
        ({"tags": ["a", "c"]}, set()),
        ({"since": T0 - timedelta(days=2)}, {1, 2}),
        ({"until": T0 - timedelta(days=2)}, {3}),
        ({"deployment": "manual:Other"}, {2}),
        ({"mode": "paper"}, set()),
        ({"mode": "all"}, {1, 2, 3}),
        ({"memory_types": ["semantic"]}, set()),
        ({"direction": "short"}, {1, 2, 3}),
    ],
)
def test_filters_filter(memory: Memory, asked: dict[str, Any], expected: set[int]) -> None:
    memory.remember_trade(**days_ago(1))
    memory.remember_trade(**days_ago(2, strategy_name="Other"))
    memory.remember_trade(**days_ago(3, tags=["a", "b"]))
    memory.remember_trade(**days_ago(1, symbol="EURUSD"))
    memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason="narrow")
    answer = memory.recall_memories(symbol="XAUUSD", **asked)
    assert {(T0 - m.episode.known_at).days for m in answer.memories} == expected
    assert answer.candidates == len(expected)


def test_a_deployment_brings_its_mode(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main", mode="paper")
    memory.save_strategy(name="VolBreakout")
    memory.deploy(strategy_name="VolBreakout", account="main")
    memory.remember_trade(**a_trade_call(deployment="VolBreakout@main"))
    assert memory.recall_memories(symbol="XAUUSD").candidates == 0
    assert memory.recall_memories(symbol="XAUUSD", deployment="VolBreakout@main").candidates == 1


def test_a_period_that_ends_before_it_begins_is_refused(memory: Memory) -> None:
    with pytest.raises(Invalid, match="until: is not after since"):
        memory.recall_memories(symbol="XAUUSD", since=T0, until=T0)


CALLS = st.fixed_dictionaries(
    {"pnl_r": st.floats(-5, 5).map(lambda x: round(x, 2)), "known": st.integers(0, 40), "late": st.integers(0, 40)}
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(CALLS, min_size=1, max_size=8), at=st.integers(0, 50), seen=st.none() | st.integers(0, 50))
def test_nothing_looks_ahead(calls: list[dict[str, Any]], at: int, seen: int | None) -> None:
    """The answer as of an instant is that of a store which never held what came later."""

    def ask(kept: list[tuple[int, dict[str, Any]]]) -> Recall:
        with open_memory("sqlite://", clock=clock) as memory:
            for number, call in kept:
                known = T0 + timedelta(days=call["known"])
                clock.at = known + timedelta(days=call["late"])
                told = a_trade_call(pnl=call["pnl_r"] * 100, pnl_r=call["pnl_r"], closed_at=known)
                memory.remember_trade(**told, idempotency_key=str(number))
            return memory.recall_memories(
                symbol="XAUUSD",
                context_regime="trending_up",
                as_of=T0 + timedelta(days=at),
                seen_at=None if seen is None else T0 + timedelta(days=seen),
            )

    clock = FakeClock(T0)
    everything = list(enumerate(calls))
    visible = [
        (number, call)
        for number, call in everything
        if call["known"] <= at and (seen is None or call["known"] + call["late"] <= seen)
    ]
    assert ask(everything) == ask(visible)


def test_a_loss_in_the_same_context_is_among_the_warnings_whatever_the_winners(memory: Memory) -> None:
    for number in range(12):
        memory.remember_trade(**days_ago(1 + number / 10))
    lost = memory.remember_trade(**days_ago(40, pnl=-900.0, pnl_r=-3.0)).episode_id
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up", limit=5)
    assert [warning.id for warning in answer.warnings] == [lost]
    assert lost not in [memory.id for memory in answer.memories]


def test_the_nearest_are_blind_to_the_outcome(memory: Memory) -> None:
    alike = memory.remember_trade(**days_ago(3, pnl=-300.0, pnl_r=-1.0)).episode_id
    memory.remember_trade(**days_ago(3, context_regime="ranging"))
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up")
    assert answer.nearest[0].id == alike
    assert answer.nearest[0].score == answer.nearest[0].factors.Sim * answer.nearest[0].factors.Rec


def test_the_base_rate_comes_first_and_counts_all_trades_of_the_strategy(memory: Memory) -> None:
    for number in range(30):
        r = 1.0 if number % 3 else -1.0
        memory.remember_trade(**days_ago(1 + number, pnl=100 * r, pnl_r=r, symbol=("XAUUSD", "EURUSD")[number % 2]))
    usual = memory.recall_memories(symbol="XAUUSD", strategy_name="VolBreakout", direction="long").base_rate
    assert usual is not None
    assert [(level.name, level.n) for level in usual.levels] == [("strategy", 30), ("direction", 30), ("symbol", 15)]
    assert usual.headline.name == "direction"
    assert usual.sentence.startswith("6")


def test_beliefs_and_plans_that_speak_of_it_are_shown_and_nothing_is_triggered(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    said = memory.add_belief(proposition="trends carry", regime="trending_up").belief.belief.id
    memory.add_belief(proposition="ranges do not", regime="ranging", claims="below")
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "trending_up"}, planned_action={"type": "alert"}, reasoning="look twice"
    )
    links = memory.verify_audit().links
    asked: dict[str, Any] = {"symbol": "XAUUSD", "deployment": "VolBreakout@main"}
    answer = memory.recall_memories(**asked, context_regime="trending_up")
    assert [belief.belief.id for belief in answer.beliefs] == [said]
    assert [each.id for each in answer.plans] == [plan.plan.id]
    assert answer.mood is not None
    assert memory.recall_memories(**asked, context_regime="volatile").plans == ()
    assert memory.verify_audit().links == links


def test_in_a_losing_streak_the_mood_colours_what_comes_to_mind(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    for number in range(3):
        memory.remember_trade(
            **days_ago(3 - number, pnl=-100.0, pnl_r=-1.0, deployment="VolBreakout@main", idempotency_key=str(number))
        )
    (first, *_) = memory.recall_memories(symbol="XAUUSD", deployment="VolBreakout@main").memories
    assert first.factors.Aff == 0.94
    assert memory.recall_memories(symbol="XAUUSD").memories[0].factors.Aff == 1.0


def test_words_count_as_one_more_field_of_the_likeness(memory: Memory) -> None:
    memory.remember_trade(**days_ago(1, market_context="Asian range broken at the London open"))
    asked: dict[str, Any] = {"symbol": "XAUUSD", "context_regime": "trending_up"}
    sims = [
        memory.recall_memories(**asked, market_context=words).nearest[0].factors.Sim
        for words in (None, "the London opening breaks ranges", "a quiet afternoon")
    ]
    assert sims[0] == 1.0
    assert sims[1] == pytest.approx((0.25 + 0.1 * 0.75) / 0.35)
    assert sims[2] == pytest.approx(0.25 / 0.35)
