"""Calls: a decision that was not traded is judged by bars once its horizon is over, and not before."""

import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import JUST_BEFORE
from backsight.core.market import Bar
from backsight.core.memory.episodic import Episode
from backsight.memory import Memory
from backsight.store import memories as stored
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

HOUR = timedelta(hours=1)
INSTANT = timedelta(microseconds=1)
CALL: dict[str, Any] = {
    "symbol": "BTC",
    "direction": "long",
    "strategy_name": "VolBreakout",
    "horizon_hours": 4.0,
    "reasoning": "the range is about to break",
}


def at(hours: float) -> datetime:
    return T0 + hours * HOUR


def bars(begin: float, *closes: float, symbol: str = "BTC", hours: int = 1) -> list[Bar]:
    """Bars of an hour or of several, the first opening so many hours after T0."""
    return [
        Bar(
            symbol=symbol,
            interval_seconds=hours * 3600,
            opened_at=at(begin + hours * n),
            open=p,
            high=p,
            low=p,
            close=p,
        )
        for n, p in enumerate(closes)
    ]


def record_bars(memory: Memory, clock: FakeClock, hours: float, *series: list[Bar]) -> None:
    """Record the bars at this hour."""
    clock.at = at(hours)
    memory.record_bars(bars=[bar for each in series for bar in each])


def stored_call(memory: Memory, call: Episode, *, as_of: datetime, seen_at: datetime | None = None) -> Episode:
    """The call as it was known at an instant; no operation reads a single call as of an instant."""
    with memory.reading() as connection:
        episode = stored.episode(memory.view(connection, as_of, seen_at), call.id)
    assert episode is not None
    return episode


def result(memory: Memory, call: Episode, *, hours: float = 1e4, seen_hours: float | None = None) -> float | None:
    """How a call ended, as it was known so many hours after T0."""
    outcome = stored_call(memory, call, as_of=at(hours), seen_at=None if seen_hours is None else at(seen_hours)).outcome
    assert outcome is None or outcome.unit == "pct"
    return None if outcome is None else round(outcome.value, 9)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.1),
        ({"direction": "short"}, -0.1),
        ({"benchmark": "ETH"}, 0.1 - 0.04),
        ({"benchmark": "ETH", "direction": "short"}, -0.1 + 0.04),
        ({"benchmark": "BTC"}, 0.0),
        ({"price": 88.0}, 0.25),
        ({"horizon_hours": 2.0}, 0.02),
        ({"horizon_hours": 2.5}, 0.02),
    ],
)
def test_the_outcome_is_the_return_over_the_horizon_less_the_benchmarks_signed_by_direction(
    memory: Memory, clock: FakeClock, changes: dict[str, Any], expected: float
) -> None:
    memory.record_bars(bars=[*bars(-1, 100.0), *bars(-1, 50.0, symbol="ETH")])
    call = memory.record_decision(**CALL | changes).episode
    record_bars(
        memory, clock, 6, bars(0, 101.0, 102.0, 105.0, 110.0, 500.0), bars(0, 50.0, 50.0, 51.0, 52.0, symbol="ETH")
    )
    assert result(memory, call) == pytest.approx(expected)


def test_the_outcome_is_known_when_the_horizon_is_over_and_not_before(memory: Memory, clock: FakeClock) -> None:
    call = memory.record_decision(**CALL, price=100.0).episode
    assert (call.outcome, call.due_at, call.known_at) == (None, at(4), T0)
    record_bars(memory, clock, 4, bars(0, 101.0, 102.0, 103.0, 110.0))
    assert result(memory, call, hours=4) == 0.1
    assert stored_call(memory, call, as_of=at(4) - INSTANT) == call
    done = stored_call(memory, call, as_of=at(4))
    assert (done.known_at, done.hold_seconds, done.exit_price, done.pnl) == (at(4), 4 * 3600.0, 110.0, None)


def test_bars_that_end_before_the_horizon_leave_the_call_open_and_late_bars_judge_it(
    memory: Memory, clock: FakeClock
) -> None:
    call = memory.record_decision(**CALL, price=100.0).episode
    record_bars(memory, clock, 10, bars(0, 101.0, 102.0, 103.0))
    assert result(memory, call) is None
    record_bars(memory, clock, 12, bars(3, 110.0))
    assert result(memory, call, hours=4) == 0.1
    assert result(memory, call, hours=4, seen_hours=11) is None


def test_the_bars_of_a_tick_judge_a_call(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    deployment = "VolBreakout@main"
    call = memory.record_decision(**CALL, price=100.0, deployment=deployment).episode
    clock.at = at(4)
    snapshot = a_snapshot(at=at(4))
    memory.close_tick(
        deployment=deployment,
        at=at(4),
        before=snapshot,
        verdict=Verdict(kind="noop"),
        bars=bars(0, 99.0, 1.0, 1.0, 90.0),
    )
    assert (call.mode, call.deployment_id) == ("live", memory.get_agent_state().deployment.id)  # type: ignore[union-attr]
    assert result(memory, call, hours=4) == -0.1


def test_a_tick_judges_a_call_by_bars_stored_before(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    record_bars(memory, clock, 72, bars(-1, *(100.0 + n for n in range(60))))
    clock.at = T0
    call = memory.record_decision(**CALL, deployment="VolBreakout@main").episode
    for hours in (3, 4):
        assert result(memory, call) is None
        clock.at = at(hours)
        idle_tick: dict[str, Any] = {
            "at": at(hours),
            "before": a_snapshot(at=at(hours)),
            "verdict": Verdict(kind="noop"),
        }
        memory.close_tick(deployment="VolBreakout@main", **idle_tick)
    assert result(memory, call, hours=4) == 0.04


def test_over_a_weekend_the_last_price_before_counts_once_a_later_bar_is_stored(
    memory: Memory, clock: FakeClock
) -> None:
    call = memory.record_decision(**CALL | {"horizon_hours": 48.0}, price=100.0).episode  # ends on Saturday
    record_bars(memory, clock, 60, bars(0, *[101.0] * 34, 110.0))  # until Friday, 21:00
    assert result(memory, call) is None
    record_bars(memory, clock, 87, bars(86, 200.0))  # Monday, 00:00 to 01:00
    assert result(memory, call, hours=87) == 0.1
    assert result(memory, call, hours=86.99) is None


def test_a_call_without_a_price_at_its_start_is_not_judged(memory: Memory, clock: FakeClock) -> None:
    stated = memory.record_decision(**CALL, price=100.0).episode
    unpriced = memory.record_decision(**CALL).episode
    record_bars(memory, clock, 6, bars(0, 101.0, 102.0, 103.0, 110.0, 120.0))
    assert (result(memory, stated), result(memory, unpriced)) == (0.1, None)
    record_bars(memory, clock, 7, bars(-1, 88.0))
    assert result(memory, unpriced) == 0.25


def test_a_price_comes_from_the_bar_that_closed_last_and_of_several_from_the_finest(
    memory: Memory, clock: FakeClock
) -> None:
    memory.record_bars(bars=[*bars(-30, 100.0), *bars(-24, 200.0, hours=24), *bars(-1, 50.0, symbol="ETH")])
    call = memory.record_decision(**CALL | {"horizon_hours": 48.0}, benchmark="ETH").episode
    late = bars(0, 210.0, 220.0, 230.0, hours=24)
    record_bars(
        memory,
        clock,
        73,
        late,
        bars(47, 240.0),
        bars(23, 55.0, symbol="ETH"),
        bars(0, *[60.0] * 3, hours=24, symbol="ETH"),
    )
    assert result(memory, call) == pytest.approx(240 / 200 - 60 / 50)


@pytest.mark.parametrize("tiny", [{"price": 1e-310}, {}])
def test_an_outcome_that_is_not_finite_is_left_out_and_the_bars_are_stored(
    memory: Memory, clock: FakeClock, tiny: dict[str, Any]
) -> None:
    memory.record_bars(bars=bars(-1, 1e-310))
    call = memory.record_decision(**CALL | tiny).episode
    record_bars(memory, clock, 5, bars(0, *[100.0] * 5))
    judged = stored_call(memory, call, as_of=at(5))
    assert (judged.outcome, judged.due_at, judged.exit_price) == (None, None, 100.0)
    record_bars(memory, clock, 6, bars(5, 100.0))
    assert memory.doctor().healthy
    assert memory.verify_audit().intact


@pytest.mark.parametrize("missing", [[], bars(-1, 50.0, symbol="ETH"), bars(0, *[50.0] * 5, symbol="ETH")])
def test_a_benchmark_without_bars_keeps_the_call_open(memory: Memory, clock: FakeClock, missing: list[Bar]) -> None:
    call = memory.record_decision(**CALL, price=100.0, benchmark="ETH").episode
    record_bars(memory, clock, 6, bars(0, *[110.0] * 5), missing)
    assert result(memory, call) is None


def test_late_bars_of_the_benchmark_make_the_outcome_known_later(memory: Memory, clock: FakeClock) -> None:
    memory.record_bars(bars=bars(-1, 50.0, symbol="ETH"))
    call = memory.record_decision(**CALL, price=100.0, benchmark="ETH").episode
    record_bars(memory, clock, 31, bars(0, *[110.0] * 5), bars(0, 51.0, symbol="ETH"), bars(29, 60.0, symbol="ETH"))
    assert result(memory, call, hours=30) == pytest.approx(0.1 - 0.02)
    assert result(memory, call, hours=29.99) is None


def test_the_same_key_is_the_same_decision_and_returns_its_outcome(memory: Memory, clock: FakeClock) -> None:
    first = memory.record_decision(**CALL, price=100.0, idempotency_key="k")
    record_bars(memory, clock, 5, bars(0, *[110.0] * 5))
    links = memory.verify_audit().links
    again = memory.record_decision(**CALL, price=100.0, idempotency_key="k")
    assert (first.replayed, again.replayed, again.episode.id) == (False, True, first.episode.id)
    assert again.episode.outcome is not None
    assert again.episode.outcome.value == pytest.approx(0.1)
    assert memory.verify_audit().links == links


@pytest.mark.parametrize(
    "other",
    [
        {"symbol": "ETH"},
        {"direction": "short"},
        {"reasoning": "another"},
        {"benchmark": "ETH"},
        {"market_context": "calm"},
        {"confidence": 0.3},
        {"tags": ["a"]},
        {"horizon_hours": 8.0},
        {"price": 5.0},
        {"context_regime": "ranging"},
        {"context_atr_d1": 3.0},
        {"strategy_name": "Fade"},
    ],
)
def test_the_same_key_with_other_content_is_a_conflict(memory: Memory, other: dict[str, Any]) -> None:
    memory.record_decision(**CALL, idempotency_key="k")
    links = memory.verify_audit().links
    with pytest.raises(Conflict, match="idempotency_key: this key already belongs to another decision"):
        memory.record_decision(**CALL | other, idempotency_key="k")
    assert memory.verify_audit().links == links
    assert [each.deployment.name for each in memory.get_my_deployments().deployments] == ["manual:VolBreakout"]


def test_a_replay_compares_the_stated_price_and_ignores_recalled_episodes(memory: Memory, clock: FakeClock) -> None:
    memory.record_bars(bars=bars(-1, 100.0))
    memory.record_decision(**CALL, idempotency_key="k")
    record_bars(memory, clock, 5, bars(0, *[110.0] * 5))  # by now the call has the bar's price
    assert memory.record_decision(**CALL, recalled=["another"], idempotency_key="k").replayed
    with pytest.raises(Conflict, match="idempotency_key: this key already belongs to another decision"):
        memory.record_decision(**CALL, price=100.0, idempotency_key="k")


def test_without_a_key_each_instant_has_its_own_call(memory: Memory, clock: FakeClock) -> None:
    first = memory.record_decision(**CALL)
    assert memory.record_decision(**CALL).replayed
    clock.advance(seconds=1)
    later = memory.record_decision(**CALL)
    assert (later.replayed, later.episode.id != first.episode.id) == (False, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"horizon_hours": 0.0},
        {"horizon_hours": -4.0},
        {"horizon_hours": math.nan},
        {"horizon_hours": math.inf},
        {"horizon_hours": 1e300},
        {"horizon_hours": 1e9},
        {"reasoning": ""},
        {"price": 0.0},
        {"price": math.nan},
        {"confidence": 1.5},
        {"direction": "flat"},
        {"symbol": ""},
        {"context_regime": "choppy"},
    ],
)
def test_bad_input_is_refused_by_name_and_nothing_is_written(memory: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=next(iter(wrong))):
        memory.record_decision(**CALL | wrong)
    assert (memory.verify_audit().links, memory.get_my_deployments().deployments) == (0, ())


def test_an_episode_recalled_for_a_call_counts_as_retrieved_once(memory: Memory, clock: FakeClock) -> None:
    trade = memory.remember_trade(**a_trade_call())
    clock.advance(days=90)
    named: dict[str, Any] = {"trade_id": trade.trade.id}
    before = memory.get_trade_reflection(**named)
    for key in ("a", "b", "a"):
        memory.record_decision(**CALL, recalled=[trade.episode_id, trade.episode_id], idempotency_key=key)
    after = memory.get_trade_reflection(**named)
    assert (before.retrieved, after.retrieved) == (0, 2)
    assert before.strength == pytest.approx(0.5)
    assert after.strength == pytest.approx(0.5 * (1 + 0.1 * math.log(3)))
    assert memory.get_trade_reflection(**named, as_of=clock.now() - INSTANT).retrieved == 0


def test_a_judged_call_is_recalled_like_other_episodes_from_then_on(memory: Memory, clock: FakeClock) -> None:
    call = memory.record_decision(**CALL, price=100.0).episode
    record_bars(memory, clock, 5, bars(0, *[110.0] * 5))

    def recalled(hours: float) -> list[str]:
        return [each.episode.id for each in memory.recall_memories(symbol="BTC", as_of=at(hours)).memories]

    assert (recalled(3.99), recalled(4)) == ([], [call.id])
    memory.archive_episode(episode_id=call.id)
    assert (recalled(4), recalled(5)) == ([call.id], [])


def test_archiving_a_call_before_bars_judge_it_is_not_carried_back_in_time(memory: Memory, clock: FakeClock) -> None:
    call = memory.record_decision(**CALL, price=100.0).episode
    clock.at = at(6)
    memory.archive_episode(episode_id=call.id)
    record_bars(memory, clock, 7, bars(0, *[110.0] * 5))
    assert [stored_call(memory, call, as_of=at(hours)).archived_at for hours in (3, 5, 6)] == [None, None, at(6)]
    assert result(memory, call) == 0.1


SPLIT = "Not judged: the price of the call is 1000, but the BTC bar of 2026-06-04T09:00:00.000000Z is 100 to 100"


@pytest.mark.parametrize("direction", ["long", "short"])
def test_a_call_at_another_price_level_than_the_bars_is_not_judged_and_says_why(
    memory: Memory, clock: FakeClock, direction: str
) -> None:
    memory.record_bars(bars=bars(-1, 100.0))
    recorded = memory.record_decision(**CALL | {"direction": direction}, price=1_000.0)
    assert recorded.message.startswith(SPLIT)
    record_bars(memory, clock, 5, bars(0, *[101.0] * 5))
    call = stored_call(memory, recorded.episode, as_of=at(5))
    assert (call.outcome, call.due_at) == (None, None)
    assert (call.not_judged or "").startswith(SPLIT)
    assert stored_call(memory, recorded.episode, as_of=at(4) - JUST_BEFORE).not_judged is None
    record_bars(memory, clock, 6, bars(5, 101.0))
    assert stored_call(memory, recorded.episode, as_of=at(6)) == call


@pytest.mark.parametrize(
    ("price", "series"),
    [
        (60.0, bars(-1, 100.0, 60.0, 61.0, 62.0, 63.0)),  # it fell before the call, within the bar of the call
        (60.0, bars(-1, 60.0, 100.0, 101.0, 102.0, 103.0)),  # it rose after the call
        (60.0, bars(-170, 100.0) + bars(2, 100.0, 100.0)),  # the bars around it are too far away to tell
        (120.0, bars(-1, 100.0, 101.0, 102.0, 103.0, 104.0)),  # another venue
    ],
)
def test_a_call_that_some_bar_near_it_explains_is_judged(
    memory: Memory, clock: FakeClock, price: float, series: list[Bar]
) -> None:
    call = memory.record_decision(**CALL, price=price).episode
    record_bars(memory, clock, 5, series)
    assert result(memory, call) == round(series[-1].close / price - 1.0, 9)


def test_calls_are_no_evidence_and_move_neither_mood_nor_habits(memory: Memory, clock: FakeClock) -> None:
    memory.add_belief(proposition="breaks hold", symbol="BTC", strategy_name="VolBreakout")
    mood = memory.get_agent_state().mood
    for number in range(12):
        memory.record_decision(**CALL, price=100.0 + number, idempotency_key=str(number))
    record_bars(memory, clock, 5, bars(0, *[95.0] * 5))
    (belief,) = memory.list_beliefs().beliefs
    state = memory.get_agent_state()
    assert (belief.posterior.n, state.closes, state.mood) == (0, 0, mood)
    assert memory.get_behavioral_analysis().behaviors == ()
    assert memory.doctor().healthy
    assert memory.verify_audit().intact


def test_a_call_belongs_to_its_deployment_or_to_the_implicit_one_of_its_strategy(memory: Memory) -> None:
    deployed(memory)
    answer = memory.record_decision(**CALL)
    assert answer.message.endswith(" For 'VolBreakout@main' (live), the only deployment of 'VolBreakout'.")
    memory.record_decision(**CALL | {"strategy_name": "Fade"})
    names = [each.deployment.name for each in memory.get_my_deployments().deployments]
    assert names == ["VolBreakout@main", "manual:Fade"]
    with pytest.raises(Invalid, match="strategy_name: deployment 'VolBreakout@main' runs 'VolBreakout', not 'Fade'"):
        memory.record_decision(**CALL | {"strategy_name": "Fade"}, deployment="VolBreakout@main")


def test_a_call_without_a_bar_in_its_horizon_has_the_outcome_zero(memory: Memory, clock: FakeClock) -> None:
    record_bars(memory, clock, 0, bars(-3, 100.0, 90.0))
    call = memory.record_decision(**CALL | {"price": 99.0, "horizon_hours": 2.0}).episode
    record_bars(memory, clock, 70, bars(68, 50.0))
    assert result(memory, call) == 0.0
