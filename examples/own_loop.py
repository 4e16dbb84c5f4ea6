"""Your own loop around the two calls that memory needs: open_tick before a decision, close_tick after it.

The program trades a simulated day by the hour and prints the last text that the agent was shown.
"""

import random
from datetime import UTC, datetime, timedelta

from backsight import Executed, Order, PaperBroker, SimulatedClock, Verdict, open_simulation, simulated_bars

START = datetime(2026, 6, 1, tzinfo=UTC)


def main() -> None:
    """Trade one day: buy after a rising hour, sell after a falling hour; the broker rejects too large orders."""
    rng = random.Random(7)  # noqa: S311 (prices, not secrets)
    bars = simulated_bars(rng, symbol="BTC", start=START, days=1, price=65_000.0, daily_atr=1_800.0)
    clock = SimulatedClock(START)
    with open_simulation(clock) as memory:
        account = memory.open_account(venue="paper", name="mine", mode="paper").account
        memory.save_strategy(name="Hourly", thesis="What rose goes on rising.", risk_per_trade=0.01)
        deployment = memory.deploy(strategy_name="Hourly", account="mine").deployment.name
        broker = PaperBroker(account.id, at=START, cash=10_000.0)
        for hour in range(1, 24):
            at = clock.at = START + timedelta(hours=hour)
            new_bars = [bar for bar in bars if at - timedelta(hours=1) < bar.closes_at <= at]
            broker.advance(new_bars)
            before = broker.snapshot()
            opened = memory.open_tick(deployment=deployment, at=at, before=before, symbols=["BTC"], bars=new_bars)
            size = 0.1 if hour % 6 else 50.0  # now and then an order that is far too large
            order = Order(
                symbol="BTC", quantity=size if new_bars[-1].close > new_bars[0].open else -size, reason="momentum"
            )
            result = broker.submit(order)
            verdict = (
                Verdict(kind="executed")
                if isinstance(result, Executed)
                else Verdict(kind="rejected", rule=result.rule, detail=result.detail)
            )
            memory.close_tick(
                deployment=deployment,
                at=at,
                before=before,
                after=broker.snapshot(),
                proposal=order,
                verdict=verdict,
                bars=new_bars,
                shown=list(opened.memory),
                recalled=list(opened.recalled),
                recalls=list(opened.recalls),
                lessons_hash=opened.lessons_hash,
                seen_at=opened.seen_at,
            )
        print(opened.text)  # noqa: T201
        print(f"\n{opened.total_tokens} tokens with the system prompt, {opened.memory_tokens} of them memory")  # noqa: T201
        tally = memory.get_my_deployments().deployments[0].tally
        print(f"{tally.trades} trades closed, {tally.wins} won, net {tally.pnl:+.2f}")  # noqa: T201


if __name__ == "__main__":
    main()
