"""The scan over columns agrees with the plain scorer."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.candidates import Filters
from backsight.core.recall.arrays.columns import Columns, append_episodes, columns_of, micros
from backsight.core.recall.arrays.scan import Hit, scan
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.score import RecallMood, Situation
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.text.stems import stems
from backsight.core.trades.trade import Outcome
from backsight.testing import T0, an_episode
from backsight.testing.recall import rank_plainly, sigmas

FEW_NUMBERS = st.sampled_from([None, 0.0, 1.0, 50.0, 51.0])
NUMBERS = FEW_NUMBERS | st.floats(0, 1e6)
CONTEXTS = st.builds(
    ContextVector,
    price=NUMBERS,
    atr_d1=NUMBERS,
    atr_h1=NUMBERS,
    regime=st.sampled_from([None, *REGIMES]),
    volatility_regime=st.sampled_from([None, *VOLATILITY_REGIMES]),
    session=st.sampled_from([None, *SESSIONS]),
    spread_as_atr_pct=NUMBERS,
    drawdown_pct=st.sampled_from([None, 0.0, 0.05]) | st.floats(0, 1),
)
OUTCOMES = st.none() | st.builds(
    Outcome,
    value=st.sampled_from([0.0, 1.0, -1.0, 3.0, -2.0]) | st.floats(-20, 20) | st.floats(-1e300, 1e300),
    unit=st.sampled_from(["R", "R", "R", "vol", "pct"]),
)
HOURS = st.integers(-12, 12).map(lambda hours: T0 + timedelta(hours=hours))
INSTANTS = HOURS | st.timedeltas(timedelta(days=-2_000), timedelta(days=200)).map(lambda since: T0 + since)
SYMBOLS = st.sampled_from(["XAUUSD", "XAUUSD", "BTC"])
TEXTS = st.none() | st.lists(
    st.sampled_from(["London", "breaks", "broke", "the", "range", "ranges", "ranging", "up", "größer", "2%"]),
    max_size=6,
).map(" ".join)
TAGS = st.lists(st.sampled_from(["news", "late"]), unique=True, max_size=2).map(tuple)
MOODS = st.sampled_from([RecallMood(), RecallMood(drawdown_state=0.6), RecallMood(consecutive_losses=3)])
BLOCKS = st.sampled_from([2, 5, 8_192])
DAYS = st.integers(-600, 0) | st.sampled_from([-3, -2, -1, -42, -41, -40])
"""Several of the days lie in one month."""


@st.composite
def an_episode_of_any_kind(draw: st.DrawFn) -> Episode:
    known, outcome = draw(INSTANTS), draw(OUTCOMES)
    return an_episode(
        draw(st.integers(0, 30)),
        kind=draw(st.sampled_from(["trade", "call"])),
        symbol=draw(SYMBOLS),
        strategy_name=draw(st.sampled_from(["VolBreakout", "MeanReversion"])),
        deployment_id=draw(st.sampled_from(["one", "two"])),
        mode=draw(st.sampled_from(["live", "live", "sim"])),
        direction=draw(st.sampled_from(["long", "short", None])),
        context=draw(CONTEXTS),
        market_context=draw(TEXTS),
        outcome=outcome,
        pnl=draw(st.sampled_from([None, 10.0, -10.0])),
        confidence=draw(st.none() | st.floats(0, 1)),
        tags=draw(TAGS),
        known_at=known,
        ended_at=draw(st.just(known) | INSTANTS),
        recorded_at=draw(st.just(known) | INSTANTS),
        archived_at=draw(st.sampled_from([None, None, None, T0])),
    )


EPISODES = st.lists(an_episode_of_any_kind(), max_size=25)
QUERIES = st.builds(
    Situation,
    symbol=st.none() | SYMBOLS,
    direction=st.sampled_from([None, "long", "short"]),
    context=CONTEXTS,
    words=TEXTS.map(stems),
)
FILTERS = st.builds(
    Filters,
    symbol=st.none() | SYMBOLS,
    strategy_name=st.sampled_from([None, None, "VolBreakout"]),
    direction=st.sampled_from([None, None, "short"]),
    deployment_id=st.sampled_from([None, None, "two"]),
    mode=st.sampled_from([None, "live"]),
    tags=st.just(()) | TAGS,
    since=st.none() | INSTANTS,
    until=st.none() | INSTANTS,
)


def is_known(e: Episode, as_of: datetime, seen_at: datetime | None) -> bool:
    return e.known_at <= as_of and (seen_at is None or e.recorded_at <= seen_at)


def passes(e: Episode, filters: Filters) -> bool:
    equal = ("symbol", "strategy_name", "direction", "deployment_id", "mode")
    return (
        (e.pnl is not None or e.outcome is not None)
        and e.archived_at is None
        and all(getattr(filters, name) in (None, getattr(e, name)) for name in equal)
        and set(filters.tags) <= set(e.tags)
        and (filters.since is None or e.ended_at >= filters.since)
        and (filters.until is None or e.ended_at < filters.until)
    )


def agree(hits: Sequence[Hit], expected: Sequence[RecalledMemory]) -> None:
    assert [hit.id for hit in hits] == [memory.id for memory in expected]
    for hit, memory in zip(hits, expected, strict=True):
        assert hit.value == pytest.approx(memory.score, rel=1e-12, abs=1e-300)
        assert replace(hit.factors, Q=memory.factors.Q) == memory.factors
        q = hit.factors.Q
        assert q == pytest.approx(memory.factors.Q, rel=1e-12, abs=1e-300)


def last_versions(episodes: Sequence[Episode]) -> list[Episode]:
    """The last version of each episode, in the order of the columns."""
    return sorted({e.id: e for e in episodes}.values(), key=lambda e: (e.known_at, e.id))


def rows(columns: Columns) -> list[tuple[Any, ...]]:
    """All values of the current rows."""
    current = [row for row in range(len(columns.known_at)) if columns.group[row]]
    numbers = ("known_at", "recorded_at", "ended_at", "conviction", "marks")
    return [
        (
            columns.id(row),
            columns.group_of(row),
            columns.outcome_of(row),
            columns.context(row),
            columns.tags(row),
            sorted(columns.words_of(row)),
            *(getattr(columns, name)[row] for name in numbers),
        )
        for row in current
    ]


@given(
    EPISODES,
    QUERIES,
    FILTERS,
    INSTANTS,
    st.none() | INSTANTS,
    st.integers(0, 40),
    MOODS,
    st.booleans(),
    BLOCKS,
)
def test_the_scan_agrees_with_the_plain_scorer(
    episodes: list[Episode],
    query: Situation,
    filters: Filters,
    as_of: datetime,
    seen_at: datetime | None,
    limit: int,
    mood: RecallMood,
    weighted: bool,
    block: int,
) -> None:
    company = [e for e in last_versions(episodes) if is_known(e, as_of, seen_at)]
    candidates = [e for e in company if passes(e, filters)]
    expected = rank_plainly(
        candidates, query, now=as_of, limit=limit, mood=mood, period_weight=weighted, company=company
    )
    columns = columns_of(episodes, block=block)
    result = scan(
        columns,
        query,
        filters,
        horizon=Horizon(as_of=as_of, seen_at=seen_at),
        limit=limit,
        mood=mood,
        period_weight=weighted,
    )
    agree(result.memories, expected.memories)
    agree(result.nearest, expected.nearest)
    agree(result.warnings, expected.warnings)
    assert result.candidates == len(candidates)
    assert result.sigma == pytest.approx(sigmas(e.outcome for e in candidates if e.outcome is not None), rel=1e-12)


@given(
    st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 1), DAYS), max_size=30),
    st.integers(1, 3),
    MOODS,
    st.booleans(),
    st.sampled_from([1, 2, 5]),
)
def test_no_block_with_one_of_the_best_is_skipped(
    rows: list[tuple[float, float, int]], limit: int, mood: RecallMood, weighted: bool, block: int
) -> None:
    here = ContextVector(regime="ranging", price=100.0, atr_d1=2.0)
    episodes = [
        an_episode(n, pnl_r=r, confidence=sure, context=here, known_at=T0 + timedelta(hours=n), ended_at=ended_at)
        for n, (r, sure, ended_at) in enumerate((r, sure, T0 + timedelta(days=days)) for r, sure, days in rows)
    ]
    query, now = Situation(symbol="XAUUSD", context=here), T0 + timedelta(days=9)
    expected = rank_plainly(episodes, query, now=now, limit=limit, mood=mood, period_weight=weighted)
    columns = columns_of(episodes, block=block)
    result = scan(columns, query, horizon=Horizon(as_of=now), limit=limit, mood=mood, period_weight=weighted)
    agree(result.memories, expected.memories)
    agree(result.nearest, expected.nearest)
    agree(result.warnings, expected.warnings)


def test_an_old_block_of_a_good_month_is_not_skipped() -> None:
    here, long_ago = ContextVector(regime="ranging"), T0 - timedelta(days=60)
    won, lately = (2.0, 1.0, 2.0, 1.0, 2.0), (2.0, -2.0, -2.0, -2.0)
    old = [an_episode(n, pnl_r=r, context=here, known_at=long_ago) for n, r in enumerate(won)]
    new = [an_episode(n, pnl_r=r, context=here, strategy_name="Carry") for n, r in enumerate(lately, 5)]
    columns, query = columns_of([*old, *new], block=5), Situation(context=here)
    (best,) = scan(columns, query, horizon=Horizon(as_of=T0), limit=1, period_weight=True).memories
    assert (best.id, best.factors.Period) == ("episode-000000", 2.0)
    (blunt,) = scan(columns, query, horizon=Horizon(as_of=T0), limit=1).memories
    assert blunt.id == "episode-000005"


@pytest.mark.parametrize("block", [1, 8_192])
def test_since_and_seen_at_include_their_instant_and_until_does_not(block: int) -> None:
    columns = columns_of([an_episode(n, known_at=T0 + timedelta(hours=n)) for n in range(5)], block=block)
    first_hour, third_hour, late = (T0 + timedelta(hours=hours) for hours in (1, 3, 9))
    within = Filters(since=first_hour, until=third_hour)
    assert scan(columns, Situation(), within, horizon=Horizon(as_of=late)).candidates == 2
    assert scan(columns, Situation(), horizon=Horizon(as_of=late, seen_at=T0)).candidates == 5
    unseen = columns_of([an_episode(1), an_episode(2, recorded_at=T0 + timedelta(microseconds=1))], block=block)
    assert scan(unseen, Situation(), horizon=Horizon(as_of=T0, seen_at=T0)).candidates == 1


@st.composite
def many_alike(draw: st.DrawFn) -> list[Episode]:
    """Many episodes of a few kinds, some without any similarity to the queries."""
    here = ContextVector(regime="ranging")
    kinds = ((1.0, here, 0), (1.0, here, 9), (-1.0, here, 9), (2.0, ContextVector(), 1))
    rows = draw(st.lists(st.tuples(st.integers(0, 200), st.sampled_from(kinds)), max_size=40))
    return [
        an_episode(number, pnl_r=r, context=context, ended_at=T0 - timedelta(days=days))
        for number, (r, context, days) in rows
    ]


@given(
    EPISODES | many_alike(),
    QUERIES | st.just(Situation(context=ContextVector(regime="ranging"))),
    st.integers(1, 7),
    st.booleans(),
    BLOCKS,
)
def test_pages_put_together_are_the_whole_ranking(
    episodes: list[Episode], query: Situation, limit: int, weighted: bool, block: int
) -> None:
    company = [e for e in last_versions(episodes) if is_known(e, T0, None)]
    candidates = [e for e in company if passes(e, Filters())]
    columns = columns_of(episodes, block=block)
    paged: list[Hit] = []
    while True:
        after = (paged[-1].value, paged[-1].id) if paged else None
        page = scan(
            columns, query, horizon=Horizon(as_of=T0), limit=limit, period_weight=weighted, after=after
        ).memories
        paged += page
        if len(page) < limit:
            break
    whole = rank_plainly(candidates, query, now=T0, limit=99, period_weight=weighted, company=company)
    agree(paged, whole.memories)


@given(EPISODES, st.lists(EPISODES, max_size=4), QUERIES, st.integers(1, 5), BLOCKS)
def test_appended_columns_equal_columns_built_at_once(
    start: list[Episode], batches: list[list[Episode]], query: Situation, limit: int, block: int
) -> None:
    grown, every = columns_of(start, block=block), list(start)
    images = [(grown, list(every))]
    for batch in batches:
        grown = append_episodes(grown, batch)
        every += batch
        images.append((grown, list(every)))
    for image, episodes in images:  # older images stay as they were
        at_once = columns_of(episodes, block=block)
        assert rows(image) == rows(at_once)
        assert len(image) == len(at_once)
        result, expected = (
            scan(columns, query, horizon=Horizon(as_of=T0), limit=limit) for columns in (image, at_once)
        )
        assert [hit.id for hit in result.memories] == [hit.id for hit in expected.memories]
        assert [hit.id for hit in result.nearest] == [hit.id for hit in expected.nearest]
        assert [hit.id for hit in result.warnings] == [hit.id for hit in expected.warnings]
        assert result.candidates == expected.candidates


def test_two_images_may_grow_from_one() -> None:
    base = columns_of([an_episode(n) for n in range(40)])
    base = append_episodes(base, [an_episode(40)])
    one, other = append_episodes(base, [an_episode(41)]), append_episodes(base, [an_episode(42)])
    assert (one.id(41), other.id(41), len(base)) == ("episode-000041", "episode-000042", 41)


def test_growing_at_the_end_shares_the_arrays() -> None:
    base = append_episodes(columns_of([an_episode(n) for n in range(100)]), [an_episode(100)])
    grown = append_episodes(base, [an_episode(101)])
    assert np.shares_memory(base.outcome, grown.outcome)
    assert np.shares_memory(base.words, grown.words) or not len(base.words)


def test_a_correction_at_the_end_leaves_older_images_as_they_were() -> None:
    base = columns_of([an_episode(n, pnl_r=1.0) for n in range(100)])
    late = an_episode(3, pnl_r=-4.0, known_at=T0 + timedelta(hours=1))
    grown = append_episodes(base, [late])
    now = T0 + timedelta(hours=1)
    assert np.shares_memory(base.ids, grown.ids) or len(base.buffers.arrays["ids"]) == 100
    assert [hit.id for hit in scan(grown, Situation(), horizon=Horizon(as_of=now)).warnings] == ["episode-000003"]
    assert scan(base, Situation(), horizon=Horizon(as_of=now)).warnings == ()
    assert len(grown) == 100


def test_corrections_do_not_pile_up() -> None:
    columns = columns_of([an_episode(n) for n in range(50)])
    for hour in range(1, 200):
        columns = append_episodes(columns, [an_episode(hour % 50, known_at=T0 + timedelta(hours=hour))])
    assert len(columns) == 50
    assert len(columns.known_at) <= 60


def test_codes_and_ids_widen() -> None:
    many = [an_episode(n, tags=(f"tag {n}",), symbol=f"S{n}", market_context=f"word{n}") for n in range(70_000)]
    columns = append_episodes(columns_of(many[:10]), many[10:])
    long = an_episode(0, id="x" * 90, known_at=T0 + timedelta(hours=1))
    columns = append_episodes(columns, [long])
    assert {columns.group.dtype, columns.tagged.dtype, columns.words.dtype} == {np.dtype("u4")}
    assert (columns.id(70_000), columns.id(5), columns.tags(69_999)) == (long.id, many[5].id, ("tag 69999",))
    query = Situation(symbol="S69999", words=stems("word69999"))
    result = scan(columns, query, Filters(symbol="S69999"), horizon=Horizon(as_of=T0))
    assert [(hit.id, hit.factors.Sim) for hit in result.memories] == [("episode-069999", 1.0)]


def test_a_scan_of_no_episodes_is_empty() -> None:
    query = Situation(context=ContextVector(atr_d1=1.0), words=stems("anything"))
    result = scan(columns_of([]), query, horizon=Horizon(as_of=T0), period_weight=True)
    assert (result.memories, result.nearest, result.warnings, result.candidates) == ((), (), (), 0)


def test_an_episode_is_known_at_its_close_and_not_before() -> None:
    columns = columns_of([an_episode(1, known_at=T0)])
    assert scan(columns, Situation(), horizon=Horizon(as_of=T0)).candidates == 1
    assert scan(columns, Situation(), horizon=Horizon(as_of=T0 - timedelta(microseconds=1))).candidates == 0


def test_thousands_of_ties_break_by_id() -> None:
    same = [an_episode(n) for n in range(5_000)]
    random.Random(1).shuffle(same)
    columns = columns_of(same, block=1_000)
    result = scan(columns, Situation(), horizon=Horizon(as_of=T0), limit=3)
    assert [hit.id for hit in result.memories] == ["episode-000000", "episode-000001", "episode-000002"]
    last = result.memories[-1]
    after = scan(columns, Situation(), horizon=Horizon(as_of=T0), limit=2, after=(last.value, last.id))
    assert [hit.id for hit in after.memories] == ["episode-000003", "episode-000004"]


def test_words_of_a_text_count_as_a_tenth() -> None:
    calm = ContextVector(regime="ranging")
    columns = columns_of([an_episode(1, context=calm, market_context="London broke"), an_episode(2, context=calm)])
    result = scan(columns, Situation(context=calm, words=stems("the London range")), horizon=Horizon(as_of=T0))
    assert [round(hit.factors.Sim, 6) for hit in result.nearest] == [round(0.3 / 0.35, 6), round(0.25 / 0.35, 6)]


def test_thousands_without_similarity_to_the_query_are_ordered_by_id() -> None:
    rng = random.Random(3)
    episodes = [replace(a_random_episode(rng, number), context=ContextVector()) for number in range(3_000)]
    rng.shuffle(episodes)
    columns, query = (
        columns_of(episodes, block=500),
        Situation(context=ContextVector(regime="ranging", atr_d1=2.0)),
    )
    result = scan(columns, query, horizon=Horizon(as_of=T0), limit=3)
    assert [(hit.id, hit.value) for hit in result.memories] == [(f"episode-{n:06d}", 0.0) for n in range(3)]
    losses = sorted(e.id for e in episodes if e.outcome is not None and e.outcome.value < 0)
    assert [hit.id for hit in result.warnings] == losses[:3]
    after = scan(columns, query, horizon=Horizon(as_of=T0), limit=2, after=(0.0, "episode-000002"))
    assert [hit.id for hit in after.memories] == ["episode-000003", "episode-000004"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("symbol", [None, "BTC"])
@pytest.mark.parametrize("now", [T0, T0 + timedelta(days=36_500)])
def test_a_large_store_is_scanned_exactly(symbol: str | None, now: datetime, weighted: bool) -> None:
    rng = random.Random(7)
    episodes = [a_random_episode(rng, number) for number in range(4_000)]
    columns, query = columns_of(episodes, block=256), Situation(symbol="BTC", context=a_context(rng))
    candidates = [e for e in episodes if symbol in (None, e.symbol)]
    expected = rank_plainly(candidates, query, now=now, limit=10, period_weight=weighted, company=episodes)
    result = scan(columns, query, Filters(symbol=symbol), horizon=Horizon(as_of=now), limit=10, period_weight=weighted)
    agree(result.memories, expected.memories)
    agree(result.nearest, expected.nearest)
    agree(result.warnings, expected.warnings)


def test_instants_are_kept_to_the_microsecond() -> None:
    at = datetime(2026, 6, 4, 10, 0, 0, 1, tzinfo=UTC)
    assert columns_of([an_episode(1, known_at=at, ended_at=at)]).end_of(0) == at
    assert micros(at) % 10 == 1


def a_context(rng: random.Random) -> ContextVector:
    price = rng.uniform(50.0, 150.0)
    return ContextVector(
        price=price,
        atr_d1=price * rng.uniform(0.005, 0.05),
        regime=rng.choice(REGIMES),
        session=rng.choice(SESSIONS),
        drawdown_pct=rng.uniform(0.0, 0.2),
    )


def a_random_episode(rng: random.Random, number: int) -> Episode:
    episode = an_episode(
        number,
        pnl_r=rng.gauss(0.1, 1.5),
        symbol=rng.choice(["BTC", "ETH", "XAUUSD"]),
        context=a_context(rng),
        confidence=rng.random(),
        strategy_name=rng.choice(["VolBreakout", "MeanReversion", "Carry"]),
        known_at=T0 - timedelta(minutes=200 * number),
    )
    return replace(episode, direction=rng.choice(["long", "short"]))
