"""Evidence for people, reviews, and the parsing of cadences."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backsight.core.errors import Invalid
from backsight.core.reflection.cadence import parse_cadence
from backsight.core.reflection.evidence_view import MIN_TRADES_AND_DAYS, describe_evidence
from backsight.core.reflection.patterns import InterimLook, Pattern, SearchState, SignificantPattern, TradeEvidence
from backsight.core.strategies import Cadence
from backsight.testing.reflection import a_pattern, an_evidence

NOON = datetime(2026, 6, 4, 12, tzinfo=UTC)
NEAR = a_pattern(value="chop_lowvol", label="chop_lowvol", interval=(-0.83, 0.2))


def evidence(*groups: Pattern, patterns: tuple[Pattern, ...] = (), **changes: object) -> TradeEvidence:
    return replace(an_evidence(*groups), patterns=patterns, **changes)  # type: ignore[arg-type]


def test_the_fewest_trades_and_days_are_those_of_the_test() -> None:
    from backsight.core.reflection.evidence import MIN_DAYS, MIN_TRADES

    assert (MIN_TRADES_AND_DAYS, MIN_TRADES_AND_DAYS) == (MIN_TRADES, MIN_DAYS)


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        (evidence(closed=7), "7 closed trades; the first test is at 20"),
        (evidence(closed=1), "1 closed trade; the first test is at 20"),
        (evidence(), "no group has 8 trades on 8 days with as many besides it"),
        (evidence(NEAR), "nothing was tested now; the next test is at 201 closed trades"),
        (
            evidence(NEAR, level=0.005),
            "no group differs significantly from the rest after correction for 1 comparison (level 0.005",
        ),
    ],
)
def test_without_a_pattern_the_reason_is_given(without: TradeEvidence, missing: str) -> None:
    reason = describe_evidence(without).missing
    assert reason is not None
    assert reason.startswith(missing)


def test_patterns_come_first_and_other_groups_give_the_reason() -> None:
    significant, strong = a_pattern(), a_pattern(value="trend_up_hivol", label="trend_up_hivol", difference=-9.0)
    state = SearchState(found=(SignificantPattern(key=significant.key, since=NOON, closed=160, p=0.001),))
    view = describe_evidence(evidence(NEAR, strong, significant, patterns=(significant,), search_state=state))
    assert [each.label for each in view.groups] == ["chop_hivol", "trend_up_hivol", "chop_lowvol"]
    assert [each.found_at for each in view.groups] == [NOON, None, None]
    assert [each.missing for each in view.groups] == [
        None,
        "not tested now; the next test is at 201 closed trades",
        "the 90% interval of its mean includes the mean of the rest",
    ]
    assert view.missing is None


def test_a_group_that_failed_the_test_shows_its_p_value() -> None:
    weak = a_pattern()
    (view,) = describe_evidence(evidence(weak, level=0.0065, p_values={weak.key: 0.2149})).groups
    assert view.missing == "not significant (p = 0.21, level 0.0065) after correction for 1 comparison"
    assert view.p == 0.2149


@pytest.mark.parametrize(
    ("closed", "tested_at", "next_at"),
    [(0, 0, 20), (19, 0, 20), (26, 26, 35), (201, 160, 202), (200, 200, 280), (399, 399, 400)],
)
def test_the_next_test_is_at_1_4_times_as_many_trades(closed: int, tested_at: int, next_at: int) -> None:
    looks = (InterimLook(at=NOON, closed=tested_at, level=0.001),) if tested_at else ()
    view = describe_evidence(evidence(closed=closed, search_state=SearchState(looks=looks)))
    assert view.next_test_at == next_at


@pytest.mark.parametrize(
    ("words", "cadence"),
    [
        ("off", Cadence()),
        ("daily", Cadence(kind="daily")),
        ("per_n_trades", Cadence(kind="per_n_trades")),
        ("per_n_trades:25", Cadence(kind="per_n_trades", trades=25)),
    ],
)
def test_a_cadence_in_a_word(words: str, cadence: Cadence) -> None:
    assert parse_cadence(words) == cadence


@pytest.mark.parametrize(
    "words", ["", "weekly", "daily:3", "per_n_trades:", "per_n_trades:0", "per_n_trades:ten", "per_n_trades:99999"]
)
def test_a_word_that_is_no_cadence_is_refused(words: str) -> None:
    with pytest.raises(Invalid, match="is not a cadence; give off, daily, or per_n_trades:10"):
        parse_cadence(words)
