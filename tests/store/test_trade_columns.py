"""Counts and sums from the image of the closed trades equal those of the stored trades, at every horizon."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.instants import Horizon
from backsight.core.trades.columns import ClosedTradeColumns, known_trades, tallies, update_trades
from backsight.core.trades.summary import Tally
from backsight.core.trades.trade import Trade
from backsight.memory import Memory, open_memory
from backsight.store import images as stored_images
from backsight.store import trade_columns
from backsight.store import trades as stored
from backsight.store.trade_columns import TradeImages
from backsight.store.view import View
from backsight.testing import T0, FakeClock, a_trade_call

COUNT = itertools.count()
FOREVER = Horizon(as_of=T0 + timedelta(days=36_500))


def image(memory: Memory, horizon: Horizon = FOREVER, images: TradeImages | None = None) -> ClosedTradeColumns:
    with memory.reading() as connection:
        return (images or memory.database.trade_images).at(View(connection, memory.owner, horizon))


def tallies_of_rows(memory: Memory, horizon: Horizon) -> dict[str, Tally]:
    """The tallies, from every stored trade."""
    with memory.reading() as connection:
        closed = stored.trades(View(connection, memory.owner, horizon), limit=10_000)
    return {
        name: plain_tally([trade for trade in closed if trade.deployment_id == name])
        for name in {trade.deployment_id for trade in closed}
    }


def plain_tally(trades: list[Trade]) -> Tally:
    converted = [trade.pnl for trade in trades if trade.currency is None and trade.pnl is not None]
    return Tally(
        trades=len(trades),
        wins=sum(trade.won for trade in trades),
        pnl=math.fsum(converted),
        last_closed_at=max(trade.closed_at for trade in trades if trade.closed_at is not None),
        unconverted=sum(trade.currency is not None for trade in trades),
    )


def tallies_of_columns(columns: ClosedTradeColumns, horizon: Horizon) -> dict[str, Tally]:
    return tallies(columns, known_trades(columns, horizon, lambda _group: True))


def write(memory: Memory, number: int, change: Callable[[Trade], Trade] = lambda trade: trade) -> None:
    """Store a trade without an episode, or its next version."""
    first = memory.remember_trade(**a_trade_call(closed_at=T0 - timedelta(days=20)), idempotency_key="first").trade
    with memory.writing() as transaction:
        trade = stored.trade(transaction.connection, memory.owner, f"trade {number}")
        if trade is None:
            pnl = 0.1 * (number - 2)
            new = replace(first, id=f"trade {number}", pnl=pnl, request_digest=f"{number}", position_key=f"{number}")
            transaction.add(stored.TRADES, replace(new, known_at=memory.now, recorded_at=memory.now))
        else:
            transaction.revise(stored.TRADES, replace(change(trade), known_at=memory.now, recorded_at=memory.now))


def withdraw(memory: Memory, number: int) -> None:
    with memory.writing() as transaction:
        trade = stored.trade(transaction.connection, memory.owner, f"trade {number}")
        if trade is not None:
            transaction.withdraw(stored.TRADES, trade, known_at=memory.now, recorded_at=memory.now)


STEPS: dict[str, Callable[[Memory, int], object]] = {
    "write": write,
    "correct": lambda memory, number: write(memory, number, lambda trade: replace(trade, pnl=7.0)),
    "foreign": lambda memory, number: write(memory, number, lambda trade: replace(trade, currency="JPY")),
    "open": lambda memory, number: write(memory, number, lambda trade: replace(trade, status="open")),
    "close": lambda memory, number: write(memory, number, lambda trade: replace(trade, status="closed")),
    "withdraw": withdraw,
    "look": lambda memory, number: image(memory),
}
STEP = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5), st.booleans(), st.integers(1, 3))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=14), hours=st.integers(0, 30), seen_hours=st.none() | st.integers(0, 30))
def test_two_processes_count_and_sum_alike_after_any_steps(
    url: str, steps: list[tuple[str, int, bool, int]], hours: int, seen_hours: int | None
) -> None:
    clock, owner = FakeClock(T0), f"owner {next(COUNT)}"
    with open_memory(url, owner=owner, clock=clock) as one, open_memory(url, owner=owner, clock=clock) as other:
        for name, number, first, later in steps:
            clock.at += timedelta(hours=later)
            STEPS[name](one if first else other, number)
        seen_at = None if seen_hours is None else T0 + timedelta(hours=seen_hours)
        for memory, horizon in itertools.product(
            (one, other), (FOREVER, Horizon(as_of=T0 + timedelta(hours=hours), seen_at=seen_at))
        ):
            assert tallies_of_columns(image(memory, horizon), horizon) == tallies_of_rows(memory, horizon)


def test_a_trade_that_a_batch_wrote_and_a_link_names_is_counted_once(memory: Memory, tmp_path: Path) -> None:
    image(memory)
    file = tmp_path / "trades.csv"
    rows = [f"XAUUSD,long,s,1,2,{number},2026-01-0{number}T10:00Z" for number in (1, 2, 3)]
    file.write_text("\n".join(["symbol,direction,strategy_name,entry_price,exit_price,pnl,closed_at", *rows]))
    memory.import_trades(path=str(file))
    memory.annotate_trade(trade_id=memory.list_trades().trades[0].id, reflection="at the same instant")
    assert tallies_of_columns(image(memory), FOREVER) == tallies_of_rows(memory, FOREVER)


def test_a_fresh_process_reads_the_file_and_the_trades_changed_since(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_images, "MIN_FILE_ROWS", 2)
    for number in range(12):
        write(memory, number)
    image(memory, images=TradeImages(tmp_path / "files"))
    write(memory, 3, lambda trade: replace(trade, pnl=9.0))
    read: list[int] = []

    def counted(columns: ClosedTradeColumns, parts: object, **options: object) -> ClosedTradeColumns:
        rows = list(parts)  # type: ignore[call-overload]
        read.extend(len(part.id) for part in rows)
        return update_trades(columns, rows, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trade_columns, "update_trades", counted)
    columns = image(memory, images=TradeImages(tmp_path / "files"))
    assert read == [1]
    assert tallies_of_columns(columns, FOREVER) == tallies_of_rows(memory, FOREVER)
    [file] = (tmp_path / "files").iterdir()
    file.write_bytes(file.read_bytes()[:-64])
    assert tallies_of_columns(image(memory, images=TradeImages(tmp_path / "files")), FOREVER) == tallies_of_rows(
        memory, FOREVER
    )
    assert sum(read) == 14


def test_the_doctor_finds_trades_that_differ_from_their_columns(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember_trade(**a_trade_call())
    honest = image(memory)
    cache = memory.database.trade_images._owners[memory.owner]
    forged = replace(cache.images[-1], columns=replace(honest, pnl=honest.pnl + 1.0))
    cache.images.append(forged)
    (finding,) = memory.doctor().findings
    assert (finding.table, finding.detail) == ("columns", "the columns differ from the trade; they are rebuilt")
    assert memory.doctor().healthy
