"""A store to look at: a year of a simulated market, traded by an example strategy tick by tick."""

import random
from collections.abc import Callable
from datetime import UTC, datetime

from backsight.core.simulated_market import simulated_bars
from backsight.memory import Memory, PaperBroker, PaperTerms
from backsight.runtime.backtest import BacktestRun, record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import example, load_agent, memory_for

START = datetime(2025, 1, 6, tzinfo=UTC)
DAYS = 364
SYMBOL, PRICE, DAILY_ATR = "XAUUSD", 2650.0, 32.0
STRATEGY = "VolBreakout"
ACCOUNT = "demo"
DEPLOYMENT = f"{STRATEGY}@{ACCOUNT}"
CASH = 100_000.0
TERMS = PaperTerms(fee_rate=0.0001, slippage=0.00005, funding_rate=0.00001)

Told = Callable[[str, int, int], None]


def fill(memory: Memory, clock: SimulatedClock, *, seed: int, days: int = DAYS, progress: Told) -> BacktestRun:
    """Trade the year hour by hour, and remember all of it."""
    agent = load_agent(f"{example('volatility_breakout.py')}:VolatilityBreakout")
    rng = random.Random(f"{seed} {SYMBOL}")  # noqa: S311 (prices, not secrets)
    bars = simulated_bars(rng, symbol=SYMBOL, start=START, days=days, price=PRICE, daily_atr=DAILY_ATR, rests=True)
    record_history(memory, clock, {SYMBOL: bars}, progress=lambda *at: progress("Recording 5-minute bars", *at))
    clock.at = START
    account = memory.open_account(venue="simulated", name=ACCOUNT, mode="sim").account
    memory.save_strategy(name=STRATEGY, thesis=agent.thesis, rules=list(agent.rules), avoid=list(agent.avoid))
    memory.deploy(strategy_name=STRATEGY, account=ACCOUNT, memory=memory_for(agent))
    return run_backtest(
        memory,
        clock,
        agent,
        PaperBroker(account.id, at=START, cash=CASH, terms=TERMS),
        deployment=DEPLOYMENT,
        bars={SYMBOL: bars},
        progress=lambda *at: progress("Trading a simulated year", *at),
    )
