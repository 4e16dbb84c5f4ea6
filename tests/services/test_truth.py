"""What memory says, through its operations, of markets without any edge, whatever the shape of their noise.

A life is the trades of one market, imported ten at a time with a reflection after each ten; the owner has stated one
belief beforehand. A statement is false if it sets one group of trades apart from the others: any lesson, any proposal
of a plan, any belief that memory itself found, and any alarm that results have changed. At the end the intervals of
the base rate are compared with the truth.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path

import pytest

from backsight.core.regime import REGIMES
from backsight.core.statistics import rate_bounds
from backsight.memory import Memory, open_simulation
from backsight.testing import FakeClock
from noise import SHAPES, START, NoiseTrade, noise

STRATEGY, DEPLOYMENT = "Any", "Any@main"
TRADES, LIVES, EACH = 600, 20, 10
PROMISED, COVERED = 0.05, 0.85
"""The most lives with a false statement of one kind, and the fewest in which a 90% interval holds the truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What was ever said in a life, and whether the base rate's intervals at its end hold the truth."""

    lesson: bool
    proposal: bool
    belief: bool
    drift: bool
    mean_is_covered: bool
    win_rate_is_covered: bool


def arguments_of(trade: NoiseTrade) -> dict[str, object]:
    """A trade as a row of a file that is imported."""
    return {
        "symbol": trade.symbol,
        "direction": trade.direction,
        "entry_price": 100.0,
        "exit_price": 100.0,
        "pnl": 100.0 * trade.outcome,
        "pnl_r": trade.outcome if trade.in_r else None,
        "opened_at": trade.opened_at.isoformat(),
        "closed_at": trade.closed_at.isoformat(),
        "context": {
            "regime": trade.regime,
            "volatility_regime": trade.volatility_regime,
            "session": trade.session,
        },
    }


def live(name: str, seed: int, folder: Path, *, trades: int) -> Life:
    """Live through a market of this shape and keep what memory says on the way."""
    clock, file, said = FakeClock(START), folder / "trades.jsonl", set[str]()
    market = noise(name, seed, trades)
    with open_simulation(clock) as memory:
        memory.open_account(venue="binance", name="main")
        memory.save_strategy(name=STRATEGY)
        memory.deploy(strategy_name=STRATEGY, account="main")
        memory.add_belief(proposition="It works in ranges", strategy_name=STRATEGY, regime="ranging", claims="above")
        for first in range(0, trades, EACH):
            some = market[first : first + EACH]
            clock.at = max(trade.closed_at for trade in some) + timedelta(minutes=1)
            file.write_text("\n".join(json.dumps(arguments_of(trade)) for trade in some))
            memory.import_trades(path=str(file), strategy_name=STRATEGY, deployment=DEPLOYMENT)
            memory.reflect(deployment=DEPLOYMENT)
            said.update(statements(memory))
        rate = memory.recall_memories(
            symbol=market[seed % trades].symbol,
            strategy_name=STRATEGY,
            deployment=DEPLOYMENT,
            direction=market[0].direction,
            context_regime=REGIMES[seed % len(REGIMES)],
        ).base_rate
    assert rate is not None
    means = [each.interval for each in rate.headline.outcomes if each.unit == "R" and each.interval is not None]
    return Life(
        lesson="lesson" in said,
        proposal="proposal" in said,
        belief="belief" in said,
        drift="drift" in said,
        mean_is_covered=any(low <= SHAPES[name].mean_r <= high for low, high in means),
        win_rate_is_covered=holds(rate.headline.win_rate_interval, SHAPES[name].win_rate),
    )


def holds(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


def statements(memory: Memory) -> Iterator[str]:
    """The kinds of false statements that memory makes now."""
    note = memory.active_lessons(deployment=DEPLOYMENT).note
    if note is not None and note.bullets:
        yield "lesson"
    if any(each.proposal.kind == "plan" for each in memory.list_proposals(deployment=DEPLOYMENT).proposals):
        yield "proposal"
    if any(each.belief.source == "induced" for each in memory.list_beliefs(strategy_name=STRATEGY).beliefs):
        yield "belief"
    behaviors = memory.get_behavioral_analysis(strategy_name=STRATEGY, deployment=DEPLOYMENT).behaviors
    if any(drift.at is not None for behavior in behaviors for drift in behavior.drift):
        yield "drift"


def table(lives: Iterable[tuple[str, Life]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Of each shape: in how many lives, of how many, each field of `Life` is true."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for shape, each in lives:
        for name in (field.name for field in fields(Life)):
            hits, of = counts.get((shape, name), (0, 0))
            counts[shape, name] = hits + getattr(each, name), of + 1
    return counts


def in_words(counts: dict[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    for (shape, name), (hits, of) in counts.items():
        low, high = rate_bounds(hits, of, confidence=0.975)
        yield f"{shape} | {name} | {hits} of {of} | {low:.2f} to {high:.2f}"


def contradicts(counts: dict[tuple[str, str], tuple[int, int]]) -> list[str]:
    """Where the number of lives is not compatible with what is promised, at 97.5%."""
    wrong = []
    for (shape, name), (hits, of) in counts.items():
        low, high = rate_bounds(hits, of, confidence=0.975)
        is_broken = high < COVERED if name.endswith("is_covered") else low > PROMISED
        if is_broken:
            wrong.append(f"{shape}: {name} in {hits} of {of}")
    return wrong


@pytest.mark.parametrize("shape", ["8% winners of 12R", "regimes in spells"])
def test_a_short_life_without_an_edge_is_told_of_none(shape: str, tmp_path: Path) -> None:
    life = live(shape, 0, tmp_path, trades=120)
    assert [life.lesson, life.proposal, life.belief, life.drift] == [False] * 4


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_few_lives_without_an_edge_are_told_of_one(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = table((shape, live(shape, seed, tmp_path, trades=TRADES)) for seed in range(LIVES))
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *in_words(counts), ""]))
    assert contradicts(counts) == []


def test_broken_promises_are_noticed() -> None:
    kept = {("normal", "lesson"): (1, 24), ("normal", "mean_is_covered"): (21, 24)}
    assert contradicts(kept) == []
    broken = {("normal", "lesson"): (5, 24), ("normal", "mean_is_covered"): (13, 24)}
    assert len(contradicts(broken)) == 2
