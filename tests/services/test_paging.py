"""Pages of a list, and the cursors between them."""

from datetime import timedelta

import pytest

from backsight.core.errors import Invalid
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call


def test_pages_follow_each_other_without_gap_or_repeat(memory: Memory, clock: FakeClock) -> None:
    for number in range(7):
        memory.remember_trade(**a_trade_call(idempotency_key=str(number), closed_at=T0 - timedelta(days=number // 3)))
    trades: list[Trade] = []
    cursor: str | None = None
    while True:
        page = memory.list_trades(limit=2, cursor=cursor)
        trades += page.trades
        cursor = page.next_cursor
        clock.advance(hours=1)
        memory.remember_trade(**a_trade_call(idempotency_key=f"new {len(trades)}"))  # arrives while we turn pages
        if cursor is None:
            break
    assert len(trades) == 7
    assert trades == sorted(trades, key=lambda trade: (-trade.known_at.timestamp(), trade.id))


def test_a_cursor_fixes_the_mode_that_its_first_page_took(memory: Memory, clock: FakeClock) -> None:
    memory.open_account(venue="v", name="paper", mode="paper", currency="USD")
    memory.save_strategy(name="VolBreakout")
    paper = memory.deploy(strategy_name="VolBreakout", account="paper").deployment.name
    for number in range(3):
        memory.remember_trade(**a_trade_call(idempotency_key=str(number), deployment=paper))
    first = memory.list_trades(limit=2)
    clock.advance(hours=1)
    memory.remember_trade(**a_trade_call(idempotency_key="by hand"))
    second = memory.list_trades(limit=2, cursor=first.next_cursor)
    assert (first.mode, second.mode, memory.list_trades().mode) == ("paper", "paper", "live")
    assert [len(page.trades) for page in (first, second)] == [2, 1]
    assert second.as_of == first.as_of


def test_a_cursor_belongs_to_its_query(memory: Memory) -> None:
    for number in range(3):
        memory.remember_trade(**a_trade_call(idempotency_key=str(number)))
    cursor = memory.list_trades(limit=1).next_cursor
    with pytest.raises(Invalid, match="cursor: belongs to another query"):
        memory.list_trades(limit=1, cursor=cursor, symbol="XAUUSD")
    assert len(memory.list_trades(limit=2, cursor=cursor).trades) == 2
