"""What is said about habits: nothing that chance makes, and the numbers of what is said."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.memory.estimates import Estimate
from backsight.core.memory.habit_sentences import HABITS, established_habits, habit_sentences
from backsight.core.memory.procedural import Habits, TradeFigures, habits
from backsight.core.trades.trade import Outcome
from backsight.testing import T0

NOTHING_KNOWN = habits([])


def known(**estimates: Estimate) -> Habits:
    changes: dict[str, Any] = {"recency_bias_of": "size", **estimates}
    return replace(NOTHING_KNOWN, **changes)


LONGER = Estimate(value=0.85, n=75, low=0.3, high=1.6, p_value=0.02)
CASES = [
    ("disposition_effect", LONGER, "Losers are held 85% longer than winners (90%: 30 to 160% longer than winners;"),
    (
        "disposition_effect",
        Estimate(value=-0.6, n=75, low=-0.8, high=-0.2, p_value=0.02),
        "Losers are held 60% shorter than winners (90%: 20 to 80% shorter than winners; 75 trades).",
    ),
    ("loss_aversion", LONGER, "After a loss, in whatever symbol, sizes are 85% larger than after a win (90%:"),
    (
        "recency_bias",
        Estimate(value=-0.4, n=70, low=-0.6, high=-0.1, p_value=0.01),
        "Size falls with the last outcome (correlation -0.40, 90%: -0.60 to -0.10; 70 trades).",
    ),
    (
        "size_against_recommended",
        Estimate(value=1.5, n=40, low=1.2, high=1.8, p_value=0.001),
        "The risk taken is 1.50 times the recommended one (90%: 1.20 to 1.80; 40 trades).",
    ),
]


@pytest.mark.parametrize(("name", "estimate", "opening"), CASES)
def test_a_habit_is_said_with_its_interval_and_its_sample(name: str, estimate: Estimate, opening: str) -> None:
    (text,) = habit_sentences(known(**{name: estimate}))
    assert text.startswith(opening)


@pytest.mark.parametrize(
    ("value", "opening"), [(-0.3, "went on in its favour: exits are early"), (0.3, "turned against")]
)
def test_exits_are_early_where_prices_mostly_went_on(value: float, opening: str) -> None:
    timing = Estimate(value=value, n=60, low=value - 0.1, high=value + 0.1, p_value=0.001)
    (text,) = habit_sentences(NOTHING_KNOWN, timing)
    assert opening in text


def test_what_chance_makes_is_not_said() -> None:
    by_chance = Estimate(value=0.4, n=75, low=-0.1, high=0.9, p_value=0.12)
    assert habit_sentences(known(**dict.fromkeys(HABITS, by_chance)), by_chance) == ()
    assert habit_sentences(NOTHING_KNOWN) == ()
    assert habit_sentences(known(disposition_effect=Estimate(value=0.4, n=75))) == ()


def test_the_more_symbols_a_habit_was_looked_for_in_the_more_it_must_stand_out() -> None:
    habit = known(disposition_effect=LONGER)
    assert habit_sentences(habit, symbols=Counter(disposition_effect=4))
    assert not habit_sentences(habit, symbols=Counter(disposition_effect=6))


def test_a_prompt_tells_only_habits_that_stand_out_from_all_that_were_compared() -> None:
    sure, unsure = replace(LONGER, p_value=0.0001), replace(LONGER, p_value=0.006)
    told = established_habits({"BTC": known(disposition_effect=unsure, loss_aversion=sure)})
    assert [(symbol, sentence.split(",")[0]) for symbol, sentence in told] == [("BTC", "After a loss")]
    assert established_habits({"BTC": known(disposition_effect=unsure)}) != ()
    assert established_habits({symbol: known(disposition_effect=unsure) for symbol in ("BTC", "ETH", "SOL")}) == ()


def test_an_agent_without_habits_that_is_watched_after_every_trade_is_seldom_told_of_one() -> None:
    """200 trades at ±1R with sizes at random, looked at after every fifth trade."""
    told = sum(any(established_habits({"BTC": habits(agent[max(0, n - 100) : n])}) for n in range(10, 200, 5))
               for agent in map(without_habits, range(40)))  # fmt: skip
    assert told <= 4


def without_habits(seed: int) -> list[TradeFigures]:
    rng, trades = random.Random(seed), list[TradeFigures]()
    for number in range(200):
        before = trades[-1] if trades else None
        trades.append(
            TradeFigures(
                episode_id=str(number),
                strategy_name="S",
                symbol="BTC",
                known_at=T0 + timedelta(hours=9 * number),
                win=(win := rng.random() < 0.5),
                outcome=Outcome(value=1.0 if win else -1.0, unit="R"),
                hold_seconds=rng.lognormvariate(9, 0.8),
                size_share=0.1 * rng.choice([0.5, 1.0, 1.5]),
                previous_win=None if before is None else before.win,
                previous_outcome=None if before is None else before.outcome,
            )
        )
    return trades
