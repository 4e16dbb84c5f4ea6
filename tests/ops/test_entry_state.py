"""What the account is worth and the agent's mood: fed by trades, readings and ticks, and kept with every entry."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.core.decision import Verdict
from backsight.core.instants import JUST_BEFORE
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call

HOUR = timedelta(hours=1)


def a_loss(number: int, **changes: Any) -> dict[str, Any]:
    """A losing trade of one hour that closed `number` hours after T0."""
    closed_at = T0 + number * HOUR
    call = a_trade_call(pnl=-100.0, pnl_r=-1.0, opened_at=closed_at - HOUR, closed_at=closed_at, confidence=None)
    return call | changes


def deployed(memory: Memory, *, currency: str = "USD") -> str:
    memory.open_account(venue="x", name="main", currency=currency)
    memory.save_strategy(name="VolBreakout")
    return memory.deploy(strategy_name="VolBreakout", account="main").deployment.name


@pytest.mark.parametrize(("currency", "dollars"), [("USD", (107.0, 7.0, -20.0, 1.0)), ("USDT", (None,) * 4)])
@pytest.mark.parametrize("imported", [False, True])
def test_a_reported_trade_is_in_dollars_on_a_dollar_account_and_only_there(
    memory: Memory, tmp_path: Path, imported: bool, currency: str, dollars: tuple[float | None, ...]
) -> None:
    call = a_trade_call(
        pnl=100.0, pnl_r=1.0, fees=7.0, max_adverse_excursion=20.0, deployment=deployed(memory, currency=currency)
    )
    if imported:
        file = tmp_path / "trades.jsonl"
        file.write_text(json.dumps(call | {"closed_at": T0.isoformat()}))
        memory.import_trades(path=str(file))
    else:
        memory.remember_trade(**call)
    (trade,) = memory.list_trades().trades
    assert (trade.realized_pnl_usd, trade.fees_usd, trade.mae_usd, trade.usd_rate) == dollars


def test_a_trade_without_a_deployment_is_on_a_dollar_account(memory: Memory) -> None:
    assert memory.remember_trade(**a_loss(0)).trade.realized_pnl_usd == -100.0


def by_trades(memory: Memory, deployment: str, equity: Mapping[int, float]) -> None:
    for number, worth in equity.items():
        memory.remember_trade(**a_loss(number, deployment=deployment, equity=worth))


def by_readings(memory: Memory, deployment: str, equity: Mapping[int, float]) -> None:
    for number, worth in equity.items():
        memory.remember_trade(**a_loss(number, deployment=deployment))
        memory.record_equity(equity=worth, at=T0 + number * HOUR, deployment=deployment)


def by_ticks(memory: Memory, deployment: str, equity: Mapping[int, float]) -> None:
    for number in equity:
        memory.remember_trade(**a_loss(number, deployment=deployment))
    for number, worth in equity.items():
        at = T0 + number * HOUR
        snapshot = a_snapshot(at=at, equity=worth)
        memory.close_tick(deployment=deployment, at=at, before=snapshot, verdict=Verdict(kind="noop"))


@pytest.mark.parametrize("feed", [by_trades, by_readings, by_ticks])
def test_equity_makes_the_same_mood_and_the_same_recall_wherever_it_comes_from(
    memory: Memory, clock: FakeClock, feed: Any
) -> None:
    clock.at = T0 + 10 * HOUR
    deployment = deployed(memory)
    feed(memory, deployment, {1: 10_000.0, 2: 9_500.0, 3: 8_800.0})
    mood = memory.get_agent_state(deployment=deployment).mood
    assert (mood.peak, mood.equity, round(mood.drawdown, 9)) == (10_000.0, 8_800.0, 0.12)
    assert (round(mood.drawdown_state, 9), round(mood.risk_appetite, 9)) == (0.6, 0.64)
    recall = memory.recall_memories(symbol="XAUUSD", deployment=deployment)
    assert recall.mood == mood
    assert {each.factors.Aff for each in recall.memories} == {1.0}  # losses of 1R are not beyond 1.5R
    memory.remember_trade(**a_loss(4, pnl=-200.0, pnl_r=-2.0))
    again = memory.recall_memories(symbol="XAUUSD", deployment=deployment, mode="live")
    assert again.mood == mood


def test_a_deep_drawdown_that_trades_report_reaches_recalls_affect(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 10 * HOUR
    deployment = deployed(memory)
    memory.remember_trade(**a_loss(1, deployment=deployment, equity=10_000.0))
    memory.remember_trade(**a_loss(2, deployment=deployment, equity=8_800.0, pnl=-1_200.0, pnl_r=-2.0))
    factors = {
        m.episode.pnl: m.factors.Aff for m in memory.recall_memories(symbol="XAUUSD", deployment=deployment).memories
    }
    assert factors == {-100.0: 1.0, -1_200.0: 1.15}


def test_the_equity_of_a_trade_is_stored_once_and_its_audit_holds(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 10 * HOUR
    call = a_loss(1, equity=9_000.0)
    assert (memory.remember_trade(**call).replayed, memory.remember_trade(**call).replayed) == (False, True)
    mood = memory.get_agent_state(deployment="manual:VolBreakout").mood
    assert (mood.equity, mood.peak) == (9_000.0, 9_000.0)
    assert (memory.doctor().healthy, memory.verify_audit().intact) == (True, True)


def test_the_context_of_an_entry_has_the_mood_right_before_it(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 20 * HOUR
    for number, equity in ((1, 10_000.0), (3, 9_000.0)):
        memory.remember_trade(**a_loss(number, equity=equity))
    context = memory.remember_trade(**a_loss(6)).trade.context
    before = memory.get_agent_state(deployment="manual:VolBreakout", as_of=T0 + 5 * HOUR - JUST_BEFORE).mood
    assert (context.drawdown_pct, context.consecutive_losses) == (before.drawdown, 2)
    assert context.confidence == before.confidence < 0.5


def test_an_entry_does_not_see_a_drawdown_that_its_own_trade_made(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 20 * HOUR
    memory.remember_trade(**a_loss(1, equity=10_000.0))
    memory.record_equity(equity=8_000.0, at=T0 + 3 * HOUR, deployment="manual:VolBreakout")
    late = a_loss(4)
    assert memory.remember_trade(**late | {"opened_at": T0 + 2 * HOUR}).trade.context.drawdown_pct == 0.0
    unknown = memory.remember_trade(**late | {"opened_at": None, "symbol": "BTC"}).trade.context
    assert (unknown.drawdown_pct, unknown.consecutive_losses, unknown.confidence) == (None, None, None)


def test_what_the_caller_says_of_the_agents_state_is_left_alone(memory: Memory) -> None:
    stated = {"drawdown_pct": 0.3, "consecutive_losses": 7, "confidence": 0.1}
    context = memory.remember_trade(**a_loss(0, context=stated)).trade.context
    assert (context.drawdown_pct, context.consecutive_losses, context.confidence) == (0.3, 7, 0.1)


@pytest.mark.parametrize(
    "conditions",
    [
        {"field": "drawdown_pct", "op": ">=", "value": 0.1},
        {"field": "drawdown_state", "op": ">=", "value": 0.5},
        {"field": "risk_appetite", "op": "<=", "value": 0.75},
        {"field": "mood.consecutive_losses", "op": ">=", "value": 2},
    ],
)
def test_conditions_of_a_belief_can_name_the_mood_at_entry(
    memory: Memory, clock: FakeClock, conditions: dict[str, Any]
) -> None:
    clock.at = T0 + 4 * HOUR
    for number, equity in ((1, 10_000.0), (3, 9_000.0)):
        memory.remember_trade(**a_loss(number, equity=equity))
    memory.add_belief(
        proposition="trades in a drawdown lose", strategy_name="VolBreakout", conditions=conditions, claims="below"
    )
    clock.at = T0 + 20 * HOUR
    memory.remember_trade(**a_loss(6))
    (belief,) = memory.list_beliefs().beliefs
    assert belief.posterior.n == 1


def test_the_imported_state_at_entry_is_that_of_trades_remembered_one_by_one(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = T0 + 20 * HOUR
    calls = [a_loss(1, equity=10_000.0), a_loss(3, equity=9_000.0), a_loss(6), a_loss(7, strategy_name="Other")]
    file = tmp_path / "trades.jsonl"
    file.write_text("".join(json.dumps(call, default=str) + "\n" for call in calls))
    memory.import_trades(path=str(file))
    trades = sorted(memory.list_trades().trades, key=lambda trade: trade.known_at)
    assert [trade.context.consecutive_losses for trade in trades] == [0, 1, 2, 0]
    assert [trade.context.drawdown_pct for trade in trades] == [None, 0.0, 0.1, 0.1]
    assert [trade.entry.equity for trade in trades] == [None, 10_000.0, 9_000.0, 9_000.0]
    assert memory.doctor().healthy
