"""The analysis of decisions that the tests make up: what is called better, and what is not."""

import numpy as np
import pytest

from backsight.core.errors import Invalid
from backsight.lab.analysis import AnalysisTerms, ArmResult, LabAnalysis, analyse
from backsight.lab.arms import Arm, ArmDecision, Fixed, Question
from backsight.lab.equity import Floats
from backsight.lab.planted import GOOD_REGIME, START, planted_trades
from backsight.lab.replay import Replay

PLANTED = planted_trades("edge_by_regime", trades=600, seed=1)
GOOD = np.array([trade.entry.context.regime == GOOD_REGIME for trade in PLANTED.trades])
WON = np.array([trade.outcome_r > 0 for trade in PLANTED.trades])


class Scripted(Arm):
    """An arm whose decisions are given to the analysis."""

    name = "scripted"

    def decide(self, question: Question) -> ArmDecision:
        raise NotImplementedError


def analysed(shares: Floats) -> LabAnalysis:
    """The analysis of an arm with these shares beside the recorded ones."""
    both = np.stack([np.full(600, 0.01), shares])
    decisions = Replay(arms=("fixed", "scripted"), shares=both, confidence=np.full((2, 600), np.nan))
    return analyse(PLANTED, decisions, [Fixed(), Scripted()], AnalysisTerms())


def scripted(shares: Floats) -> ArmResult:
    return analysed(shares).arms[1]


def test_an_arm_that_knows_the_planted_regime_is_called_better_by_choosing() -> None:
    analysis = analysed(np.where(GOOD, 0.01, 0.0))
    assert analysis.arms[1].call == "better"
    assert analysis.verdict.startswith("Better than the recorded sizes: scripted (+")
    assert analysis.verdict.endswith("by choosing its trades.")


def test_an_arm_that_takes_the_losers_is_called_worse() -> None:
    analysis = analysed(np.where(WON, 0.005, 0.01))
    assert analysis.arms[1].call == "worse"
    assert "beyond chance; worse: scripted;" in analysis.verdict


def test_twice_the_size_is_no_difference_and_has_no_place_in_the_null() -> None:
    result = scripted(np.full(600, 0.02))
    assert (result.call, result.place_in_null) == ("no difference", None)


def test_an_arm_that_would_lose_the_account_is_not_called_better() -> None:
    ruin = np.where(GOOD, 0.99, 0.0)
    assert scripted(np.where(GOOD, 0.02, 0.0)).call == "better"
    result = scripted(ruin)
    assert (result.metrics["final_equity"].value or 0.0) < 0.01
    assert result.call == "no difference"


def test_only_trades_opened_in_the_validation_period_are_scored() -> None:
    shares = np.full(600, 0.01)
    shares[:300] = 0.9  # in training only
    assert scripted(shares).metrics == analysed(np.full(600, 0.01)).arms[0].metrics
    assert len(analysed(shares).scored) == 300


def test_a_validation_period_without_trades_is_refused() -> None:
    decisions = Replay(arms=("fixed",), shares=np.full((1, 600), 0.01), confidence=np.full((1, 600), np.nan))
    terms = AnalysisTerms(training=START.replace(year=2030))
    with pytest.raises(Invalid, match="training: no trade was opened in the validation period"):
        analyse(PLANTED, decisions, [Fixed()], terms)
