"""A tick has one context: open_tick answers with it, and the trade that close_tick opens keeps it."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.decision import Verdict
from backsight.core.market import Bar
from backsight.core.orders import Order
from backsight.memory import Memory, open_memory
from backsight.services.market import BARS_READ
from backsight.testing import T0, FakeClock, a_position, a_snapshot

LENGTHS = (60, 300, 3600, 86_400)


def bars_until(seconds: int, gaps: Sequence[int]) -> list[Bar]:
    """Bars that close at or before T0, the last one at T0; `gaps` has the missing bars after each, newest first."""
    bars, back = [], 1
    for number, gap in enumerate(gaps):
        price = 100.0 + (7 * number) % 11
        bars.append(
            Bar(
                symbol="BTC",
                interval_seconds=seconds,
                opened_at=T0 - back * timedelta(seconds=seconds),
                open=price,
                high=price + 1.0 + number % 5,
                low=price - 2.0 - number % 3,
                close=price + 0.5,
            )
        )
        back += 1 + gap
    return bars[::-1]


def deployed(memory: Memory) -> None:
    memory.open_account(venue="x", name="main", mode="sim")
    memory.save_strategy(name="S")
    memory.deploy(strategy_name="S", account="main")


def contexts_of_tick(memory: Memory, new: Sequence[Bar]) -> tuple[ContextVector, ContextVector]:
    """The context in the answer of open_tick, and the context of the trade that close_tick opens."""
    before, after = a_snapshot(at=T0), a_snapshot(a_position(2.0), at=T0)
    opened = memory.open_tick(deployment="S@main", at=T0, before=before, symbols=["BTC"], bars=list(new))
    closed = memory.close_tick(
        deployment="S@main",
        at=T0,
        before=before,
        after=after,
        bars=list(new),
        proposal=Order(symbol="BTC", quantity=2.0),
        verdict=Verdict(kind="executed"),
        confidence=0.9,
        seen_at=opened.seen_at,
    )
    return opened.contexts[0], closed.opened[0].context


@settings(max_examples=20, phases=(Phase.explicit, Phase.generate))  # shrinking is slow and hardly helps
@given(
    seconds=st.sampled_from(LENGTHS),
    gaps=st.lists(st.sampled_from([0, 0, 0, 1, 2, 30]), min_size=1, max_size=20),
    length=st.integers(1, 2 * BARS_READ),
    new=st.integers(0, 2 * BARS_READ),
    coarser=st.integers(0, 40),
)
def test_open_tick_and_close_tick_have_one_context_whatever_bars_are_missing(
    seconds: int, gaps: list[int], length: int, new: int, coarser: int
) -> None:
    bars = bars_until(seconds, (gaps * length)[:length])
    days = bars_until(86_400, [0] * coarser) if seconds != 86_400 else []
    split = max(0, length - new)
    with open_memory("sqlite://", owner="ana", clock=FakeClock(T0)) as memory:
        deployed(memory)
        memory.record_bars(bars=bars[:split])
        memory.record_bars(bars=days[: coarser // 2])
        opened, kept_by_trade = contexts_of_tick(memory, [*bars[split:], *days[coarser // 2 :]])
    assert opened == kept_by_trade


@pytest.mark.parametrize(("seconds", "new"), [(60, 72), (60, 73), (300, 1), (3600, 73), (3600, 200), (86_400, 2)])
def test_bars_that_the_tick_brings_count_as_stored_ones(memory: Memory, seconds: int, new: int) -> None:
    bars = bars_until(seconds, [0, 3, 0, 0, 1] * 40)
    deployed(memory)
    memory.record_bars(bars=bars[: len(bars) - new])
    opened, kept_by_trade = contexts_of_tick(memory, bars[-new:])
    assert (opened.price, opened) == (bars[-1].close, kept_by_trade)
