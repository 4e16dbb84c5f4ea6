"""Notes on trades, archived episodes, and the beliefs, plans and citations connected with a trade."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.orders import Order, ReportedFill
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
INSTANT = timedelta(microseconds=1)
POSITION = a_position(2.0)


def remembered(memory: Memory, clock: FakeClock, **changes: Any) -> Trade:
    """Remember a trade, and let an hour pass."""
    trade = memory.remember_trade(**a_trade_call(**changes)).trade
    clock.advance(hours=1)
    return trade


def tick(memory: Memory, clock: FakeClock, quantity: float, *, mark: float = 100.0, **more: Any) -> ClosedTick:
    """The next hour's tick: the agent buys two BTC, or sells them."""
    clock.advance(hours=1)
    position, flat = [replace(POSITION, mark=mark)], list[Any]()
    before, after = (flat, position) if quantity > 0 else (position, flat)
    market: dict[str, Any] = {"at": clock.now(), "marks": {"BTC": mark}}
    return memory.close_tick(
        deployment=DEPLOYMENT,
        at=clock.now(),
        before=a_snapshot(*before, **market),
        after=a_snapshot(*after, **market),
        proposal=Order(symbol="BTC", quantity=quantity, reason="the agent's words"),
        verdict=Verdict(kind="executed"),
        **more,
    )


def ticked(memory: Memory, clock: FakeClock) -> Trade:
    """A trade that ticks opened and closed with a profit of 20."""
    deployed(memory)
    tick(memory, clock, 2.0, citations=["lesson:3", "fact:7"])
    (trade,) = tick(memory, clock, -2.0, mark=110.0).closed
    clock.advance(hours=1)
    return trade


def recalled(memory: Memory, **query: Any) -> list[str]:
    return [each.episode.id for each in memory.recall_memories(symbol="XAUUSD", **query).memories]


def statistics(memory: Memory) -> tuple[object, ...]:
    """Trades, habits, mood and beliefs: all statistics that trades feed."""
    state = memory.get_agent_state()
    return (
        memory.list_trades().trades,
        memory.get_behavioral_analysis().behaviors,
        (state.closes, state.mood.confidence, state.mood.consecutive_wins, state.mood.consecutive_losses),
        [(each.belief.id, each.posterior) for each in memory.list_beliefs().beliefs],
    )


# Notes.


def test_a_note_adds_words_and_leaves_prices_alone(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock, tags=["london"], reflection=None)
    answer = memory.annotate_trade(trade_id=trade.id, reflection="Too late.", tags=["late", "london"])
    assert (answer.replayed, answer.trade.reflection, answer.trade.tags) == (False, "Too late.", ("london", "late"))
    then = trade.known_at
    assert replace(answer.trade, reflection=None, tags=trade.tags, known_at=then, recorded_at=then) == trade
    read = memory.get_trade(trade_id=trade.id)
    assert read.trade == answer.trade
    assert read.episode is not None
    assert (read.episode.reflection, read.episode.tags, read.episode.pnl) == ("Too late.", ("london", "late"), 1175.0)


def test_an_earlier_as_of_reads_the_old_note(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock, reflection="First thought.")
    memory.annotate_trade(trade_id=trade.id, reflection="Second thought.", market_context="It was calm.")
    before = clock.now() - INSTANT
    assert memory.get_trade(trade_id=trade.id, as_of=before).trade == trade
    assert memory.list_trades(as_of=before).trades == (trade,)
    words = [
        memory.recall_memories(symbol="XAUUSD", as_of=when).memories[0].episode.reflection
        for when in (before, clock.now())
    ]
    assert words == ["First thought.", "Second thought."]


@pytest.mark.parametrize(
    "note", [{"reflection": "x"}, {"market_context": "calm"}, {"confidence": 0.0}, {"tags": ["a", "b"]}]
)
def test_the_same_note_twice_is_a_replay(memory: Memory, clock: FakeClock, note: dict[str, Any]) -> None:
    trade = remembered(memory, clock)
    first = memory.annotate_trade(trade_id=trade.id, **note)
    clock.advance(days=1)
    links = memory.verify_audit().links
    again = memory.annotate_trade(trade_id=trade.id, **note)
    assert (first.replayed, again.replayed, again.trade) == (False, True, first.trade)
    assert memory.verify_audit().links == links


def test_a_confidence_added_later_is_learned_from(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock, confidence=None)
    assert memory.annotate_trade(trade_id=trade.id, confidence=0.7).learned is not None
    assert memory.annotate_trade(trade_id=trade.id, reflection="Fine.").learned is None
    assert memory.get_trade(trade_id=trade.id).episode.confidence == 0.7  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ({}, "reflection: nothing to add"),
        ({"tags": []}, "reflection: nothing to add"),
        ({"reflection": "", "market_context": ""}, "reflection: nothing to add"),
        ({"confidence": 2.0}, "confidence"),
        ({"tags": [""]}, "tags"),
        ({"pnl": 3.0}, "pnl"),
    ],
)
def test_an_empty_or_invalid_note_is_refused(
    memory: Memory, clock: FakeClock, note: dict[str, Any], message: str
) -> None:
    trade = remembered(memory, clock)
    with pytest.raises(Invalid, match=message):
        memory.annotate_trade(trade_id=trade.id, **note)
    assert memory.get_trade(trade_id=trade.id).trade == trade


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("annotate_trade", {"trade_id": "nothing", "reflection": "x"}),
        ("get_trade_reflection", {"trade_id": "nothing"}),
        ("archive_episode", {"episode_id": "nothing"}),
        ("archive_episode", {"episode_id": "nothing", "restore": True}),
    ],
)
def test_an_unknown_trade_or_episode_is_not_found(memory: Memory, operation: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(NotFound, match="'nothing'"):
        getattr(memory, operation)(**arguments)


def test_a_note_on_an_open_trade_is_still_there_when_it_closes(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    (opened,) = tick(memory, clock, 2.0).opened
    answer = memory.annotate_trade(trade_id=opened.id, reflection="Watch the stop.", tags=["a"])
    assert (answer.trade.status, answer.learned) == ("open", None)
    (closed,) = tick(memory, clock, -2.0).closed
    assert (closed.reflection, closed.tags) == ("Watch the stop.", ("a",))
    assert memory.get_trade(trade_id=closed.id).episode.reflection == "Watch the stop."  # type: ignore[union-attr]


def test_a_confidence_added_at_the_instant_of_the_close_counts_once_in_a_plans_results(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    halve = {"type": "adjust_param", "parameter": "size", "magnitude": 0.5}
    about: dict[str, Any] = {"trigger_condition": {"symbol": "BTC"}, "planned_action": halve, "reasoning": "look twice"}
    plan = memory.create_trading_plan(**about).plan
    tick(memory, clock, 2.0)
    (trade,) = tick(memory, clock, -2.0, mark=110.0).closed
    for confidence in (0.4, 0.6):
        assert memory.annotate_trade(trade_id=trade.id, confidence=confidence).trade.confidence == confidence
    (result,) = memory.settle_plan(plan_id=plan.id, followed=True).settlement.results
    assert (result.n, round(result.mean, 9)) == (1, 0.1)
    assert memory.doctor().healthy


def test_a_late_tick_does_not_carry_a_note_back_in_time(memory: Memory, clock: FakeClock) -> None:
    trade = ticked(memory, clock)
    late, words = clock.now(), clock.now() + timedelta(hours=5)
    clock.at = words
    memory.annotate_trade(trade_id=trade.id, reflection="Said later.")
    fee = ReportedFill(id="f9", at=late, sequence=0, kind="fee", symbol="BTC", fee=2.0)
    late_tick: dict[str, Any] = {
        "at": late,
        "before": a_snapshot(at=late, fills=[fee]),
        "verdict": Verdict(kind="noop"),
    }
    memory.close_tick(deployment=DEPLOYMENT, **late_tick)
    read = [memory.get_trade(trade_id=trade.id, as_of=when).trade for when in (late, words - INSTANT, words)]
    assert [each.reflection for each in read] == [None, None, "Said later."]  # type: ignore[union-attr]
    assert [each.fees for each in read] == [0.0, 0.0, 2.0]  # type: ignore[union-attr]
    assert memory.doctor().healthy


def test_a_note_on_an_older_trade_does_not_break_a_row_of_inactions(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock)
    counts = []
    for change in ({"reflection": "Too late."}, {"confidence": 0.2}):
        inaction: dict[str, Any] = {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "reason": "narrow"}
        counts.append(memory.remember_inaction(**inaction).count)
        clock.advance(hours=1)
        memory.annotate_trade(trade_id=trade.id, **change)
        clock.advance(hours=1)
    assert counts == [1, 2]


def test_a_trade_remembered_on_a_tick_deployment_annotates_and_can_be_added_to(
    memory: Memory, clock: FakeClock
) -> None:
    ledger = ticked(memory, clock)
    call: dict[str, Any] = {"deployment": DEPLOYMENT, "symbol": "BTC", "pnl": 20.0, "pnl_r": None, "entry_price": 1.0}
    answer = memory.remember_trade(**a_trade_call(**call, reflection="Held well.", tags=["a"]))
    assert (answer.trade.id, answer.trade.reflection, answer.trade.entry_price) == (ledger.id, "Held well.", 100.0)
    clock.advance(hours=1)
    more = memory.annotate_trade(trade_id=ledger.id, tags=["b"])
    assert (more.trade.reflection, more.trade.tags) == ("Held well.", ("a", "b"))
    assert len(memory.list_trades().trades) == 1
    with pytest.raises(Conflict, match="runs by ticks"):
        memory.remember_trade(**a_trade_call(**call | {"pnl": 500.0}))


# Archiving.


def test_an_archived_episode_leaves_recall_and_stays_in_ledger_and_statistics(memory: Memory, clock: FakeClock) -> None:
    memory.add_belief(proposition="gold trends", symbol="XAUUSD", regime="trending_up")
    trades = [remembered(memory, clock, idempotency_key=str(n), exit_price=5190.0 + n) for n in range(11)]
    before = statistics(memory)
    away = memory.get_trade(trade_id=trades[3].id).episode
    assert away is not None
    archived = memory.archive_episode(episode_id=away.id)
    assert (archived.replayed, archived.episode.archived_at) == (False, clock.now())
    assert (len(recalled(memory, limit=50)), away.id in recalled(memory, limit=50)) == (10, False)
    assert statistics(memory) == before
    assert memory.get_trade(trade_id=trades[3].id).episode == archived.episode


def test_restoring_brings_an_episode_back_and_a_repeated_call_is_a_replay(memory: Memory, clock: FakeClock) -> None:
    episode_id = memory.remember_trade(**a_trade_call()).episode_id
    answers = []
    for restore in (True, False, False, True, True):
        clock.advance(hours=1)
        answers.append(memory.archive_episode(episode_id=episode_id, restore=restore).replayed)
        assert recalled(memory) == ([episode_id] if restore else [])
    assert answers == [True, False, True, False, True]


def test_an_archived_episode_is_still_recalled_as_of_before_the_archiving(memory: Memory, clock: FakeClock) -> None:
    episode_id = memory.remember_trade(**a_trade_call()).episode_id
    clock.advance(hours=1)
    memory.archive_episode(episode_id=episode_id)
    clock.advance(hours=1)
    memory.archive_episode(episode_id=episode_id, restore=True)
    episodes = [recalled(memory, as_of=T0 + timedelta(minutes=minutes)) for minutes in (0, 59, 60, 119, 120)]
    assert episodes == [[episode_id], [episode_id], [], [], [episode_id]]


def test_a_note_does_not_bring_an_archived_episode_back(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock)
    memory.archive_episode(episode_id=recalled(memory)[0])
    clock.advance(hours=1)
    memory.annotate_trade(trade_id=trade.id, reflection="Forget it.", confidence=0.1)
    assert recalled(memory) == []


def test_after_notes_and_archiving_every_memory_still_follows_from_the_facts(memory: Memory, clock: FakeClock) -> None:
    trade = remembered(memory, clock)
    for change in (
        lambda: memory.annotate_trade(trade_id=trade.id, reflection="Too late."),
        lambda: memory.archive_episode(episode_id=recalled(memory)[0]),
        lambda: memory.annotate_trade(trade_id=trade.id, confidence=0.2, tags=["late"]),
    ):
        assert not change().replayed
        clock.advance(hours=1)
        assert memory.doctor().healthy
    assert memory.verify_audit().intact


# The reflection of a trade.


@pytest.mark.parametrize(("pnl_r", "confirms"), [(3.0, True), (-1.0, False)])
def test_a_reflection_names_the_beliefs_that_the_trade_is_evidence_of(
    memory: Memory, clock: FakeClock, pnl_r: float, confirms: bool
) -> None:
    belief = memory.add_belief(proposition="gold trends", symbol="XAUUSD").belief.belief
    memory.add_belief(proposition="euro ranges", symbol="EURUSD")
    clock.advance(hours=1)
    trade = remembered(memory, clock, pnl=100.0 * pnl_r, pnl_r=pnl_r)
    (change,) = memory.get_trade_reflection(trade_id=trade.id).beliefs
    assert (change.belief_id, change.proposition, change.confirms) == (belief.id, "gold trends", confirms)
    assert (change.n, change.founding) == (1, False)
    remembered(memory, clock, idempotency_key="later")
    (then,) = memory.get_trade_reflection(trade_id=trade.id, as_of=trade.known_at).beliefs
    assert (then.n, memory.get_trade_reflection(trade_id=trade.id).beliefs[0].n) == (1, 2)


def test_a_reflection_names_the_plans_in_force_when_the_trade_was_opened(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    alert: dict[str, Any] = {"planned_action": {"type": "alert"}, "reasoning": "look twice"}
    plans = [memory.create_trading_plan(trigger_condition={"regime": r}, **alert) for r in ("ranging", "volatile")]
    memory.check_active_plans(current_context=ContextVector(regime="ranging"), symbol="XAUUSD")
    trades = []
    for context in (ContextVector(regime="volatile"), ContextVector(regime="trending_up")):
        clock.advance(hours=2)
        opened = clock.now() - timedelta(hours=1)
        trades.append(
            remembered(memory, clock, deployment=DEPLOYMENT, opened_at=opened, exit_price=5000.0 + clock.at.hour)
        )
        memory.check_active_plans(deployment=DEPLOYMENT, current_context=context, symbol="XAUUSD")
    plans_in_force = [memory.get_trade_reflection(trade_id=trade.id).plans for trade in trades]
    assert plans_in_force == [(plans[0].plan,), (plans[1].plan,)]


def test_a_reflection_names_the_plans_also_while_the_trade_is_open(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    about: dict[str, Any] = {"planned_action": {"type": "alert"}, "reasoning": "look twice"}
    plan = memory.create_trading_plan(trigger_condition={"symbol": "BTC"}, **about).plan
    (opened,) = tick(memory, clock, 2.0).opened
    assert memory.get_trade_reflection(trade_id=opened.id).plans == (plan,)


def test_a_reflection_shows_the_citations_of_the_decision_that_opened_the_trade(
    memory: Memory, clock: FakeClock
) -> None:
    trade = ticked(memory, clock)
    reflection = memory.get_trade_reflection(trade_id=trade.id)
    assert reflection.citations == ("lesson:3", "fact:7")
    assert (reflection.trade, reflection.episode) == (trade, memory.get_trade(trade_id=trade.id).episode)
    still_open = memory.get_trade_reflection(trade_id=trade.id, as_of=T0 + timedelta(minutes=90))
    assert (still_open.trade.status, still_open.episode, still_open.strength) == ("open", None, None)


def test_a_reflection_has_the_last_marks_of_its_trade(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    (opened,) = tick(memory, clock, 2.0).opened
    for number in range(1, 13):
        clock.advance(hours=1)
        snapshot = a_snapshot(replace(POSITION, mark=100.0 + number), at=clock.now(), marks={"BTC": 100.0 + number})
        memory.close_tick(deployment=DEPLOYMENT, at=clock.now(), before=snapshot, verdict=Verdict(kind="noop"))
    now, read = memory.get_trade_reflection(trade_id=opened.id), memory.get_trade(trade_id=opened.id)
    assert [mark.position.mark for mark in now.marks] == [100.0 + number for number in range(12, 2, -1)]
    assert (now.marks[0], now.so_far) == (read.mark, read.so_far)
    then = memory.get_trade_reflection(trade_id=opened.id, as_of=T0 + timedelta(hours=2))
    assert [mark.position.mark for mark in then.marks] == [101.0, 100.0]
    tick(memory, clock, -2.0, mark=120.0)
    closed = memory.get_trade_reflection(trade_id=opened.id)
    assert (closed.marks[0].position.mark, closed.so_far) == (120.0, None)
    reported = memory.remember_trade(**a_trade_call()).trade
    assert memory.get_trade_reflection(trade_id=reported.id).marks == ()


@pytest.mark.parametrize("days", [0.0, 30.0, 365.0])
@pytest.mark.parametrize("times", [0, 3])
def test_strength_fades_with_time_and_grows_with_retrieval(
    memory: Memory, clock: FakeClock, days: float, times: int
) -> None:
    trade = memory.remember_trade(**a_trade_call())
    deployed(memory)
    for number in range(times):
        clock.advance(seconds=1)
        idle_tick: dict[str, Any] = {
            "at": clock.now(),
            "before": a_snapshot(at=clock.now()),
            "verdict": {"kind": "noop"},
        }
        memory.close_tick(deployment=DEPLOYMENT, **idle_tick, recalled=[trade.episode_id, f"other {number}"])
    reflection = memory.get_trade_reflection(trade_id=trade.trade.id, as_of=T0 + timedelta(days=days, seconds=times))
    age = days + times / 86_400
    assert reflection.retrieved == times
    assert reflection.strength == pytest.approx((1 + age / 30) ** -0.5 * (1 + 0.1 * math.log(1 + times)))


def test_a_retrieval_is_seen_from_the_recording_of_its_decision(memory: Memory, clock: FakeClock) -> None:
    trade = memory.remember_trade(**a_trade_call())
    deployed(memory)
    clock.advance(hours=1)
    at = clock.now()
    clock.advance(seconds=30)  # the tick is closed half a minute after its instant
    recorded_at = clock.now()
    memory.close_tick(
        deployment=DEPLOYMENT,
        at=at,
        before=a_snapshot(at=at),
        verdict=Verdict(kind="noop"),
        recalled=[trade.episode_id],
    )
    for seen_at, times in ((at, 0), (recorded_at, 1), (None, 1)):
        reflection = memory.get_trade_reflection(trade_id=trade.trade.id, as_of=at, seen_at=seen_at)
        assert reflection.retrieved == times
    clock.advance(hours=1)
    call_at = clock.now()
    memory.record_decision(
        symbol="BTC",
        direction="long",
        horizon_hours=1.0,
        price=100.0,
        reasoning="It breaks.",
        strategy_name=trade.trade.strategy_name,
        recalled=[trade.episode_id],
    )
    for seen_at, times in ((call_at - timedelta(seconds=1), 1), (call_at, 2)):
        reflection = memory.get_trade_reflection(trade_id=trade.trade.id, as_of=call_at, seen_at=seen_at)
        assert reflection.retrieved == times
