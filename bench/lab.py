"""How long the lab takes: 10,000 planted trades with the six default arms, and with the baseline alone.

python bench/lab.py [TRADES]
"""

import sys
import time

from backsight.lab import arms_named, planted_trades
from backsight.lab.analysis import AnalysisTerms, analyse
from backsight.lab.arms import DEFAULT_ARMS, checked_arms
from backsight.lab.replay import replay


def measure(trades: int, names: tuple[str, ...]) -> tuple[float, float, float]:
    """Seconds of the replay, seconds of the analysis, and processor seconds of both."""
    planted, arms = planted_trades("edge_by_regime", trades=trades, seed=1), checked_arms(arms_named(names))
    start, processor = time.perf_counter(), time.process_time()
    decisions = replay(planted.trades, arms)
    replayed = time.perf_counter()
    analyse(planted, decisions, arms, AnalysisTerms())
    return replayed - start, time.perf_counter() - replayed, time.process_time() - processor


def main() -> None:
    trades = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for names in (DEFAULT_ARMS, ("fixed",)):
        replayed, analysed, processor = measure(trades, names)
        print(
            f"{trades:,} trades × {len(names)} arms: replay {replayed:.0f} s, analysis {analysed:.1f} s, "
            f"{processor:.0f} s of one core ({1000 * replayed / trades:.1f} ms a trade)",
            flush=True,
        )


if __name__ == "__main__":
    main()
