"""How long the lab takes: planted trades with the six default arms, and with the baseline alone, in processor time.

python bench/lab.py [TRADES ...]
"""

import sys
import time

from backsight.lab import arms_named, planted_trades
from backsight.lab.analysis import AnalysisTerms, analyse
from backsight.lab.arms import DEFAULT_ARMS, checked_arms
from backsight.lab.replay import replay

SIZES = (1_000, 10_000)


def measure(trades: int, names: tuple[str, ...]) -> tuple[float, float, float]:
    """Processor seconds of the replay and of the analysis, and seconds of both by the clock."""
    planted, arms = planted_trades("edge_by_regime", trades=trades, seed=1), checked_arms(arms_named(names))
    clock, start = time.perf_counter(), time.process_time()
    decisions = replay(planted.trades, arms)
    replayed = time.process_time()
    analyse(planted, decisions, arms, AnalysisTerms())
    return replayed - start, time.process_time() - replayed, time.perf_counter() - clock


def main() -> None:
    print("| trades | arms | replay | analysis | by the clock | replay of a trade | times the baseline alone |")
    print("|---|---|---|---|---|---|---|")
    for trades in [int(word) for word in sys.argv[1:]] or SIZES:
        alone = None
        for names in (("fixed",), DEFAULT_ARMS):
            replayed, analysed, clock = measure(trades, names)
            alone = alone or replayed
            print(
                f"| {trades:,} | {len(names)} | {replayed:.0f} s | {analysed:.1f} s | {clock:.0f} s "
                f"| {1000 * replayed / trades:.1f} ms | {replayed / alone:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
