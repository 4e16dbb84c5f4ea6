"""The scan over columns agrees with the plain scorer."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.candidates import Filters
from backsight.core.recall.arrays.columns import Columns, columns_of
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
SYMBOLS = st.sampled_from(["XAUUSD", "XAUUSD", "BTC", "BTC-PERP"])
JOINED = st.sampled_from([(), (), ("BTC-PERP",), ("BTC-PERP", "GC")])
"""Symbols with the same underlying."""
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
    joined=JOINED,
    direction=st.sampled_from([None, "long", "short"]),
    context=CONTEXTS,
    words=TEXTS.map(stems),
)
FILTERS = st.builds(
    Filters,
    symbol=st.none() | SYMBOLS,
    joined=JOINED,
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
    equal = ("strategy_name", "direction", "deployment_id", "mode")
    return (
        (e.pnl is not None or e.outcome is not None)
        and e.archived_at is None
        and (filters.symbol in (None, e.symbol) or e.symbol in filters.joined)
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


def test_a_scan_of_no_episodes_is_empty() -> None:
    query = Situation(context=ContextVector(atr_d1=1.0), words=stems("anything"))
    result = scan(columns_of([]), query, horizon=Horizon(as_of=T0), period_weight=True)
    assert (result.memories, result.nearest, result.warnings, result.candidates) == ((), (), (), 0)


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
