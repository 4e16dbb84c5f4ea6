"""Names as they are written in a call: what they mean in the store, and what it costs to find out."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy import Engine, event

from backsight.core.call_notes import notes_of
from backsight.core.context import ContextVector
from backsight.memory import Memory, open_memory
from backsight.services.names import names_of_store
from backsight.testing import T0, FakeClock, a_trade_call


@contextmanager
def statements() -> Iterator[list[str]]:
    sent: list[str] = []

    def note(*call: object) -> None:
        sent.append(str(call[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_names_that_are_in_the_store_cost_no_statement(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call(symbol="XAUUSD", strategy_name="Fade"))
    request = {"symbol": "XAUUSD", "strategy_name": "Fade", "context": ContextVector(symbol="XAUUSD")}
    memory.list_trades(symbol="XAUUSD", strategy_name="Fade")  # reads them
    context = memory.at_one_instant(operation="list_trades", request=request)
    with statements() as sent:
        assert names_of_store(context, request) == ({}, ())
    assert sent == []
    other = {**request, "context": ContextVector(symbol="xau/usd")}
    assert names_of_store(context, other) == ({"context": ContextVector(symbol="XAUUSD")}, ())
    assert names_of_store(context, {"symbol": "xau/usd", "strategy": "fade"}) == (
        {"strategy": "Fade", "symbol": "XAUUSD"},
        ("strategy: 'fade' read as 'Fade'", "symbol: 'xau/usd' read as 'XAUUSD'"),
    )


def test_a_name_counts_from_when_it_was_known_and_for_its_owner(url: str, clock: FakeClock) -> None:
    with open_memory(url, owner="ana", clock=clock) as memory:
        memory.remember_trade(**a_trade_call(symbol="XAU/USD", closed_at=T0 - timedelta(hours=1)))
        then = clock.now()
        clock.advance(days=1)
        memory.remember_trade(**a_trade_call(symbol="XAUUSD"))
        for _ in range(2):
            assert notes_of(memory.list_trades(symbol="XAUUSD")) == ()
            earlier = memory.list_trades(symbol="XAUUSD", as_of=then)
            assert notes_of(earlier) == ("symbol: 'XAUUSD' read as 'XAU/USD'",)
    with open_memory(url, owner="bob", clock=clock) as memory:
        memory.remember_trade(**a_trade_call(symbol="xauusd"))
        assert notes_of(memory.list_trades(symbol="XAUUSD")) == ("symbol: 'XAUUSD' read as 'xauusd'",)
