"""The agent's state: what it is computed from, and that it can be read as of any instant."""

import math
from datetime import timedelta

import pytest

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.orders import ReportedFill
from backsight.memory import Memory
from backsight.ops.state import AgentState
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
NOOP = Verdict(kind="noop")


def closed(memory: Memory, clock: FakeClock, pnl_r: float, **changes: object) -> None:
    clock.advance(hours=1)
    memory.remember_trade(
        **a_trade_call(deployment=DEPLOYMENT, pnl=100 * pnl_r, pnl_r=pnl_r, confidence=0.9, **changes)
    )


def worth(memory: Memory, clock: FakeClock, equity: float) -> AgentState:
    clock.advance(hours=1)
    memory.record_equity(account="main", equity=equity)
    return memory.get_agent_state(deployment=DEPLOYMENT)


def ticked(memory: Memory, clock: FakeClock, equity: float, *, paid_in: float = 0.0) -> AgentState:
    clock.advance(hours=1)
    at = clock.now()
    fills = [ReportedFill(id=f"t{at}", at=at, sequence=0, kind="transfer", amount=paid_in)] if paid_in else []
    memory.close_tick(deployment=DEPLOYMENT, at=at, before=a_snapshot(at=at, equity=equity, fills=fills), verdict=NOOP)
    return memory.get_agent_state(deployment=DEPLOYMENT)


def test_the_first_state_is_neutral(memory: Memory) -> None:
    state = memory.get_agent_state()
    assert state.deployment is None
    assert (state.mood.confidence, state.mood.risk_appetite, state.mood.drawdown_state) == (0.5, 1.0, 0.0)


def test_twenty_three_losses_in_a_row_drive_confidence_down_whatever_was_stated(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    for _ in range(23):
        closed(memory, clock, -1.0)
    mood = memory.get_agent_state().mood
    assert (round(mood.confidence, 3), mood.consecutive_losses) == (0.289, 23)
    closed(memory, clock, 3.0)
    after = memory.get_agent_state().mood
    assert after.confidence > mood.confidence
    assert (after.consecutive_losses, after.consecutive_wins) == (0, 1)


def test_appetite_follows_the_drawdown_and_comes_back(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    moods = {equity: worth(memory, clock, equity).mood for equity in (10_000.0, 9_000.0, 8_500.0, 8_000.0, 9_999.0)}
    appetite = [round(mood.risk_appetite, 4) for mood in moods.values()]
    assert appetite == [1.0, 0.75, 0.4375, 0.1, 1.0]
    assert moods[8_000.0].in_drawdown


def test_a_deposit_and_a_withdrawal_move_neither_drawdown_nor_appetite(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, 10_000.0)
    down = ticked(memory, clock, 9_000.0).mood
    richer = ticked(memory, clock, 18_000.0, paid_in=9_000.0).mood
    poorer = ticked(memory, clock, 4_500.0, paid_in=-13_500.0).mood
    assert down.drawdown == pytest.approx(0.1)
    assert richer.drawdown == poorer.drawdown == down.drawdown
    assert richer.peak == pytest.approx(20_000.0)
    assert poorer.peak == pytest.approx(5_000.0)


def test_equity_recorded_between_a_tick_and_its_close_leaves_the_ticks_equity_in_the_drawdown(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    clock.advance(hours=1)
    at = clock.now()
    clock.advance(seconds=5)
    memory.record_equity(account="main", equity=9_000.0)
    before = a_snapshot(at=at, equity=10_000.0)
    memory.close_tick(deployment=DEPLOYMENT, at=at, before=before, verdict=NOOP)
    state = memory.get_agent_state(deployment=DEPLOYMENT)
    assert (state.mood.peak, state.equity_seen) == (10_000.0, 2)
    assert state.mood.drawdown == pytest.approx(0.1)
    assert memory.verify_audit().intact


def test_the_state_as_of_an_instant_does_not_change_later(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    answers = []
    for number in range(6):
        closed(memory, clock, (-1.0) ** number * (1 + number))
        worth(memory, clock, 10_000.0 - 300.0 * number)
        answers.append((clock.now(), memory.get_agent_state(deployment=DEPLOYMENT)))
    clock.advance(days=1)
    late = clock.now()
    memory.remember_trade(
        **a_trade_call(deployment=DEPLOYMENT, pnl=-500.0, pnl_r=-5.0, closed_at=T0 + timedelta(hours=3))
    )
    for at, answer in answers:
        assert memory.get_agent_state(deployment=DEPLOYMENT, as_of=at, seen_at=at) == answer
    assert memory.get_agent_state(deployment=DEPLOYMENT, as_of=answers[-1][0]).closes == 7
    assert memory.get_agent_state(deployment=DEPLOYMENT, seen_at=late - timedelta(seconds=1)).closes == 6


def test_the_account_is_shared_and_the_streak_is_the_strategys(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.save_strategy(name="Fade")
    memory.deploy(strategy_name="Fade", account="main")
    closed(memory, clock, -1.0)
    worth(memory, clock, 10_000.0)
    worth(memory, clock, 9_000.0)
    other = memory.get_agent_state(deployment="Fade@main").mood
    assert (other.consecutive_losses, other.confidence, other.drawdown) == (0, 0.5, 0.1)


def test_of_several_deployments_the_answer_covers_each(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.save_strategy(name="Fade")
    memory.deploy(strategy_name="Fade", account="main")
    closed(memory, clock, -1.0)
    state = memory.get_agent_state()
    named = [memory.get_agent_state(deployment=name) for name in ("Fade@main", DEPLOYMENT)]
    assert [(each.deployment, each.mood, each.closes) for each in state.each] == [
        (each.deployment, each.mood, each.closes) for each in named
    ]
    assert (state.deployment, state.mood.confidence, state.mood.consecutive_losses) == (None, 0.5, 0)
    assert state.message.endswith("2 deployments, each with its mood; name one to see it alone.")
    assert [each.each for each in named] == [(), ()]


@pytest.mark.parametrize("equity", [-1.0, math.nan, math.inf])
def test_an_invalid_equity_is_refused_and_nothing_is_written(memory: Memory, equity: float) -> None:
    deployed(memory)
    links = memory.verify_audit().links
    with pytest.raises(Invalid, match=r"^equity: "):
        memory.record_equity(account="main", equity=equity)
    assert memory.verify_audit().links == links


def test_equity_of_the_same_instant_is_a_replay_or_a_conflict(memory: Memory) -> None:
    deployed(memory)
    assert not memory.record_equity(account="main", equity=10.0, at=T0).replayed
    assert memory.record_equity(account="main", equity=10.0, at=T0).replayed
    with pytest.raises(Conflict, match="equity: 'main' already has the equity 10"):
        memory.record_equity(account="main", equity=11.0, at=T0)
    with pytest.raises(NotFound, match="did you mean 'main'"):
        memory.record_equity(account="mian", equity=11.0)
