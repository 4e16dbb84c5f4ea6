"""The watch list: what is on it, and how well the number of further trades is estimated."""

import random
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from backsight.core.reflection.evidence import find_evidence
from backsight.core.reflection.patterns import NEW_SEARCH, ClosedTrade, TradeEvidence
from backsight.core.reflection.watch_list import MAX_WATCHED, more_trades, watch_list
from backsight.core.regime import Session
from backsight.core.trades.trade import Outcome
from backsight.testing.reflection import a_pattern

START = datetime(2026, 1, 5, tzinfo=UTC)
SESSIONS: tuple[Session, ...] = ("asia", "london", "newyork")
ASIA = "entry_timing/session=asia"


def planted(seed: str, *, n: int, effect: float) -> Iterator[ClosedTrade]:
    """One trade a day; those of the Asian session lose by more, the other properties are noise."""
    rng = random.Random(seed)
    for number in range(n):
        session = rng.choice(SESSIONS)
        r = rng.gauss(0.1, 1.0) - effect * (session == "asia")
        at = START + timedelta(days=number)
        yield ClosedTrade(
            id=f"t{number:04d}",
            ended_at=at,
            known_at=at,
            symbol=rng.choice(("BTC", "ETH", "SOL")),
            outcome=Outcome(value=r, unit="R"),
            won=r > 0,
            session=session,
            direction=rng.choice(("long", "short")),
            regime=rng.choice(("trending_up", "ranging", "volatile")),
        )


def searches(trades: list[ClosedTrade], *, every: int = 10) -> Iterator[TradeEvidence]:
    state = NEW_SEARCH
    for closed in range(every, len(trades) + 1, every):
        evidence = find_evidence(trades[:closed], as_of=trades[closed - 1].known_at, state=state)
        state = evidence.search_state
        yield evidence


def need_ratios(seed: str, *, effect: float) -> list[float]:
    """Each estimate of the trades that are missing, as a share of the trades that were; nothing if never proven."""
    estimates = list[tuple[int, int]]()
    for evidence in searches(list(planted(seed, n=500, effect=effect))):
        if any(pattern.key == ASIA for pattern in evidence.patterns):
            return [more / (evidence.closed - closed) for closed, more in estimates]
        estimates += [
            (evidence.closed, each.more_trades)
            for each in evidence.watched
            if each.key == ASIA and each.more_trades is not None
        ]
    return []


def test_a_pattern_is_watched_with_its_figures_until_it_is_proven() -> None:
    weak, *_, proven = searches(list(planted("a", n=200, effect=1.2)), every=40)
    (watched,) = (each for each in weak.watched if each.key == ASIA)
    (group,) = (each for each in weak.groups if each.key == ASIA)
    assert (watched.n, watched.days, watched.mean, watched.interval) == (
        group.n,
        group.days,
        group.mean,
        group.interval,
    )
    assert (watched.difference, watched.p) == (group.difference, weak.p_values[ASIA])
    assert watched.text.startswith("(unproven) the Asian session: -")
    assert [pattern.key for pattern in proven.patterns] == [ASIA]
    assert all(each.key != ASIA for each in proven.watched)


def test_between_two_tests_the_watch_list_spends_nothing() -> None:
    trades = list(planted("a", n=45, effect=1.2))
    tested = find_evidence(trades[:40], as_of=trades[39].known_at)
    between = find_evidence(trades, as_of=trades[-1].known_at, state=tested.search_state)
    assert (between.level, between.patterns) == (0.0, ())
    assert [each.key for each in between.watched][:1] == [ASIA]
    assert between.search_state == tested.search_state


def test_later_trades_change_no_earlier_watch_list() -> None:
    trades = list(planted("b", n=120, effect=0.6))
    then = trades[59].known_at
    assert find_evidence(trades, as_of=then).watched == find_evidence(trades[:60], as_of=then).watched


def test_one_fact_is_watched_once() -> None:
    """Longs and shorts are the same difference, and so are two names of one group of trades."""
    ids = tuple(f"t{n}" for n in range(60))
    long = a_pattern(dimension="direction", value="long", n=30, rest_n=30, trade_ids=ids[:30])
    short = a_pattern(dimension="direction", value="short", n=30, rest_n=30, trade_ids=ids[30:])
    asia = a_pattern(dimension="session", value="asia", n=30, rest_n=30, trade_ids=ids[15:45])
    figures = {each.key: 0.2 for each in (long, short, asia)}
    watched = watch_list([long, short, asia], p_values=figures, strengths=figures, closed=60)
    assert [each.key for each in watched] == [asia.key, long.key]


def test_few_are_watched_and_none_that_chance_explains() -> None:
    groups = [
        a_pattern(value=f"g{n}", n=10, rest_n=90, trade_ids=tuple(f"t{n * 10 + each}" for each in range(10)))
        for n in range(10)
    ]
    strengths = {each.key: 0.5 + n / 100 for n, each in enumerate(groups)}
    watched = watch_list(groups, p_values=dict.fromkeys(strengths, 0.3), strengths=strengths, closed=100)
    assert [each.key for each in watched] == [each.key for each in groups[: -MAX_WATCHED - 1 : -1]]
    assert watch_list(groups, p_values=dict.fromkeys(strengths, 0.6), strengths=strengths, closed=100) == ()


def test_an_effect_too_weak_for_the_window_needs_more_than_the_window() -> None:
    weak = a_pattern(n=100, rest_n=300, interval=(-0.83, -0.57))
    assert more_trades(weak, strength=0.85, closed=400) is None
    (watched,) = watch_list([weak], p_values={weak.key: 0.3}, strengths={weak.key: 0.85}, closed=400)
    assert watched.sentence.endswith("more than the 500 trades that are analysed would be needed to prove it")


def test_a_wide_interval_asks_for_more_trades_than_the_statistic() -> None:
    wide = a_pattern(n=30, rest_n=70, mean=-0.7, rest_mean=0.1, difference=-0.8, interval=(-1.9, 0.5))
    assert more_trades(wide, strength=0.99, closed=100) == 180, "1.5² times as many trades, then the next test"
    assert more_trades(a_pattern(n=30, rest_n=70), strength=0.99, closed=100) == 40


def test_the_estimate_is_mostly_right() -> None:
    ratios = [ratio for seed in range(8) for ratio in need_ratios(f"need {seed}", effect=0.9)]
    assert 0.5 <= statistics.median(ratios) <= 2.0


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.6, 0.9, 1.2])
def test_the_estimate_is_within_a_factor_of_two_in_the_median(effect: float) -> None:
    ratios = [ratio for seed in range(60) for ratio in need_ratios(f"need {seed}", effect=effect)]
    low, median, high = statistics.quantiles(ratios, n=4)
    print(f"effect {effect}: quartiles {low:.2f} {median:.2f} {high:.2f} of {len(ratios)}")  # noqa: T201
    assert 0.5 <= median <= 2.0
