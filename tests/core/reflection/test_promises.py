"""Error rates of reflection: few false lessons, power to detect true ones, and valid intervals at every look."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args

import pytest

from backsight.core.portfolio import Direction
from backsight.core.reflection.evidence import find_evidence
from backsight.core.reflection.holdout_test import HoldoutTrade, analyse_holdout
from backsight.core.reflection.lessons import LessonsNote, write_lessons
from backsight.core.reflection.patterns import NEW_SEARCH, ClosedTrade
from backsight.core.regime import REGIME_TAGS, VOLATILITY_REGIMES, RegimeTag, regime_of, session_of
from backsight.core.trades.trade import Outcome

Kind = Literal["random", "clustered", "planted"]

START = datetime(2026, 1, 5, tzinfo=UTC)
SYMBOLS = ("BTC", "ETH", "SOL", "XAUUSD", "EURUSD")
TAGS = tuple(tag for tag in REGIME_TAGS if tag != "unknown")
RUNS = 300
CHOP: RegimeTag = "chop_hivol"


def a_trade(rng: random.Random, number: int, at: datetime, tag: RegimeTag, *, won: bool) -> ClosedTrade:
    return ClosedTrade(
        id=f"t{number:04d}",
        ended_at=at,
        known_at=at,
        symbol=rng.choice(SYMBOLS),
        outcome=Outcome(value=rng.uniform(0.5, 1.8) if won else -1.0, unit="R"),
        won=won,
        regime=regime_of(tag),
        volatility_regime=rng.choice(VOLATILITY_REGIMES),
        regime_tag=tag,
        session=session_of(at),
        hour=at.hour,
        direction=rng.choice(get_args(Direction)),
        size_share=rng.lognormvariate(-3.0, 0.5),
        captured=rng.uniform(0.2, 1.0) if won else 0.0,
        hold_seconds=rng.expovariate(1 / 3600),
    )


def trades_of(rng: random.Random, kind: Kind, *, n: int, a_day: int) -> Iterator[ClosedTrade]:
    """Trades at random hours; on clustered days nearly all win or nearly all lose."""
    for number in range(n):
        if number % a_day == 0:
            day_rate = rng.choice((0.1, 0.9)) if kind == "clustered" else 0.5
        day, within = divmod(number, a_day)
        at = START + timedelta(days=day, seconds=(within + rng.random()) * 86_400 / a_day)
        if kind != "planted":
            yield a_trade(rng, number, at, rng.choice(TAGS), won=rng.random() < day_rate)
            continue
        tag = CHOP if rng.random() < 1 / 3 else rng.choice([each for each in TAGS if each != CHOP])
        yield a_trade(rng, number, at, tag, won=rng.random() < (0.15 if tag == CHOP else 0.55))


def notes_of(trades: list[ClosedTrade]) -> Iterator[LessonsNote]:
    """The note after every ten trades."""
    state = NEW_SEARCH
    for closed in range(10, len(trades) + 1, 10):
        result = find_evidence(trades[:closed], as_of=trades[closed - 1].known_at, state=state)
        state = result.search_state
        yield write_lessons(result)


def ever_writes(kind: Kind, seed: int, *, n: int, a_day: int) -> bool:
    trades = list(trades_of(random.Random(f"{kind} {seed}"), kind, n=n, a_day=a_day))
    return any(note.bullets for note in notes_of(trades))


def writes_the_pattern(seed: int, *, a_day: int) -> bool:
    """Whether the note after 200 trades says what `chop_hivol` costs, with its numbers."""
    trades = list(trades_of(random.Random(f"planted {seed}"), "planted", n=200, a_day=a_day))
    *_, last = notes_of(trades)
    n = sum(each.regime_tag == CHOP for each in trades)
    return any(each.text.startswith(f"{CHOP}: -") and f"over {n} trades" in each.text for each in last.of("regime_fit"))


@pytest.mark.parametrize("kind", ["random", "clustered"])
def test_chance_seldom_writes_a_lesson(kind: Kind) -> None:
    assert sum(ever_writes(kind, seed, n=200, a_day=4) for seed in range(10)) <= 1


def test_a_planted_pattern_is_mostly_written() -> None:
    assert sum(writes_the_pattern(seed, a_day=3) for seed in range(10)) >= 9


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "a_day"), [("random", 1), ("random", 4), ("clustered", 4)])
def test_at_most_a_tenth_of_random_strategies_ever_write_a_lesson(kind: Kind, a_day: int) -> None:
    wrote = sum(ever_writes(kind, seed, n=500, a_day=a_day) for seed in range(RUNS))
    print(f"{kind}, {a_day} a day: {wrote} of {RUNS}")  # noqa: T201
    assert wrote <= 0.1 * RUNS


@pytest.mark.slow
@pytest.mark.parametrize("a_day", [1, 3, 5])
def test_a_planted_pattern_is_written_in_nine_of_ten(a_day: int) -> None:
    wrote = sum(writes_the_pattern(seed, a_day=a_day) for seed in range(RUNS))
    print(f"planted, {a_day} a day: {wrote} of {RUNS}")  # noqa: T201
    assert wrote >= 0.9 * RUNS


def settled_on(seed: int, *, effect: float, a_day: int = 6, holdout: float = 0.3, binary: bool = False) -> int | None:
    """The first of 120 days on which the interval excludes zero."""
    rng, trades = random.Random(f"help {seed}"), list[HoldoutTrade]()
    for day in range(120):
        is_shown = rng.random() >= holdout
        for _ in range(a_day):
            value = rng.choice((-1.2, 1.2)) if binary else rng.gauss(0.0, 1.2)
            outcome = Outcome(value=value + (effect if is_shown else 0.0), unit="R")
            arm: Literal["shown", "withheld"] = "shown" if is_shown else "withheld"
            at = date(2026, 1, 5) + timedelta(days=day)
            trades.append(HoldoutTrade(arm=arm, day=at, deployment_id="d1", outcome=outcome))
        if analyse_holdout(trades).verdict in ("yes", "no"):
            return day
    return None


def test_a_large_help_is_found() -> None:
    assert sum(settled_on(seed, effect=0.5) is not None for seed in range(10)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(("a_day", "holdout", "binary"), [(6, 0.3, False), (1, 0.2, True)])
def test_watched_every_day_no_effect_is_seldom_taken_for_one(a_day: int, holdout: float, binary: bool) -> None:
    runs = [settled_on(seed, effect=0.0, a_day=a_day, holdout=holdout, binary=binary) for seed in range(RUNS)]
    wrong = sum(each is not None for each in runs)
    print(f"no effect, {a_day} a day: {wrong} of {RUNS}")  # noqa: T201
    assert wrong <= 0.1 * RUNS


@pytest.mark.slow
def test_half_an_r_is_found_within_120_days() -> None:
    days = sorted(day for seed in range(RUNS) if (day := settled_on(seed, effect=0.5)) is not None)
    print(f"+.5R: {len(days)} of {RUNS}, median day {days[len(days) // 2] + 1}")  # noqa: T201
    assert len(days) >= 0.8 * RUNS
