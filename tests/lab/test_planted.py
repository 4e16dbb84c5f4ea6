"""Planted truths are there, and the file of them gives the same trades back."""

from itertools import pairwise

import pytest

from backsight.core.errors import Invalid
from backsight.lab.planted import DEATH, GOOD_REGIME, TRUTHS, Truth, planted_trades, truth_named
from backsight.lab.trades import LabTrade


def win_rate(trades: list[LabTrade]) -> float:
    return sum(trade.outcome_r > 0 for trade in trades) / len(trades)


def test_the_rates_of_winners_are_those_planted() -> None:
    many = {truth: list(planted_trades(truth, trades=20_000, seed=1).trades) for truth in TRUTHS}
    by_regime = many["edge_by_regime"]
    assert win_rate([each for each in by_regime if each.entry.context.regime == GOOD_REGIME]) == pytest.approx(
        0.7, abs=0.02
    )
    assert win_rate([each for each in by_regime if each.entry.context.regime != GOOD_REGIME]) == pytest.approx(
        0.5, abs=0.02
    )
    dying, change = many["edge_that_dies"], int(DEATH * 20_000)
    assert win_rate(dying[:change]) == pytest.approx(0.65, abs=0.02)
    assert win_rate(dying[change:]) == pytest.approx(0.45, abs=0.02)
    assert win_rate(many["no_edge"]) == pytest.approx(0.5, abs=0.02)
    revenge = many["revenge_trading"]
    after_loss = [later for earlier, later in pairwise(revenge) if earlier.outcome_r < 0]
    assert win_rate(after_loss) == pytest.approx(0.4, abs=0.02)
    assert {each.entry.recorded_share for each in after_loss} == {0.02}


@pytest.mark.parametrize("truth", TRUTHS)
def test_every_trade_closes_before_the_next_opens(truth: Truth) -> None:
    trades = planted_trades(truth, trades=300, seed=3).trades
    assert all(trade.entry.at < trade.closed_at for trade in trades)
    assert all(earlier.closed_at < later.entry.at for earlier, later in pairwise(trades))


def test_an_unknown_truth_is_refused() -> None:
    with pytest.raises(Invalid, match="truth: 'luck' is not a truth; give one of edge_by_regime"):
        truth_named("luck")
    with pytest.raises(Invalid, match="trades"):
        planted_trades("no_edge", trades=0)
