"""The example strategies follow their rules and decide only on their input."""

import importlib.util
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from backsight.adapters.brokers.paper import PaperBroker, PaperTerms
from backsight.core.decision import AgentDecision, AgentInput, OpenedTick
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Executed, Order, OrderResult
from backsight.core.simulated_market import simulated_bars
from backsight.ports import Agent

EXAMPLES = Path(__file__).parents[2] / "examples"
START = datetime(2025, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAYS, BARS_SEEN = 42, 300
MARKETS = {"BTC/USDT": (98_000.0, 3_100.0, False), "XAUUSD": (2650.0, 32.0, True)}
CLASSES = {
    "volatility_breakout": "VolatilityBreakout",
    "intraday_momentum": "IntradayMomentum",
    "mean_reversion": "MeanReversion",
}
every_strategy = pytest.mark.parametrize("file", CLASSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The input of a strategy at a tick, its decision, and the result of its order."""

    before: BrokerSnapshot
    agent_input: AgentInput
    decision: AgentDecision
    result: OrderResult | None

    @property
    def position_size(self) -> float:
        """The signed size of the position in the symbol of the order."""
        positions = self.agent_input.portfolio.positions
        return sum(each.signed_size for each in positions if each.symbol == self.order.symbol)

    @property
    def order(self) -> Order:
        assert self.decision.order is not None
        return self.decision.order

    @property
    def kind(self) -> str:
        """Whether the order is an entry, a turn, an exit or a moved level; "nothing" without an order."""
        if self.decision.order is None:
            return "nothing"
        if self.order.quantity == 0:
            return "move"
        return "exit" if self.order.reduce_only else "turn" if self.position_size else "entry"


@cache
def strategy(file: str) -> Any:
    """The strategy class of an example, loaded by its path."""
    spec = importlib.util.spec_from_file_location(file, EXAMPLES / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, CLASSES[file])


@cache
def bars_by_tick() -> Mapping[int, Sequence[Bar]]:
    """The bars of both markets, in the order of their closes, by the hour at which they become visible."""
    bars: list[Bar] = []
    for symbol, (price, atr, rests) in MARKETS.items():
        rng = random.Random(f"7 {symbol}")
        bars += simulated_bars(rng, symbol=symbol, start=START, days=DAYS, price=price, daily_atr=atr, rests=rests)
    ticks: dict[int, list[Bar]] = {number: [] for number in range(1, 24 * DAYS + 1)}
    for bar in sorted(bars, key=lambda bar: bar.closes_at):
        ticks[-((START - bar.closes_at) // HOUR)].append(bar)
    return ticks


def an_agent_input(snapshot: BrokerSnapshot, *, at: datetime, bars: Mapping[str, Sequence[Bar]]) -> AgentInput:
    opened = OpenedTick(
        decision_id="tick",
        deployment_id="deployment",
        at=at,
        sequence=0,
        as_of=at,
        seen_at=at,
        memory_arm="off",
        segments=(),
        recalled=(),
        lessons_hash=None,
        contexts=(),
    )
    return AgentInput(at=at, open_tick=lambda: opened, portfolio=snapshot.portfolio, marks=snapshot.marks, bars=bars)


def traded(agent: Agent) -> Iterator[Tick]:
    """Weeks of hourly decisions, each executed by a paper broker."""
    broker = PaperBroker("paper", at=START, cash=10_000.0, terms=PaperTerms(fee_rate=0.0002, slippage=0.0001))
    history: dict[str, list[Bar]] = {symbol: [] for symbol in MARKETS}
    for number, closed in bars_by_tick().items():
        broker.advance(closed)
        for bar in closed:
            history[bar.symbol].append(bar)
        before, recent = broker.snapshot(), {symbol: bars[-BARS_SEEN:] for symbol, bars in history.items()}
        agent_input = an_agent_input(before, at=START + number * HOUR, bars=recent)
        decision = agent.decide(agent_input)
        result = broker.submit(decision.order) if decision.order else None
        yield Tick(before=before, agent_input=agent_input, decision=decision, result=result)


@cache
def weeks(file: str) -> Sequence[Tick]:
    return list(traded(strategy(file)()))


def entries(file: str) -> list[Tick]:
    ticks = [tick for tick in weeks(file) if tick.kind in ("entry", "turn")]
    assert len(ticks) > 10
    return ticks


@every_strategy
def test_a_strategy_has_a_name_a_thesis_and_rules(file: str) -> None:
    example = strategy(file)
    assert all(
        isinstance(text, str) and text for text in (example.name, example.thesis, *example.rules, *example.avoid)
    )
    assert isinstance(example.rules, tuple)
    assert isinstance(example.avoid, tuple)


@every_strategy
def test_a_strategy_trades_both_markets_both_ways_and_every_order_is_accepted(file: str) -> None:
    directions = {(tick.order.symbol, tick.order.quantity > 0) for tick in entries(file)}
    assert directions == {(symbol, is_long) for symbol in MARKETS for is_long in (True, False)}
    assert all(isinstance(tick.result, Executed) for tick in weeks(file) if tick.result)


@every_strategy
def test_every_entry_has_a_stop_where_it_loses_a_reason_and_a_confidence(file: str) -> None:
    for tick in entries(file):
        stop, mark = tick.order.stop_price, tick.agent_input.marks[tick.order.symbol]
        assert stop is not None
        assert (stop < mark) == (tick.order.quantity > 0)
        assert tick.decision.confidence is not None
        assert 0 < tick.decision.confidence < 1


@every_strategy
def test_every_decision_has_a_reason_of_one_line(file: str) -> None:
    for tick in weeks(file):
        reason = tick.order.reason if tick.decision.order else tick.decision.reason
        assert reason is not None
        assert reason.endswith(".")
        assert reason.isprintable()


@every_strategy
def test_an_entry_risks_a_hundredth_of_equity_at_most_and_notional_stays_within_three_times(file: str) -> None:
    for tick in entries(file):
        order, portfolio = tick.order, tick.agent_input.portfolio
        mark, size = tick.agent_input.marks[order.symbol], abs(tick.position_size + order.quantity)
        assert order.stop_price is not None
        assert size * abs(mark - order.stop_price) <= 0.0101 * portfolio.equity
        others = sum(each.size * each.mark for each in portfolio.positions if each.symbol != order.symbol)
        assert others + size * mark <= 3.000001 * portfolio.equity


@every_strategy
def test_the_same_input_gives_the_same_decision_whatever_came_before(file: str) -> None:
    used = strategy(file)()
    for tick in reversed(weeks(file)[::3]):
        assert used.decide(tick.agent_input) == strategy(file)().decide(tick.agent_input) == tick.decision


@every_strategy
@pytest.mark.parametrize("count", [0, 10])
def test_a_strategy_orders_nothing_with_too_few_bars(file: str, count: int) -> None:
    for tick in entries(file):
        bars = {symbol: bars[len(bars) - count :] for symbol, bars in tick.agent_input.bars.items()}
        assert strategy(file)().decide(replace(tick.agent_input, bars=bars)).order is None
    assert strategy(file)().decide(replace(weeks(file)[-1].agent_input, bars={})).order is None


@every_strategy
def test_a_strategy_orders_nothing_without_a_mark_or_after_the_close(file: str) -> None:
    agent = strategy(file)()
    for tick in (tick for tick in weeks(file) if tick.decision.order):
        assert agent.decide(replace(tick.agent_input, marks={})).order is None
        assert agent.decide(replace(tick.agent_input, at=tick.agent_input.at + HOUR)).order is None


@every_strategy
def test_half_the_risk_is_half_the_size(file: str) -> None:
    agent_input = entries(file)[0].agent_input
    half, whole = (strategy(file)(risk=risk).decide(agent_input).order.quantity for risk in (0.001, 0.002))
    assert half == pytest.approx(whole / 2, abs=0.0001)


@pytest.mark.parametrize(
    ("file", "kinds", "reasons"),
    [
        ("volatility_breakout", {"entry", "turn", "move"}, {"stop_loss"}),
        ("intraday_momentum", {"entry", "exit"}, {"stop_loss", "take_profit"}),
        ("mean_reversion", {"entry", "exit", "move"}, {"stop_loss", "take_profit"}),
    ],
)
def test_every_strategy_exits_in_its_own_ways(file: str, kinds: set[str], reasons: set[str]) -> None:
    assert {tick.kind for tick in weeks(file)} == kinds | {"nothing"}
    assert {fill.reason for tick in weeks(file) for fill in tick.before.fills} - {None} == reasons


def test_a_breakout_never_moves_its_stop_away() -> None:
    for tick in (tick for tick in weeks("volatility_breakout") if tick.kind == "move"):
        position = tick.agent_input.portfolio.by_key()[tick.order.symbol]
        assert position.stop_price is not None
        assert tick.order.stop_price is not None
        assert (tick.order.stop_price > position.stop_price) == (position.direction == "long")


def test_intraday_momentum_holds_nothing_overnight() -> None:
    for tick in weeks("intraday_momentum"):
        night = not 7 <= tick.agent_input.opened.at.hour < 22
        assert not (night and tick.agent_input.portfolio.positions)
