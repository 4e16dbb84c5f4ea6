"""What traders without habits are told, on every shape of noise, and how often planted habits are found."""

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from backsight.core.memory.habit_sentences import HABITS, is_established
from backsight.core.memory.procedural import Habits, Skill, TradeFigures, learn_all
from backsight.core.statistics import rate_bounds
from backsight.core.trades.trade import Outcome
from noise import SHAPES, NoiseTrade, noise

LOOKED_FOR = ("disposition_effect", "loss_aversion", "recency_bias")
Planted = Callable[[random.Random, NoiseTrade, bool], tuple[float, float]]
"""The holding time and the size of a trade, from the trade and whether the trade before it was lost."""


def unbiased(rng: random.Random, _trade: NoiseTrade, _lost_before: bool) -> tuple[float, float]:
    """Holding times and sizes that have nothing to do with results."""
    return math.exp(rng.gauss(8.0, 1.0)), 0.01 * math.exp(rng.gauss(0.0, 0.4))


def revenge(rng: random.Random, trade: NoiseTrade, lost_before: bool) -> tuple[float, float]:
    """Twice the size after a loss, in whatever symbol."""
    hold, size = unbiased(rng, trade, lost_before)
    return hold, size * (2.0 if lost_before else 1.0)


def losers_held(rng: random.Random, trade: NoiseTrade, lost_before: bool) -> tuple[float, float]:
    """Losers held twice as long."""
    hold, size = unbiased(rng, trade, lost_before)
    return hold * (1.0 if trade.outcome > 0 else 2.0), size


def figures_of(trades: Sequence[NoiseTrade], rng: random.Random, planted: Planted) -> list[TradeFigures]:
    figures, lost_before = list[TradeFigures](), False
    for number, trade in enumerate(trades):
        hold, size = planted(rng, trade, lost_before)
        lost_before = trade.outcome <= 0
        figures.append(
            TradeFigures(
                episode_id=str(number),
                strategy_name="noise",
                symbol=trade.symbol,
                # The close of the noise counts as the instant of the result: trades of a day follow each other.
                known_at=trade.closed_at,
                opened_at=max(trade.opened_at, trades[number - 1].closed_at) if number else trade.opened_at,
                win=trade.outcome > 0,
                outcome=Outcome(value=trade.outcome, unit="R" if trade.in_r else "pct"),
                hold_seconds=hold,
                size_share=size,
            )
        )
    return sorted(figures, key=lambda each: each.known_at)


def habits_of(name: str, seed: int, trades: int, planted: Planted) -> list[Habits]:
    """The habits in each symbol after a life of so many trades."""
    rng = random.Random(f"habits {name} {seed}")
    learned = learn_all(figures_of(noise(name, seed, trades), rng, planted), skill=Skill(strategy_name="noise"))
    return [practice.habits for practice in learned.skill.symbols.values()]


def habits_said(habits: Sequence[Habits]) -> set[str]:
    """The habits that a sentence is said about in any symbol."""
    estimated = Counter(name for each in habits for name in HABITS if getattr(each, name).p_value is not None)
    return {name for each in habits for name in HABITS if is_established(getattr(each, name), symbols=estimated[name])}


def shares(name: str, runs: int, trades: int, planted: Planted) -> dict[str, tuple[float, float, float]]:
    """The share of lives in which each habit is said, with its 95% bounds."""
    counts = Counter(each for seed in range(runs) for each in habits_said(habits_of(name, seed, trades, planted)))
    return {habit: (counts[habit] / runs, *rate_bounds(counts[habit], runs, confidence=0.975)) for habit in LOOKED_FOR}


def printed(title: str, result: dict[str, tuple[float, float, float]]) -> str:
    cells = (f"{habit} {share:.3f} ({low:.3f} to {high:.3f})" for habit, (share, low, high) in result.items())
    return f"{title}: {', '.join(cells)}"


def test_a_trader_without_habits_is_seldom_told_of_any() -> None:
    for low in (low for _, low, _ in shares("8% winners of 12R", 40, 225, unbiased).values()):
        assert low <= 0.10


def test_revenge_is_found_with_its_true_size_and_losers_held_longer_are_found() -> None:
    lives = [habits_of("normal", seed, 300, revenge) for seed in range(8)]
    assert sum("loss_aversion" in habits_said(life) for life in lives) >= 7
    values = [each.loss_aversion.value or 0.0 for life in lives for each in life]
    assert sum(values) / len(values) == pytest.approx(1.0, abs=0.15)
    assert sum("disposition_effect" in habits_said(habits_of("normal", n, 300, losers_held)) for n in range(8)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_a_trader_without_habits_is_told_of_each_in_at_most_a_tenth_of_the_lives(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """225 trades over three symbols: about 75 for each estimate."""
    result = shares(name, 250, 225, unbiased)
    with capsys.disabled():
        sys.stdout.write(f"\n{printed(f'no habit, {name}', result)}\n")
    for share, low, _ in result.values():
        assert share <= 0.10
        assert low <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "habit", "least"), [(revenge, "loss_aversion", 0.95), (losers_held, "disposition_effect", 0.7)]
)
@pytest.mark.parametrize("name", ["normal", "25% winners", "regimes in spells"])
def test_planted_habits_are_found_at_300_trades(
    name: str, planted: Planted, habit: str, least: float, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shares(name, 150, 300, planted)
    with capsys.disabled():
        sys.stdout.write(f"\n{printed(f'{planted.__name__}, {name}', result)}\n")
    assert result[habit][1] >= least


def test_the_noise_leaves_time_between_trades() -> None:
    """The trades of a symbol follow trades of others: only the last one of the agent is known at an entry."""
    figures = figures_of(noise("normal", 1, 50), random.Random(1), unbiased)
    assert all(each.opened_at is not None and each.opened_at <= each.known_at + timedelta(0) for each in figures)
