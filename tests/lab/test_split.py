"""Training, validation and folds: nothing of a fold reaches into another."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from backsight.core.errors import Invalid
from backsight.lab.planted import START, planted_trades
from backsight.lab.split import validation_start, walk_forward
from backsight.lab.trades import LabTrade
from lab_samples import overlapping_trades


def test_no_trade_of_a_fold_is_open_outside_it_and_training_ends_before_it() -> None:
    trades = overlapping_trades(200)
    embargo = timedelta(days=2)
    folds = list(walk_forward(trades, since=trades[60].entry.at, folds=5, embargo=embargo))
    assert sum(len(fold.test) for fold in folds) > 50
    for fold in folds:
        assert all(trades[place].closed_at < fold.starts_at for place in fold.train)
        assert all(trades[place].entry.at >= fold.starts_at + embargo for place in fold.test)
        assert all(trades[place].closed_at <= fold.ends_at for place in fold.test)
        assert not set(fold.train.tolist()) & set(fold.test.tolist())
    tested = [place for fold in folds for place in fold.test.tolist()]
    assert len(tested) == len(set(tested))


def test_a_date_or_a_share_ends_training() -> None:
    trades = planted_trades("no_edge", trades=10, seed=1).trades
    assert validation_start(trades, training=START) == START
    assert validation_start(trades, training=0.8) == trades[8].entry.at


@pytest.mark.parametrize("training", [0.0, 1.0, -2.0])
def test_a_share_outside_of_0_and_1_is_refused(training: float) -> None:
    with pytest.raises(Invalid, match=r"training: .* is not a share"):
        validation_start(planted_trades("no_edge", trades=10, seed=1).trades, training=training)


def test_folds_and_embargo_that_make_no_sense_are_refused() -> None:
    trades: tuple[LabTrade, ...] = planted_trades("no_edge", trades=10, seed=1).trades
    with pytest.raises(Invalid, match="folds"):
        list(walk_forward(trades, since=START, folds=1))
    with pytest.raises(Invalid, match="embargo"):
        list(walk_forward(trades, since=START, folds=2, embargo=timedelta(days=-1)))


@pytest.mark.slow
def test_purging_agrees_with_purgedcv() -> None:
    """purgedcv drops training trades that overlap the test; ours are those that closed before the fold began.

    The two agree where the first test trade opens with the fold; its walk-forward splitter counts rows instead of days,
    and has no embargo, so that only the purging is compared.
    """
    purgedcv: Any = pytest.importorskip("purgedcv")
    pandas: Any = pytest.importorskip("pandas")
    trades = overlapping_trades(200)
    entries = pandas.Series(pandas.to_datetime([trade.entry.at for trade in trades]))
    closes = pandas.Series(pandas.to_datetime([trade.closed_at for trade in trades]))
    for start in (60, 100, 150):
        fold = next(walk_forward(trades, since=trades[start].entry.at, folds=2))
        earlier = np.arange(start)
        kept = purgedcv.purge(earlier, np.arange(start, 200), entries, closes)
        assert fold.train.tolist() == [place for place in kept.tolist() if trades[place].closed_at < fold.starts_at]
        assert set(kept.tolist()) - set(fold.train.tolist()) <= {
            place for place in earlier.tolist() if trades[place].closed_at == fold.starts_at
        }
