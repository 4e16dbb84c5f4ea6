"""Trades for the tests of the lab."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from backsight.lab.planted import Truth, planted_file, planted_trades
from backsight.lab.trades import LabTrade


def overlapping_trades(count: int, *, seed: int = 1) -> tuple[LabTrade, ...]:
    """Planted trades of which several are open at a time."""
    rng = random.Random(seed)
    trades = planted_trades("edge_by_regime", trades=count, seed=seed).trades
    return tuple(replace(each, closed_at=each.entry.at + timedelta(hours=1 + 150 * rng.random())) for each in trades)


def planted_path(folder: Path, truth: Truth, *, trades: int) -> Path:
    """A file of planted trades."""
    path = folder / "planted.jsonl"
    path.write_text(planted_file(planted_trades(truth, trades=trades, seed=1)))
    return path
