"""Calls that name neither a deployment nor a mode: they find what there is, and say what they assumed."""

from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from backsight.audience import Audience
from backsight.core.decision import Verdict
from backsight.core.errors import BacksightError, Invalid, NotFound
from backsight.core.memory.kind import MemoryKind
from backsight.memory import OPERATIONS, Memory
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import lost_in_ranges

KINDS: tuple[MemoryKind, ...] = ("episodic", "semantic", "procedural", "affective", "prospective")
DAY = timedelta(days=1)


def deploy(memory: Memory, strategy: str = "S", *, mode: str = "sim", account: str | None = None) -> str:
    """Deploy a strategy on an account of its own; the name of the deployment."""
    name = account or f"{strategy}-{mode}"
    memory.open_account(venue="v", name=name, mode=mode)  # type: ignore[arg-type]
    memory.save_strategy(name=strategy)
    return memory.deploy(strategy_name=strategy, account=name).deployment.name


def trade(memory: Memory, clock: FakeClock, deployment: str, pnl_r: float, strategy: str = "S", **more: Any) -> None:
    clock.advance(hours=1)
    call = a_trade_call(deployment=deployment, strategy_name=strategy, pnl=100.0 * pnl_r, pnl_r=pnl_r)
    memory.remember_trade(**call | more)


def in_drawdown(memory: Memory, clock: FakeClock) -> str:
    """A simulated deployment in a drawdown, with trades, a belief, habits and a plan that holds."""
    deployment = deploy(memory)
    for number in range(12):
        trade(memory, clock, deployment, 3.0 if number % 3 == 0 else -1.0)
    for equity in (10_000.0, 8_700.0):
        clock.advance(hours=1)
        memory.record_equity(equity=equity)
    memory.add_belief(proposition="gold breaks hold", symbol="XAUUSD")
    memory.create_trading_plan(
        trigger_condition={"field": "drawdown_state", "op": ">", "value": 0.5},
        planned_action={"type": "alert"},
        reasoning="look twice",
        deployment=deployment,
    )
    return deployment


# One deployment.


def test_a_recall_without_a_deployment_is_that_of_the_only_one(memory: Memory, clock: FakeClock) -> None:
    deployment = in_drawdown(memory, clock)
    calls: list[dict[str, Any]] = [{}, {"strategy_name": "S"}, {"deployment": deployment}]
    default, of_strategy, named = (memory.recall_memories(symbol="XAUUSD", **query) for query in calls)
    own = {name: getattr(named, name) for name in ("message", "next_cursor", "recall", "recall_hash")}
    assert replace(default, **own) == named
    assert (of_strategy.mood, of_strategy.plans, of_strategy.beliefs) == (named.mood, named.plans, named.beliefs)
    assert (len(named.plans), len(named.beliefs), named.mode) == (1, 1, "sim")
    assert named.mood is not None
    assert named.mood.drawdown_state == pytest.approx(0.65)
    assert {memory.factors.Aff for memory in default.warnings + default.memories} > {1.0}
    assert default.message.startswith(f"For {deployment!r} (sim), the only deployment. The best 10 of 12 episodes")
    assert not named.message.startswith("For")


@pytest.mark.parametrize("kinds", [*combinations(KINDS, 1), KINDS[2:], KINDS], ids=" ".join)
def test_every_choice_of_memory_types_returns_what_there_is(memory: Memory, clock: FakeClock, kinds: Any) -> None:
    in_drawdown(memory, clock)
    answer = memory.recall_memories(symbol="XAUUSD", memory_types=list(kinds))
    assert (bool(answer.memories), answer.base_rate is not None) == ("episodic" in kinds, "episodic" in kinds)
    assert len(answer.beliefs) == ("semantic" in kinds)
    assert [(each.strategy_name, each.symbol, each.habits.n) for each in answer.habits] == [("S", "XAUUSD", 12)] * (
        "procedural" in kinds
    )
    assert answer.mood is not None
    assert len(answer.plans) == 1
    assert "1 plan." in answer.message
    assert "othing" not in answer.message


def test_habits_in_a_recall_are_those_of_the_analysis(memory: Memory, clock: FakeClock) -> None:
    in_drawdown(memory, clock)
    answer = memory.recall_memories(symbol="XAUUSD", memory_types=["procedural"])
    assert answer.habits == memory.get_behavioral_analysis(symbol="XAUUSD").behaviors
    mixed = memory.recall_memories(symbol="XAUUSD", memory_types=["procedural"], mode="all")
    assert mixed.habits == ()
    assert mixed.message.endswith("Beliefs and habits are of one mode: name it to get them.")


def test_a_simulated_store_answers_default_calls(memory: Memory, clock: FakeClock) -> None:
    deployment = in_drawdown(memory, clock)
    size = memory.position_size(symbol="XAUUSD", direction="long", strategy_name="S")
    assert (size.deployment, size.mode, size.size.n) == (deployment, "sim", 12)
    assert size.size.risk_appetite == pytest.approx(0.5775)
    assert len(memory.list_trades().trades) == 12
    assert memory.list_beliefs().mode == memory.get_behavioral_analysis().mode == "sim"
    assert memory.add_belief(proposition="shorts fail", symbol="XAUUSD", direction="short").belief.belief.mode == "sim"
    assert memory.does_memory_help(strategy_name="S").message == (
        f"For {deployment!r} (sim), the only deployment of 'S'. 12 closed sim trades."
    )
    assert memory.compare_lessons(strategy_name="S").mode == "sim"


def test_operations_about_one_deployment_take_the_only_one(memory: Memory, clock: FakeClock) -> None:
    deployment = deploy(memory)
    trade(memory, clock, deployment, 1.0)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("review_period", {}),
        ("preview_context", {}),
        ("list_decisions", {}),
        ("get_recent_activity", {}),
        ("list_lessons", {}),
        ("reflect", {"dry_run": True}),
    ]
    for name, arguments in calls:
        assert getattr(memory, name)(**arguments) == getattr(memory, name)(deployment=deployment, **arguments), name
    default, lessons = memory.active_lessons(), memory.active_lessons(deployment=deployment)
    note = f"For {deployment!r} (sim), the only deployment. "
    assert default == replace(lessons, message=note + lessons.message)
    deploy(memory, "T")
    for name, arguments in calls[:-2]:
        assert getattr(memory, name)(**arguments).deployment == deployment, name
    note = f"For {deployment!r} (sim), one of 2 deployments: deployment='T@T-sim'. "
    assert memory.active_lessons().message == note + lessons.message
    with pytest.raises(Invalid, match="deployment: there are several deployments; name one of 'S@S-sim', 'T@"):
        memory.reflect(dry_run=True)


# No deployment.


def test_seed_calls_work_before_the_first_deployment(memory: Memory) -> None:
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "skip_trade"}, reasoning="it ranges"
    ).plan
    checked = memory.check_active_plans(current_context={"regime": "ranging"})
    assert ([each.plan for each in checked.applying], checked.rising, checked.each) == ([plan], (plan.id,), ())
    again = memory.check_active_plans(current_context={"regime": "ranging"})
    assert ([each.plan for each in again.applying], again.rising) == ([plan], ())
    assert [each.id for each in memory.recall_memories(symbol="BTC", context_regime="ranging").plans] == [plan.id]
    state = memory.get_agent_state()
    assert (state.deployment, state.mood.confidence) == (None, 0.5)
    assert state.message.startswith("Nothing is deployed yet, so the mood is neutral.")
    with pytest.raises(NotFound, match="deployment: there is no deployment yet"):
        memory.active_lessons()


def test_equity_without_a_deployment_is_that_of_trades_reported_by_hand(memory: Memory, clock: FakeClock) -> None:
    for equity in (10_000.0, 9_000.0):
        clock.advance(hours=1)
        answer = memory.record_equity(equity=equity)
    assert answer.message == "Recorded for the account 'manual' (live)."
    assert memory.get_agent_state().mood.drawdown == pytest.approx(0.1)
    memory.remember_trade(**a_trade_call())
    state = memory.get_agent_state()
    assert state.mood.drawdown == pytest.approx(0.1)
    assert (state.mood.consecutive_wins, state.equity_seen) == (1, 2)
    assert memory.verify_audit().intact
    assert memory.doctor().healthy


@pytest.mark.parametrize("audience", ["trader", "owner"])
def test_a_trader_may_record_equity(audience: Audience) -> None:
    assert audience in OPERATIONS["record_equity"].audience


# Several deployments.


def test_of_several_deployments_a_recall_has_no_mood_and_says_why(memory: Memory, clock: FakeClock) -> None:
    first = in_drawdown(memory, clock)
    second = deploy(memory, "T")
    answer = memory.recall_memories(symbol="XAUUSD")
    assert (answer.mood, answer.mode, answer.candidates) == (None, "sim", 12)
    assert {each.factors.Aff for each in answer.memories} == {1.0}
    why = f"There are 2 deployments, so the mood is neutral: name one of {first!r}, {second!r}."
    assert answer.message.startswith(f"All 2 deployments are sim. {why}")
    assert memory.recall_memories(symbol="XAUUSD", strategy_name="S").mood is not None


def test_plans_are_checked_for_each_deployment(memory: Memory, clock: FakeClock) -> None:
    first = in_drawdown(memory, clock)
    second = deploy(memory, "T")
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "alert"}, reasoning="it ranges", priority=0.1
    ).plan
    clock.advance(hours=1)
    checked = memory.check_active_plans(current_context={"regime": "ranging"})
    own, everywhere = (each.plan.id for each in checked.applying)
    assert everywhere == plan.id
    applying = {each.deployment: each.applying for each in checked.each}
    assert applying == {first: (own, plan.id), second: (plan.id,)}
    assert checked.message == (
        f"All 2 deployments are sim. 2 of 2 open plans apply now. By deployment: 2 to {first!r}, 1 to {second!r}."
    )
    assert {each.plan.id: each.times_fired for each in memory.list_plans().plans} == {own: 1, plan.id: 2}
    assert memory.check_active_plans(current_context={"regime": "ranging"}).rising == ()
    clock.advance(days=40)
    assert memory.check_active_plans().expired == (own, plan.id)
    assert memory.verify_audit().intact


def test_equity_of_several_accounts_needs_a_name(memory: Memory, clock: FakeClock) -> None:
    first = deploy(memory, "S", account="shared")
    memory.save_strategy(name="T")
    memory.deploy(strategy_name="T", account="shared")
    assert memory.record_equity(equity=10_000.0).message == "Recorded for the account 'shared' (sim)."
    deploy(memory, "U")
    clock.advance(hours=1)
    with pytest.raises(Invalid, match="deployment: there are deployments on several accounts; name one of 'S@shared'"):
        memory.record_equity(equity=9_000.0)
    assert memory.record_equity(equity=9_000.0, deployment=first).point.account_id


def test_the_mode_with_most_trades_is_the_default_and_the_rest_is_named(memory: Memory, clock: FakeClock) -> None:
    live, sim = deploy(memory, mode="live"), deploy(memory, mode="sim")
    for deployment in (live, live, sim):
        trade(memory, clock, deployment, 1.0)
    left_out = "Mode live, with most trades. 1 trade in sim is not counted: mode='sim'."
    answers: list[Any] = [
        memory.recall_memories(symbol="XAUUSD", strategy_name="S"),
        memory.position_size(symbol="XAUUSD", direction="long", strategy_name="S"),
        memory.list_trades(),
        memory.list_beliefs(),
        memory.get_behavioral_analysis(),
        memory.compare_lessons(strategy_name="S"),
        memory.does_memory_help(strategy_name="S"),
    ]
    for answer in answers:
        assert answer.mode == "live"
        assert answer.message.startswith(left_out)
    assert len(memory.list_trades().trades) == 2
    assert len(memory.list_trades(mode="sim").trades) == 1
    assert len(memory.list_trades(mode="all").trades) == 3


# Nothing found.


def test_an_empty_answer_says_where_there_is_something(memory: Memory, clock: FakeClock) -> None:
    deployment = deploy(memory)
    trade(memory, clock, deployment, 1.0)
    hint = "There is 1 closed trade with {}."
    assert memory.recall_memories(symbol="BTC").message.endswith(hint.format("symbol='XAUUSD'"))
    assert memory.recall_memories(symbol="XAUUSD", mode="live").message.endswith(hint.format("mode='sim'"))
    other = memory.recall_memories(symbol="XAUUSD", strategy_name="T", mode="sim")
    assert other.message.endswith(hint.format("strategy_name='S'"))
    late = memory.recall_memories(symbol="XAUUSD", since=clock.now() + DAY)
    assert late.message.endswith("There is 1 closed trade without the other filters.")
    assert memory.list_trades(symbol="BTC").message.endswith(hint.format("symbol='XAUUSD'"))
    assert memory.get_behavioral_analysis(mode="paper").message.endswith(hint.format("mode='sim'"))


# As of an earlier instant, and other owners.


def test_a_default_is_the_one_that_held_then(memory: Memory, clock: FakeClock) -> None:
    first = deploy(memory)
    trade(memory, clock, first, 1.0)
    then = clock.now()
    before = memory.recall_memories(symbol="XAUUSD", as_of=then)
    clock.advance(days=1)
    second = deploy(memory, "T", mode="live")
    trade(memory, clock, second, -1.0, strategy="T")
    after = memory.recall_memories(symbol="XAUUSD", as_of=then)
    assert replace(after, recall=before.recall, recall_hash=before.recall_hash) == before
    assert (before.mode, before.mood is None) == ("sim", False)
    assert memory.get_agent_state(as_of=then).each == ()
    earlier = memory.get_agent_state(as_of=T0 - DAY)
    assert (earlier.deployment, earlier.each) == (None, ())


def test_a_deployment_counts_from_its_first_trade_even_if_it_was_made_later(memory: Memory, clock: FakeClock) -> None:
    lost_in_ranges(memory, days=3, until=T0 - DAY)
    (deployment,) = (each.deployment for each in memory.get_my_deployments().deployments)
    then = T0 - 2 * DAY
    assert deployment.known_at > then
    answer = memory.recall_memories(symbol="XAUUSD", as_of=then)
    assert answer.message.startswith(f"For {deployment.name!r} (live), the only deployment.")
    assert answer.mood is not None
    assert memory.get_agent_state(as_of=T0 - 60 * DAY).deployment is None


def test_a_named_deployment_is_not_found_before_it_was_made(memory: Memory, clock: FakeClock) -> None:
    clock.advance(days=1)
    name = deploy(memory)
    reads: list[Any] = [
        memory.get_agent_state,
        memory.list_plans,
        memory.list_proposals,
        memory.list_trades,
        memory.active_lessons,
        memory.get_recent_activity,
    ]
    for read in reads:
        for when in ({"as_of": T0}, {"seen_at": T0}):
            with pytest.raises(NotFound, match=f"no deployment '{name}'; get_my_deployments lists them"):
                read(deployment=name, **when)
    assert memory.get_my_deployments(as_of=T0).deployments == ()


def test_a_deployment_counts_from_its_first_tick_even_if_it_was_made_later(memory: Memory, clock: FakeClock) -> None:
    clock.advance(days=1)
    name, before = deploy(memory), T0 - DAY
    memory.close_tick(deployment=name, at=before, before=a_snapshot(at=before), verdict=Verdict(kind="noop"))
    assert memory.get_agent_state(deployment=name, as_of=T0).equity_seen == 1
    assert memory.list_decisions(as_of=T0).deployment == name
    with pytest.raises(NotFound, match="no deployment"):
        memory.get_agent_state(deployment=name, as_of=before - DAY)


def test_deployments_of_other_owners_do_not_count(memory: Memory, clock: FakeClock) -> None:
    deployment = in_drawdown(memory, clock)
    stranger = Memory(database=memory.database, clock=clock, owner="eve", actor="test")
    deploy(stranger, "T", mode="live")
    deploy(stranger, "U", mode="paper")
    state = memory.get_agent_state()
    assert state.deployment is not None
    assert (state.deployment.name, state.each) == (deployment, ())
    assert len(stranger.get_agent_state().each) == 2


def test_a_repeated_decision_belongs_to_the_deployment_of_the_first(memory: Memory) -> None:
    deployment = deploy(memory)
    call: dict[str, Any] = {"symbol": "BTC", "strategy_name": "S", "reason": "narrow", "idempotency_key": "one"}
    first = memory.remember_inaction(**call)
    assert first.message == f"Remembered. For {deployment!r} (sim), the only deployment of 'S'."
    deploy(memory, mode="live")
    assert memory.remember_inaction(**call).replayed
    other = memory.remember_inaction(**call | {"idempotency_key": "two"})
    assert other.message == "Remembered. For 'manual:S', since several deployments run the strategy."
    with pytest.raises(BacksightError):
        memory.remember_inaction(**call | {"deployment": "S@S-live"})
