"""The rule on advice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.advice import DomainOutcome, SizeRange, advice_in, advise, objection

MEANS = st.floats(-5, 5)
OUTCOMES = st.builds(
    DomainOutcome,
    unit=st.just("R"),
    n=st.integers(2, 500),
    mean=MEANS,
    interval=st.none() | st.tuples(MEANS, MEANS).map(lambda ends: (min(ends), max(ends))),
    elsewhere=st.none() | MEANS,
)
SIZES = st.tuples(st.floats(0, 0.05), st.floats(0, 0.05)).map(
    lambda ends: SizeRange(smallest=min(ends), largest=max(ends))
)


@given(OUTCOMES, SIZES)
def test_advice_never_contradicts_the_mean_outcome_or_the_recommended_sizes(
    outcome: DomainOutcome, sizes: SizeRange
) -> None:
    advice = advise(outcome, sizes)
    assert (advice is None) == (objection(outcome, sizes) is not None)
    if advice == "trade_less":
        assert outcome.interval is not None
        assert outcome.interval[1] < 0.0
        assert sizes.largest == 0.0
    if advice == "trade_more":
        assert outcome.interval is not None
        assert outcome.elsewhere is not None
        assert outcome.interval[0] > max(0.0, outcome.elsewhere)
        assert sizes.smallest > 0.0


def test_trades_that_earn_less_than_others_are_not_advised_against() -> None:
    outcome = DomainOutcome(unit="R", n=60, mean=0.2, interval=(0.1, 0.3), elsewhere=0.9)
    assert advise(outcome, SizeRange(smallest=0.0, largest=0.0)) is None
    assert advise(outcome, SizeRange(smallest=0.01, largest=0.02)) is None


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Stay out of ranging markets", "trade_less"),
        ("don't trade the overlap", "trade_less"),
        ("halve the size in chop", "trade_less"),
        ("Prefer longs", "trade_more"),
        ("Favor longs and avoid shorts", "trade_less"),
        ("ranging markets: -0.70 ± 0.13R over 67 trades on 41 days, against +0.10R elsewhere", None),
        ("IM wins less often with regime ranging than elsewhere: 7 of 40 against 72%", None),
    ],
)
def test_a_sentence_is_advice_by_its_words(text: str, advice: str | None) -> None:
    assert advice_in(text) == advice
