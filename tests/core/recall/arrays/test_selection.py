"""The trades that count in a base rate: strategy, mode, instant, corrections and archived trades."""

from datetime import datetime

import pytest

from backsight.core.instants import Horizon
from backsight.core.recall.arrays.base_rate import base_rate
from backsight.core.recall.arrays.columns import (
    append_episodes,
    columns_of,
)
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.recall.score import Situation
from core.recall.arrays.test_base_rate import (
    DAY,
    EVERYBODY,
    EVERYTHING,
    MICROSECOND,
    NOON,
    a_trade,
    base_rate_of,
    strategy_level,
)


def test_only_trades_of_the_given_strategy_and_mode_count() -> None:
    trades = [
        a_trade(n, strategy_name=name, mode=mode)
        for n, (name, mode) in enumerate([("IM", "live"), ("IM", "paper"), ("IM", "live"), ("VB", "live")])
    ]
    counts = {
        among: base_rate_of(
            trades,
            trade_filter=TradeFilter(strategy_name=among[0], mode=among[1]),  # type: ignore[arg-type]
        )
        .levels[0]
        .n
        for among in [(None, None), ("IM", None), ("IM", "live"), (None, "live"), ("VB", "paper")]
    }
    assert counts == {(None, None): 4, ("IM", None): 3, ("IM", "live"): 2, (None, "live"): 3, ("VB", "paper"): 0}


def test_a_trade_counts_from_the_microsecond_in_which_it_is_known() -> None:
    trades = [a_trade(1, known_at=NOON - DAY), a_trade(2)]
    assert [strategy_level(trades, as_of=NOON + k * MICROSECOND).n for k in (-1, 0)] == [1, 2]
    assert [strategy_level(trades, as_of=NOON - DAY + k * MICROSECOND).n for k in (-1, 0)] == [0, 1]


def test_a_trade_recorded_after_seen_at_does_not_count() -> None:
    trades = [a_trade(1, recorded_at=NOON - DAY), a_trade(2), a_trade(3, recorded_at=NOON + DAY)]
    assert [strategy_level(trades, seen_at=NOON + k * MICROSECOND).n for k in (-1, 0)] == [1, 2]
    assert strategy_level(trades).n == 3


def test_an_archived_trade_still_counts() -> None:
    assert strategy_level([a_trade(1), a_trade(2, archived_at=NOON)]).n == 2


def test_a_correction_replaces_the_trade() -> None:
    before = columns_of([a_trade(1, r=1.0), *(a_trade(n, r=-1.0) for n in range(2, 20))])
    after = append_episodes(before, [a_trade(1, r=-1.0, known_at=NOON + DAY)])
    rates = [
        base_rate(columns, Situation(), trade_filter=EVERYBODY, horizon=Horizon(as_of=NOON + k * DAY)).headline
        for columns, k in ((before, 0), (after, 0), (after, 1))
    ]
    assert [(rate.n, rate.win_rate) for rate in rates] == [(19, pytest.approx(1 / 19)), (18, 0.0), (19, 0.0)]


def test_trades_from_before_results_began_to_fall_are_left_out_and_counted() -> None:
    trades = [
        *(a_trade(n, days_ago=n) for n in range(10)),
        *(a_trade(10 + n, days_ago=n, symbol="BTC") for n in range(10)),
        *(a_trade(20 + n, days_ago=n, strategy_name="another") for n in range(10)),
    ]
    since: dict[tuple[str, str | None], datetime] = {
        ("VolBreakout", "XAUUSD"): NOON - 4 * DAY,
        ("VolBreakout", "never traded"): NOON,
    }
    mine = base_rate_of(trades, EVERYTHING, trade_filter=TradeFilter(strategy_name="VolBreakout", falling_since=since))
    assert (mine.levels[0].n, mine.levels[2].n, mine.left_out) == (15, 5, 5)
    everybody = base_rate_of(trades, trade_filter=TradeFilter(falling_since=since))
    assert (everybody.levels[0].n, everybody.left_out) == (25, 5)
    assert base_rate_of(trades, trade_filter=TradeFilter(strategy_name="another", falling_since=since)).left_out == 0
    whole = since | {("VolBreakout", None): NOON - 7 * DAY}
    mine = base_rate_of(trades, EVERYTHING, trade_filter=TradeFilter(strategy_name="VolBreakout", falling_since=whole))
    assert (mine.levels[0].n, mine.levels[2].n, mine.left_out) == (13, 5, 7)
