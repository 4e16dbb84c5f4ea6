"""The last bars by a horizon: read again, or advanced from a cached window in a single-process store."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import select

from backsight.core.bar_columns import BarColumns
from backsight.core.instants import Horizon
from backsight.core.market import Bar
from backsight.memory import Memory, open_memory, open_simulation
from backsight.store.bars import BARS, BarFact, add_bars, add_columns, intervals, last_bars
from backsight.store.transaction import Transaction
from backsight.store.view import View
from backsight.testing import FakeClock

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
OPENINGS = [  # midnight in New York: the clocks change on the eighth
    *(datetime(2026, 3, day, 5, tzinfo=UTC) for day in (5, 6, 7)),
    *(datetime(2026, 3, day, 4, tzinfo=UTC) for day in (10, 11)),
]


def a_day(opened_at: datetime, seconds: int = 86_400) -> Bar:
    return Bar(symbol="SPY", interval_seconds=seconds, opened_at=opened_at, open=10.0, high=11.0, low=9.0, close=10.0)


def read(memory: Memory, at: datetime, count: int = 3) -> list[datetime]:
    with memory.reading() as connection:
        series = last_bars(View(connection, "me", Horizon(as_of=at)), symbol="SPY", counts={86_400: count})
    return [bar.opened_at for bar in series.get(86_400, [])]


@pytest.mark.parametrize("hours", [1, 5, 23, 24, 31])
def test_an_advanced_window_equals_a_window_read_again(hours: int, tmp_path: object) -> None:
    with (
        open_simulation(FakeClock(NOON)) as private,
        open_memory(f"sqlite:///{tmp_path}/s.db", owner="me", clock=FakeClock(NOON)) as shared,
    ):
        for memory in (private, shared):
            memory.record_bars(bars=[a_day(at) for at in OPENINGS])
        at = OPENINGS[0]
        while at < NOON:
            assert read(private, at) == read(shared, at), at
            at += timedelta(hours=hours)


def test_bars_stored_in_bulk_have_the_rows_and_the_audit_of_single_bars(memory: Memory) -> None:
    minutes = np.arange(3) * 60_000_000 + 1_780_567_200_000_000
    prices = {name: np.array([10.0, 1e-7, 1e16]) for name in ("open", "high", "low", "close")}
    series = BarColumns(
        symbol='S "Ø"', interval_seconds=60, opened=minutes, **prices, volume=np.array([1.5, np.nan, 0.0])
    )
    facts = [BarFact(owner_id="ana", bar=bar, known_at=bar.closes_at, recorded_at=NOON) for bar in series]
    writes: list[Callable[[Transaction], None]] = [
        lambda to: add_columns(to, "ana", series, recorded_at=NOON),
        lambda to: add_bars(to, facts),
    ]
    stored = []
    for write in writes:
        with memory.database.writing("ana") as connection, connection.begin_nested() as nested:
            transaction = Transaction(connection)
            write(transaction)
            rows = connection.execute(select(BARS.table).order_by(BARS.table.c.opened_at)).all()
            stored.append(([BARS.from_row(row) for row in rows], [each.as_json() for each in transaction.changes]))
            nested.rollback()
    assert stored[0] == stored[1]
    assert stored[0][0] == facts


def test_bars_recorded_meanwhile_are_in_the_next_window() -> None:
    with open_simulation(FakeClock(NOON)) as memory:
        memory.record_bars(bars=[a_day(at) for at in OPENINGS[1:]])
        assert read(memory, NOON, count=10) == OPENINGS[1:]
        memory.record_bars(bars=[a_day(OPENINGS[0]), a_day(OPENINGS[1])])
        assert read(memory, NOON, count=10) == OPENINGS


def test_intervals_are_listed_shortest_first(memory: Memory, clock: FakeClock) -> None:
    clock.at = NOON
    lengths = [60, 300, 7 * 60, 3600, 86_400]
    memory.record_bars(bars=[a_day(OPENINGS[0], seconds=length) for length in reversed(lengths)])
    with memory.reading() as connection:
        assert intervals(connection, "ana", "SPY") == tuple(lengths)
        assert intervals(connection, "ana", "QQQ") == ()
