"""The equity behind returns: of which accounts, from which reading, and why it may not be known."""

from backsight.memory import Memory
from backsight.services.performance import KnownTrades, equity_of, performance_of
from backsight.testing import FakeClock, a_trade_call


def test_the_equity_is_that_of_the_first_reading_before_what_led_to_it(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call(pnl=100.0, pnl_r=1.0))
    clock.advance(days=1)
    memory.record_equity(equity=1_100.0)
    with memory.reading() as connection:
        view = memory.view(connection)
        trades = KnownTrades(view=view, columns=memory.database.trade_images.at(view))
        deployment = memory.get_my_deployments().deployments[0].deployment
        (account,) = equity_of(trades, [deployment]).accounts
        assert account.first == 1_000.0
        assert performance_of(trades, [deployment]).returns.days == 1


def test_accounts_in_several_currencies_have_no_equity_together(memory: Memory) -> None:
    memory.save_strategy(name="S", thesis="t")
    for currency in ("USD", "EUR"):
        memory.open_account(venue="x", name=currency, currency=currency, mode="paper")
        memory.deploy(strategy_name="S", account=currency)
    deployments = [each.deployment for each in memory.get_my_deployments().deployments]
    with memory.reading() as connection:
        view = memory.view(connection)
        trades = KnownTrades(view=view, columns=memory.database.trade_images.at(view))
        assert equity_of(trades, deployments).missing == "the accounts have several currencies"
        assert equity_of(trades, deployments[:1]).missing == (
            "no equity of the account 'EUR' is known; record_equity records it"
        )
