"""The demonstration store: an example strategy trades a year of a simulated market with its memory."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backsight.core.market import Bar
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import Cadence
from backsight.memory import Memory, PaperTerms
from backsight.runtime.backtest import BacktestResult, run_backtest
from backsight.runtime.backtest_setup import BacktestSetup, NamedProgress, open_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.demo_owner import tell_about_owner
from backsight.runtime.load import example, load_agent

START = datetime(2025, 1, 6, tzinfo=UTC)
DAYS = 364
EVERY = timedelta(hours=4)
SEED = 7
SYMBOL, PRICE, DAILY_ATR = "XAUUSD", 2650.0, 32.0
STRATEGY = "VolBreakout"
ACCOUNT = "demo"
DEPLOYMENT = f"{STRATEGY}@{ACCOUNT}"
CASH = 100_000.0
TERMS = PaperTerms(fee_rate=0.0001, slippage=0.00005, funding_rate=0.00001)
HOLDOUT = 0.2
"""Share of days, assigned at random, on which the agent sees no memory."""
CADENCE = Cadence(kind="per_n_trades", trades=10)

SOUL = "# Soul\n\nA patient trader of breaks. Being flat is a position; boredom is not a reason to trade.\n"
MANUAL = """# Trading manual

## R1_RISK_PER_TRADE

Risk at most 1.5% of equity on a trade, measured to the stop.

## R2_DAILY_LOSS

1. Stop opening trades for the day after a loss of 3% of the day-start equity.
2. Two stops in a row on XAUUSD: half size until the next winner.

## R3_NEWS

| event | rule |
|---|---|
| US payrolls | no entry from 30 minutes before to 15 minutes after |
| Fed decision | flat an hour before |
"""
JOURNAL = """# 2025-01-03

Set the account up with 100,000 dollars, and the strategy with a risk of 1% a trade. XAUUSD rests from Friday 22:00 to
Sunday 22:00 UTC: a stop does not protect over the weekend.
"""
DOCUMENTS: Mapping[str, str] = {"SOUL.md": SOUL, "TRADING_MANUAL.md": MANUAL, "journal/2025-01-03.md": JOURNAL}


def write_workspace(folder: Path) -> None:
    """Write the documents of the demonstration into a folder."""
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def demo_bars(*, seed: int = SEED, days: int = DAYS) -> list[Bar]:
    """The 5-minute bars of the simulated market."""
    rng = random.Random(f"{seed} {SYMBOL}")  # noqa: S311 (prices, not secrets)
    return simulated_bars(rng, symbol=SYMBOL, start=START, days=days, price=PRICE, daily_atr=DAILY_ATR, rests=True)


def fill(
    memory: Memory,
    clock: SimulatedClock,
    *,
    seed: int = SEED,
    days: int = DAYS,
    every: timedelta = EVERY,
    progress: NamedProgress,
) -> BacktestResult:
    """Fill an empty store: an example strategy trades a simulated year with its memory, which some days hold back."""
    agent = load_agent(f"{example('volatility_breakout.py')}:AdvisedBreakout")
    setup = BacktestSetup(
        agent=agent,
        bars={SYMBOL: demo_bars(seed=seed, days=days)},
        start=START,
        account=ACCOUNT,
        terms=TERMS,
        cash=CASH,
        every=every,
        cadence=CADENCE,
        holdout=HOLDOUT,
    )
    _, broker = open_backtest(memory, clock, setup, progress=progress)
    tell_about_owner(memory, seed=seed)
    return run_backtest(
        memory,
        clock,
        agent,
        broker,
        deployment=DEPLOYMENT,
        bars=setup.bars,
        every=every,
        progress=lambda *counts: progress("Trading a simulated year", *counts),
    )
