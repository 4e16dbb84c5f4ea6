"""The mean recommended size where the truth is known: by `position_size`, and by Kelly weighted with Score.

The rows and their limits are those of tests/core/test_sizing.py. Kelly weighted with Score is computed as it was
first described: the fifty memories of the strategy and symbol with the highest Q · Sim · Rec · Conf, none below ten of
them, ¼ · (p / mean loss − q / mean win) with all four weighted by Score. Means before the cap; both methods see the
same trades.
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from backsight.core.recall.arrays.columns import Floats
from backsight.core.recall.score import (
    CATEGORIES,
    DIRECTION_WEIGHT,
    NO_CONTEXT,
    OUTCOME_CLIP_R,
    SIGMA_FLOOR_R,
    conviction,
    quality,
    recency,
)
from backsight.core.recommended_size import ANY_TRADE, Category, SizingQuery
from backsight.core.sizing import TradeColumns, position_size
from backsight.core.trades.trade import Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from core.test_sizing import ALL, TABLE, Row, winning

START = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
RECENCY = np.array([recency(START + timedelta(days=day), now=START + YEAR) for day in range(365)])
WEIGHTS: dict[Category, float] = {
    "regime": CATEGORIES["regime"],
    "volatility_regime": CATEGORIES["volatility_regime"],
    "session": CATEGORIES["session"],
    "direction": DIRECTION_WEIGHT,
}
RECALLED = 50
FEWEST_RECALLED = 10


def matches(trades: TradeColumns, query: SizingQuery, name: Category) -> Floats:
    """1 for each trade that has the value of the query, else 0."""
    coded = trades.categories[name]
    return np.where(coded.codes == coded.values.index(getattr(query, name)), 1.0, 0.0)


def scores(trades: TradeColumns, query: SizingQuery) -> Floats:
    """Score = Q · Sim · Rec · Conf of each trade, in a neutral mood."""
    outcomes, places = np.unique(trades.outcome_r, return_inverse=True)
    clipped = np.clip(trades.outcome_r, -OUTCOME_CLIP_R, OUTCOME_CLIP_R)
    sigma = max(SIGMA_FLOOR_R, float(np.sqrt(np.mean(clipped**2))))
    of_outcome = np.array([quality(Outcome(value=float(r), unit="R"), sigma={"R": sigma}) for r in outcomes])
    weights = {name: weight for name, weight in WEIGHTS.items() if getattr(query, name) is not None}
    alike = sum((weight * matches(trades, query, name) for name, weight in weights.items()), np.zeros(len(places)))
    similarity = alike / sum(weights.values()) if weights else np.full(len(places), NO_CONTEXT)
    return np.asarray(of_outcome[places] * similarity * RECENCY[trades.day] * conviction(None), dtype=np.float64)


def score_weighted_kelly(trades: TradeColumns, query: SizingQuery) -> float:
    """A quarter of Kelly on the fifty best remembered trades, each weighted with its Score."""
    score, outcome_r = scores(trades, query), trades.outcome_r
    if query.symbol is not None:
        same = matches(trades, query, "symbol") > 0
        score, outcome_r = score[same], outcome_r[same]
    best = np.argsort(-score, kind="stable")[:RECALLED]
    score, outcome_r = score[best], outcome_r[best]
    won, lost = float(np.sum(score[outcome_r > 0])), float(np.sum(score[outcome_r <= 0]))
    if len(best) < FEWEST_RECALLED or not won or not lost:
        return 0.0
    p = won / (won + lost)
    mean_win = float(np.sum((score * outcome_r)[outcome_r > 0])) / won
    mean_loss = -float(np.sum((score * outcome_r)[outcome_r <= 0])) / lost
    return max(0.0, 0.25 * (p / mean_loss - (1.0 - p) / mean_win))


def measured(row: Row, seeds: int) -> tuple[float, float]:
    """The mean recommendation of both methods before the cap."""
    ours, score_weighted = [], []
    for seed in range(seeds):
        trades = row.draw(np.random.default_rng(seed), row.n)
        ours.append(position_size(trades, row.query).uncapped)
        score_weighted.append(score_weighted_kelly(trades, row.query))
    return statistics.fmean(ours), statistics.fmean(score_weighted)


def bar(row: Row) -> str:
    return f"{row.least:.1%} to {row.most:.1%}" if row.least else f"≤ {row.most:.1%}"


def times(repeats: int = 15) -> Iterator[tuple[int, str, float]]:
    """The number of trades, the name of the query, and the median milliseconds of an answer."""
    for n in (500, 10_000, 100_000):
        trades = winning(0.55)(np.random.default_rng(0), n)
        for query_name, query in (("nothing", ANY_TRADE), ("all", ALL)):
            seconds = []
            for _ in range(repeats):
                started = time.perf_counter()
                position_size(trades, query)
                seconds.append(time.perf_counter() - started)
            yield n, query_name, 1e3 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    seeds = parser.parse_args().seeds
    print(f"{platform.python_implementation()} {platform.python_version()}, means over {seeds:,} seeds\n")
    print("| truth | trades | asked with | recommended | bar | within | Kelly weighted with Score |")
    print("|---|---|---|---|---|---|---|")
    for row in TABLE:
        ours, score_weighted = measured(row, seeds)
        within = "yes" if row.least <= ours <= row.most else "no"
        print(
            f"| {row.truth} | {row.n} | {row.query_name} | {ours:.2%} | {bar(row)} | {within} | {score_weighted:.1%} |",
            flush=True,
        )
    print("\n| trades | asked with | an answer, median |\n|---|---|---|")
    for n, query_name, milliseconds in times():
        print(f"| {n:,} | {query_name} | {milliseconds:.2f} ms |")


if __name__ == "__main__":
    main()
