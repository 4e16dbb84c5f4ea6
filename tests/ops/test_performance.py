"""Deployments and strategies with their results, the results by category, and the equity by day."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import empyrical
import numpy as np
import pytest

from backsight.answers.layouts import brief_of
from backsight.core.decision import Verdict
from backsight.core.errors import Invalid, NotFound
from backsight.core.orders import Order
from backsight.memory import Memory, open_simulation
from backsight.ops.performance import NEVER_WITHHELD
from backsight.runtime.clock import SimulatedClock
from backsight.testing import FakeClock, a_snapshot, a_trade_call
from support import deployed

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "positions"


def test_deployments_come_with_their_tally(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call())
    clock.advance(minutes=2)
    memory.remember_trade(**a_trade_call(pnl=-100.0, pnl_r=-1.0))
    (summary,) = memory.get_my_deployments(detail="trades").deployments
    assert (summary.tally.trades, summary.tally.wins, summary.tally.pnl) == (2, 1, 1075.0)
    assert [trade.pnl for trade in summary.recent_trades] == [-100.0, 1175.0]
    assert memory.get_my_deployments().deployments[0].recent_trades == ()
    assert summary.performance.returns.missing == "no equity of the account 'manual' is known; record_equity records it"


def test_a_whole_deployment_has_its_recent_activity_and_whether_memory_helps(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    clock.advance(hours=1)
    memory.close_tick(
        deployment="VolBreakout@main",
        at=clock.now(),
        before=a_snapshot(at=clock.now()),
        proposal=Order(symbol="BTC", quantity=1.0),
        verdict=Verdict(kind="rejected", rule="R3_POSITION_CAP"),
    )
    (whole,) = memory.get_my_deployments(detail="full").deployments
    assert whole.activity == memory.get_recent_activity(deployment="VolBreakout@main").text
    assert "R3_POSITION_CAP=1" in (whole.activity or "")
    assert whole.memory_help == memory.get_strategy_performance(strategy="VolBreakout").memory_help == NEVER_WITHHELD
    assert "\n" not in NEVER_WITHHELD
    (listed,) = memory.get_my_deployments().deployments
    assert (listed.activity, listed.memory_help) == (None, None)


def test_deployments_are_listed_as_of_an_instant(memory: Memory, clock: FakeClock) -> None:
    assert memory.get_my_deployments().message.startswith("There is no deployment yet")
    memory.remember_trade(**a_trade_call())
    then = clock.at
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(strategy_name="Other"))
    assert [each.deployment.name for each in memory.get_my_deployments(as_of=then).deployments] == [
        "manual:VolBreakout"
    ]
    assert len(memory.get_my_deployments().deployments) == 2


RESULTS = (1.5, -1.0, 0.5, -1.0, 2.0, 0.0)


def trade_daily(memory: Memory, clock: FakeClock, days: int = 30) -> None:
    """A trade of 100 a day for each R, on an equity of 10,000; every fifth day has none."""
    memory.record_equity(equity=10_000.0)
    for day in range(days):
        clock.advance(days=1)
        if day % 5 == 4:
            continue
        r = RESULTS[day % 6]
        memory.remember_trade(
            **a_trade_call(
                pnl=100.0 * r,
                pnl_r=r,
                direction="short" if day % 3 == 0 else "long",
                context_regime="ranging" if day % 2 else "trending_up",
                tags=["breakout"] if day % 2 else [],
            )
        )


def test_the_ratios_of_a_strategy_equal_those_of_empyrical(memory: Memory, clock: FakeClock) -> None:
    trade_daily(memory, clock)
    performance = memory.get_strategy_performance(strategy="VolBreakout").performance
    equity, returns = 10_000.0, []
    for day in range(29):  # the thirtieth has no trade
        net = 0.0 if day % 5 == 4 else 100.0 * RESULTS[day % 6]
        returns.append(net / equity)
        equity += net
    found = performance.returns
    assert (found.days, found.days_per_year, found.missing, found.deflated_sharpe) == (29, 365, None, None)
    assert found.sharpe == pytest.approx(empyrical.sharpe_ratio(np.array(returns), annualization=365))
    assert found.sortino == pytest.approx(empyrical.sortino_ratio(np.array(returns), annualization=365))
    assert found.drawdown is not None
    assert found.drawdown.share == pytest.approx(-empyrical.max_drawdown(np.array(returns)))
    assert [(each.label, each.figures.trades) for each in performance.by_direction] == [("long", 16), ("short", 8)]
    assert performance.figures.net == pytest.approx(equity - 10_000.0)


def test_a_second_strategy_deflates_the_ratio_and_a_few_days_have_none(memory: Memory, clock: FakeClock) -> None:
    trade_daily(memory, clock, days=12)
    few = memory.get_strategy_performance().performance.returns
    assert (few.sharpe, few.missing) == (None, "12 days of returns; the ratios need 20")
    for day in range(25):
        clock.advance(days=1)
        for name in ("VolBreakout", "Other"):
            net = 100.0 * RESULTS[(day + len(name)) % 6]
            memory.remember_trade(**a_trade_call(pnl=net, pnl_r=net / 100.0, strategy_name=name))
    both = memory.get_strategy_performance(strategy="Other").performance.returns
    assert both.deflated_sharpe is not None
    assert 0.0 < both.deflated_sharpe < 1.0
    default = memory.get_strategy_performance()
    assert default.strategy_name == "VolBreakout"
    assert default.message.startswith("For 'VolBreakout', the strategy with most trades: see also strategy='Other'.")
    with pytest.raises(Invalid, match="no strategy 'Breakout' is deployed; name one of Other, VolBreakout"):
        memory.get_strategy_performance(strategy="Breakout")
    for name in "ABCD":
        memory.remember_trade(**a_trade_call(strategy_name=name))
    with pytest.raises(Invalid, match=r"name one of A, B, C, D, Other or 1 other$"):
        memory.get_strategy_performance(strategy="E")


def test_performance_is_as_of_an_instant(memory: Memory, clock: FakeClock) -> None:
    trade_daily(memory, clock, days=10)
    then, former = clock.at, memory.get_strategy_performance(detail="full", as_of=clock.at)
    trade_daily(memory, clock, days=10)
    assert memory.get_strategy_performance(detail="full", as_of=then).performance == former.performance
    assert memory.get_strategy_performance().performance != former.performance
    assert len(former.recent_trades) == 8


def test_results_are_broken_down_by_a_category(memory: Memory, clock: FakeClock) -> None:
    trade_daily(memory, clock)
    first = clock.at - timedelta(days=29)
    answer = memory.break_down(by="tag")
    assert [(group.label, group.figures.trades) for group in answer.groups] == [("breakout", 12), ("untagged", 12)]
    assert answer.message.endswith("24 closed trades by tag: 2 groups.")
    some = memory.break_down(by="regime", since=first, until=first + timedelta(days=3), limit=1)
    assert (some.trades, [group.label for group in some.groups]) == (3, ["trending_up"])
    assert some.message.endswith("3 closed trades by regime: 1 of 2 groups.")
    assert "No closed trades match." in memory.break_down(by="symbol", symbol="EURUSD").message
    with pytest.raises(NotFound):
        memory.break_down(by="symbol", deployment="nobody")


def test_money_of_several_currencies_is_said_to_be_added_as_it_is(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    assert memory.break_down(by="symbol").currency == "USD"
    memory.save_strategy(name="Fade", thesis="Extremes revert.")
    memory.open_account(venue="kraken", name="main", currency="EUR")
    memory.deploy(strategy_name="Fade", account="main")
    memory.remember_trade(**a_trade_call(strategy_name="Fade", deployment="Fade@main"))
    mixed = memory.break_down(by="symbol")
    assert mixed.currency is None
    assert mixed.message.endswith("Net adds EUR and USD without conversion: name a deployment, or read R.")
    assert memory.break_down(by="symbol", deployment="Fade@main").currency == "EUR"
    assert "without conversion" not in memory.break_down(by="deployment").message


def test_the_equity_by_day_follows_closes_transfers_and_readings(memory: Memory, clock: FakeClock) -> None:
    memory.record_equity(equity=1_000.0)
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(pnl=100.0, pnl_r=1.0))
    clock.advance(days=1)
    memory.record_equity(equity=1_600.0, transfer=500.0)
    memory.remember_trade(**a_trade_call(pnl=-320.0, pnl_r=-1.0))
    history = memory.get_equity()
    assert [(day.start, day.net, day.transfers, day.end) for day in history.days] == [
        (1_000.0, 0.0, 0.0, 1_000.0),
        (1_000.0, 100.0, 0.0, 1_100.0),
        (1_600.0, -320.0, 500.0, 1_280.0),
    ]
    assert [each.equity for each in history.recorded] == [1_000.0, 1_600.0]
    assert history.drawdown is not None
    assert history.drawdown.share == pytest.approx(0.2)
    assert memory.get_equity(as_of=clock.at - timedelta(days=1)).days == history.days[:2]
    assert memory.get_equity(since=clock.at).days == history.days[2:]
    assert memory.get_equity(until=clock.at).days == history.days
    assert "No day lies between" in memory.get_equity(since=clock.at + timedelta(days=9)).message


def test_the_equity_without_a_reading_says_what_is_missing(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    assert "The equity by day is not known: no equity of the account" in memory.get_equity().message


@pytest.mark.parametrize("agent", ["gemini-2.5-flash", "gpt-5"])
def test_the_ratios_of_real_logs_equal_those_of_empyrical(agent: str) -> None:
    """The shared logs of positions of agents, imported as they are."""
    if not DATA.is_dir():
        pytest.skip("the shared data is not here")
    path, bars = DATA / "us_hourly" / agent / "position" / "position.jsonl", DATA / "bars" / "us_nasdaq100_60min.jsonl"
    with open_simulation(SimulatedClock(datetime(2026, 6, 1, tzinfo=UTC))) as memory:
        imported = memory.import_positions(path=str(path), name="agent", timezone="America/New_York", bars=str(bars))
        name = imported.deployment.name
        answer, history = memory.get_my_deployments(deployment=name), memory.get_equity(deployment=name)
        trades = memory.list_trades(deployment=name, limit=100).trades
    returns = answer.deployments[0].performance.returns
    closed = sorted({trade.closed_at.date() for trade in trades if trade.closed_at is not None})
    assert 0 < len(trades) < 100
    assert returns.missing is None or returns.days < 20
    by_day = {day.day: day for day in history.days}
    days = [closed[0] + timedelta(days=number) for number in range((closed[-1] - closed[0]).days + 1)]
    if returns.days_per_year == 252:
        days = [day for day in days if day.weekday() < 5]
    net = {day: sum(trade.money or 0.0 for trade in trades if _closed_on(trade.closed_at) == day) for day in days}
    expected = np.array([net[day] / by_day[day].start for day in days])
    assert returns.days == len(expected)
    if returns.sharpe is not None:
        assert returns.sharpe == pytest.approx(
            empyrical.sharpe_ratio(expected, annualization=returns.days_per_year), rel=1e-6
        )
    worst = empyrical.max_drawdown(expected)
    assert (0.0 if returns.drawdown is None else returns.drawdown.share) == pytest.approx(-worst, abs=1e-9)


def _closed_on(at: datetime | None) -> date | None:
    return None if at is None else at.date()


def test_lessons_that_are_missing_say_why(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call(symbol="BTC"))
    reason = "No lessons of manual:VolBreakout are in force; reflect writes them from closed trades."
    assert memory.get_strategy_performance(detail="lessons").message.endswith(reason)
    assert memory.get_my_deployments(detail="full").message.endswith(reason)
    assert reason not in memory.get_my_deployments(detail="trades").message


def test_what_is_said_about_a_deployment_is_one_line_each(memory: Memory) -> None:
    for name in ("A", "B"):
        memory.remember_trade(**a_trade_call(strategy_name=name, pnl=-5.0, pnl_r=-1.0))
    about = brief_of(memory.get_my_deployments(detail="full")).as_json()["about"]
    assert [line.partition(": ")[0] for line in about] == ["manual:A", "manual:B"]
    assert all("lately: consecutive losing closes: 1" in line and "##" not in line for line in about)
