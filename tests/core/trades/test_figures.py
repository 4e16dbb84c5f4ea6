"""The figures of trades from their columns equal those computed trade by trade, in any order of the rows."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.statistics import rate_bounds
from backsight.core.trades.columns import (
    EMPTY,
    UNKNOWN_INSTANT,
    ClosedTradeColumns,
    EntryLabels,
    TradeLabels,
    TradeRows,
    update_trades,
)
from backsight.core.trades.figures import DAY, HOUR, figures_by, figures_of, rows_by_label
from backsight.core.trades.performance import CATEGORIES

GROUP = TradeLabels("d1", "s", "S", 1, "BTC", "live", None, "R", None)
ENTRY = EntryLabels("long", "ranging", "low", "asia", "shown", "m", '["a","b"]')
scipy_stats = pytest.importorskip("scipy.stats")


def columns_of(results: list[tuple[float, float | None, float | None]]) -> ClosedTradeColumns:
    """Trades with a net result, an outcome in R and minutes; every second one is short and in ETH."""
    count = len(results)
    instants = np.arange(count, dtype=np.int64) * HOUR * 7 + 4 * DAY
    rows = TradeRows(
        id=[f"t{n}" for n in range(count)],
        known_at=instants,
        recorded_at=instants,
        closed_at=instants,
        opened_at=np.where(np.arange(count) % 5 == 4, UNKNOWN_INSTANT, instants - HOUR),
        pnl=[net for net, _, _ in results],
        realized_pnl_usd=[None] * count,
        outcome=[r for _, r, _ in results],
        minutes=[minutes for _, _, minutes in results],
        entry_equity=[None] * count,
        mfe_r=[None] * count,
        mae_r=[None] * count,
        group=[GROUP._replace(symbol="ETH" if n % 2 else "BTC") for n in range(count)],
        entry=[ENTRY._replace(direction="short", tags="[]") if n % 2 else ENTRY for n in range(count)],
    )
    return update_trades(EMPTY, [rows])


amounts = st.sampled_from((-3.5, -1.0, -0.1, 0.0, 0.2, 1.0, 7.25))
results = st.lists(st.tuples(amounts, amounts, st.none() | st.floats(0.0, 1e4)), min_size=2, max_size=40)


@settings(max_examples=60)
@given(results, st.randoms())
def test_figures_equal_those_of_the_trades_one_by_one(
    trades: list[tuple[float, float | None, float | None]], random: object
) -> None:
    columns = columns_of(trades)
    figures = figures_of(columns, np.arange(len(trades)))
    nets, held = [net for net, _, _ in trades], [minutes for _, _, minutes in trades if minutes is not None]
    wins, losses = [net for net in nets if net > 0], [net for net in nets if net < 0]
    assert (figures.trades, figures.wins, figures.best, figures.worst) == (
        len(nets),
        len(wins),
        max(nets),
        min(nets),
    )
    assert figures.net == pytest.approx(sum(nets), abs=1e-9)
    assert (figures.win_rate_low, figures.win_rate_high) == rate_bounds(len(wins), len(nets))
    if losses:
        assert figures.profit_factor == pytest.approx(sum(wins) / -sum(losses))
    assert figures.money is not None
    assert figures.money.mean == pytest.approx(statistics.fmean(nets), abs=1e-12)
    deviation = statistics.stdev(nets)
    if deviation:
        low, high = scipy_stats.t.interval(
            0.9, len(nets) - 1, loc=statistics.fmean(nets), scale=deviation / len(nets) ** 0.5
        )
        assert [figures.money.low, figures.money.high] == pytest.approx([low, high])
    if held:
        assert figures.average_minutes == pytest.approx(statistics.fmean(held))
        assert figures.median_minutes == pytest.approx(statistics.median(held))
    turned = columns_of(list(reversed(trades)))
    assert figures_of(turned, np.arange(len(trades))) == figures


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_trade_is_in_a_group_of_every_category(category: str) -> None:
    columns = columns_of([(1.0, 1.0, None)] * 30)
    by_label = rows_by_label(columns, np.arange(30), category, {"d1": "main"})  # type: ignore[arg-type]
    assert sorted(set(np.concatenate(list(by_label.values())).tolist())) == list(range(30))
    groups = figures_by(columns, by_label, most=3)
    assert [each.figures.trades for each in groups] == sorted((len(rows) for rows in by_label.values()), reverse=True)[
        :3
    ]


def test_labels_are_those_of_the_trades() -> None:
    columns, rows = columns_of([(1.0, 1.0, None)] * 10), np.arange(10)
    labels = {name: sorted(rows_by_label(columns, rows, name, {"d1": "main"})) for name in CATEGORIES}
    assert labels["symbol"] == ["BTC", "ETH"]
    assert labels["deployment"] == ["main"]
    assert labels["tag"] == ["a", "b", "untagged"]
    assert labels["lessons"] == ["unknown"]
    assert labels["weekday"] == ["Monday", "Sunday", "Tuesday", "Wednesday", "unknown"]
    assert labels["month"] == ["1970-01"]
    assert {label for label in labels["hour"] if label != "unknown"} <= {f"{hour:02}:00" for hour in range(24)}


def test_no_mean_in_r_is_given_where_losers_hide() -> None:
    figures = figures_of(columns_of([(1.0, 2.0, None)] * 20 + [(-1.0, None, None)] * 20), np.arange(40))
    assert figures.r is None
    assert "no mean in R is given" in (figures.r_missing or "")
    some = figures_of(columns_of([(1.0, 2.0, None), (1.0, None, None), (-1.0, -1.0, None)]), np.arange(3))
    assert some.r_missing == "R is unknown for 1 of 3 trades"
    assert some.r is not None
    assert some.r.n == 2
