"""The power is computed before results, and grows with the number of trades."""

import numpy as np

from backsight.lab.equity import trade_times
from backsight.lab.planted import planted_trades
from backsight.lab.power import Power, power_of


def power(trades: int, *, arms: int = 4) -> Power:
    times = trade_times(planted_trades("no_edge", trades=trades, seed=1).trades)
    return power_of(times, np.full(trades, 0.01), arms=arms, rng=np.random.default_rng(1))


def test_more_trades_find_smaller_advantages() -> None:
    few, many = power(60).detectable, power(600).detectable
    assert few is not None
    assert many is not None
    assert many.skill < few.skill


def test_too_few_trades_can_show_nothing() -> None:
    assert power(20).detectable is None
    assert power(20).sentence == (
        "With 20 scored trades on 20 days nothing can be called better or worse: at least 30 on 20 days are needed."
    )


def test_skill_that_hardly_exists_is_hardly_found() -> None:
    assert power(200).steps[0].power < 0.2
