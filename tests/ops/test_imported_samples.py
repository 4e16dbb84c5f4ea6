"""Shared samples of files that traders export, imported twice: counts, and the file's own figures."""

import csv
import gzip
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from backsight.core.trades.trade import Trade, TradeStatus
from backsight.memory import Memory, open_memory
from backsight.testing import T0, FakeClock

SAMPLES = Path(__file__).parents[2].parent / "shared" / "data" / "formats"
pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the shared samples are not on this machine")
CAPITAL = 100_000.0
"""What the account of the pyfolio sample began with: its first cash, plus what was bought on the first day."""


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", clock=FakeClock(T0 + timedelta(days=300))) as opened:
        yield opened


def trades(memory: Memory, status: TradeStatus) -> list[Trade]:
    page = memory.list_trades(mode="sim", status=status, limit=100)
    listed = list(page.trades)
    while page.next_cursor is not None:
        page = memory.list_trades(mode="sim", status=status, limit=100, cursor=page.next_cursor)
        listed += page.trades
    return listed


def test_pyfolio_transactions_give_the_equity_of_the_positions_file(memory: Memory) -> None:
    path = str(SAMPLES / "pyfolio_txn" / "test_txn.csv.gz")
    first, again = (memory.import_fills(path=path, account="pyfolio", mode="sim") for _ in range(2))
    assert (first.rows, first.fills, first.added, first.left_out) == (9_367, 9_367, 9_367, ())
    assert (again.fills, again.added, again.trades) == (9_367, 0, None)
    assert first.trades is not None
    assert (first.trades.opened, first.trades.closed, first.trades.open_positions) == (1_430, 1_423, 7)

    with gzip.open(SAMPLES / "pyfolio_txn" / "test_pos.csv.gz", "rt") as file:
        *_, last = csv.DictReader(file)
    closed, still_open = trades(memory, "closed"), trades(memory, "open")
    assert (len(closed), len(still_open)) == (1_423, 7)
    result = sum(trade.realized_pnl or 0.0 for trade in (*closed, *still_open))
    for trade in still_open:
        way = 1.0 if trade.direction == "long" else -1.0
        assert float(last[trade.symbol]) * way > 0
        result += float(last[trade.symbol]) - way * trade.open_size * (trade.average_cost or 0.0)
    equity = sum(float(last[trade.symbol]) for trade in still_open) + float(last["cash"])
    assert result == pytest.approx(equity - CAPITAL, abs=1e-4)
    assert memory.doctor().healthy


def test_positions_of_nautilus_have_their_realised_results(memory: Memory) -> None:
    path = SAMPLES / "nautilus_positions_report.csv"
    first, again = (memory.import_trades(path=str(path)) for _ in range(2))
    assert (first.format, first.rows, first.added, first.left_out) == ("nautilus-positions", 2_000, 2_000, ())
    assert (again.added, again.replayed) == (0, 2_000)
    with path.open() as file:
        results = {row["position_id"]: float(row["realized_pnl"].partition(" ")[0]) for row in csv.DictReader(file)}
    stored = {trade.position_key: trade for trade in trades(memory, "closed")}
    assert {key: trade.pnl for key, trade in stored.items()} == results
    assert all(trade.mode == "sim" and trade.fees > 0 for trade in stored.values())
    assert memory.doctor().healthy
