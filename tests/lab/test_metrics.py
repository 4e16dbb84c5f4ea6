"""Metrics against brute force, and in the slow tests against quantstats and skfolio."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from backsight.lab.equity import DailyResults, Floats
from backsight.lab.metrics import (
    METRICS,
    brier_score,
    change_point,
    drawdowns,
    equity_curves,
    expected_shortfall,
    metrics_of,
    rank_correlation,
    rolling_sharpe,
    sharpe,
    sortino,
    trades_until_halved,
)


def some_returns(seed: int = 1, days: int = 250) -> Floats:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(days) < 0.3, 0.0, rng.standard_t(4, days) * 0.01 + 0.0005)


def as_daily(returns: Floats) -> DailyResults:
    rows = returns[None, :]
    return DailyResults(
        returns=rows, wins=np.maximum(rows, 0.0), losses=np.maximum(-rows, 0.0), trades=(rows != 0.0).astype(np.float64)
    )


def test_every_metric_equals_its_definition_computed_day_by_day() -> None:
    returns = some_returns()
    values = {name: float(each[0]) for name, each in metrics_of(as_daily(returns)).items()}
    equity, peak, drawdown, spell, longest = 1.0, 1.0, 0.0, 0, 0
    for change in returns.tolist():
        equity *= 1.0 + change
        peak = max(peak, equity)
        drawdown = max(drawdown, 1.0 - equity / peak)
        spell = spell + 1 if equity < peak else 0
        longest = max(longest, spell)
    mean = math.fsum(returns) / len(returns)
    deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in returns) / (len(returns) - 1))
    downside = math.sqrt(math.fsum(min(each, 0.0) ** 2 for each in returns) / len(returns))
    worst = sorted(returns.tolist())
    tail = 0.05 * len(returns)
    spells = [returns[at : at + 30] for at in range(len(returns) - 29)]
    rolling = [float(part.mean() / part.std(ddof=1)) * math.sqrt(365) for part in spells]
    expected = {
        "final_equity": equity,
        "holding_period_return": equity ** (1 / np.count_nonzero(returns)) - 1,
        "profit_factor": math.fsum(r for r in returns if r > 0) / -math.fsum(r for r in returns if r < 0),
        "sharpe": mean / deviation * math.sqrt(365),
        "sortino": mean / downside * math.sqrt(365),
        "calmar": (equity ** (365 / len(returns)) - 1) / drawdown,
        "max_drawdown": drawdown,
        "drawdown_days": longest,
        "tail_loss": -(math.fsum(worst[:12]) + (tail - 12) * worst[12]) / tail,
        "rolling_sharpe": float(np.median(rolling)),
        "worst_rolling_sharpe": float(np.quantile(rolling, 0.1)),
    }
    assert set(values) == set(METRICS)
    for name, value in values.items():
        assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name


def test_an_arm_that_never_traded_has_no_sharpe_ratio_and_no_drawdown() -> None:
    values = metrics_of(as_daily(np.zeros(40)))
    assert [float(values[name][0]) for name in ("sharpe", "sortino", "calmar", "max_drawdown")] == [0.0] * 4
    assert float(values["final_equity"][0]) == 1.0
    assert math.isnan(float(values["holding_period_return"][0]))


def test_a_drawdown_is_measured_from_the_start_too() -> None:
    assert drawdowns(equity_curves(np.array([[-0.1, 0.05]]))).round(4).tolist() == [[0.1, 0.055]]


def test_rows_are_measured_apart() -> None:
    rows = np.stack([some_returns(1), some_returns(2)])
    assert sharpe(rows).tolist() == [float(sharpe(rows[0])), float(sharpe(rows[1]))]
    assert rolling_sharpe(rows).shape == (2, 221)


def test_a_rank_correlation_ignores_trades_that_are_not_drawn() -> None:
    weights = np.array([[1.0, 1.0, 1.0, 0.0]])
    sizes, outcomes = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-1.0, 0.0, 1.0, -9.0])
    assert rank_correlation(sizes, outcomes, weights)[0] == pytest.approx(1.0)
    assert math.isnan(rank_correlation(np.ones(4), outcomes, weights)[0])


def test_confidence_that_was_not_stated_has_no_brier_score() -> None:
    assert math.isnan(brier_score(np.full(3, np.nan), np.ones(3), np.ones((1, 3)))[0])


def test_a_size_that_is_never_halved_has_no_speed() -> None:
    assert trades_until_halved(np.ones(60), 30) is None
    assert trades_until_halved(np.zeros(60), 30) is None


def test_few_trades_have_no_change_point() -> None:
    assert change_point(np.ones(39)) is None


@pytest.mark.slow
def test_metrics_agree_with_quantstats_and_skfolio() -> None:
    """Calmar differs: quantstats counts a year by the dates of its index, not 365 days; it is compared by its parts.

    quantstats' `cvar` is the mean of the days below a normal quantile and is another quantity; skfolio's agrees.
    """
    stats: Any = pytest.importorskip("quantstats.stats")
    measures: Any = pytest.importorskip("skfolio.measures")
    pandas: Any = pytest.importorskip("pandas")
    for seed in range(5):
        returns = some_returns(seed)
        series = pandas.Series(returns, index=pandas.date_range("2025-01-01", periods=len(returns)))
        values = {name: float(each[0]) for name, each in metrics_of(as_daily(returns)).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert values["sharpe"] == pytest.approx(stats.sharpe(series, periods=365), rel=1e-9)
            assert values["sortino"] == pytest.approx(stats.sortino(series, periods=365), rel=1e-9)
            assert values["max_drawdown"] == pytest.approx(-stats.max_drawdown(series), rel=1e-9)
            assert values["profit_factor"] == pytest.approx(stats.profit_factor(series), rel=1e-9)
            assert values["final_equity"] == pytest.approx(1.0 + stats.comp(series), rel=1e-9)
            traded = series[series != 0.0]
            assert values["holding_period_return"] == pytest.approx(stats.geometric_mean(traded), rel=1e-9)
        assert float(expected_shortfall(returns)) == pytest.approx(measures.cvar(returns, beta=0.95), rel=1e-9)
        downside = measures.semi_deviation(returns, min_acceptable_return=0.0, biased=True)
        assert float(sortino(returns)) == pytest.approx(math.sqrt(365) * returns.mean() / downside, rel=1e-9)
        assert values["max_drawdown"] == pytest.approx(
            measures.max_drawdown(measures.get_drawdowns(returns, compounded=True)), rel=1e-9
        )
