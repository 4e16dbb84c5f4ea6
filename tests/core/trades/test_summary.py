"""Summaries of closed trades: a mean in R says of how many trades, and is not given where losers hide."""

from backsight.core.trades.summary import mean_outcomes, outcomes_in_words
from backsight.core.trades.trade import Trade
from core.trades.test_report import a_report, a_trade


def trades(*outcomes: float, unknown: float = 1.0, n: int = 0) -> list[Trade]:
    """Trades with these outcomes in R, and `n` more without any, each with this result in money."""
    known = [a_trade(a_report(pnl=20.0 * r, pnl_r=r)) for r in outcomes]
    return known + [a_trade(a_report(pnl=unknown))] * n


def test_a_mean_of_all_trades_has_its_number() -> None:
    assert outcomes_in_words(trades(2.0, -1.0)) == "+0.50 ± 19.06R (n=2), mean with its 95% interval"


def test_a_mean_of_some_trades_says_of_how_many() -> None:
    (mean,) = mean_outcomes(trades(2.0, -1.0, n=1))
    assert str(mean) == "+0.50 ± 19.06R (2 of 3 trades)"


def test_no_mean_in_r_is_given_where_it_is_known_of_winners_only() -> None:
    coin = trades(*[1.0] * 20, unknown=-20.0, n=20)
    assert mean_outcomes(coin) == []
    assert outcomes_in_words(coin) == (
        "no mean in R is given: R is unknown for 100% of losing trades and 0% of winning ones"
    )


def test_without_outcomes_nothing_is_said() -> None:
    assert outcomes_in_words([]) == ""
