"""The merged ranking of two search methods, in which neither method can suppress the other."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.citation import Source
from backsight.core.documents.merge import (
    Candidate,
    Fusion,
    RankedChunk,
    RankingSettings,
    WordSets,
    answer_score,
    diversify,
    rank,
)
from backsight.core.errors import Invalid
from backsight.testing import T0

FUSIONS: list[Fusion] = ["standardised", "weighted_sum", "reciprocal_rank"]


def a_candidate(name: str, **changes: Any) -> Candidate:
    coverage = min(1.0, (changes.get("keyword") or 0.0) / 2)
    defaults: dict[str, Any] = {"id": name, "path": f"{name}.md", "source": "manual", "coverage": coverage}
    return Candidate(**(defaults | changes))


def merged(
    *candidates: Candidate, limit: int = 10, words: WordSets | None = None, **settings: Any
) -> list[RankedChunk]:
    ranking = RankingSettings(**settings)
    return diversify(rank(candidates, ranking, now=T0), ranking, limit=limit, words=words or {})


def names(ranked: list[RankedChunk]) -> list[str]:
    return [each.candidate.id for each in ranked]


CANDIDATES = st.lists(
    st.builds(
        a_candidate,
        name=st.text(alphabet="abcdef", min_size=1, max_size=3),
        keyword=st.none() | st.floats(0, 50),
        vector=st.none() | st.floats(-1, 1),
        source=st.sampled_from(["manual", "journal"]),
    ),
    max_size=30,
    unique_by=lambda each: each.id,
)


@given(candidates=CANDIDATES, fusion=st.sampled_from(FUSIONS))
def test_scores_are_between_0_and_1_and_the_best_is_first(candidates: list[Candidate], fusion: Fusion) -> None:
    ranked = merged(*candidates, fusion=fusion)
    assert all(0 <= each.score <= 1 for each in ranked)
    orders = [each.order for each in ranked]
    assert orders == sorted(orders, reverse=True)


@given(candidates=CANDIDATES, others=CANDIDATES, fusion=st.sampled_from(FUSIONS))
def test_a_score_does_not_depend_on_the_other_candidates(
    candidates: list[Candidate], others: list[Candidate], fusion: Fusion
) -> None:
    mine, again = a_candidate("mine", keyword=1.5, vector=0.4), a_candidate("mine", keyword=1.5, vector=0.4)
    scores = [
        next(each.score for each in merged(*rest, candidate, fusion=fusion, limit=50) if each.candidate == candidate)
        for rest, candidate in ((candidates, mine), (others, again))
    ]
    assert scores[0] == scores[1]


def test_likeness_to_a_text_about_another_name_is_no_answer() -> None:
    near = a_candidate("near", keyword=0.4, vector=0.45)
    assert names(merged(near)) == ["near"]
    assert names(merged(replace(near, names_missing=True))) == []


@given(candidates=CANDIDATES, fusion=st.sampled_from(FUSIONS), by=st.floats(0.01, 5))
def test_a_better_match_never_ranks_lower(candidates: list[Candidate], fusion: Fusion, by: float) -> None:
    worse, better = a_candidate("x", keyword=1.0, vector=0.3), a_candidate("y", keyword=1.0 + by, vector=0.4)
    order = names(merged(*candidates, worse, better, fusion=fusion, limit=50))
    assert order.index("y") < order.index("x")


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_strong_match_by_one_method_survives_without_the_other(fusion: Fusion) -> None:
    candidates = [
        a_candidate("word", keyword=8.0, vector=0.0),
        a_candidate("meaning", vector=0.8),
        a_candidate("unread", keyword=6.0),
        a_candidate("weak", keyword=0.05, vector=0.05),
    ]
    assert set(names(merged(*candidates, fusion=fusion))) == {"word", "meaning", "unread"}


def test_a_hair_of_cosine_does_not_outweigh_a_word() -> None:
    assert names(merged(a_candidate("word", keyword=5.0, vector=0.30), a_candidate("none", vector=0.31)))[0] == "word"


def test_a_file_is_ranked_by_its_best_word_match_and_its_best_meaning() -> None:
    words, meaning = (
        a_candidate("words", path="long.md", keyword=6.0, vector=0.3),
        a_candidate("meaning", path="long.md", keyword=1.0, vector=0.5),
    )
    short = a_candidate("short", keyword=5.0, vector=0.45)
    assert names(rank([words, meaning, short], RankingSettings(), now=T0)) == ["words", "short", "meaning"]
    apart = [replace(words, path="1.md"), replace(meaning, path="2.md"), short]
    assert names(rank(apart, RankingSettings(), now=T0)) == ["short", "words", "meaning"]


def test_without_vectors_the_words_decide() -> None:
    low, high = a_candidate("low", keyword=1.0), a_candidate("high", keyword=3.0)
    assert [(each.candidate.id, each.score) for each in merged(low, high)] == [
        ("high", answer_score(1.0, None)),
        ("low", answer_score(0.5, None)),
    ]


def test_a_source_is_capped() -> None:
    candidates = [a_candidate(str(number), keyword=9.0 - number, source="journal") for number in range(5)]
    rule = a_candidate("rule", keyword=1.0)
    caps: dict[Source, int] = {"journal": 2}
    assert names(merged(*candidates, rule, per_source=caps)) == ["0", "1", "rule"]


def test_a_repetition_within_a_file_is_folded_but_not_across_files() -> None:
    words = dict.fromkeys("abc", frozenset({"never", "risk", "more", "than", "one", "percent"}))
    twice = [a_candidate(name, path="a.md", keyword=5.0) for name in "ab"]
    assert len(merged(*twice, words=words)) == 1
    assert len(merged(twice[0], a_candidate("c", keyword=5.0), words=words)) == 2


def test_a_different_passage_precedes_a_similar_one() -> None:
    first = a_candidate("first", path="a.md", keyword=9.0)
    alike = a_candidate("alike", path="a.md", keyword=8.0)
    different = a_candidate("different", path="a.md", keyword=6.0)
    words = {"first": frozenset("abcdefgh"), "alike": frozenset("abcdefgi"), "different": frozenset("stuvwxyz")}
    assert names(merged(first, alike, different, limit=2, words=words)) == ["first", "different"]


def test_a_journal_ages_and_the_manual_does_not() -> None:
    old = T0 - timedelta(days=30)
    diary = a_candidate("diary", keyword=4.0, source="journal", at=old)
    rule = a_candidate("rule", keyword=4.0, at=old)
    by_name = {each.candidate.id: each for each in merged(diary, rule, half_life_days=30.0)}
    assert by_name["diary"].score == pytest.approx(by_name["rule"].score / 2)
    assert by_name["diary"].factors.recency == pytest.approx(0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"keyword_weight": 0.0, "vector_weight": 0.0},
        {"keyword_weight": -1.0},
        {"minimum_score": 2.0},
        {"mmr_lambda": -0.1},
        {"half_life_days": 0.0},
    ],
)
def test_settings_that_give_no_ranking_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(Invalid):
        RankingSettings(**wrong).check()  # type: ignore[arg-type]


def test_weak_candidates_follow_an_answer_and_are_none_themselves() -> None:
    answer, weak = a_candidate("answer", keyword=0.5, coverage=1.0), a_candidate("weak", keyword=9.0, coverage=0.2)
    assert names(merged(answer, weak)) == ["answer", "weak"]
    assert merged(weak) == []


def test_a_language_that_the_model_does_not_know_needs_a_larger_cosine() -> None:
    near = a_candidate("near", vector=0.5)
    assert names(merged(near)) == ["near"]
    assert merged(replace(near, is_other_language=True)) == []
    assert names(merged(replace(near, vector=0.6, is_other_language=True))) == ["near"]
