"""Trades for the tests of the lab."""

import random
from dataclasses import replace
from datetime import timedelta

from backsight.lab.planted import planted_trades
from backsight.lab.trades import LabTrade


def overlapping_trades(count: int, *, seed: int = 1) -> tuple[LabTrade, ...]:
    """Planted trades of which several are open at a time."""
    rng = random.Random(seed)
    trades = planted_trades("edge_by_regime", trades=count, seed=seed).trades
    return tuple(replace(each, closed_at=each.entry.at + timedelta(hours=1 + 150 * rng.random())) for each in trades)
