"""The demonstration store: an example strategy trades a year of a simulated market."""

import random
from datetime import UTC, datetime

from backsight.core.simulated_market import simulated_bars
from backsight.memory import Memory, PaperTerms
from backsight.runtime.backtest import BacktestRun, run_backtest
from backsight.runtime.backtest_setup import BacktestSetup, NamedProgress, open_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import example, load_agent

START = datetime(2025, 1, 6, tzinfo=UTC)
DAYS = 364
SYMBOL, PRICE, DAILY_ATR = "XAUUSD", 2650.0, 32.0
STRATEGY = "VolBreakout"
ACCOUNT = "demo"
DEPLOYMENT = f"{STRATEGY}@{ACCOUNT}"
CASH = 100_000.0
TERMS = PaperTerms(fee_rate=0.0001, slippage=0.00005, funding_rate=0.00001)


def fill(memory: Memory, clock: SimulatedClock, *, seed: int, days: int = DAYS, progress: NamedProgress) -> BacktestRun:
    """Fill an empty store: an example strategy trades a simulated year, one tick an hour."""
    agent = load_agent(f"{example('volatility_breakout.py')}:VolatilityBreakout")
    rng = random.Random(f"{seed} {SYMBOL}")  # noqa: S311 (prices, not secrets)
    bars = simulated_bars(rng, symbol=SYMBOL, start=START, days=days, price=PRICE, daily_atr=DAILY_ATR, rests=True)
    setup = BacktestSetup(agent=agent, bars={SYMBOL: bars}, start=START, account=ACCOUNT, terms=TERMS, cash=CASH)
    _, broker = open_backtest(memory, clock, setup, progress=progress)
    return run_backtest(
        memory,
        clock,
        agent,
        broker,
        deployment=DEPLOYMENT,
        bars=setup.bars,
        progress=lambda *counts: progress("Trading a simulated year", *counts),
    )
