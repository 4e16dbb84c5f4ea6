"""Training and validation by date, and purged, embargoed walk-forward folds (López de Prado 2018, chapter 7).

Memory learns while it is tested, trade by trade: whatever closed before a decision is its training data. Folds cut the
validation period into parts whose results do not share a trade.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from backsight.core.errors import Invalid
from backsight.lab.trades import LabTrade

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """One step of a walk forward: places of trades in their order of entry."""

    train: Integers
    """Trades that closed before the fold begins."""
    test: Integers
    """Trades that were opened in the fold, after the embargo, and closed in it."""
    starts_at: datetime
    ends_at: datetime


def validation_start(trades: Sequence[LabTrade], *, training: float | datetime) -> datetime:
    """The instant at which validation begins: a date, or the entry after this share of the trades.

    >>> from backsight.lab.planted import planted_trades
    >>> trades = planted_trades("no_edge", trades=100, seed=1).trades
    >>> validation_start(trades, training=0.5) == trades[50].entry.at
    True
    """
    if isinstance(training, datetime):
        return training
    if not 0.0 < training < 1.0:
        raise Invalid(f"{training} is not a share between 0 and 1; give one, or a date", field="training")
    if not trades:
        raise Invalid("no trade to replay; give a file with closed trades", field="trades")
    return trades[min(len(trades) - 1, int(training * len(trades)))].entry.at


def walk_forward(
    trades: Sequence[LabTrade], *, since: datetime, folds: int, embargo: timedelta = timedelta(0)
) -> Iterator[Fold]:
    """Folds of equal length in time from an instant to the last entry.

    Purged: a trade counts in a fold only if it was opened and closed in it, so that no outcome reaches into the next.
    Embargoed: the test begins this long after the start of the fold.

    >>> from backsight.lab.planted import planted_trades
    >>> trades = planted_trades("no_edge", trades=100, seed=1).trades
    >>> steps = list(walk_forward(trades, since=trades[50].entry.at, folds=2))
    >>> [(len(step.train), len(step.test)) for step in steps]
    [(50, 26), (76, 24)]
    """
    if folds < 2:
        raise Invalid(f"{folds} folds; give 2 or more", field="folds")
    if embargo < timedelta(0):
        raise Invalid(f"{embargo} is before the border; give 0 or more", field="embargo")
    last = max((trade.closed_at for trade in trades if trade.entry.at >= since), default=since)
    width = (last - since) / folds
    for number in range(folds):
        starts_at = since + number * width
        is_last = number == folds - 1
        ends_at = last if is_last else since + (number + 1) * width
        tested_from = starts_at + embargo
        yield Fold(
            train=_places(trade.closed_at < starts_at for trade in trades),
            test=_places(
                trade.entry.at >= tested_from and (trade.closed_at < ends_at or (is_last and trade.closed_at == last))
                for trade in trades
            ),
            starts_at=starts_at,
            ends_at=ends_at,
        )


def _places(chosen: Iterator[bool]) -> Integers:
    return np.flatnonzero(np.fromiter(chosen, dtype=np.bool_))
