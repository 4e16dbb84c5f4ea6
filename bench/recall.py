"""The time of a recall: arrays compared with the plain definition in the same run, and the operations on a store.

Episodes are spread over three years, one strategy and eight symbols, with a full context and a text of a dozen words.
A scan ranks memories, nearest and warnings; the whole answer adds the base rate with all levels. Measured are a scan
over all symbols (also by the plain definition), the base rate, the whole answer, the same with a text, and a scan a
century later, when all episodes are about equally old and no block can be skipped. All times are processor times.
"""

import argparse
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from backsight.core.context import ContextVector
from backsight.core.ids import derive_id
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.base_rate import base_rate
from backsight.core.recall.arrays.columns import Columns, append_episodes, columns_of
from backsight.core.recall.arrays.scan import scan
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.recall.score import Situation
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.text.stems import stems
from backsight.memory import Memory, open_memory
from backsight.store import memories as stored
from backsight.testing import T0, FakeClock, an_episode
from backsight.testing.recall import rank_plainly

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SYMBOLS = ("BTC", "ETH", "SOL", "XAUUSD", "EURUSD", "GBPUSD", "USDJPY", "US500")
SPAN = timedelta(days=1095)
CENTURY = timedelta(days=36_500)
LIMIT = 10
NOW, LATER = Horizon(as_of=T0), Horizon(as_of=T0 + CENTURY)
OURS = TradeFilter(strategy_name="VolBreakout", mode="live")
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
    clauses = (f"{rng.choice(HEADS)}s {rng.choice(TAILS)} near {rng.randrange(1_000)}" for _ in range(3))
    return ", ".join(clauses)


def episodes_of(rng: random.Random, count: int) -> list[Episode]:
    """Many episodes, oldest first."""
    return [
        an_episode(
            number,
            id=derive_id("bench", number),
            trade_id=None,
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


def a_query(rng: random.Random) -> Situation:
    return Situation(symbol=rng.choice(SYMBOLS), direction="long", context=a_context(rng))


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def median_ms(runs: int, work: Callable[[], object]) -> float:
    return 1e3 * statistics.median(seconds(work) for _ in range(runs))


def whole(columns: Columns, query: Situation, at: datetime) -> None:
    """Memories, nearest, warnings and the base rate."""
    scan(columns, query, horizon=Horizon(as_of=at), limit=LIMIT)
    base_rate(columns, query, trade_filter=OURS, horizon=Horizon(as_of=at))


def answers(columns: Columns, runs: int, rng: random.Random) -> dict[str, float]:
    """Median milliseconds of each kind of answer, measured in turn, each with a new query."""
    times: dict[str, list[float]] = {"scan": [], "base rate": [], "whole": [], "with text": [], "century": []}
    for _ in range(runs):
        query = a_query(rng)
        with_text = replace(query, words=stems(a_text(rng)))
        times["scan"].append(seconds(partial(scan, columns, query, horizon=NOW, limit=LIMIT)))
        times["base rate"].append(seconds(partial(base_rate, columns, query, trade_filter=OURS, horizon=NOW)))
        times["whole"].append(seconds(partial(whole, columns, query, T0)))
        times["with text"].append(seconds(partial(whole, columns, with_text, T0)))
        times["century"].append(seconds(partial(scan, columns, query, horizon=LATER, limit=LIMIT)))
    return {kind: 1e3 * statistics.median(measured) for kind, measured in times.items()}


def growth(columns: Columns) -> list[float]:
    """Median milliseconds to add a newest episode, to correct an old one now, and to merge one known late."""
    newest, corrected, late = [], [], []
    grown = append_episodes(columns, [an_episode(id="room", known_at=T0)])
    for step in range(1, 12):
        at = T0 + timedelta(minutes=step)
        milliseconds, grown = timed(grown, an_episode(id=f"new {step}", known_at=at))
        newest.append(milliseconds)
        milliseconds, grown = timed(grown, an_episode(id=derive_id("bench", step), known_at=at + timedelta(seconds=30)))
        corrected.append(milliseconds)
        late.append(timed(grown, an_episode(id=f"late {step}", known_at=T0 - SPAN / 2))[0])
    return [statistics.median(times) for times in (newest, corrected, late)]


def timed(columns: Columns, episode: Episode) -> tuple[float, Columns]:
    started = time.process_time()
    grown = append_episodes(columns, [episode])
    return 1e3 * (time.process_time() - started), grown


def in_columns(sizes: Iterable[int], runs: int) -> None:
    kinds = ("scan", "base rate", "whole", "with text", "century")
    table(
        "rows", *kinds, "plain Python", "times", "columns", "build", "add the newest", "correct one", "merge a late one"
    )
    for size in sizes:
        rng = random.Random(7)
        episodes = episodes_of(rng, size)
        started = time.process_time()
        columns = columns_of(episodes)
        built = time.process_time() - started
        query = a_query(rng)
        plain = median_ms(max(1, min(9, 100_000 // size)), partial(rank_plainly, episodes, query, now=T0, limit=LIMIT))
        times_ms = answers(columns, runs, rng)
        cells = [f"{times_ms[kind]:.2f} ms" for kind in kinds]
        cells += [f"{plain:,.0f} ms", f"{plain / times_ms['whole']:.0f}"]
        cells += [f"{columns.nbytes / 1e6:.1f} MB", f"{built:.2f} s"]
        cells += [f"{added:.2f} ms" for added in growth(columns)]
        row(f"{size:,}", *cells)


FRESH = """
import sys, time
from datetime import datetime
started = time.process_time()
from backsight.memory import open_memory
memory = open_memory(sys.argv[1])
memory.recall_memories(symbol="BTC", context_regime="ranging", as_of=datetime.fromisoformat(sys.argv[2]))
print(time.process_time() - started)
"""


def in_the_store(sizes: Iterable[int], runs: int) -> None:
    """The operations on a SQLite file, and the first answer of a process, without the file of columns and with it."""
    table("stored", "recall_memories", "position_size", "first answer, ever", "first answer of a process", "file")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            environment = bytecode_in(f"{folder}/bytecode")
            fill(f"sqlite:///{folder}/small.db", SIZES[0])
            fresh(f"sqlite:///{folder}/small.db", environment)  # compiles every module that a recall imports
            url = f"sqlite:///{folder}/store.db"
            fill(url, size)
            first, second = (fresh(url, environment) for _ in range(2))
            with open_memory(url, clock=FakeClock(T0)) as memory:
                times_ms = operations(memory, runs, random.Random(11))
            files = [file.stat().st_size / 1e6 for file in Path(folder).glob("*.columns")]
            size_in_file = f"{files[0]:.0f} MB" if files else "none"
            row(
                f"{size:,}", *(f"{each:.1f} ms" for each in times_ms), f"{first:.2f} s", f"{second:.2f} s", size_in_file
            )


def fill(url: str, size: int, *, at_once: int = 20_000) -> None:
    """Fill a store with episodes alone, since a recall reads nothing else."""
    rng = random.Random(7)
    with open_memory(url, clock=FakeClock(T0)) as memory:
        memory.open_account(venue="venue", name="main")
        memory.save_strategy(name="VolBreakout")
        deployment_id = memory.deploy(strategy_name="VolBreakout", account="main").deployment.id
        episodes = episodes_of(rng, size)
        for start in range(0, size, at_once):
            part = episodes[start : start + at_once]
            with memory.writing() as transaction:
                rows = [replace(each, owner_id=memory.owner, deployment_id=deployment_id) for each in part]
                transaction.add_all(stored.EPISODES, rows)


def bytecode_in(folder: str) -> dict[str, str]:
    """The environment of processes that share compiled modules, also where this one says that none are written."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPYCACHEPREFIX": folder}


def fresh(url: str, environment: dict[str, str]) -> float:
    """Processor seconds from the first import to the first answer."""
    command = [sys.executable, "-c", FRESH, url, T0.isoformat()]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def operations(memory: Memory, runs: int, rng: random.Random) -> list[float]:
    """Median milliseconds of the operations, with ever new queries."""
    recalled, sized = [], []
    for _ in range(runs):
        context, symbol = a_context(rng), rng.choice(SYMBOLS)
        ask = partial(memory.recall_memories, symbol=symbol, direction="long", context=context)
        recalled.append(seconds(partial(ask, strategy_name="VolBreakout")))
        size = partial(memory.position_size, symbol=symbol, direction="long", strategy_name="VolBreakout")
        sized.append(seconds(partial(size, context=context)))
    return [1e3 * statistics.median(times) for times in (recalled, sized)]


def table(*heads: str) -> None:
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES, help="how many episodes")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--columns-only", action="store_true", help="leave the store out")
    options = parser.parse_args(arguments)
    print(f"{platform.python_implementation()} {platform.python_version()}, medians of {options.runs} answers")
    in_columns(options.sizes, options.runs)
    if not options.columns_only:
        in_the_store(options.sizes, options.runs)


if __name__ == "__main__":
    main()
