"""Error rates of reflection: few false lessons, power to detect true ones, and valid intervals at every look.

`docs/truth.md` has the tables; `pytest -m slow -s tests/core/reflection/test_promises.py` prints them.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from statistics import NormalDist, fmean
from typing import Literal, get_args

import numpy as np
import pytest

from backsight.core.portfolio import Direction
from backsight.core.reflection.alpha_spending import significance_level
from backsight.core.reflection.evidence import find_evidence
from backsight.core.reflection.holdout_test import HoldoutTrade, analyse_holdout
from backsight.core.reflection.lessons import LessonsNote, write_lessons
from backsight.core.reflection.patterns import NEW_SEARCH, WINDOW, ClosedTrade, Pattern, TradeEvidence
from backsight.core.reflection.shift_test import MIN_RUNS
from backsight.core.regime import REGIME_TAGS, VOLATILITY_REGIMES, Regime, RegimeTag, regime_of, session_of
from backsight.core.statistics import rate_bounds
from backsight.core.trades.trade import Outcome
from noise import SHAPES, NoiseTrade, noise

Kind = Literal["random", "clustered", "planted"]

START = datetime(2026, 1, 5, tzinfo=UTC)
SYMBOLS = ("BTC", "ETH", "SOL", "XAUUSD", "EURUSD")
TAGS = tuple(tag for tag in REGIME_TAGS if tag != "unknown")
RUNS = 300
LIVES = 100
"""Of each shape of noise and each planted pattern."""
LIFE = 1000
"""Trades of a life without an edge."""
FALSE_LIVES = 0.05
"""The most lives that may ever write a false lesson."""
COVERED_AT = (80, 160, 320, 640)
"""Closed trades at which the coverage of intervals is counted."""
Planted = Literal["session", "weekday", "after", "pair"]
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


def searches(trades: list[ClosedTrade]) -> Iterator[TradeEvidence]:
    """The evidence after every ten trades, where a test is due: the others write nothing new."""
    state = NEW_SEARCH
    for closed in range(10, len(trades) + 1, 10):
        if significance_level(closed, tested_at=state.looks[-1].closed if state.looks else 0):
            latest = trades[max(0, closed - WINDOW) : closed]
            result = find_evidence(latest, as_of=latest[-1].known_at, closed=closed, state=state)
            state = result.search_state
            yield result


def notes_of(trades: list[ClosedTrade]) -> Iterator[LessonsNote]:
    return map(write_lessons, searches(trades))


def ever_writes(kind: Kind, seed: int, *, n: int, a_day: int) -> bool:
    trades = list(trades_of(random.Random(f"{kind} {seed}"), kind, n=n, a_day=a_day))
    return any(note.bullets for note in notes_of(trades))


def writes_the_pattern(seed: int, *, a_day: int) -> bool:
    """Whether the note after 200 trades says what `chop_hivol` costs, with its numbers."""
    trades = list(trades_of(random.Random(f"planted {seed}"), "planted", n=200, a_day=a_day))
    *_, last = notes_of(trades)
    n = sum(each.regime_tag == CHOP for each in trades)
    return any(each.text.startswith(f"{CHOP}: -") and f"over {n} trades" in each.text for each in last.of("regime_fit"))


# Markets without an edge


def closed_trades(market: Iterable[NoiseTrade]) -> list[ClosedTrade]:
    return [
        ClosedTrade(
            id=f"t{number:04d}",
            ended_at=trade.closed_at,
            known_at=trade.closed_at,
            symbol=trade.symbol,
            outcome=Outcome(value=trade.outcome, unit="R" if trade.in_r else "pct"),
            won=trade.outcome > 0.0,
            regime=trade.regime,
            volatility_regime=trade.volatility_regime,
            session=trade.session,
            hour=trade.opened_at.hour,
            weekday=trade.opened_at.weekday(),
            opened_at=trade.opened_at,
            direction=trade.direction,
        )
        for number, trade in enumerate(market)
    ]


def first_patterns(trades: list[ClosedTrade]) -> tuple[Pattern, ...]:
    """The first patterns that a life makes a lesson of; none if it writes no lesson."""
    return next((each.patterns for each in searches(trades) if each.patterns), ())


@pytest.mark.parametrize("shape", ["8% winners of 12R", "regimes in spells"])
def test_a_market_without_an_edge_seldom_writes_a_lesson(shape: str) -> None:
    assert sum(bool(first_patterns(closed_trades(noise(shape, seed, 320)))) for seed in range(3)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_at_most_a_twentieth_of_lives_write_a_false_lesson(shape: str) -> None:
    wrote = sum(bool(first_patterns(closed_trades(noise(shape, seed, LIFE)))) for seed in range(LIVES))
    low, high = rate_bounds(wrote, LIVES)
    print(f"{shape}: {wrote} of {LIVES} ({low:.2f} to {high:.2f})")  # noqa: T201
    assert low <= FALSE_LIVES


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_groups_cover_the_truth(shape: str) -> None:
    truth, shares = SHAPES[shape].mean_r, list[float]()
    lives = [closed_trades(noise(shape, seed, max(COVERED_AT))) for seed in range(LIVES // 2)]
    for closed in COVERED_AT:
        samples = (find_evidence(life[:closed], as_of=life[closed - 1].known_at, closed=1) for life in lives)
        intervals = [group.interval for sample in samples for group in sample.groups if group.interval is not None]
        shares.append(sum(low <= truth <= high for low, high in intervals) / len(intervals))
    print(f"{shape}: " + ", ".join(f"{share:.2f}" for share in shares))  # noqa: T201
    assert shares[-1] >= 0.8


# Planted patterns


def planted_in(
    pattern: Planted, market: Iterable[NoiseTrade], *, effect: float, rng: random.Random
) -> list[NoiseTrade]:
    """Trades that lose by the effect in Asia, on Mondays, after a loss, or as shorts in one of two regimes."""
    trades, before = list[NoiseTrade](), 1.0
    for trade in market:
        regime: Regime = rng.choice(("ranging", "trending_up"))
        is_hit = {
            "session": trade.session == "asia",
            "weekday": trade.opened_at.weekday() == 0,
            "after": before <= 0.0,
            "pair": regime == "ranging" and trade.direction == "short",
        }[pattern]
        before = trade.outcome - effect * is_hit
        trades.append(replace(trade, outcome=before, regime=regime))
    return trades


NAMES: dict[Planted, tuple[str, ...]] = {
    "session": ("session=asia",),
    "weekday": ("weekday=0",),
    "after": ("after=loss", "after=win"),
    "pair": ("regime_and_direction=ranging_and_short",),
}


def finds(pattern: Planted, seed: int, *, effect: float, trades: int = 300) -> bool:
    rng = random.Random(f"{pattern} {seed}")
    market = closed_trades(planted_in(pattern, noise("normal", seed, trades), effect=effect, rng=rng))
    keys = {each.key for evidence in searches(market) for each in evidence.search_state.found}
    return any(key.endswith(NAMES[pattern]) for key in keys)


@pytest.mark.parametrize("pattern", ["after", "pair"])
def test_a_planted_group_is_found(pattern: Planted) -> None:
    assert sum(finds(pattern, seed, effect=1.0) for seed in range(3)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "effect", "at_least"),
    [
        ("session", 0.5, 0.45),
        ("after", 0.5, 0.5),
        ("weekday", 0.5, 0.05),
        ("pair", 0.5, 0.2),
        ("session", 0.75, 0.7),
        ("after", 0.75, 0.7),
        ("weekday", 1.0, 0.7),
        ("pair", 0.75, 0.7),
    ],
)
def test_planted_groups_are_found_within_300_trades(pattern: Planted, effect: float, at_least: float) -> None:
    hits = sum(finds(pattern, seed, effect=effect) for seed in range(LIVES))
    low, high = rate_bounds(hits, LIVES)
    print(f"{pattern} by {effect}R: {hits} of {LIVES} ({low:.2f} to {high:.2f})")  # noqa: T201
    assert hits >= at_least * LIVES


def oracle_power(pattern: Planted, seed: int, *, effect: float, trades: int = 300) -> float:
    """The power of one normal test at .05 that knows the variance, against the largest of the same groups by chance."""
    rng = random.Random(f"{pattern} {seed}")
    market = closed_trades(planted_in(pattern, noise("normal", seed, trades), effect=effect, rng=rng))
    groups = find_evidence(market, as_of=market[-1].known_at, closed=1).groups
    testable = [each for each in groups if each.runs >= MIN_RUNS]
    labels = np.array([[trade.id in ids for ids in (set(each.trade_ids) for each in testable)] for trade in market])
    scaled = (labels - labels.mean(axis=0)) / (labels.std(axis=0) * np.sqrt(trades))
    largest = np.abs(np.random.default_rng(seed).standard_normal((2000, trades)) @ scaled).max(axis=1)
    (planted,) = (each.n for each in testable if each.key.endswith(NAMES[pattern][0]))
    expected = effect * np.sqrt(planted * (trades - planted) / trades)
    return NormalDist().cdf(float(expected - np.quantile(largest, 0.95)))


def test_at_half_an_r_300_trades_cannot_prove_a_weekday() -> None:
    assert oracle_power("weekday", 1, effect=0.5) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "at_least", "at_most"),
    [("session", 0.7, 0.85), ("after", 0.7, 0.9), ("pair", 0.55, 0.7), ("weekday", 0.3, 0.5)],
)
def test_the_most_that_any_test_of_these_groups_could_find(pattern: Planted, at_least: float, at_most: float) -> None:
    power = fmean(oracle_power(pattern, seed, effect=0.5) for seed in range(20))
    print(f"oracle, {pattern} by 0.5R: {power:.2f}")  # noqa: T201
    assert at_least <= power <= at_most


# Clustered days and a planted regime


@pytest.mark.parametrize("kind", ["random", "clustered"])
def test_chance_seldom_writes_a_lesson(kind: Kind) -> None:
    assert sum(ever_writes(kind, seed, n=160, a_day=4) for seed in range(4)) <= 1


def test_a_planted_pattern_is_mostly_written() -> None:
    assert sum(writes_the_pattern(seed, a_day=3) for seed in range(4)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "a_day"), [("random", 1), ("random", 4), ("clustered", 4)])
def test_at_most_a_tenth_of_random_strategies_ever_write_a_lesson(kind: Kind, a_day: int) -> None:
    wrote = sum(ever_writes(kind, seed, n=500, a_day=a_day) for seed in range(LIVES))
    print(f"{kind}, {a_day} a day: {wrote} of {LIVES}")  # noqa: T201
    assert wrote <= 0.1 * LIVES


@pytest.mark.slow
@pytest.mark.parametrize("a_day", [1, 3, 5])
def test_a_planted_pattern_is_written_in_nine_of_ten(a_day: int) -> None:
    wrote = sum(writes_the_pattern(seed, a_day=a_day) for seed in range(LIVES))
    print(f"planted, {a_day} a day: {wrote} of {LIVES}")  # noqa: T201
    assert wrote >= 0.9 * LIVES


# Does memory help


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
