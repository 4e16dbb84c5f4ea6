"""The sample files can be imported and backtested as they are."""

from collections import defaultdict
from pathlib import Path

import pytest

from backsight.core.errors import Conflict
from backsight.memory import open_memory
from backsight.runtime.samples import write_samples
from backsight.testing import T0, FakeClock


def test_the_fills_and_the_position_log_of_the_samples_make_the_same_trades(tmp_path: Path) -> None:
    bars, fills, positions = write_samples(tmp_path / "samples", days=10)
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        memory.import_fills(path=str(fills), account="fills", mode="sim", currency="USD")
        imported = memory.import_positions(path=str(positions), bars=str(bars), currency="USD", timezone="UTC")
        trades = memory.list_trades(mode="all", limit=100).trades
    sizes: dict[str, list[float]] = defaultdict(list)
    for trade in trades:
        sizes[trade.account_id].append(round(trade.size or 0.0, 4))
    by_fills, by_positions = sizes.values()
    assert by_fills == by_positions
    assert len(by_fills) > 2
    assert imported.dirt == ()
    assert imported.cash.reconciled == imported.cash.checked > 2


def test_sample_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "fills.csv").write_text("mine")
    with pytest.raises(Conflict, match=r"fills\.csv exists already; name a new folder"):
        write_samples(tmp_path, days=3)
    assert (tmp_path / "fills.csv").read_text() == "mine"
    assert not (tmp_path / "bars.csv").exists()
