"""Pages of a list, and the cursors between them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.instants import Horizon
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.services.paging import cursor_after, instant_and_id, read_cursor
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
    for number in range(4):  # more than on paper, so that live is the default from now on
        memory.remember_trade(**a_trade_call(idempotency_key=f"live {number}", mode="live"))
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


@given(
    at=st.datetimes(timezones=st.just(UTC)),
    later=st.timedeltas(-timedelta(days=900), timedelta(days=900)),
    number=st.integers(-(2**70), 2**70),
    score=st.floats(allow_nan=False),
    text=st.text(max_size=20),
)
def test_a_cursor_is_read_as_it_was_written(
    at: datetime, later: timedelta, number: int, score: float, text: str
) -> None:
    try:
        horizon = Horizon(as_of=at, seen_at=at + later)
    except (Invalid, OverflowError):
        assume(False)
    cursor = cursor_after([at, number, score, text], horizon, now=T0, query={"symbol": "X"})
    position, read = read_cursor(cursor, lambda *values: values, query={"symbol": "X"})
    assert (position, read) == ((at, number, score, text), horizon)


@given(cursor=st.one_of(st.text(max_size=40), st.integers(0, 10**60).map(str)))
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        read_cursor(cursor, instant_and_id, query={"symbol": "X"})


def test_a_cursor_is_short_and_its_id_sorts_between_the_last_row_and_the_next() -> None:
    last = "d03fc966-3053-5618-81c1-4227ce139778"
    now = T0 + timedelta(seconds=1, microseconds=123_457)
    cursor = cursor_after([T0, last], Horizon(as_of=now), now=now, query={})
    assert len(cursor) <= 55
    (_, ascending), _ = read_cursor(cursor, instant_and_id, query={})
    (_, descending), _ = read_cursor(cursor, instant_and_id, query={}, ids_descend=True)
    assert last < ascending < "d03fc967-3053-5618-81c1-4227ce139778"
    assert "d03fc965-3053-5618-81c1-4227ce139778" < descending < last
