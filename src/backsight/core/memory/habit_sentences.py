"""Habits in words: a sentence only where chance seldom makes a habit look so large.

A sentence needs a p-value below .10, divided by the number of symbols in which the same habit of the strategy was
estimated: an agent without habits that trades three symbols is told of one in no more than a tenth of the cases.
"""

from collections.abc import Callable, Iterator, Mapping

from backsight.core.memory.estimates import FEWEST, Estimate
from backsight.core.memory.procedural import Habits
from backsight.core.numbers import signed

LEVEL = 0.10
WATCHED_LEVEL = 0.01
"""The same for whoever looks after every trade: divided by all habits compared. Without a habit, at most a tenth of the
agents are told of one in 200 trades that are watched so (5% with sizes at random, 9% where sizes drift)."""
PERCENT = 100.0
HABITS: tuple[str, ...] = ("disposition_effect", "loss_aversion", "recency_bias", "size_against_recommended")


def habit_sentences(
    habits: Habits, exit_timing: Estimate | None = None, *, symbols: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """What may be said about the habits; `symbols` has the number of symbols that each habit was estimated in."""
    estimates: dict[str, Estimate | None] = {name: getattr(habits, name) for name in HABITS}
    estimates["exit_timing"] = exit_timing
    compared = symbols or {}
    established = (
        _sentence(name, estimate, habits)
        for name, estimate in estimates.items()
        if estimate is not None and is_established(estimate, symbols=compared.get(name, 1))
    )
    return (*established, *_withheld_mean(habits))


def established_habits(habits: Mapping[str, Habits]) -> tuple[tuple[str, str], ...]:
    """Symbol and sentence of each habit that stands out from all that were compared, the least doubtful first.

    `habits` are those of one strategy by symbol, looked at after every trade.
    """
    compared = [
        (estimate.p_value, symbol, name, estimate)
        for symbol, own in habits.items()
        for name in HABITS
        if (estimate := getattr(own, name)).p_value is not None
    ]
    level = WATCHED_LEVEL / max(1, len(compared))
    certain = sorted((each for each in compared if each[0] < level), key=lambda each: each[:3])
    return tuple((symbol, _sentence(name, estimate, habits[symbol])) for _, symbol, name, estimate in certain)


def _sentence(name: str, estimate: Estimate, habits: Habits) -> str:
    if name == "recency_bias":
        return _recency(estimate, habits.recency_bias_of or "size")
    return WORDS[name](estimate)


def _withheld_mean(habits: Habits) -> Iterator[str]:
    """Why there is no mean outcome in R although enough outcomes in R are known."""
    in_r = habits.outcomes.get("R")
    if in_r is not None and in_r.value is None and in_r.n >= FEWEST:
        yield (
            f"No mean outcome in R is given: R is known for {in_r.n} of {habits.n} trades, "
            "and missing more often among losers than chance explains."
        )


def is_established(estimate: Estimate, *, symbols: int = 1) -> bool:
    """Whether chance makes such a habit in fewer than a tenth of the cases, over all symbols together.

    >>> estimate = Estimate(value=0.4, n=75, low=0.1, high=0.8, p_value=0.04)
    >>> is_established(estimate), is_established(estimate, symbols=3)
    (True, False)
    """
    return estimate.p_value is not None and estimate.p_value < LEVEL / max(1, symbols)


def _change(estimate: Estimate, rising: str, falling: str) -> str:
    """A relative change with its interval: "40% longer (90%: 10 to 80% longer; 75 trades)"."""
    value, low, high = (PERCENT * (end or 0.0) for end in (estimate.value, estimate.low, estimate.high))
    word = rising if value > 0 else falling
    ends = (low, high) if value > 0 else (-high, -low)
    return f"{abs(value):.0f}% {word} (90%: {ends[0]:.0f} to {ends[1]:.0f}% {word}; {estimate.n} trades)"


def _disposition(estimate: Estimate) -> str:
    return f"Losers are held {_change(estimate, 'longer than winners', 'shorter than winners')}."


def _after_a_loss(estimate: Estimate) -> str:
    return f"After a loss, in whatever symbol, sizes are {_change(estimate, 'larger than after a win', 'smaller')}."


def _recency(estimate: Estimate, reaction: str) -> str:
    value, low, high = (signed(end or 0.0, 2) for end in (estimate.value, estimate.low, estimate.high))
    move = "rises" if (estimate.value or 0.0) > 0 else "falls"
    sample = f"correlation {value}, 90%: {low} to {high}; {estimate.n} trades"
    return f"{reaction.capitalize()} {move} with the last outcome ({sample})."


def _recommended(estimate: Estimate) -> str:
    value, low, high = (f"{end or 0.0:.2f}" for end in (estimate.value, estimate.low, estimate.high))
    return f"The risk taken is {value} times the recommended one (90%: {low} to {high}; {estimate.n} trades)."


def _exit(estimate: Estimate) -> str:
    value, low, high = (signed(end or 0.0, 2) for end in (estimate.value, estimate.low, estimate.high))
    early = (estimate.value or 0.0) < 0
    then = "went on in its favour: exits are early" if early else "turned against it: exits are in time"
    return f"After a trade was left, the price mostly {then} ({value}, 90%: {low} to {high}; {estimate.n} trades)."


WORDS: Mapping[str, Callable[[Estimate], str]] = {
    "disposition_effect": _disposition,
    "loss_aversion": _after_a_loss,
    "size_against_recommended": _recommended,
    "exit_timing": _exit,
}
