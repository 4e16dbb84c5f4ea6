"""The recommended size is recorded with the decision of an entry; habits compare it with the risk taken."""

from datetime import datetime, timedelta

import pytest

from backsight.core.decision import Verdict
from backsight.core.instants import JUST_BEFORE
from backsight.core.memory.conditions import parse_condition
from backsight.core.orders import Order
from backsight.core.portfolio import Direction
from backsight.core.recommended_size import PositionSize
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.services.advice import AdviceEvidence, advice_evidence
from backsight.services.deployments import deployment_named
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call

DEPLOYMENT = "S@main"
HOUR = timedelta(hours=1)
WAYS: tuple[Direction, ...] = ("long", "short")


def deployed(memory: Memory, clock: FakeClock, *, winners: int = 60) -> None:
    """A strategy that won three of four trades in two months before T0, and its deployment."""
    clock.at = T0 - HOUR
    memory.open_account(venue="x", name="main", currency="EUR")
    memory.save_strategy(name="S")
    memory.deploy(strategy_name="S", account="main")
    for number in range(winners):
        won = number % 4 > 0
        result = {"pnl": 200.0, "pnl_r": 2.0} if won else {"pnl": -100.0, "pnl_r": -1.0}
        closed_at = T0 - (winners - number) * 25 * HOUR
        memory.remember_trade(**a_trade_call(symbol="BTC", strategy_name="S", closed_at=closed_at, **result))


def trade_once(
    memory: Memory, clock: FakeClock, at: datetime, *, quantity: float = 2.0
) -> tuple[ClosedTick, ClosedTick]:
    """Enter at an instant with a stop 5 below, and leave an hour later."""
    position = a_position(quantity, stop_price=95.0)
    ticks = []
    for when, before, after, order in ((at, [], [position], quantity), (at + HOUR, [position], [], -quantity)):
        clock.at = max(clock.at, when)
        ticks.append(
            memory.close_tick(
                deployment=DEPLOYMENT,
                at=when,
                before=a_snapshot(*before, at=when),
                after=a_snapshot(*after, at=when),
                proposal=Order(symbol="BTC", quantity=order),
                verdict=Verdict(kind="executed"),
            )
        )
    return ticks[0], ticks[1]


def enter(memory: Memory, *, quantity: float) -> None:
    """Enter at T0 with a stop 5 below."""
    memory.close_tick(
        deployment=DEPLOYMENT,
        at=T0,
        before=a_snapshot(at=T0),
        after=a_snapshot(a_position(quantity, stop_price=95.0), at=T0),
        proposal=Order(symbol="BTC", quantity=quantity),
        verdict=Verdict(kind="executed"),
    )


def test_the_share_recommended_at_entry_is_that_of_position_size_right_before_the_tick(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory, clock)
    entered, left = trade_once(memory, clock, T0)
    (trade,) = entered.opened
    advice = memory.position_size(
        symbol="BTC",
        direction="long",
        strategy_name="S",
        deployment=DEPLOYMENT,
        context=trade.context,
        as_of=T0 - JUST_BEFORE,
    )
    assert (advice.size.kind, trade.entry.recommended_share) == ("sized", advice.size.recommended)
    assert trade.entry.recommended_share == entered.decision.recommended_share
    assert left.decision.recommended_share is None
    episode = memory.get_trade(trade_id=trade.id).episode
    assert episode is not None
    assert (episode.recommended_share, episode.risk_share) == (advice.size.recommended, 10.0 / 10_000.0)


def test_before_any_result_in_r_nothing_is_recommended(memory: Memory, clock: FakeClock) -> None:
    deployed(memory, clock, winners=0)
    assert trade_once(memory, clock, T0)[0].decision.recommended_share is None


def test_habits_compare_the_risk_taken_with_the_risk_recommended(memory: Memory, clock: FakeClock) -> None:
    deployed(memory, clock)
    shares = []
    for number in range(10):
        entered, _ = trade_once(memory, clock, T0 + 3 * number * HOUR)
        shares.append(entered.decision.recommended_share or 0.0)
    (behavior,) = memory.get_behavioral_analysis(strategy_name="S", symbol="BTC").behaviors
    figure = behavior.habits.size_against_recommended
    assert figure.n == 10
    assert figure.value == pytest.approx(sum(0.001 / share for share in shares) / 10)
    assert memory.doctor().healthy


def test_a_recommendation_stays_and_can_be_computed_again_after_older_trades_were_remembered(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory, clock)
    entered, _ = trade_once(memory, clock, T0)
    for number in range(20):
        closed_at = T0 - timedelta(days=1, hours=number)
        memory.remember_trade(
            **a_trade_call(symbol="BTC", strategy_name="S", closed_at=closed_at, pnl=-100.0, pnl_r=-1.0)
        )
    decision = memory.list_decisions(deployment=DEPLOYMENT).decisions[-1]
    assert decision == entered.decision
    again = memory.position_size(
        symbol="BTC",
        direction="long",
        strategy_name="S",
        deployment=DEPLOYMENT,
        context=entered.opened[0].context,
        as_of=T0 - JUST_BEFORE,
        seen_at=decision.recorded_at,
    )
    assert again.size.recommended == decision.recommended_share


def test_an_open_trade_on_the_same_signal_takes_its_risk_off(memory: Memory, clock: FakeClock) -> None:
    """Four copies of one signal used to get the whole size each."""
    deployed(memory, clock)
    clock.at = T0

    def advice(symbol: str, direction: Direction) -> PositionSize:
        return memory.position_size(
            symbol=symbol, direction=direction, strategy_name="S", deployment=DEPLOYMENT, as_of=clock.now()
        ).size

    before = {(symbol, way): advice(symbol, way) for symbol in ("BTC", "ETH") for way in WAYS}
    enter(memory, quantity=60.0)
    clock.advance(hours=1)
    btc, eth = advice("BTC", "long"), advice("ETH", "long")
    assert btc.open_risk == eth.open_risk
    assert btc.open_risk.trades == 1
    assert btc.open_risk.share == pytest.approx(0.03)
    free = before["BTC", "long"]
    assert free.recommended == 0.05
    assert btc.recommended == pytest.approx(0.02)
    assert btc.reason.endswith("3.0% is already at risk on the same signal: 2.0% is left.")
    assert advice("BTC", "short") == before["BTC", "short"]


def test_an_open_trade_does_not_change_advice_since_advice_outlasts_it(memory: Memory, clock: FakeClock) -> None:
    deployed(memory, clock)
    clock.at = T0

    def evidence() -> AdviceEvidence:
        with memory.reading() as connection:
            deployment = deployment_named(connection, memory.owner, DEPLOYMENT)
            condition = parse_condition({"symbol": "BTC"})
            return advice_evidence(memory.view(connection), deployment, condition)

    before = evidence()
    enter(memory, quantity=60.0)
    clock.advance(hours=1)
    assert memory.position_size(symbol="BTC", direction="long", strategy_name="S").size.open_risk.share > 0.0
    assert evidence() == before
