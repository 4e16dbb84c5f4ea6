"""A simulated year of prompts for tests: an agent that trades several markets, and every prompt that it was shown."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backsight.core.decision import AgentDecision, AgentInput, OpenedTick
from backsight.core.market import Bar, aggregate
from backsight.core.orders import Order
from backsight.core.portfolio import Portfolio, Position
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, PaperBroker, PaperTerms, open_simulation
from backsight.runtime.backtest import record_history, run_backtest
from backsight.runtime.clock import SimulatedClock

START = datetime(2025, 1, 6, tzinfo=UTC)
MARKETS = {
    "XAUUSD": (2_650.0, 32.0),
    "BTC/USDT": (60_000.0, 1_900.0),
    "EURUSD": (1.08, 0.0075),
    "ETH/USDT": (3_400.0, 130.0),
    "SPX500": (5_900.0, 70.0),
    "XTIUSD": (71.0, 1.9),
}
"""First price and daily range of each market."""
STRATEGY = "SwingTrader"
TERMS = PaperTerms(fee_rate=0.0003, slippage=0.0001, funding_rate=0.00002, max_leverage=15.0)
REASONS = (
    "breakout above the prior swing high",
    "the lower band held twice; a bounce with the trend",
    "range broke down on rising volume",
    'news said "buy now"; faded the first move',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOfTick:
    """A prompt, and what was true at its instant."""

    opened: OpenedTick
    portfolio: Portfolio
    marks: Mapping[str, float]

    def section(self, name: str) -> list[str]:
        """The rows of a section of memory; empty if it was left out."""
        texts = [segment.text for segment in (*self.opened.system, *self.opened.segments) if segment.name == name]
        return [row for text in texts for row in text.split("\n")]


class SwingTrader:
    """Enters at random with a stop and a target, trails some stops, and keeps every prompt."""

    def __init__(self, *, seed: int) -> None:
        self._rng = random.Random(seed)
        self.prompts: list[PromptOfTick] = []

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        prompt = PromptOfTick(opened=agent_input.opened, portfolio=agent_input.portfolio, marks=agent_input.marks)
        self.prompts.append(prompt)
        orders = [order for symbol in sorted(agent_input.bars) if (order := self._order(agent_input, symbol))]
        return AgentDecision(
            order=orders[0] if orders else None,
            further_orders=tuple(orders[1:]),
            reason="no setup",
            confidence=round(self._rng.uniform(0.3, 0.9), 2),
        )

    def _order(self, agent_input: AgentInput, symbol: str) -> Order | None:
        mark, draw = agent_input.marks.get(symbol), self._rng.random()
        positions = {position.symbol: position for position in agent_input.portfolio.positions}
        if mark is None:
            return None
        if symbol in positions:
            return self._exit(positions[symbol]) if draw < 0.04 else None
        return self._entry(agent_input, symbol, mark) if draw < 0.10 else None

    def _exit(self, position: Position) -> Order:
        return Order(
            symbol=position.symbol,
            quantity=-position.signed_size,
            position_key=position.position_key,
            reason="the setup is spent",
        )

    def _entry(self, agent_input: AgentInput, symbol: str, mark: float) -> Order:
        side, distance = self._rng.choice((-1, 1)), MARKETS[symbol][1] * self._rng.uniform(0.4, 0.9)
        size = 0.005 * agent_input.portfolio.equity / distance
        return Order(
            symbol=symbol,
            quantity=side * float(f"{size:.6g}"),
            stop_price=float(f"{mark - side * distance:.7g}"),
            target_price=float(f"{mark + side * distance * self._rng.uniform(1.0, 3.0):.7g}"),
            reason=self._rng.choice(REASONS),
        )


def hourly_market(symbols: Sequence[str], *, days: int, seed: int) -> dict[str, list[Bar]]:
    """Hourly bars of each market."""
    markets = {}
    for symbol in symbols:
        price, daily_range = MARKETS[symbol]
        rng = random.Random(f"{seed} {symbol}")
        minutes = simulated_bars(rng, symbol=symbol, start=START, days=days, price=price, daily_atr=daily_range)
        markets[symbol] = list(aggregate(minutes, interval_seconds=3_600))
    return markets


def prompts_of_a_period(
    symbols: Sequence[str], *, days: int, seed: int = 7, every: timedelta = timedelta(hours=4)
) -> Iterator[PromptOfTick]:
    """Every prompt of an agent that trades these markets; plans and an event are in force, memory is never withheld."""
    clock, agent = SimulatedClock(START), SwingTrader(seed=seed)
    with open_simulation(clock) as memory:
        _trade(memory, clock, agent, hourly_market(symbols, days=days, seed=seed), every=every)
    yield from agent.prompts


def _trade(
    memory: Memory, clock: SimulatedClock, agent: SwingTrader, bars: Mapping[str, Sequence[Bar]], *, every: timedelta
) -> None:
    record_history(memory, clock, bars)
    clock.at = START
    account = memory.open_account(venue="simulated", name="paper", mode="sim", currency="USD").account
    memory.save_strategy(name=STRATEGY, thesis="Swings between the bands carry on.", risk_per_trade=0.01)
    overrides = MemoryOverrides(holdout=0.0, cadence="off")
    deployment = memory.deploy(strategy_name=STRATEGY, account=account.name, memory=overrides).deployment
    _make_plans(memory, deployment.id)
    broker = PaperBroker(account.id, at=START, cash=100_000.0, terms=TERMS)
    run_backtest(memory, clock, agent, broker, deployment=deployment.id, bars=bars, every=every)


def _make_plans(memory: Memory, deployment: str) -> None:
    plans: tuple[tuple[dict[str, object], dict[str, object]], ...] = (
        ({"symbol": "XAUUSD", "weekday": 4}, {"type": "skip_trade"}),
        (
            {"field": "consecutive_losses", "op": ">=", "value": 3},
            {"type": "adjust_param", "parameter": "size", "magnitude": 0.5},
        ),
        ({"regime": "ranging", "symbol": "BTC/USDT"}, {"type": "alert"}),
    )
    for condition, action in plans:
        memory.create_trading_plan(
            trigger_condition=condition,
            planned_action=action,
            reasoning="learned the hard way",
            expiry_days=400,
            deployment=deployment,
        )
