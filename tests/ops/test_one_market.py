"""One market in several spellings: what is stored under one is found under each, unless two were saved apart."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.call_notes import notes_of
from backsight.core.errors import Conflict, Invalid
from backsight.memory import Memory, open_memory
from backsight.testing import T0, FakeClock, a_bar, a_position, a_snapshot, a_trade_call
from support import deployed

MARKETS = [
    ("XAU", "USD"),
    ("BTC", "USDT"),
    ("ETH", "USDT"),
    ("EUR", "USD"),
    ("GBP", "JPY"),
    ("SOL", "USDC"),
    ("NAS", "100"),
    ("US", "30"),
    ("DOGE", "EUR"),
    ("BRK", "B"),
]
FORMS = ("{}{}", "{}/{}", "{}-{}", "{}_{}")
SPELLINGS = [(*(form.format(*market) for form in FORMS), "".join(market).lower()) for market in MARKETS]


@pytest.mark.parametrize("stored", range(5))
def test_five_spellings_of_ten_markets_are_ten(clock: FakeClock, stored: int) -> None:
    with open_memory("sqlite://", owner="ana", clock=clock) as memory:
        for number, spellings in enumerate(SPELLINGS):
            for _ in range(number + 1):
                memory.remember_trade(**a_trade_call(symbol=spellings[stored]))
                clock.advance(minutes=2)
        for number, spellings in enumerate(SPELLINGS):
            for symbol in spellings:
                recall, page = memory.recall_memories(symbol=symbol), memory.list_trades(symbol=symbol)
                assert (recall.candidates, len(page.trades)) == (number + 1, number + 1), symbol
                assert recall.base_rate is not None
                assert recall.base_rate.in_symbol == number + 1
                assert {trade.symbol for trade in page.trades} == {spellings[stored]}
                assert (f"symbol: {symbol!r} read as {spellings[stored]!r}" in notes_of(page)) == (
                    symbol != spellings[stored]
                )


def traded(memory: Memory, clock: FakeClock, *symbols: str, **changes: Any) -> None:
    for symbol in symbols:
        clock.advance(minutes=2)
        memory.remember_trade(**a_trade_call(symbol=symbol, **changes))


def test_trades_in_several_spellings_count_as_one_market_and_the_answer_says_so(
    memory: Memory, clock: FakeClock
) -> None:
    traded(memory, clock, *["XAUUSD"] * 6, *["xau/usd"] * 5, "BTC/USDT", pnl=100.0, pnl_r=1.0)
    for symbol in ("XAUUSD", "xau/usd", "XAU-USD"):
        recall = memory.recall_memories(symbol=symbol)
        assert recall.candidates == 11
        assert "count as one: they are one market." in recall.message
        page = memory.list_trades(symbol=symbol, count=True)
        assert (page.total, len(page.trades)) == (11, 11)
        assert "XAUUSD and xau/usd are one market." in page.message or symbol != "XAUUSD"
        assert memory.break_down(by="direction", symbol=symbol).trades == 11
        assert sum(each.habits.n for each in memory.get_behavioral_analysis(symbol=symbol).behaviors) == 11
    sizes = [
        memory.position_size(symbol=symbol, direction="long", strategy_name="VolBreakout").size
        for symbol in ("XAUUSD", "xau/usd", "XAU USD")
    ]
    assert sizes[0] == sizes[1] == sizes[2]


def test_an_open_trade_in_another_spelling_is_risk_on_the_same_market(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.save_strategy(name="Other")
    memory.deploy(strategy_name="Other", account="main")
    at = clock.now()
    before = a_snapshot(a_position(stop_price=95.0), at=at)
    memory.close_tick(deployment="VolBreakout@main", at=at, before=before, verdict={"kind": "noop"})
    for symbol, trades in (("BTC", 1), ("b-t-c", 1), ("ETH", 0)):
        size = memory.position_size(symbol=symbol, direction="long", strategy_name="Other").size
        assert size.open_risk.trades == trades


def test_instruments_that_were_saved_apart_stay_two(memory: Memory, clock: FakeClock) -> None:
    memory.save_instrument(symbol="BTCUSDT", kind="spot")
    traded(memory, clock, *["BTCUSDT"] * 3, *["BTC/USDT:USDT"] * 2, "BTC/USDT")
    then = clock.now()
    assert [memory.recall_memories(symbol=each).candidates for each in ("BTCUSDT", "BTC/USDT:USDT")] == [4, 2]
    clock.advance(hours=1)
    memory.save_instrument(symbol="BTC/USDT", kind="perpetual")
    counts = {
        symbol: len(memory.list_trades(symbol=symbol).trades)
        for symbol in ("BTCUSDT", "btcusdt", "BTC/USDT", "BTC/USDT:USDT", "BTC-USDT")
    }
    assert counts == {"BTCUSDT": 3, "btcusdt": 3, "BTC/USDT": 3, "BTC/USDT:USDT": 3, "BTC-USDT": 0}
    assert memory.recall_memories(symbol="BTCUSDT", as_of=then).candidates == 4  # it was not saved then
    assert memory.recall_memories(symbol="BTCUSDT").candidates == 3


def test_a_spelling_that_is_traded_later_is_not_named_earlier(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, "XAUUSD")
    then, before = clock.now(), memory.recall_memories(symbol="XAUUSD")
    lower = memory.recall_memories(symbol="xauusd", as_of=then)
    traded(memory, clock, "XAU/USD")
    assert memory.recall_memories(symbol="XAUUSD", as_of=then).message == before.message
    later = memory.recall_memories(symbol="xauusd", as_of=then)
    assert replace(later, recall=lower.recall, recall_hash=lower.recall_hash) == lower  # both name what was known when
    assert memory.recall_memories(symbol="XAUUSD").joined == ("XAU/USD",)


def test_bars_plans_and_decisions_are_found_in_each_spelling(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    card = {"symbol": "BTC/USDT", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}
    run = memory.record_run(
        deployment="VolBreakout@main", prompt="Look.", output="o", card_type="trade_decision", result=card
    ).run
    clock.advance(minutes=10)
    prices = (T0, 100.0), (T0 + timedelta(minutes=5), 111.0)
    bars = [a_bar("BTCUSDT", at=at, price=price, seconds=300) for at, price in prices]
    memory.record_bars(bars=bars)
    assert memory.get_my_decisions().decisions[0].outcome_r == pytest.approx(2.0)
    assert run.card is not None
    assert len(memory.list_bars(symbol="btc-usdt").bars) == 2
    memory.create_trading_plan(
        trigger_condition={"symbol": "btc_usdt"}, planned_action={"type": "skip_trade"}, reasoning="thin"
    )
    for symbol, applies in (("BTCUSDT", 1), ("BTC/USDT", 1), ("BTC/USDT:USDT", 0), ("ETHUSDT", 0)):
        assert len(memory.check_active_plans(symbol=symbol, dry_run=True).applying) == applies, symbol


def test_a_strategy_is_found_without_regard_to_case_where_one_matches(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, *["XAUUSD"] * 3)
    answer = memory.remember_trade(**a_trade_call(strategy_name="volbreakout", pnl=1.0))
    assert answer.trade.strategy_name == "VolBreakout"
    assert notes_of(answer) == ("strategy_name: 'volbreakout' read as 'VolBreakout'",)
    assert memory.get_strategy_performance(strategy="VOLBREAKOUT").performance.figures.trades == 4
    assert memory.get_agent_state(deployment="MANUAL:volbreakout").closes == 4
    memory.save_strategy(name="volbreakout")
    exact = memory.recall_memories(symbol="XAUUSD", strategy_name="volbreakout")
    assert (exact.candidates, notes_of(exact)) == (0, ())
    assert notes_of(memory.list_trades(strategy_name="VOLBREAKOUT")) == ()


# A report without a deployment


def two_ticks(memory: Memory, clock: FakeClock, deployment: str) -> None:
    """A trade of a deployment from 100 to 101, in the ledger only."""
    for positions in ([a_position()], []):
        clock.advance(minutes=5)
        at = clock.now()
        before = a_snapshot(*positions, at=at, marks={"BTC": 101.0})
        memory.close_tick(deployment=deployment, at=at, before=before, verdict={"kind": "noop"})


REPORT: dict[str, Any] = {"symbol": "btc", "entry_price": 100.1, "exit_price": 101.0, "pnl": 1.0, "pnl_r": None}


def test_a_report_is_added_to_the_trade_that_the_strategy_ledger_has(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    two_ticks(memory, clock, "VolBreakout@main")
    call = a_trade_call(**REPORT, reflection="Too early.", context_regime=None)
    (ledger,) = memory.list_trades().trades
    answer = memory.remember_trade(**call)
    assert (answer.trade.id, answer.trade.reflection) == (ledger.id, "Too early.")
    assert memory.remember_trade(**call).replayed
    assert len(memory.get_my_deployments().deployments) == 1
    other = memory.remember_trade(**call | {"reflection": "Another trade like it."})  # the ledger has only one
    assert other.trade.id != ledger.id
    assert memory.list_trades(count=True).total == 2


def test_an_old_or_different_trade_of_the_ledger_is_not_taken(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    two_ticks(memory, clock, "VolBreakout@main")
    assert memory.remember_trade(**a_trade_call(**REPORT | {"exit_price": 103.0})).message.startswith("Remembered.")
    clock.advance(days=2)
    assert memory.remember_trade(**a_trade_call(**REPORT)).message.startswith("Remembered.")


def test_a_report_that_two_ledgers_have_needs_a_deployment(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.open_account(venue="v", name="twin")
    memory.deploy(strategy_name="VolBreakout", account="twin")
    for deployment in ("VolBreakout@main", "VolBreakout@twin"):
        two_ticks(memory, clock, deployment)
    with pytest.raises(Conflict, match="the ledgers of 'VolBreakout@main' and 'VolBreakout@twin' have a trade that"):
        memory.remember_trade(**a_trade_call(**REPORT))


def test_a_trade_without_a_mode_is_refused_where_none_is_live(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, "XAUUSD", "XAUUSD", mode="sim")
    with pytest.raises(Invalid, match="mode: missing: 'VolBreakout' has 2 closed trades in sim, and none that is live"):
        memory.remember_trade(**a_trade_call())
    assert memory.list_trades(mode="all", count=True).total == 2
    assert memory.remember_trade(**a_trade_call(mode="live")).trade.mode == "live"
    assert memory.list_trades().mode == "sim"
    clock.advance(hours=1)
    assert memory.remember_trade(**a_trade_call()).trade.mode == "live"
