"""What is established about how an agent trades, in a prompt."""

from datetime import UTC, datetime

from backsight.core.prompts.how_you_trade import Decline, how_you_trade
from backsight.core.trades.costs import Costs

LARGE = Costs(trades=100, gross=10_932.0, paid=33_424.0)
SMALL = Costs(trades=100, gross=10_932.0, paid=3_000.0)
DECLINE = Decline(symbol="BTC", since=datetime(2026, 3, 2, tzinfo=UTC), won=9, n=34)


def test_how_you_trade_has_its_layout_to_the_byte() -> None:
    habit = ("BTC", "After a loss, sizes are 40% larger (75 trades).")
    assert how_you_trade([habit], costs=LARGE, currency="USD").text == (
        "## How you trade\n"
        "- costs took $33,424 of $10,932 gross in your last 100 trades: a trade must gain $334 to pay its own\n"
        "- BTC: After a loss, sizes are 40% larger (75 trades)."
    )
    assert how_you_trade([habit], declines=[DECLINE], costs=LARGE, currency="USD").text.split("\n")[1] == (
        "- results in BTC have been falling since 2026-03-02: 9 of 34 trades won since then; expectations rest on these"
    )


def test_costs_below_a_third_of_the_gross_result_are_not_told() -> None:
    assert how_you_trade(costs=SMALL, currency="USD").text == ""
