"""Whole counts of trades that won."""

from backsight.core.recall.won_counts import WonCount


def test_a_situation_without_trades_is_named() -> None:
    assert WonCount(won=0, n=0, categories={"regime": "ranging"}).text == "none in ranging markets"
    assert WonCount(won=3, n=8, categories={}).text == "3 of 8 won"
