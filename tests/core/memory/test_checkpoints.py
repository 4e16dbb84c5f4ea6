"""Checkpoints come at regular numbers of trades."""

from backsight.core.memory.checkpoints import INTERVAL, is_checkpoint


def test_every_interval_has_one_checkpoint() -> None:
    assert [trades for trades in range(1, 2 * INTERVAL + 1) if is_checkpoint(trades)] == [INTERVAL, 2 * INTERVAL]
