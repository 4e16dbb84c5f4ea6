"""Arms: what each decides, and that one's own arm is asked as the others are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.errors import Invalid
from backsight.core.orders import Order
from backsight.lab.arms import (
    DEFAULT_ARMS,
    AgentArm,
    AgentWithoutMemory,
    Arm,
    ArmDecision,
    Fixed,
    KellySums,
    Question,
    arms_named,
    checked_arms,
)
from backsight.lab.planted import planted_trades
from backsight.lab.replay import replay

PLANTED = planted_trades("edge_by_regime", trades=60, seed=4)


class HalfAfterALoss(Arm):
    """An arm of one's own: half of the recorded size while the last trade was a loss."""

    name = "half_after_a_loss"

    def decide(self, question: Question) -> ArmDecision:
        mood = question.recall.mood
        losses = 0 if mood is None else mood.consecutive_losses
        return ArmDecision(share=question.entry.recorded_share * (0.5 if losses else 1.0))


def test_an_arm_of_ones_own_sees_the_memory_of_the_trades_before() -> None:
    shares = replay(PLANTED.trades, [HalfAfterALoss()]).shares[0]
    lost_before = [False, *(trade.outcome_r < 0 for trade in PLANTED.trades[:-1])]
    assert shares.tolist() == [0.005 if lost else 0.01 for lost in lost_before]


def test_the_simple_arms_decide_as_they_say() -> None:
    decisions = replay(PLANTED.trades, arms_named(DEFAULT_ARMS))
    by_name = dict(zip(decisions.arms, decisions.shares, strict=True))
    assert set(by_name["fixed"].tolist()) == {0.01}
    assert set(by_name["skip_warned"].tolist()) == {0.0, 0.01}
    assert by_name["position_size"][:10].tolist() == [0.01] * 10  # ten trades are needed: until then the recorded size
    sums = KellySums()
    for trade in PLANTED.trades[:-1]:
        sums.add(trade.outcome_r)
    assert by_name["all_kelly"][-1] == sums.quarter_kelly
    assert by_name["owm_score"].max() > 0.1  # its weights contain the outcome: it always sees winners


class ReadsItsPrompt:
    """An agent that trades only what its memory says something about."""

    def __init__(self, side: float = 1.0) -> None:
        self.side = side
        self.prompts: list[str] = []

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        (symbol, mark), opened = next(iter(agent_input.marks.items())), agent_input.opened
        self.prompts.append(opened.text)
        if not any(segment.name == "what_usually_happens" for segment in opened.memory):
            return AgentDecision(reason="Nothing remembered.")
        quantity = 0.02 * agent_input.portfolio.equity / 5.0
        return AgentDecision(order=Order(symbol=symbol, quantity=quantity, stop_price=mark - 5.0), confidence=0.6)


def test_an_agent_is_asked_with_and_without_its_memory() -> None:
    longs = [replace(trade, entry=replace(trade.entry, direction="long")) for trade in PLANTED.trades[:25]]
    agent = ReadsItsPrompt()
    decisions = replay(longs, arms_named(["agent"], agent=agent))
    assert decisions.arms == (AgentArm.name, AgentWithoutMemory.name)
    assert decisions.shares[0, -10:] == pytest.approx(np.full(10, 0.02))
    assert set(decisions.shares[1].tolist()) == {0.0}
    assert np.nanmax(decisions.confidence[0]) == 0.6


def test_an_order_against_the_trade_skips_it() -> None:
    shorts = [replace(trade, entry=replace(trade.entry, direction="short")) for trade in PLANTED.trades[:15]]
    assert set(replay(shorts, [AgentArm(ReadsItsPrompt())]).shares[0].tolist()) == {0.0}


class Reckless(Arm):
    """An arm that risks more than everything."""

    name = "reckless"

    def decide(self, question: Question) -> ArmDecision:
        return ArmDecision(share=2.0)


def test_a_share_above_everything_is_refused() -> None:
    with pytest.raises(Invalid, match=r"share: 'reckless' gives the share 2\.0"):
        replay(PLANTED.trades[:2], [Reckless()])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["position_sizes"], "did you mean 'position_size'"),
        (["agent"], "agent: 'agent' needs an agent"),
    ],
)
def test_a_name_that_is_no_arm_is_refused(names: Sequence[str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        arms_named(names)


def test_the_baseline_comes_first_and_random_skips_need_skips() -> None:
    assert [arm.name for arm in checked_arms(arms_named(["position_size", "fixed"]))] == ["fixed", "position_size"]
    assert checked_arms([HalfAfterALoss()])[0].name == Fixed.name
    with pytest.raises(Invalid, match="random_skip makes as many skips as skip_warned"):
        checked_arms(arms_named(["random_skip"]))
    with pytest.raises(Invalid, match="'fixed' is given twice"):
        checked_arms(arms_named(["fixed", "fixed"]))
