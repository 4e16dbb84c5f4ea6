"""Closed trades by the revision of the lessons: the day of the close, and only results in the account's currency."""

import numpy as np

from backsight.core.reflection.trades_under_lessons import NO_UNIT, trades_under_lessons
from backsight.core.trades.columns import EMPTY, ClosedTradeColumns, TradeLabels, TradeRows, update_trades

DAY = 86_400_000_000
PLAIN = TradeLabels("d", "s", "S", 1, "BTC", "live", None, "R", "aa")


def columns_of(*trades: tuple[TradeLabels, int, float | None]) -> ClosedTradeColumns:
    """Trades of a group, an instant of the close and a result."""
    instants = np.array([at for _, at, _ in trades], np.int64)
    results = [pnl for _, _, pnl in trades]
    rows = TradeRows(
        id=[f"t{n}" for n in range(len(trades))],
        known_at=instants,
        recorded_at=instants,
        closed_at=instants,
        opened_at=instants,
        pnl=results,
        realized_pnl_usd=[None] * len(trades),
        outcome=[None if group.outcome_unit is None else 1.0 for group, _, _ in trades],
        minutes=[None] * len(trades),
        entry_equity=[None] * len(trades),
        mfe_r=[None] * len(trades),
        mae_r=[None] * len(trades),
        group=[group for group, _, _ in trades],
        entry=[("long", None, None, None, None, None, "[]")] * len(trades),
    )
    return update_trades(EMPTY, [rows])


def test_trades_are_of_the_day_of_their_close_and_foreign_results_are_in_no_mean() -> None:
    foreign = PLAIN._replace(currency="JPY", outcome_unit=None, lessons_hash=None)
    columns = columns_of((PLAIN, 3 * DAY - 1, 5.0), (foreign, 3 * DAY, -7.0), (PLAIN, 3 * DAY, None))
    trades = trades_under_lessons(columns, np.arange(3))
    assert trades.day.tolist() == [2, 3, 3]
    assert trades.unit.tolist() == [0, NO_UNIT, 0]
    assert [trades.hashes[code] for code in trades.revision] == ["aa", None, "aa"]
    np.testing.assert_array_equal(trades.pnl, [5.0, np.nan, np.nan])
    np.testing.assert_array_equal(trades.won, [1.0, 0.0, np.nan])


def test_revisions_come_in_the_order_of_their_first_days() -> None:
    late, early = PLAIN._replace(lessons_hash="aa"), PLAIN._replace(lessons_hash="zz")
    again = late._replace(symbol="ETH")
    columns = columns_of((late, 5 * DAY, 1.0), (early, 2 * DAY, 1.0), (again, 9 * DAY, 1.0))
    assert trades_under_lessons(columns, np.arange(3)).revisions == ["zz", "aa"]
    assert trades_under_lessons(columns, np.array([2])).revisions == ["aa"]
