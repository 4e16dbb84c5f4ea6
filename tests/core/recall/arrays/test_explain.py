"""An explanation says what sorting everything would say."""

import math
import random
from collections.abc import Callable, Mapping
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
from backsight.core.recall.arrays.columns import append_episodes, columns_of
from backsight.core.recall.arrays.explain import explain
from backsight.core.recall.arrays.scan import by_dread, by_nearness, by_score, scan
from backsight.core.recall.explanation import Explanation, RankedMemory
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation
from backsight.core.text.stems import stems
from backsight.core.trades.trade import Outcome
from backsight.testing import T0, an_episode
from backsight.testing.recall import period_weights, score_factors, sigmas
from core.recall.arrays.test_scan import (
    BLOCKS,
    EPISODES,
    FILTERS,
    INSTANTS,
    MOODS,
    QUERIES,
    a_context,
    an_episode_of_chance,
    by_last,
    is_known,
    many_alike,
    passes,
)

RANGING = ContextVector(regime="ranging")


class Sorted:
    """All candidates by the plain scorer."""

    def __init__(
        self,
        candidates: list[Episode],
        company: list[Episode],
        query: Situation,
        mood: RecallMood,
        now: datetime,
    ) -> None:
        sigma = sigmas(e.outcome for e in candidates if e.outcome is not None)
        periods = period_weights(candidates, company) if company else {}
        self.factors = {
            e.id: score_factors(e, query, now=now, sigma=sigma, mood=mood, period=periods.get(e.id, 1.0))
            for e in candidates
        }
        self.losses = {e.id: self.factors[e.id] for e in candidates if e.outcome is not None and e.outcome.value < 0}


def ranks(factors: Mapping[str, ScoreFactors], by: Callable[[ScoreFactors], float]) -> dict[str, int]:
    """The rank of each."""
    places = sorted((-by(f), name) for name, f in factors.items())
    return {name: rank for rank, (_, name) in enumerate(places, 1)}


def close(found: ScoreFactors | None, wanted: ScoreFactors) -> bool:
    """Whether they are the same but for a rounding of σ."""
    assert found is not None
    return replace(found, Q=wanted.Q) == wanted and math.isclose(found.Q, wanted.Q, rel_tol=1e-12, abs_tol=1e-300)


def explained(episodes: list[Episode], name: str, query: Situation, **asked: Any) -> Explanation:
    horizon = Horizon(as_of=T0, seen_at=asked.pop("seen_at", None))
    found = explain(columns_of(episodes), name, query, **({"horizon": horizon} | asked))
    assert found is not None
    return found


@given(
    EPISODES.filter(bool) | many_alike().filter(bool),
    st.randoms(),
    QUERIES | st.just(Situation(context=RANGING)),
    FILTERS | st.just(Filters()),
    st.just(T0) | INSTANTS,
    st.none() | INSTANTS,
    st.integers(1, 12),
    MOODS,
    st.booleans(),
    BLOCKS,
)
def test_it_says_what_sorting_everything_says(
    episodes: list[Episode],
    rng: random.Random,
    query: Situation,
    filters: Filters,
    as_of: datetime,
    seen_at: datetime | None,
    limit: int,
    mood: RecallMood,
    weighted: bool,
    block: int,
) -> None:
    company = [e for e in by_last(episodes) if is_known(e, as_of, seen_at)]
    candidates = [e for e in company if passes(e, filters)]
    one = rng.choice(candidates or by_last(episodes))
    asked: dict[str, Any] = {"limit": limit, "mood": mood, "period_weight": weighted}
    columns = columns_of(episodes, block=block)
    found = explain(columns, one.id, query, filters, horizon=Horizon(as_of=as_of, seen_at=seen_at), **asked)
    assert found is not None
    assert found.candidates == len(candidates)
    if one not in candidates:
        assert found.excluded
        assert found.rank is None
        return
    plain = Sorted(candidates, company if weighted else [], query, mood, as_of)
    assert found.excluded is None
    assert close(found.factors, plain.factors[one.id])
    assert found.rank == ranks(plain.factors, by_score)[one.id]
    assert found.nearest_rank == ranks(plain.factors, by_nearness)[one.id]
    assert found.warning_rank == ranks(plain.losses, by_dread).get(one.id)
    _ahead_agrees(found.ahead, plain, found.rank, limit)
    _higher_agrees(found, plain, one.id, weighted=weighted)


def _ahead_agrees(ahead: tuple[RankedMemory, ...], plain: Sorted, rank: int, limit: int) -> None:
    places = ranks(plain.factors, by_score)
    wanted = sorted({limit, rank - 1} & set(range(1, rank)))
    assert [placed.rank for placed in ahead] == wanted
    for placed in ahead:
        assert places[placed.id] == placed.rank
        assert close(placed.factors, plain.factors[placed.id])
        assert placed.score == placed.factors.score


def _higher_agrees(found: Explanation, plain: Sorted, name: str, *, weighted: bool) -> None:
    assert found.factors is not None
    scores = [each.score for each in found.higher]
    assert scores == sorted(scores, reverse=True)
    for each in found.higher:
        changed = replace(plain.factors[name], **{each.factor: each.value})
        assert ranks(plain.factors | {name: changed}, by_score)[name] == each.rank
        assert each.value > getattr(found.factors, each.factor)
    best = {each.factor: each.value for each in found.higher if each.field is None}
    assert best.get("Q", found.factors.Q) == pytest.approx(max(f.Q for f in plain.factors.values()), abs=1e-12)
    assert best.get("Rec", found.factors.Rec) == best.get("Conf", found.factors.Conf) == 1.0
    assert best.get("Period", found.factors.Period) == (2.0 if weighted else 1.0)
    below = {field.name for field in found.fields if field.closeness < 1}
    assert {each.field for each in found.higher if each.field is not None} == below
    if found.fields:
        added = sum(field.contribution for field in found.fields)
        assert added == pytest.approx(found.factors.Sim, rel=1e-12, abs=1e-300)


def test_sim_is_told_field_by_field() -> None:
    held = ContextVector(regime="ranging", atr_d1=60.0, session="asia")
    query = Situation(
        symbol="XAUUSD",
        direction="short",
        context=ContextVector(regime="ranging", atr_d1=50.0, session="london", atr_h1=3.0, drawdown_pct=0.0),
        words=stems("the London range"),
    )
    episode = an_episode(context=held, market_context="ranges all day")
    found = {field.name: field for field in explained([episode], episode.id, query).fields}
    assert {name: (f.asked, f.held) for name, f in found.items()} == {
        "regime": ("ranging", "ranging"),
        "session": ("london", "asia"),
        "atr_d1": (50.0, 60.0),
        "atr_h1": (3.0, None),
        "drawdown_pct": (0.0, None),
        "direction": ("short", "long"),
        "text": (("london", "rang"), ("rang",)),
    }
    assert (found["regime"].closeness, found["session"].closeness, found["text"].closeness) == (1.0, 0.0, 0.5)
    assert found["regime"].contribution == pytest.approx(0.25 / 0.9)
    assert found["regime"].weight == 0.25


def test_a_field_that_would_match_lifts_it() -> None:
    held = [ContextVector(regime="ranging", session=session) for session in ("asia", "london")]
    episodes = [an_episode(n, context=context) for n, context in enumerate(held)]
    asked = Situation(context=ContextVector(regime="ranging", session="london"))
    found = explained(episodes, "episode-000000", asked)
    assert found.rank == 2
    (session,) = (each for each in found.higher if each.field == "session")
    assert (session.factor, session.value, session.rank) == ("Sim", 1.0, 1)


@pytest.mark.parametrize(
    ("episodes", "query", "told"),
    [
        ([an_episode(1)], Situation(), "1st of 1 by score (0.33): nothing is ahead of it"),
        (
            [an_episode(1, pnl_r=3.0), an_episode(2, pnl_r=-1.0)],
            Situation(),
            "2nd of 2 by score (0.11): behind because it ended at -1.0R (Q .29); "
            "had it ended as well as the best it would still be 2nd",
        ),
        (
            [an_episode(1, confidence=1.0), an_episode(2, confidence=0.2)],
            Situation(),
            "2nd of 2 by score (0.26): behind because the confidence in it was not full (Conf .60); "
            "with full confidence it would still be 2nd",
        ),
        (
            [an_episode(1, context=RANGING), an_episode(2)],
            Situation(context=RANGING),
            "2nd of 2 by score (0): behind because its context is different (Sim .00); "
            "had its context been the same it would still be 2nd",
        ),
    ],
)
def test_it_says_why_in_one_sentence(episodes: list[Episode], query: Situation, told: str) -> None:
    assert explained(episodes, episodes[-1].id, query).sentence == told


def test_equals_are_told_apart_by_id_alone() -> None:
    sure = [an_episode(n, confidence=1.0) for n in range(3)]
    found = explained(sure, "episode-000002", Situation())
    assert found.sentence == "3rd of 3 by score (0.44): what is ahead of it scores the same"


@pytest.mark.parametrize(
    ("changes", "filters", "told"),
    [
        ({"known_at": T0 + timedelta(hours=1)}, {}, "it became known at 2026-06-04T11:00:00.000000Z, after "),
        ({"recorded_at": T0 + timedelta(hours=1)}, {}, "it was recorded at 2026-06-04T11:00:00.000000Z, after "),
        ({"archived_at": T0}, {}, "it is archived"),
        ({"pnl_r": None}, {}, "it has no outcome yet"),
        ({}, {"symbol": "BTC"}, "its symbol is XAUUSD, not BTC"),
        ({}, {"strategy_name": "Carry"}, "its strategy is VolBreakout, not Carry"),
        ({}, {"deployment_id": "two"}, "its deployment is deployment, not two"),
        ({}, {"mode": "sim"}, "its mode is live, not sim"),
        ({"direction": None}, {"direction": "short"}, "its direction is not known, not short"),
        ({"tags": ("news",)}, {"tags": ("late", "news", "wild")}, "it has no tag late, wild"),
        ({}, {"since": T0 + timedelta(days=1)}, "it ended at 2026-06-04T10:00:00.000000Z, before "),
        ({}, {"until": T0}, "it ended at 2026-06-04T10:00:00.000000Z, not before "),
    ],
)
def test_what_is_no_candidate_is_told_why(changes: dict[str, Any], filters: dict[str, Any], told: str) -> None:
    found = explained(
        [an_episode(1, **({"ended_at": T0} | changes))],
        "episode-000001",
        Situation(),
        filters=Filters(**filters),
        seen_at=T0,
    )
    assert found.excluded is not None
    assert found.excluded.startswith(told)
    assert "; " not in found.excluded
    assert (found.rank, found.factors, found.candidates) == (None, None, 0)


def test_all_reasons_are_told() -> None:
    away = an_episode(1, archived_at=T0, known_at=T0 + timedelta(hours=1))
    told = explained([away], away.id, Situation(), filters=Filters(symbol="BTC")).sentence
    assert told.count("; ") == 2


def test_what_is_not_there_is_not_explained() -> None:
    columns = columns_of([an_episode(1)])
    assert explain(columns, "episode-000002", Situation(), horizon=Horizon(as_of=T0)) is None
    assert explain(columns_of([]), "episode-000001", Situation(), horizon=Horizon(as_of=T0)) is None


def test_a_corrected_episode_is_explained_as_it_stands() -> None:
    columns = append_episodes(columns_of([an_episode(n) for n in range(20)]), [an_episode(3, pnl_r=-4.0, known_at=T0)])
    found = explain(columns, "episode-000003", Situation(), horizon=Horizon(as_of=T0))
    assert found is not None
    assert (found.rank, found.warning_rank, found.candidates) == (20, 1, 20)


def test_a_result_in_another_unit_can_be_the_best() -> None:
    best = an_episode(1, outcome=Outcome(value=0.5, unit="pct"))
    others = [an_episode(n, outcome=Outcome(value=0.01, unit="pct")) for n in (2, 3)]
    found = explained([best, *others, an_episode(4, pnl_r=-1.0)], "episode-000004", Situation())
    (lifted,) = (each for each in found.higher if each.factor == "Q")
    assert (lifted.rank, lifted.score > found.ahead[0].score) == (2, True)


def test_a_result_without_a_unit_can_be_the_best() -> None:
    found = explained([an_episode(1, outcome=None), an_episode(2, pnl_r=-1.0)], "episode-000002", Situation())
    assert [each.value for each in found.higher if each.factor == "Q"] == [0.5]


def test_a_large_store_is_explained_as_it_is_scanned() -> None:
    rng = random.Random(11)
    episodes = [an_episode_of_chance(rng, number) for number in range(3_000)]
    columns, query = columns_of(episodes, block=256), Situation(symbol="BTC", context=a_context(rng))
    page = scan(columns, query, horizon=Horizon(as_of=T0), limit=200, period_weight=True).memories
    for rank in (1, 7, 200):
        found = explain(columns, page[rank - 1].id, query, horizon=Horizon(as_of=T0), limit=5, period_weight=True)
        assert found is not None
        assert (found.rank, found.factors) == (rank, page[rank - 1].factors)
        assert [placed.id for placed in found.ahead] == [page[p - 1].id for p in sorted({5, rank - 1}) if 0 < p < rank]
