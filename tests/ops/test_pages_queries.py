"""The queries that step through the past and list what there is: instants, bars, moods, strategies, verifications."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call

HOUR = timedelta(hours=1)


def remember(memory: Memory, clock: FakeClock, *, hours: int, pnl: float = 100.0) -> None:
    clock.at = T0 + hours * HOUR
    memory.remember_trade(**a_trade_call(pnl=pnl, pnl_r=pnl / 100, equity=10_000.0 + hours))


def bar(hour: int, close: float = 102.0) -> dict[str, object]:
    prices = {"open": 101.0, "high": 103.0, "low": 100.0, "close": close}
    return {"symbol": "XAUUSD", "interval_seconds": 3600, "opened_at": T0 + hour * HOUR, **prices}


def test_instants_are_those_of_the_closes_and_never_later_ones(memory: Memory, clock: FakeClock) -> None:
    for hours in range(1, 8):
        remember(memory, clock, hours=hours)
    every = memory.list_instants()
    assert [each.at for each in every.instants] == [T0 + hours * HOUR for hours in range(1, 8)]
    assert "close" in every.instants[0].kinds
    earlier = memory.list_instants(as_of=T0 + 3 * HOUR)
    assert (earlier.total, earlier.instants[-1].at) == (3, T0 + 3 * HOUR)
    following = memory.list_instants(since=T0 + 4 * HOUR, choose="first", limit=1)
    assert following.instants[0].at == T0 + 4 * HOUR
    assert [each.at for each in memory.list_instants(limit=3).instants] == [T0 + n * HOUR for n in (1, 4, 7)]


def test_an_empty_store_says_what_would_make_instants(memory: Memory) -> None:
    assert "remember_trade" in memory.list_instants().message
    assert "import_bars" in memory.list_bars(symbol="XAUUSD").message
    assert "save_strategy" in memory.list_strategies().message
    assert "open_account" in memory.list_accounts().message
    assert "record_verification" in memory.last_verification().message


def test_bars_end_with_the_last_that_had_closed(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 6 * HOUR
    memory.record_bars(bars=[bar(hour) for hour in range(6)])
    answer = memory.list_bars(symbol="XAUUSD", as_of=T0 + 3 * HOUR)
    assert [each.opened_at for each in answer.bars] == [T0 + hour * HOUR for hour in range(3)]
    last = memory.list_bars(symbol="XAUUSD", limit=2)
    assert (last.more, len(last.bars), last.bars[-1].opened_at) == (True, 2, T0 + 5 * HOUR)
    with pytest.raises(Invalid, match="3600"):
        memory.list_bars(symbol="XAUUSD", interval_seconds=60)


def test_the_shortest_interval_that_fits_the_period_is_chosen(memory: Memory, clock: FakeClock) -> None:
    clock.at = T0 + 8 * HOUR
    quarter = [{**bar(0), "interval_seconds": 900, "opened_at": T0 + n * HOUR / 4} for n in range(16)]
    memory.record_bars(bars=[*quarter, *(bar(hour) for hour in range(8))])
    period: dict[str, Any] = {"symbol": "XAUUSD", "since": T0, "until": T0 + 4 * HOUR}
    assert memory.list_bars(**period, limit=16).interval_seconds == 900
    assert memory.list_bars(**period, limit=15).interval_seconds == 3600


def test_the_mood_over_time_is_thinned_and_ends_with_the_last_point(memory: Memory, clock: FakeClock) -> None:
    for hours in range(1, 10):
        remember(memory, clock, hours=hours, pnl=-100.0)
    history = memory.get_state_history()
    assert [point.consecutive_losses for point in history.strategy] == list(range(1, 10))
    thinned = memory.get_state_history(limit=4)
    assert 3 <= len(thinned.strategy) <= 4
    assert thinned.strategy[-1] == history.strategy[-1]
    earlier = memory.get_state_history(as_of=T0 + 4 * HOUR)
    assert earlier.strategy == history.strategy[:4]
    assert memory.get_state_history(seen_at=clock.now(), limit=4).strategy == thinned.strategy


def test_strategies_and_accounts_are_listed_with_their_deployments(memory: Memory, clock: FakeClock) -> None:
    for thesis in ("Breaks run.", "Breaks run on."):
        clock.advance(hours=1)
        memory.save_strategy(name="VolBreakout", thesis=thesis)
    memory.open_account(venue="kraken", name="main", currency="EUR")
    memory.deploy(strategy_name="VolBreakout", account="main")
    (strategy,) = memory.list_strategies().strategies
    assert [version.version for version in strategy.versions] == [2, 1]
    assert [deployment.name for deployment in strategy.deployments] == ["VolBreakout@main"]
    assert len(memory.list_strategies(as_of=clock.now() - HOUR).strategies[0].versions) == 1
    (entry,) = memory.list_accounts().accounts
    assert (entry.account.currency, entry.deployments[0].name) == ("EUR", "VolBreakout@main")


def test_the_last_verification_is_remembered(memory: Memory, clock: FakeClock) -> None:
    remember(memory, clock, hours=1)
    first = memory.record_verification()
    assert (first.passed, first.record.since) == (True, None)
    remember(memory, clock, hours=2)
    second = memory.record_verification()
    assert second.passed
    assert second.record.since is not None
    last = memory.last_verification()
    assert (last.last, last.last_of_everything) == (second.record, first.record)
    assert last.links_since == 1
    assert memory.last_verification(as_of=T0 + HOUR).last == first.record
    assert memory.verify_audit().intact


def test_trades_are_sorted_filtered_and_counted(memory: Memory, clock: FakeClock) -> None:
    results = [100.0, -50.0, 300.0, -200.0, 20.0]
    for hours, pnl in enumerate(results, start=1):
        remember(memory, clock, hours=hours, pnl=pnl)
    worst = memory.list_trades(order="worst", limit=2, count=True)
    assert ([trade.pnl for trade in worst.trades], worst.total) == ([-200.0, -50.0], 5)
    following = memory.list_trades(order="worst", limit=2, count=True, cursor=worst.next_cursor)
    assert [trade.pnl for trade in following.trades] == [20.0, 100.0]
    assert memory.list_trades(result="lost", count=True).total == 2
    assert [trade.pnl for trade in memory.list_trades(between={"outcome": [0.5, 2.0]}).trades] == [100.0]
    assert memory.list_trades(by="direction", label="short", count=True).total == 0
    assert memory.list_trades(order="worst", as_of=T0 + 2 * HOUR).trades[0].pnl == -50.0
    with pytest.raises(Invalid, match="closed trades"):
        memory.list_trades(status="open", result="won")


def test_a_sorted_list_equals_the_plain_one(memory: Memory, clock: FakeClock) -> None:
    for hours in (1, 2, 3):
        remember(memory, clock, hours=hours)
    assert memory.list_trades(count=True).trades == memory.list_trades().trades
    assert memory.list_trades(order="oldest").trades == memory.list_trades().trades[::-1]


def test_a_plain_stop_and_target_are_compared_with_the_exits(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.advance(hours=9)
    head = "symbol,direction,entry_price,exit_price,pnl,pnl_r,risk,strategy_name,closed_at"
    rows = [f"{head},max_adverse_excursion,max_favorable_excursion"]
    for hour, (mae, mfe, outcome) in enumerate([(-20, 300, 50), (-150, 250, -100), (-50, 40, 10)], start=1):
        at = (T0 + hour * HOUR).isoformat()
        rows.append(f"BTC,long,100,101,{outcome},{outcome / 100},100,Fade,{at},{mae},{mfe}")
    file = tmp_path / "trades.csv"
    file.write_text("\n".join(rows))
    memory.import_trades(path=str(file))
    answer = memory.compare_exits(stop_r=1.0, target_r=2.0)
    assert (answer.n, answer.stopped, answer.both, answer.reached) == (3, 1, 1, 1)
    assert answer.plain_mean == pytest.approx((2.0 - 1.0 + 0.1) / 3)
    assert answer.actual_mean == pytest.approx((0.5 - 1.0 + 0.1) / 3)
