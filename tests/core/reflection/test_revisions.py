"""Revisions of lessons: when a note stays as adopted, and how many trades each revision collects."""

import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from backsight.core.portfolio import Direction
from backsight.core.reflection.evidence import find_evidence
from backsight.core.reflection.lessons import write_lessons
from backsight.core.reflection.patterns import NEW_SEARCH, ClosedTrade
from backsight.core.reflection.revisions import AdoptedPattern, adopted_patterns, revision_reasons
from backsight.core.regime import Session
from backsight.core.trades.trade import Outcome
from backsight.testing.reflection import a_pattern

START = datetime(2026, 1, 5, tzinfo=UTC)
SESSIONS: Sequence[Session] = ("asia", "london", "newyork")
DIRECTIONS: Sequence[Direction] = ("long", "short")


class Life(NamedTuple):
    """What became of the lessons in a life of trades with a reflection every ten trades."""

    trades_with_lessons: int
    rewritten: int
    """How often the note would have changed if every reflection wrote its numbers anew."""
    revisions: int


def a_life(seed: int, *, n: int = 500) -> Life:
    """Shorts and Asian trades lose by more; a note is adopted when the revision before no longer stands."""
    rng, trades = random.Random(f"life {seed}"), list[ClosedTrade]()
    for number in range(n):
        session, direction = rng.choice(SESSIONS), rng.choice(DIRECTIONS)
        r = rng.gauss(0.3, 1.0) - 0.9 * (session == "asia") - 0.6 * (direction == "short")
        at = START + timedelta(hours=8 * number)
        outcome = Outcome(value=r, unit="R")
        trades.append(
            ClosedTrade(
                id=f"t{number:04d}",
                ended_at=at,
                known_at=at,
                symbol="BTC",
                outcome=outcome,
                won=r > 0,
                session=session,
                direction=direction,
            )
        )
    state, adopted, hashes, revisions = NEW_SEARCH, tuple[AdoptedPattern, ...](), list[str](), 0
    for closed in range(10, n + 1, 10):
        evidence = find_evidence(trades[:closed], as_of=trades[closed - 1].known_at, state=state)
        state = evidence.search_state
        if evidence.patterns or hashes:
            hashes.append(write_lessons(evidence).hash)
        if revision_reasons(adopted, evidence.patterns):
            adopted, revisions = adopted_patterns(evidence.patterns), revisions + 1
    rewritten = len(hashes[:1]) + sum(before != after for before, after in itertools.pairwise(hashes))
    return Life(trades_with_lessons=10 * len(hashes), rewritten=rewritten, revisions=revisions)


def trades_a_revision(seeds: int) -> tuple[float, float]:
    """Mean trades under one revision: if every reflection wrote the note anew, and as notes last now."""
    lives = [a_life(seed) for seed in range(seeds)]
    trades = sum(life.trades_with_lessons for life in lives)
    return trades / sum(life.rewritten for life in lives), trades / sum(life.revisions for life in lives)


def test_an_effect_that_moves_within_its_interval_keeps_the_note() -> None:
    adopted = adopted_patterns([a_pattern(difference=-0.8, difference_interval=(-1.0, -0.6))])
    assert revision_reasons(adopted, [a_pattern(difference=-0.999)]) == []
    assert revision_reasons(adopted, [a_pattern(difference=-1.001)]) == ["chop_hivol moved"]


def test_a_pattern_that_enters_or_leaves_makes_a_revision() -> None:
    chop, asia = a_pattern(), a_pattern(dimension="session", value="asia", label="the Asian session")
    assert revision_reasons(adopted_patterns([chop]), [chop, asia]) == ["the Asian session entered"]
    assert revision_reasons(adopted_patterns([chop, asia]), [asia]) == ["chop_hivol left"]
    assert revision_reasons((), []) == []


def test_a_note_without_an_interval_stays_until_there_is_one() -> None:
    one_day = a_pattern(difference_interval=None)
    assert revision_reasons(adopted_patterns([one_day]), [one_day]) == []
    assert revision_reasons(adopted_patterns([one_day]), [a_pattern()]) == ["chop_hivol moved"]


def test_a_revision_collects_many_trades() -> None:
    before, now = trades_a_revision(3)
    assert before < 11
    assert now > 50


@pytest.mark.slow
def test_over_many_lives_a_revision_collects_many_trades() -> None:
    before, now = trades_a_revision(40)
    print(f"trades a revision: {before:.1f} before, {now:.1f} now")  # noqa: T201
    assert now > 5 * before
