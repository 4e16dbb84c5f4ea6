"""Fills of a file make the same ledger and memories, however the file is sorted, cut and repeated."""

import csv
import random
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict
from backsight.core.orders import ReportedFill
from backsight.core.trades.trade import Trade
from backsight.memory import Memory, open_simulation
from backsight.ops.fills import ImportedFills
from backsight.services import fill_import
from backsight.store import experience as stored_experience
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.mapping import Noun
from backsight.store.reading import fetch, owned
from backsight.testing import T0, FakeClock, a_position, a_snapshot

START = T0 - timedelta(days=30)
HEADER = ("time", "symbol", "side", "quantity", "price", "fee", "kind", "amount", "id")
Row = dict[str, Any]


def a_fill(minute: int, symbol: str = "BTC", quantity: float = 1.0, price: float = 100.0, **more: Any) -> Row:
    at = (START + timedelta(minutes=minute)).isoformat()
    row = {"time": at, "symbol": symbol, "quantity": abs(quantity), "price": price, "kind": "trade"}
    return {**row, "side": "buy" if quantity > 0 else "sell", "id": f"{symbol}-{minute}", **more}


def a_payment(minute: int, symbol: str = "BTC", amount: float = -1.0) -> Row:
    at = (START + timedelta(minutes=minute)).isoformat()
    return {
        "time": at,
        "symbol": symbol,
        "kind": "funding",
        "amount": amount,
        "id": f"{symbol}-{minute}-f",
        "side": "buy",
    }


def write(folder: str | Path, rows: Sequence[Row], name: str = "fills.csv") -> str:
    path = Path(folder) / name
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def imported(memory: Memory, folder: str | Path, rows: Sequence[Row], **options: Any) -> ImportedFills:
    return memory.import_fills(path=write(folder, rows), **{"account": "exchange", "mode": "paper", **options})


def state(memory: Memory) -> dict[str, list[Any]]:
    """Every row that follows from the fills, without the instants of recording."""
    nouns: list[Noun[Any]] = [stored.FILLS, stored.TRADES, stored_memories.EPISODES, *stored_experience.DERIVED]
    with memory.reading() as connection:
        rows = {noun.table.name: fetch(connection, noun, owned(noun, memory.owner)) for noun in nouns}
    return {name: sorted((_timeless(each) for each in own), key=repr) for name, own in rows.items()}


def _timeless(value: Any) -> Any:
    times = {field.name: T0 for field in fields(value) if field.name in ("recorded_at", "created_at")}
    return replace(value, **times)


def a_memory() -> Memory:
    return open_simulation(clock=FakeClock(T0), owner="ana")


def trades_of(memory: Memory) -> list[Trade]:
    with memory.reading() as connection:
        return sorted(
            fetch(connection, stored.TRADES, owned(stored.TRADES, memory.owner)), key=lambda each: each.known_at
        )


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Fills in three symbols, one a minute, with funding while a position is open and after its close."""
    rng = random.Random(draw(st.integers(0, 10_000)))
    rows: list[Row] = []
    sizes: dict[str, float] = {}
    for minute in range(draw(st.integers(2, 40))):
        symbol = rng.choice(["BTC", "ETH", "SOL"])
        size = sizes.get(symbol, 0.0)
        choice = rng.random()
        if choice < 0.15:
            rows.append(a_payment(minute, symbol, rng.choice([-1.0, 0.5])))
            continue
        quantity = -size if size and choice < 0.5 else rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
        sizes[symbol] = size + quantity
        rows.append(a_fill(minute, symbol, quantity, price=rng.choice([98.0, 100.0, 103.0]), fee=0.25))
    return rows


def check_order_and_repetition(history: list[Row], shuffled: list[Row]) -> None:
    with TemporaryDirectory() as folder, a_memory() as memory, a_memory() as other:
        imported(memory, folder, history)
        imported(other, folder, shuffled)
        once = state(memory)
        assert state(other) == once
        again = imported(memory, folder, history)
        assert (again.added, state(memory)) == (0, once)


def check_overlaps(history: list[Row], first: int, last: int) -> None:
    parts = [history[first:last], history[: (first + last) // 2], history]
    with TemporaryDirectory() as folder, a_memory() as memory, a_memory() as whole:
        for part in parts:
            if part:
                imported(memory, folder, part)
        imported(whole, folder, history)
        assert state(memory) == state(whole)
        assert memory.doctor().findings == memory.verify_audit().findings == ()


@settings(max_examples=3)
@given(histories(), st.data())
def test_a_file_in_any_order_and_twice_is_the_file_once(history: list[Row], data: st.DataObject) -> None:
    check_order_and_repetition(history, data.draw(st.permutations(history)))


@settings(max_examples=4)
@given(histories(), st.data())
def test_files_that_overlap_are_the_whole_file(history: list[Row], data: st.DataObject) -> None:
    ends = st.integers(0, len(history))
    check_overlaps(history, *sorted(data.draw(st.tuples(ends, ends))))


@pytest.mark.slow
@settings(max_examples=150)
@given(histories(), st.data())
def test_many_histories_in_any_order_and_in_parts(history: list[Row], data: st.DataObject) -> None:
    ends = st.integers(0, len(history))
    check_order_and_repetition(history, data.draw(st.permutations(history)))
    check_overlaps(history, *sorted(data.draw(st.tuples(ends, ends))))


ROUND = [a_fill(0, quantity=2.0, fee=0.5), a_fill(5, quantity=-1.0, price=104.0), a_fill(9, quantity=-1.0, price=106.0)]


def test_trades_are_those_of_the_fold(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, [*ROUND, a_payment(7, amount=-1.5), a_fill(20, "ETH")])
    closed, still_open = trades_of(memory)
    assert (closed.realized_pnl, closed.fees, closed.funding, closed.pnl) == (10.0, 0.5, -1.5, 8.0)
    assert (closed.closed_at, closed.known_at) == (START + timedelta(minutes=9), START + timedelta(minutes=9))
    assert (still_open.symbol, still_open.status, still_open.open_size) == ("ETH", "open", 1.0)
    assert answer.trades is not None
    assert (answer.added, answer.trades.opened, answer.trades.closed, answer.trades.learned.episodes) == (5, 2, 1, 1)
    assert memory.doctor().findings == ()


def test_a_payment_after_the_close_corrects_the_trade_from_then_on(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, [*ROUND, a_payment(60, amount=2.0)])
    before = memory.list_trades(as_of=START + timedelta(minutes=59)).trades
    assert [trade.pnl for trade in (*before, *memory.list_trades().trades)] == [9.5, 11.5]
    assert memory.doctor().findings == ()


def test_the_state_of_the_agent_at_an_entry_is_that_of_earlier_closes(memory: Memory, tmp_path: Path) -> None:
    lost = [a_fill(0), a_fill(1, quantity=-1.0, price=90.0), a_fill(2), a_fill(3, quantity=-1.0, price=90.0)]
    imported(memory, tmp_path, [*lost, a_fill(4)])
    assert [trade.context.consecutive_losses for trade in trades_of(memory)] == [0, 1, 2]


def test_fills_of_one_instant_keep_the_order_of_the_file(memory: Memory, tmp_path: Path) -> None:
    at_once = [a_fill(0, quantity=quantity, id=name) for name, quantity in (("z", 1.0), ("y", -1.0), ("x", -2.0))]
    imported(memory, tmp_path, [*at_once, a_fill(5, quantity=2.0)])
    assert [trade.direction for trade in trades_of(memory)] == ["long", "short"]
    imported(memory, tmp_path, [a_fill(5, quantity=2.0), *reversed(at_once)], account="newest first")
    assert sorted(trade.direction for trade in trades_of(memory)) == ["long", "long", "short", "short"]


@pytest.mark.parametrize("part", [slice(0, 1), slice(1, 3), slice(2, 4), slice(0, 3)])
def test_a_file_that_is_cut_within_an_instant_can_be_completed(tmp_path: Path, part: slice) -> None:
    names = [("z", 1.0), ("y", -1.0), ("x", -2.0), ("w", 2.0)]
    whole = [a_fill(0, quantity=quantity, id=name) for name, quantity in names]
    with a_memory() as memory, a_memory() as other:
        imported(memory, tmp_path, whole[part])
        imported(memory, tmp_path, whole)
        imported(other, tmp_path, whole)
        assert {(each.direction, each.size) for each in trades_of(other)} == {("long", 1.0), ("short", 2.0)}
        assert (state(memory)["trade_history"], state(memory)["episodic_memory"]) == (
            state(other)["trade_history"],
            state(other)["episodic_memory"],
        )


def test_a_history_in_small_parts_is_learned_as_a_whole(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [a_fill(minute, quantity=(-1.0) ** minute, price=100.0 + minute % 3) for minute in range(24)]
    with a_memory() as whole:
        imported(whole, tmp_path, rows)
        monkeypatch.setattr(fill_import, "BATCH", 3)
        monkeypatch.setattr(fill_import, "LEARNED_AT_ONCE", 2)
        answer = imported(memory, tmp_path, rows)
        assert state(memory) == state(whole)
    assert answer.trades is not None
    assert answer.trades.learned.episodes == 12


def test_equal_rows_without_ids_are_told_apart_by_their_number(memory: Memory, tmp_path: Path) -> None:
    twice = [a_fill(0, id=""), a_fill(0, id="")]
    assert [imported(memory, tmp_path, rows).added for rows in (twice[:1], twice, twice)] == [1, 1, 0]


def test_results_of_the_file_are_compared(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "fills.csv"
    text = "time,symbol,side,qty,price,realized pnl,id\n"
    for number, (symbol, pnl) in enumerate({"BTC": 5.0, "ETH": 5.004, "SOL": 7.0}.items()):
        text += f"2026-05-01 10:0{number},{symbol},buy,1,100,,{symbol}1\n"
        text += f"2026-05-01 11:0{number},{symbol},sell,1,105,{pnl},{symbol}2\n"
    path.write_text(text)
    answer = memory.import_fills(path=str(path), mode="paper")
    assert answer.trades is not None
    comparison = answer.trades.comparison
    assert (comparison.compared, comparison.agreeing, answer.trades.contradicted) == (3, 2, 1)
    assert [(each.symbol, each.ours, each.theirs) for each in comparison.differences] == [("SOL", 5.0, 7.0)]


def test_ticks_go_on_where_imported_fills_end(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, [a_fill(0, quantity=2.0)])
    at = T0 - timedelta(hours=2)
    sold = ReportedFill(id="sold", at=at, sequence=0, kind="trade", symbol="BTC", quantity=-1.0, price=110.0)
    before = a_snapshot(a_position(1.0, mark=110.0), at=T0, fills=[sold])
    memory.close_tick(deployment="exchange@exchange", at=T0, before=before, verdict=Verdict(kind="noop"))
    (trade,) = trades_of(memory)
    assert (trade.open_size, trade.realized_pnl) == (1.0, 10.0)
    with pytest.raises(Conflict, match="runs by ticks"):
        imported(memory, tmp_path, [a_fill(7)])
