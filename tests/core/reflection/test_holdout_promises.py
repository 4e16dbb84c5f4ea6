"""How often the holdout test is ever wrong: on every shape of noise, and where one arm holds its losers open."""

import random
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta

import pytest

from backsight.core.holdout import MemoryArm
from backsight.core.reflection.holdout_test import DAYS_HELD, HoldoutTrade, analyse_holdout
from backsight.core.statistics import rate_bounds
from backsight.core.trades.trade import Outcome
from noise import SHAPES, noise

FIRST = date(2024, 1, 1)
YEAR, WEEK = 364, 7
HOLDOUT = 0.3
Look = tuple[int, list[HoldoutTrade]]
"""The day of a look, and the trades as they stood then."""


def arm_of(rng: random.Random) -> MemoryArm:
    return "withheld" if rng.random() < HOLDOUT else "shown"


def a_trade(arm: MemoryArm, day: int, r: float, *, unit: str = "R", is_open: bool = False) -> HoldoutTrade:
    outcome = Outcome(value=r, unit="R" if unit == "R" else "pct")
    return HoldoutTrade(
        arm=arm, day=FIRST + timedelta(days=day), deployment_id="d", outcome=outcome, pnl=100 * r, is_open=is_open
    )


def weekly_looks_at_noise(name: str, seed: int, days: int) -> Iterator[Look]:
    """A year of noise with an arm drawn for each day, looked at every week."""
    rng = random.Random(f"holdout {name} {seed}")
    trades = noise(name, seed, days * max(2, SHAPES[name].copies))
    first = trades[0].opened_at.date()
    arms = [arm_of(rng) for _ in range(days)]
    opened = [((trade.opened_at.date() - first).days, trade) for trade in trades]
    history = [
        a_trade(arms[day], day, trade.outcome, unit="R" if trade.in_r else "pct") for day, trade in opened if day < days
    ]
    for day in range(2 * WEEK, days + 1, WEEK):
        yield day, [trade for trade in history if (trade.day - FIRST).days < day]


def weekly_looks_at_losers_held(seed: int, days: int, *, holder: MemoryArm, together: bool) -> Iterator[Look]:
    """Two trades a day without any edge. One arm holds its losers until they are back above zero, the other none.

    `together`: all open trades move with one market.
    """
    rng = random.Random(f"held {holder} {together} {seed}")
    arms = [arm_of(rng) for _ in range(days)]
    values: list[list[float]] = []
    held_open: list[list[bool]] = []
    for day in range(days):
        market = rng.gauss(0, 0.7)
        for earlier in range(max(0, day - DAYS_HELD), day):
            for place in range(2):
                if held_open[earlier][place]:
                    values[earlier][place] += market if together else rng.gauss(0, 0.7)
                    held_open[earlier][place] = values[earlier][place] < 0
        first = rng.gauss(0, 1)
        values.append([first, first if together else rng.gauss(0, 1)])
        held_open.append([value < 0 and arms[day] == holder for value in values[day]])
        if (day + 1) % WEEK == 0 and day > WEEK:
            yield (
                day,
                [
                    a_trade(arms[each], each, value, is_open=held_open[each][place])
                    for each in range(day + 1)
                    for place, value in enumerate(values[each])
                ],
            )


def is_ever_wrong(looks: Iterator[Look]) -> bool:
    return any(analyse_holdout(trades).verdict in ("yes", "no") for _, trades in looks)


def wrong(runs: int, looks: Callable[[int], Iterator[Look]]) -> tuple[float, float, float]:
    """The share of lives in which any weekly look is wrong, with its 95% bounds."""
    count = sum(is_ever_wrong(looks(seed)) for seed in range(runs))
    return count / runs, *rate_bounds(count, runs, confidence=0.975)


def test_watched_every_week_for_half_a_year_noise_is_seldom_taken_for_an_effect() -> None:
    assert wrong(12, lambda seed: weekly_looks_at_noise("8% winners of 12R", seed, YEAR // 2))[1] <= 0.05


def test_losers_held_open_with_memory_are_no_success_of_memory() -> None:
    """The closed trades alone show memory as a success in most lives."""
    lives = [list(weekly_looks_at_losers_held(seed, 140, holder="shown", together=False)) for seed in range(6)]
    assert sum(is_ever_wrong(iter(life)) for life in lives) <= 1
    assert sum(is_ever_wrong(closed_only(life)) for life in lives) >= 4


def closed_only(life: list[Look]) -> Iterator[Look]:
    """The looks without the trades that are still open, or were lost after they had been held."""
    for day, trades in life:
        yield day, [trade for trade in trades if trade.outcome.value > 0 or trade.arm == "withheld"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_watched_every_week_for_a_year_no_shape_of_noise_is_taken_for_an_effect(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    share, low, high = wrong(150, lambda seed: weekly_looks_at_noise(name, seed, YEAR))
    with capsys.disabled():
        sys.stdout.write(f"\never wrong, {name}: {share:.3f} ({low:.3f} to {high:.3f})\n")
    assert share <= 0.07
    assert low <= 0.03


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("holder", ["shown", "withheld"])
def test_holding_losers_open_in_one_arm_is_no_effect(
    holder: MemoryArm, together: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = lambda seed: weekly_looks_at_losers_held(seed, YEAR, holder=holder, together=together)  # noqa: E731
    share, low, high = wrong(150, looks)
    with capsys.disabled():
        market = "one market" if together else "independent"
        sys.stdout.write(f"\nlosers held open, {holder}, {market}: {share:.3f} ({low:.3f} to {high:.3f})\n")
    assert share <= 0.06
    assert low <= 0.05
