"""The replay: nothing later is known, and both databases give the same decisions."""

import numpy as np
import pytest

from backsight.core.errors import Conflict
from backsight.lab.arms import DEFAULT_ARMS, Arm, ArmDecision, Question, arms_named
from backsight.lab.replay import replay
from lab_samples import overlapping_trades


class Records(Arm):
    """Notes which trades memory has at each entry."""

    name = "records"

    def __init__(self) -> None:
        self.remembered: list[int] = []

    def decide(self, question: Question) -> ArmDecision:
        self.remembered.append(len(question.memory.list_trades(limit=100, mode="sim").trades))
        return ArmDecision(share=0.0)


def test_memory_has_exactly_the_trades_that_closed_before_the_entry() -> None:
    trades, arm = overlapping_trades(40), Records()
    replay(trades, [arm])
    assert arm.remembered == [sum(other.closed_at < trade.entry.at for other in trades) for trade in trades]


def test_the_future_does_not_change_a_decision() -> None:
    trades = overlapping_trades(60)
    whole = replay(trades, arms_named(DEFAULT_ARMS))
    past = replay(trades[:40], arms_named(DEFAULT_ARMS))
    assert whole.shares[:, :40].tobytes() == past.shares.tobytes()
    assert np.array_equal(whole.confidence[:, :40], past.confidence, equal_nan=True)


def test_both_databases_give_the_same_decisions(url: str) -> None:
    trades = overlapping_trades(30)
    stored, in_memory = replay(trades, arms_named(DEFAULT_ARMS), url=url), replay(trades, arms_named(DEFAULT_ARMS))
    assert stored.shares.tobytes() == in_memory.shares.tobytes()
    with pytest.raises(Conflict, match="url: the store has the trades of another run"):
        replay(trades, arms_named(DEFAULT_ARMS), url=url)


def test_progress_is_reported_to_the_end() -> None:
    reports: list[tuple[int, int]] = []
    replay(overlapping_trades(5), arms_named(["fixed"]), progress=lambda *counts: reports.append(counts))
    assert reports[-1] == (10, 10)
