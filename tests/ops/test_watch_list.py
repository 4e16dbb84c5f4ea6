"""Who is shown the watch list: the owner always, an agent only if its deployment says so, nobody as a rule."""

import random
from datetime import timedelta

import pytest

from backsight.core.reflection.lessons import lessons_hash
from backsight.core.reflection.patterns import WatchedPattern
from backsight.core.strategies import Deployment, LessonsShown, MemoryOverrides
from backsight.memory import Memory
from backsight.testing import FakeClock, a_trade_call

DEPLOYMENT = "Fade@main"
RANGES = "regime_fit/regime=ranging"


def losing_a_little(memory: Memory, clock: FakeClock, *, lessons: LessonsShown = "proven") -> Deployment:
    """Thirty days of trades that lose in ranging markets, by too little to prove it."""
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.")
    settings = MemoryOverrides(lessons=lessons)
    deployment = memory.deploy(strategy_name="Fade", account="main", memory=settings).deployment
    rng = random.Random(5)
    for number in range(30):
        clock.advance(days=1)
        ranging = number % 2 == 0
        r = rng.gauss(-0.7 if ranging else 0.4, 0.8)
        closed = {"closed_at": clock.now() - timedelta(hours=1), "opened_at": clock.now() - timedelta(minutes=90)}
        called = a_trade_call(
            strategy_name="Fade",
            symbol=rng.choice(("BTC", "ETH")),
            pnl=100.0 * r,
            pnl_r=r,
            context_regime="ranging" if ranging else "trending_up",
        )
        memory.remember_trade(**called | closed, deployment=DEPLOYMENT)
    return deployment


def watched(memory: Memory) -> WatchedPattern:
    (watch_list,) = memory.list_lessons(deployment=DEPLOYMENT).watched
    assert (watch_list.mode, watch_list.closed) == ("live", 30)
    return watch_list.patterns[0]


def test_the_owner_sees_what_is_watched_without_any_reflection(memory: Memory, clock: FakeClock) -> None:
    losing_a_little(memory, clock)
    pattern = watched(memory)
    assert (pattern.key, pattern.n, pattern.days) == (RANGES, 15, 15)
    assert 0.0 < pattern.p < 0.5
    assert pattern.sentence.startswith("(unproven) ranging markets: -")
    assert pattern.sentence.endswith("more closed trades would prove it, if the effect stays as it is")
    assert memory.list_lessons(strategy_name="Fade").watched == memory.list_lessons(deployment=DEPLOYMENT).watched
    review = memory.review_period(deployment=DEPLOYMENT, period="monthly")
    assert review.evidence.watched[0] == pattern
    assert "## Watched, not proven\n\nNot proven: chance may still explain" in review.markdown
    assert "\n- (unproven) ranging markets: -" in review.markdown
    assert "## Drift\n\n- BTC: The mean outcome: no change found in " in review.markdown


def test_a_watched_pattern_writes_and_proposes_nothing(memory: Memory, clock: FakeClock) -> None:
    losing_a_little(memory, clock, lessons="proven_and_watched")
    done = memory.reflect(deployment=DEPLOYMENT)
    assert done.evidence.watched[0].key == RANGES
    assert (done.came, done.note, done.bullets, done.proposals) == ("unchanged", None, (), ())
    assert memory.list_proposals(deployment=DEPLOYMENT).proposals == ()
    assert memory.list_plans(deployment=DEPLOYMENT).plans == ()
    assert memory.list_beliefs().beliefs == ()


@pytest.mark.parametrize(("lessons", "is_shown"), [("proven", False), ("proven_and_watched", True)])
def test_an_agent_sees_what_is_watched_only_where_its_deployment_says_so(
    memory: Memory, clock: FakeClock, lessons: LessonsShown, is_shown: bool
) -> None:
    losing_a_little(memory, clock, lessons=lessons)
    before = memory.preview_context(deployment=DEPLOYMENT)
    assert not [segment for segment in before.system if segment.name == "lessons"], "no reflection yet"
    memory.reflect(deployment=DEPLOYMENT)
    answer = memory.active_lessons(deployment=DEPLOYMENT)
    prompt = memory.preview_context(deployment=DEPLOYMENT)
    assert answer.note is None
    assert answer.hash == prompt.lessons_hash == (lessons_hash(answer.text or "") if is_shown else None)
    texts = [segment.text for segment in prompt.system]
    assert ("- Regime fit: (unproven) ranging markets: -" in "\n".join(texts)) == is_shown
    assert ("- (unproven) ranging markets: -" in (answer.text or "")) == is_shown


def test_the_watch_list_as_of_then_stays_what_it_was(memory: Memory, clock: FakeClock) -> None:
    losing_a_little(memory, clock, lessons="proven_and_watched")
    memory.reflect(deployment=DEPLOYMENT)
    then = memory.now
    listed, prompt = memory.list_lessons(deployment=DEPLOYMENT), memory.preview_context(deployment=DEPLOYMENT)
    for _ in range(8):
        clock.advance(days=1)
        closed = {"closed_at": clock.now() - timedelta(hours=1), "opened_at": clock.now() - timedelta(minutes=90)}
        won = a_trade_call(strategy_name="Fade", symbol="BTC", context_regime="ranging", pnl=300.0, pnl_r=3.0)
        memory.remember_trade(**won | closed, deployment=DEPLOYMENT)
    memory.reflect(deployment=DEPLOYMENT)
    assert memory.list_lessons(deployment=DEPLOYMENT, as_of=then) == listed
    assert memory.preview_context(deployment=DEPLOYMENT, as_of=then).system == prompt.system
    assert memory.list_lessons(deployment=DEPLOYMENT).watched[0].patterns[:1] != listed.watched[0].patterns[:1]


def test_an_empty_watch_list_says_why(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.")
    memory.deploy(strategy_name="Fade", account="main")
    (watch_list,) = memory.list_lessons(deployment=DEPLOYMENT).watched
    assert watch_list.message == "Nothing is watched: 0 closed trades; the first test is at 20."
