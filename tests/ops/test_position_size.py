"""Position size: the trades it is computed from, the risk appetite it is multiplied by, and when it is refused."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from backsight.answers.layouts import brief_of
from backsight.core.errors import Invalid
from backsight.memory import Memory, open_memory
from backsight.ops.recall import SizeAdvice
from backsight.testing import FakeClock, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"


@pytest.fixture
def quick(clock: FakeClock) -> Iterator[Memory]:
    """A memory for many trades, with VolBreakout@main."""
    with open_memory("sqlite://", owner="ana", actor="test", clock=clock) as opened:
        deployed(opened)
        yield opened


def traded(memory: Memory, clock: FakeClock, *results: float, **changes: Any) -> None:
    """Remember one trade a day, with these results in R."""
    for r in results:
        clock.advance(days=1)
        trade = {"deployment": DEPLOYMENT, "pnl": 100 * r, "pnl_r": r, "symbol": "BTC", "opened_at": clock.now()}
        memory.remember_trade(**a_trade_call(**trade | changes))


def edge(share: float, n: int) -> list[float]:
    rng = random.Random(n)
    return [1.0 if rng.random() < share else -1.0 for _ in range(n)]


def advised(memory: Memory, **query: Any) -> SizeAdvice:
    defaults = {"symbol": "BTC", "direction": "long", "strategy_name": "VolBreakout"}
    return memory.position_size(**defaults | query)


def test_fewer_than_ten_results_give_no_size_and_a_reason(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    assert advised(memory).size.reason == "No trades with a result in R; 10 are needed."
    traded(memory, clock, *[2.0] * 9)
    size = advised(memory).size
    assert size.recommended is None
    assert (size.kind, size.reason) == ("no_recommendation", "Only 9 trades with a result in R; 10 are needed.")


def test_an_edge_gets_a_size_and_a_losing_record_gets_none(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *edge(0.75, 120))
    assert 0.02 < (advised(quick).size.recommended or 0.0) <= 0.05
    traded(quick, clock, *edge(0.1, 120))
    assert advised(quick).size.recommended == 0.0


def test_the_drawdown_of_the_account_lowers_the_risk_appetite(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *edge(0.7, 100))
    whole = advised(quick)
    for equity in (10_000.0, 9_000.0):
        clock.advance(hours=1)
        quick.record_equity(account="main", equity=equity)
    half = advised(quick)
    assert (whole.deployment, half.size.risk_appetite) == (DEPLOYMENT, 0.75)
    assert half.size.uncapped == pytest.approx(0.75 * whole.size.uncapped)


def test_paper_results_do_not_count_for_live_sizes(quick: Memory, clock: FakeClock) -> None:
    quick.open_account(venue="v", name="paper", mode="paper")
    quick.deploy(strategy_name="VolBreakout", account="paper")
    traded(quick, clock, *[1.0] * 30, deployment="VolBreakout@paper")
    live = advised(quick, mode="live")
    assert (live.size.n, live.deployment) == (0, DEPLOYMENT)
    assert live.message.endswith("There are 30 closed trades with mode='paper'.")
    assert advised(quick, mode="paper").size.n == advised(quick, deployment="VolBreakout@paper").size.n == 30
    default = advised(quick)
    assert (default.size.n, default.mode, default.deployment) == (30, "paper", None)
    assert default.message.startswith("Mode paper, the only one with closed trades. There are 2 deployments, so the")
    traded(quick, clock, *[1.0] * 3)
    later = advised(quick)
    assert later.size.n == 30
    assert later.message.startswith("Mode paper, with most trades. 3 trades in live are not counted: mode='live'.")


def test_trades_without_a_risk_give_no_size_and_name_what_is_missing(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    traded(memory, clock, *[1.0] * 3, pnl_r=None)
    with pytest.raises(Invalid, match="strategy_name: none of the 3 closed trades of 'VolBreakout' has a result in R"):
        advised(memory)


def test_the_size_as_of_an_instant_does_not_change_later(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    traded(memory, clock, *[1.0, 1.0, -1.0] * 4)
    then, answer = clock.now(), advised(memory)
    traded(memory, clock, -1.0, -1.0)
    memory.remember_trade(
        **a_trade_call(deployment=DEPLOYMENT, pnl=-900.0, pnl_r=-9.0, closed_at=then - timedelta(days=3))
    )
    assert advised(memory, as_of=then, seen_at=then).size == answer.size
    assert advised(memory, as_of=then).size.n == answer.size.n + 1


def test_a_later_deployment_does_not_change_an_earlier_answer(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *[1.0] * 12)
    then, answer = clock.now(), advised(quick)
    clock.advance(days=1)
    quick.open_account(venue="v", name="second")
    quick.deploy(strategy_name="VolBreakout", account="second")
    assert advised(quick).deployment is None
    assert advised(quick, as_of=then) == answer


def test_while_results_fall_only_trades_since_the_fall_count(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *[1.0, -0.5] * 60)
    before = advised(quick)
    traded(quick, clock, *[-1.0] * 25)
    fallen = advised(quick)
    assert (before.since, before.left_out) == (None, 0)
    assert fallen.since is not None
    assert fallen.left_out >= 115
    assert fallen.size.recommended == 0.0


def test_r_that_is_known_of_winners_only_gives_neither_size_nor_mean(quick: Memory, clock: FakeClock) -> None:
    """A coin whose R is missing for half of the losers."""
    for number in range(24):
        traded(quick, clock, 1.0)
        traded(quick, clock, -1.0, **({"pnl_r": None} if number % 2 else {}))
    size = advised(quick).size
    assert (size.kind, size.recommended, size.mean, size.unknown) == ("no_recommendation", None, None, 12)
    assert size.reason.startswith("R is unknown for 50% of losing trades and 0% of winning ones: neither")
    rate = quick.recall_memories(symbol="BTC", strategy_name="VolBreakout").base_rate
    assert rate is not None
    assert rate.headline.outcomes == ()
    assert "no mean is given: R is unknown for 50% of losing trades" in rate.sentence


def test_strategies_tried_in_the_mode_lower_the_size_as_of_then(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *edge(0.75, 60))
    alone, then = advised(quick).size, clock.now()
    for name in ("A", "B", "C"):
        traded(quick, clock, *edge(0.5, 10 if name != "C" else 9), strategy_name=name, deployment=None)
    others = advised(quick).size
    assert (alone.strategies, others.strategies) == (1, 3), "C has too few trades to be sized"
    assert others.uncapped < alone.uncapped
    assert advised(quick, as_of=then).size == alone
    assert " for 3 strategies tried" in others.reason


def test_a_brief_answer_says_the_kind(quick: Memory, clock: FakeClock) -> None:
    traded(quick, clock, *edge(0.75, 120))
    sized, unknown = advised(quick), advised(quick, as_of=clock.now() - timedelta(days=5000))
    assert (sized.size.kind, sized.size.recommended) == ("sized", 0.05)
    assert "\nRisk 5.00% of equity. +" in brief_of(sized).text()
    assert brief_of(sized).as_json()["size"] == {"kind": "sized", "recommended": 0.05}
    assert "No recommendation: the strategy's own risk applies. No trades with" in brief_of(unknown).text()
    assert brief_of(unknown).as_json()["size"] == {"kind": "no_recommendation"}
