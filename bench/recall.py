"""What a recall costs: the scan over columns beside the plain scorer, over the same episodes in the same run.

Episodes are spread over three years, of eight symbols, with a whole context and a text of a dozen words. A scan finds
memories, nearest and warnings. It is asked with all symbols as candidates (the plain scorer too), with one, with a
text, and a century later, when all are about equally old and no block can be passed over.
"""

import argparse
import heapq
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from backsight.core.context import ContextVector
from backsight.core.ids import derive_id
from backsight.core.memory.episodic import Episode
from backsight.core.numbers import sigmoid
from backsight.core.recall.columns import Columns, appended, columns_of
from backsight.core.recall.scan import Filters, scan
from backsight.core.recall.score import Query, Temper, factors, sigmas
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.trades.trade import Outcome
from backsight.testing import T0, an_episode

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SYMBOLS = ("BTC", "ETH", "SOL", "XAUUSD", "EURUSD", "GBPUSD", "USDJPY", "US500")
SPAN = timedelta(days=1095)
CENTURY = timedelta(days=36_500)
LIMIT = 10
HEADS = ("break", "fade", "hold", "test", "sweep", "reject", "reclaim", "lose", "push", "stall", "grind", "squeeze")
TAILS = (
    "the range",
    "the high",
    "the low",
    "a level",
    "support",
    "resistance",
    "the trend",
    "vwap",
    "a gap",
    "the open",
)


def a_context(rng: random.Random) -> ContextVector:
    price = rng.uniform(50.0, 150.0)
    return ContextVector(
        price=price,
        atr_d1=price * rng.uniform(0.005, 0.05),
        atr_h1=price * rng.uniform(0.001, 0.01),
        spread_as_atr_pct=rng.uniform(0.01, 0.2),
        drawdown_pct=rng.uniform(0.0, 0.2),
        regime=rng.choice(REGIMES),
        volatility_regime=rng.choice(VOLATILITY_REGIMES),
        session=rng.choice(SESSIONS),
    )


def a_text(rng: random.Random) -> str:
    """Three clauses such as a trader writes; some eight stems."""
    said = (f"{rng.choice(HEADS)}s {rng.choice(TAILS)} near {rng.randrange(1_000)}" for _ in range(3))
    return ", ".join(said)


def episodes_of(rng: random.Random, count: int) -> list[Episode]:
    """Many episodes, oldest first."""
    return [
        an_episode(
            number,
            id=derive_id("bench", number),
            pnl_r=rng.gauss(0.1, 1.5),
            symbol=rng.choice(SYMBOLS),
            direction=rng.choice(("long", "short")),
            context=a_context(rng),
            market_context=a_text(rng),
            confidence=round(rng.random(), 2),
            known_at=T0 - SPAN * ((count - number) / count),
        )
        for number in range(count)
    ]


def plainly(episodes: Sequence[Episode], query: Query, now: datetime) -> None:
    """The whole answer by the plain scorer, without text."""
    sigma, temper = sigmas(e.outcome for e in episodes if e.outcome is not None), Temper()
    scored = [(e, factors(e, query, now=now, sigma=sigma, temper=temper)) for e in episodes]

    def dread(outcome: Outcome) -> float:
        return sigmoid(-2.0 * outcome.value / sigma[outcome.unit])

    lost = ((e, f, dread(e.outcome)) for e, f in scored if e.outcome is not None and e.outcome.value < 0)
    heapq.nsmallest(LIMIT, scored, key=lambda pair: (-pair[1].score, pair[0].id))
    heapq.nsmallest(LIMIT, scored, key=lambda pair: (-pair[1].Sim * pair[1].Rec, pair[0].id))
    heapq.nsmallest(3, lost, key=lambda t: (-t[2] * t[1].Sim * t[1].Rec * t[1].Conf, t[0].id))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_ms(runs: int, work: Callable[[], object]) -> float:
    return 1e3 * statistics.median(seconds(work) for _ in range(runs))


def scans(columns: Columns, runs: int, rng: random.Random) -> dict[str, float]:
    """Median milliseconds of each kind of scan, taken in turn with ever new queries."""
    times: dict[str, list[float]] = {"all": [], "one symbol": [], "text": [], "century": []}
    for _ in range(runs):
        query = Query(symbol=rng.choice(SYMBOLS), direction="long", context=a_context(rng))
        ask = partial(scan, columns, query, limit=LIMIT)
        times["all"].append(seconds(partial(ask, as_of=T0)))
        times["one symbol"].append(seconds(partial(ask, Filters(symbol=query.symbol), as_of=T0)))
        times["text"].append(seconds(partial(ask, as_of=T0, text=a_text(rng))))
        times["century"].append(seconds(partial(ask, as_of=T0 + CENTURY)))
    return {kind: 1e3 * statistics.median(taken) for kind, taken in times.items()}


def growth(columns: Columns) -> list[float]:
    """Median milliseconds to add a newest episode, to correct an old one now, and to merge one known late."""
    newest, corrected, late = [], [], []
    grown = appended(columns, [an_episode(id="room", known_at=T0)])
    for step in range(1, 12):
        at = T0 + timedelta(minutes=step)
        taken, grown = timed(grown, an_episode(id=f"new {step}", known_at=at))
        newest.append(taken)
        taken, grown = timed(grown, an_episode(id=derive_id("bench", step), known_at=at + timedelta(seconds=30)))
        corrected.append(taken)
        late.append(timed(grown, an_episode(id=f"late {step}", known_at=T0 - SPAN / 2))[0])
    return [statistics.median(times) for times in (newest, corrected, late)]


def timed(columns: Columns, episode: Episode) -> tuple[float, Columns]:
    started = time.perf_counter()
    grown = appended(columns, [episode])
    return 1e3 * (time.perf_counter() - started), grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES, help="how many episodes")
    parser.add_argument("--runs", type=int, default=50)
    asked = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, medians of {asked.runs} scans\n")
    heads = ["rows", "scan", "of one symbol", "with text", "a century later", "plain Python", "times"]
    heads += ["columns", "build", "add the newest", "correct one", "merge a late one"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for size in asked.sizes:
        rng = random.Random(7)
        episodes = episodes_of(rng, size)
        started = time.perf_counter()
        columns = columns_of(episodes)
        built = time.perf_counter() - started
        query = Query(symbol="BTC", direction="long", context=a_context(rng))
        plain = median_ms(max(1, min(9, 100_000 // size)), partial(plainly, episodes, query, T0))
        taken = scans(columns, asked.runs, rng)
        size_mb = columns.nbytes / 1e6
        cells = [f"{taken[kind]:.2f} ms" for kind in ("all", "one symbol", "text", "century")]
        cells += [f"{plain:.0f} ms", f"{plain / taken['all']:.0f}", f"{size_mb:.1f} MB", f"{built:.2f} s"]
        cells += [f"{added:.2f} ms" for added in growth(columns)]
        print(f"| {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
