"""An explanation agrees with the ranking that scores and sorts all candidates."""

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
    a_random_episode,
    is_known,
    last_versions,
    many_alike,
    passes,
)

RANGING = ContextVector(regime="ranging")


class PlainRanking:
    """The factors of all candidates by the plain scorer."""

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
    """The rank of each id, highest value first and ties by id."""
    places = sorted((-by(f), name) for name, f in factors.items())
    return {name: rank for rank, (_, name) in enumerate(places, 1)}


def close(factors: ScoreFactors | None, expected: ScoreFactors) -> bool:
    """Whether both factors are equal, apart from the rounding of σ in Q."""
    assert factors is not None
    return replace(factors, Q=expected.Q) == expected and math.isclose(
        factors.Q, expected.Q, rel_tol=1e-12, abs_tol=1e-300
    )


def explained(episodes: list[Episode], name: str, query: Situation, **options: Any) -> Explanation:
    horizon = Horizon(as_of=T0, seen_at=options.pop("seen_at", None))
    explanation = explain(columns_of(episodes), name, query, **({"horizon": horizon} | options))
    assert explanation is not None
    return explanation


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
def test_an_explanation_agrees_with_sorting_all_candidates(
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
    company = [e for e in last_versions(episodes) if is_known(e, as_of, seen_at)]
    candidates = [e for e in company if passes(e, filters)]
    episode = rng.choice(candidates or last_versions(episodes))
    options: dict[str, Any] = {"limit": limit, "mood": mood, "period_weight": weighted}
    columns = columns_of(episodes, block=block)
    explanation = explain(columns, episode.id, query, filters, horizon=Horizon(as_of=as_of, seen_at=seen_at), **options)
    assert explanation is not None
    assert explanation.candidates == len(candidates)
    if episode not in candidates:
        assert explanation.excluded
        assert explanation.rank is None
        return
    plain = PlainRanking(candidates, company if weighted else [], query, mood, as_of)
    assert explanation.excluded is None
    assert close(explanation.factors, plain.factors[episode.id])
    assert explanation.rank == ranks(plain.factors, by_score)[episode.id]
    assert explanation.nearest_rank == ranks(plain.factors, by_nearness)[episode.id]
    assert explanation.warning_rank == ranks(plain.losses, by_dread).get(episode.id)
    _ahead_agrees(explanation.ahead, plain, explanation.rank, limit)
    _higher_agrees(explanation, plain, episode.id, weighted=weighted)


def _ahead_agrees(ahead: tuple[RankedMemory, ...], plain: PlainRanking, rank: int, limit: int) -> None:
    places = ranks(plain.factors, by_score)
    expected = sorted({limit, rank - 1} & set(range(1, rank)))
    assert [memory.rank for memory in ahead] == expected
    for memory in ahead:
        assert places[memory.id] == memory.rank
        assert close(memory.factors, plain.factors[memory.id])
        assert memory.score == memory.factors.score


def _higher_agrees(explanation: Explanation, plain: PlainRanking, name: str, *, weighted: bool) -> None:
    assert explanation.factors is not None
    scores = [change.score for change in explanation.higher]
    assert scores == sorted(scores, reverse=True)
    for change in explanation.higher:
        changed = replace(plain.factors[name], **{change.factor: change.value})
        assert ranks(plain.factors | {name: changed}, by_score)[name] == change.rank
        assert change.value > getattr(explanation.factors, change.factor)
    best = {change.factor: change.value for change in explanation.higher if change.field is None}
    assert best.get("Q", explanation.factors.Q) == pytest.approx(max(f.Q for f in plain.factors.values()), abs=1e-12)
    assert best.get("Rec", explanation.factors.Rec) == best.get("Conf", explanation.factors.Conf) == 1.0
    assert best.get("Period", explanation.factors.Period) == (2.0 if weighted else 1.0)
    below = {field.name for field in explanation.fields if field.closeness < 1}
    assert {change.field for change in explanation.higher if change.field is not None} == below
    if explanation.fields:
        added = sum(field.contribution for field in explanation.fields)
        assert added == pytest.approx(explanation.factors.Sim, rel=1e-12, abs=1e-300)


def test_sim_is_explained_field_by_field() -> None:
    context = ContextVector(regime="ranging", atr_d1=60.0, session="asia")
    query = Situation(
        symbol="XAUUSD",
        direction="short",
        context=ContextVector(regime="ranging", atr_d1=50.0, session="london", atr_h1=3.0, drawdown_pct=0.0),
        words=stems("the London range"),
    )
    episode = an_episode(context=context, market_context="ranges all day")
    fields = {field.name: field for field in explained([episode], episode.id, query).fields}
    assert {name: (f.query_value, f.memory_value) for name, f in fields.items()} == {
        "regime": ("ranging", "ranging"),
        "session": ("london", "asia"),
        "atr_d1": (50.0, 60.0),
        "atr_h1": (3.0, None),
        "drawdown_pct": (0.0, None),
        "direction": ("short", "long"),
        "text": (("london", "rang"), ("rang",)),
    }
    assert (fields["regime"].closeness, fields["session"].closeness, fields["text"].closeness) == (1.0, 0.0, 0.5)
    assert fields["regime"].contribution == pytest.approx(0.25 / 0.9)
    assert fields["regime"].weight == 0.25


def test_a_field_that_would_match_raises_the_rank() -> None:
    contexts = [ContextVector(regime="ranging", session=session) for session in ("asia", "london")]
    episodes = [an_episode(n, context=context) for n, context in enumerate(contexts)]
    query = Situation(context=ContextVector(regime="ranging", session="london"))
    explanation = explained(episodes, "episode-000000", query)
    assert explanation.rank == 2
    (session,) = (change for change in explanation.higher if change.field == "session")
    assert (session.factor, session.value, session.rank) == ("Sim", 1.0, 1)


@pytest.mark.parametrize(
    ("episodes", "query", "sentence"),
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
def test_an_explanation_gives_the_reason_in_one_sentence(
    episodes: list[Episode], query: Situation, sentence: str
) -> None:
    assert explained(episodes, episodes[-1].id, query).sentence == sentence


def test_equal_scores_are_ordered_by_id() -> None:
    sure = [an_episode(n, confidence=1.0) for n in range(3)]
    explanation = explained(sure, "episode-000002", Situation())
    assert explanation.sentence == "3rd of 3 by score (0.44): what is ahead of it scores the same"


@pytest.mark.parametrize(
    ("changes", "filters", "reason"),
    [
        ({"known_at": T0 + timedelta(hours=1)}, {}, "it became known at 2026-06-04T11:00:00.000000Z, after "),
        ({"recorded_at": T0 + timedelta(hours=1)}, {}, "it was recorded at 2026-06-04T11:00:00.000000Z, after "),
        ({"archived_at": T0}, {}, "it is archived"),
        ({"pnl_r": None}, {}, "it has no outcome yet"),
        ({}, {"symbol": "BTC"}, "its symbol is XAUUSD, not BTC"),
        ({}, {"strategy_name": "Carry"}, "its strategy is VolBreakout, not Carry"),
        ({}, {"symbol": "BTC", "joined": ("BTC-PERP",)}, "its symbol is XAUUSD, not BTC"),
        ({}, {"deployment_id": "two"}, "its deployment is deployment, not two"),
        ({}, {"mode": "sim"}, "its mode is live, not sim"),
        ({"direction": None}, {"direction": "short"}, "its direction is not known, not short"),
        ({"tags": ("news",)}, {"tags": ("late", "news", "wild")}, "it has no tag late, wild"),
        ({}, {"since": T0 + timedelta(days=1)}, "it ended at 2026-06-04T10:00:00.000000Z, before "),
        ({}, {"until": T0}, "it ended at 2026-06-04T10:00:00.000000Z, not before "),
    ],
)
def test_an_excluded_episode_has_a_reason(changes: dict[str, Any], filters: dict[str, Any], reason: str) -> None:
    explanation = explained(
        [an_episode(1, **({"ended_at": T0} | changes))],
        "episode-000001",
        Situation(),
        filters=Filters(**filters),
        seen_at=T0,
    )
    assert explanation.excluded is not None
    assert explanation.excluded.startswith(reason)
    assert "; " not in explanation.excluded
    assert (explanation.rank, explanation.factors, explanation.candidates) == (None, None, 0)


def test_all_reasons_are_given() -> None:
    episode = an_episode(1, archived_at=T0, known_at=T0 + timedelta(hours=1))
    sentence = explained([episode], episode.id, Situation(), filters=Filters(symbol="BTC")).sentence
    assert sentence.count("; ") == 2


def test_an_unknown_episode_is_not_explained() -> None:
    columns = columns_of([an_episode(1)])
    assert explain(columns, "episode-000002", Situation(), horizon=Horizon(as_of=T0)) is None
    assert explain(columns_of([]), "episode-000001", Situation(), horizon=Horizon(as_of=T0)) is None


def test_a_corrected_episode_is_explained_by_its_correction() -> None:
    columns = append_episodes(columns_of([an_episode(n) for n in range(20)]), [an_episode(3, pnl_r=-4.0, known_at=T0)])
    explanation = explain(columns, "episode-000003", Situation(), horizon=Horizon(as_of=T0))
    assert explanation is not None
    assert (explanation.rank, explanation.warning_rank, explanation.candidates) == (20, 1, 20)


def test_a_result_in_another_unit_can_be_the_best() -> None:
    best = an_episode(1, outcome=Outcome(value=0.5, unit="pct"))
    others = [an_episode(n, outcome=Outcome(value=0.01, unit="pct")) for n in (2, 3)]
    explanation = explained([best, *others, an_episode(4, pnl_r=-1.0)], "episode-000004", Situation())
    (best_result,) = (change for change in explanation.higher if change.factor == "Q")
    assert (best_result.rank, best_result.score > explanation.ahead[0].score) == (2, True)


def test_a_result_without_a_unit_can_be_the_best() -> None:
    explanation = explained([an_episode(1, outcome=None), an_episode(2, pnl_r=-1.0)], "episode-000002", Situation())
    assert [change.value for change in explanation.higher if change.factor == "Q"] == [0.5]


def test_explanations_of_a_large_store_agree_with_its_scan() -> None:
    rng = random.Random(11)
    episodes = [a_random_episode(rng, number) for number in range(3_000)]
    columns, query = columns_of(episodes, block=256), Situation(symbol="BTC", context=a_context(rng))
    page = scan(columns, query, horizon=Horizon(as_of=T0), limit=200, period_weight=True).memories
    for rank in (1, 7, 200):
        explanation = explain(columns, page[rank - 1].id, query, horizon=Horizon(as_of=T0), limit=5, period_weight=True)
        assert explanation is not None
        assert (explanation.rank, explanation.factors) == (rank, page[rank - 1].factors)
        assert [memory.id for memory in explanation.ahead] == [
            page[p - 1].id for p in sorted({5, rank - 1}) if 0 < p < rank
        ]
