"""The mood: its figures, its laws, and that money paid in or out does not change it."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.memory.affective import (
    WINDOW,
    AccountMood,
    CloseFact,
    EquityFact,
    Mood,
    MoodFact,
    MoodState,
    StrategyMood,
    TransferFact,
    advance,
    after_close,
    after_equity,
    after_transfer,
    close_fact,
    drawdown_state,
    fact_order,
    mood_of,
    risk_appetite,
    usual_outcome,
)
from backsight.core.trades.trade import Outcome, OutcomeUnit
from backsight.testing import T0, an_episode

MONEY = st.floats(1.0, 1e9)
UNITS: st.SearchStrategy[OutcomeUnit] = st.sampled_from(["R", "vol", "pct"])
OUTCOMES = st.none() | st.builds(Outcome, value=st.floats(-1e6, 1e6), unit=UNITS)
INSTANTS = st.integers(0, 50).map(lambda hours: T0 + timedelta(hours=hours))
TIMES = {"id": st.uuids().map(str), "at": st.just(T0), "known_at": INSTANTS, "sequence": st.integers(0, 2)}
FACTS: st.SearchStrategy[MoodFact] = st.one_of(
    st.builds(CloseFact, net=st.floats(-1e6, 1e6), outcome=OUTCOMES, trend=st.sampled_from([-1, 0, 1]), **TIMES),
    st.builds(EquityFact, equity=st.floats(-1e6, 1e6), **TIMES),
    st.builds(TransferFact, amount=st.floats(-1e6, 1e6), equity_after=st.floats(-1e6, 1e6), **TIMES),
)
SERIES = st.lists(FACTS, max_size=25, unique_by=lambda fact: fact.id)


def closes(*results: float, unit: OutcomeUnit = "R", mood: StrategyMood | None = None) -> StrategyMood:
    """The mood after closes with these outcomes."""
    mood = mood or StrategyMood()
    for value in results:
        mood = after_close(mood, net=value, outcome=Outcome(value=value, unit=unit))
    return mood


def account(*equities: float) -> AccountMood:
    return reduce(after_equity, equities, AccountMood())


def in_order(facts: Iterable[MoodFact]) -> list[MoodFact]:
    return sorted(facts, key=fact_order)


def moods(facts: Iterable[MoodFact]) -> tuple[Mood, ...]:
    """The mood after each of the facts."""
    state, rows = MoodState(), list[Mood]()
    for fact in in_order(facts):
        state = advance(state, fact)
        rows.append(mood_of(state, fact))
    return tuple(rows)


def state_after(facts: Iterable[MoodFact]) -> MoodState:
    return reduce(advance, in_order(facts), MoodState())


def test_the_start_is_neutral() -> None:
    assert mood_of(MoodState()) == Mood()
    assert moods([]) == ()


def test_facts_count_in_the_order_in_which_they_became_known() -> None:
    later = EquityFact(id="b", at=T0, known_at=T0, sequence=1, equity=900.0)
    earlier = EquityFact(id="a", at=T0, known_at=T0, equity=1000.0)
    assert [(mood.cause, mood.drawdown) for mood in moods([later, earlier])] == [("equity", 0.0), ("equity", 0.1)]


def test_twenty_three_losses_drive_confidence_down_whatever_was_stated() -> None:
    episodes = [an_episode(n, pnl_r=-1.0, confidence=0.9, known_at=T0 + timedelta(hours=n)) for n in range(23)]
    rows = moods(fact for fact in map(close_fact, episodes) if fact)
    assert all(later.confidence < earlier.confidence for earlier, later in pairwise(rows))
    assert (round(rows[-1].confidence, 3), rows[-1].consecutive_losses) == (0.289, 23)


def test_wins_bring_confidence_back_and_end_the_losing_streak() -> None:
    down = closes(*[-1.0] * 10)
    up = closes(*[1.0] * 10, mood=down)
    assert up.confidence > 0.5 > down.confidence
    assert (up.consecutive_wins, up.consecutive_losses) == (10, 0)


def test_a_net_of_zero_is_a_loss() -> None:
    assert closes(1.0, 0.0).consecutive_losses == 1


def test_an_outcome_is_divided_by_the_usual_outcome_before_it() -> None:
    usual = closes(*[2.0] * 10)
    assert usual_outcome("R", usual.recent["R"]) == 2.0
    after = closes(2.0, mood=usual)
    assert math.isclose(after.confidence, 0.9 * usual.confidence + 0.1 / (1 + math.exp(-1)))


def test_without_r_the_first_ten_trades_say_nothing() -> None:
    assert closes(*[-0.02] * 10, unit="pct").confidence == 0.5
    assert closes(*[-0.02] * 11, unit="pct").confidence < 0.5


def test_units_have_windows_of_their_own() -> None:
    mixed = closes(*[-0.02] * 9, unit="pct", mood=closes(*[-1.0] * 9))
    assert {unit: len(values) for unit, values in mixed.recent.items()} == {"R": 9, "pct": 9}


def test_outcomes_of_zero_make_no_usual_outcome() -> None:
    assert closes(*[0.0] * 10, 5.0, unit="vol").confidence == 0.5


def test_the_window_holds_the_last_fifty() -> None:
    assert closes(*map(float, range(60))).recent["R"] == tuple(map(float, range(60 - WINDOW, 60)))


def test_a_close_without_an_outcome_counts_for_the_streak_only() -> None:
    mood = after_close(closes(-1.0), net=-5.0, outcome=None)
    assert (mood.confidence, mood.consecutive_losses) == (closes(-1.0).confidence, 2)


def test_trading_with_the_trend_is_a_momentum_bias() -> None:
    up = ContextVector(regime="trending_up")
    facts = [close_fact(an_episode(n, context=up)) for n in range(40)]
    assert 0.98 < moods(fact for fact in facts if fact)[-1].momentum_bias < 1


def test_calls_and_inactions_close_nothing() -> None:
    assert close_fact(an_episode(kind="call")) is None
    assert close_fact(an_episode(kind="inaction", pnl_r=None)) is None


def test_recovery_brings_appetite_back() -> None:
    down = account(10_000.0, 8_000.0)
    assert risk_appetite(down.drawdown) == 0.1
    assert risk_appetite(after_equity(down, 9_500.0).drawdown) == 1 - 0.25**2
    assert risk_appetite(after_equity(down, 10_500.0).drawdown) == 1.0


def test_nothing_left_is_a_drawdown_of_one() -> None:
    assert [account(100.0, equity).drawdown for equity in (0.0, -20.0)] == [1.0, 1.0]
    assert account(0.0).drawdown == 1.0


def test_a_deposit_and_a_withdrawal_change_no_part_of_the_mood() -> None:
    down = MoodState(account=account(10_000.0, 8_500.0), strategy=closes(-1.0, -1.0))
    deposit = TransferFact(id="in", at=T0, known_at=T0, amount=50_000.0, equity_after=58_500.0)
    withdrawal = TransferFact(id="out", at=T0, known_at=T0, amount=-58_000.0, equity_after=500.0)
    before, after = mood_of(down), mood_of(advance(advance(down, deposit), withdrawal))
    for name in ("confidence", "risk_appetite", "drawdown_state", "momentum_bias", "drawdown", "consecutive_losses"):
        assert getattr(after, name) == getattr(before, name)


@given(MONEY, st.floats(0.01, 1.0), st.floats(-0.99, 100.0))
def test_drawdown_stays_through_a_transfer_and_after_it(peak: float, left: float, share: float) -> None:
    before = account(peak, peak * left)
    assert before.equity is not None
    after = after_transfer(before, amount=before.equity * share, equity_after=before.equity * (1 + share))
    assert math.isclose(after.drawdown, before.drawdown, abs_tol=1e-9)
    assert math.isclose(after_equity(after, before.equity * (1 + share)).drawdown, before.drawdown, abs_tol=1e-9)


def test_a_loss_since_the_last_reading_counts_at_the_transfer() -> None:
    assert after_transfer(account(1_000.0), amount=100.0, equity_after=1_000.0).drawdown == 0.1


def test_the_first_deposit_is_no_drawdown() -> None:
    assert after_transfer(AccountMood(), amount=500.0, equity_after=500.0) == account(500.0)


def test_an_account_that_was_emptied_stays_where_it_was_while_it_is_empty() -> None:
    emptied = after_transfer(account(1_000.0, 900.0), amount=-900.0, equity_after=0.0)
    assert after_equity(emptied, 0.0).drawdown == 0.1
    assert after_equity(emptied, 90.0) == AccountMood(equity=90.0, peak=100.0, drawdown=0.1)


def test_a_deposit_into_an_account_that_lost_everything_starts_anew() -> None:
    lost = account(1_000.0, -5.0)
    assert after_transfer(lost, amount=500.0, equity_after=495.0) == account(495.0)
    assert after_transfer(lost, amount=-5.0, equity_after=-10.0).drawdown == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_amount_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(Invalid, match=r"equity: .* is not an amount; give a finite number"):
        after_equity(AccountMood(), value)
    with pytest.raises(Invalid, match="equity_after"):
        after_transfer(AccountMood(), amount=1.0, equity_after=value)
    with pytest.raises(Invalid, match="amount"):
        after_transfer(AccountMood(), amount=value, equity_after=1.0)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_a_drawdown_that_cannot_be_accepted_is_refused(share: float) -> None:
    with pytest.raises(Invalid, match="max_drawdown"):
        drawdown_state(0.1, max_drawdown=share)


@given(SERIES)
def test_a_mood_stays_in_its_bounds(facts: list[MoodFact]) -> None:
    for mood in moods(facts):
        assert 0 <= mood.confidence <= 1
        assert 0.1 <= mood.risk_appetite <= 1
        assert 0 <= mood.drawdown_state <= 1
        assert -1 <= mood.momentum_bias <= 1
        assert 0 <= mood.drawdown <= 1
        assert not (mood.consecutive_wins and mood.consecutive_losses)


@given(SERIES, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(facts: list[MoodFact], rng: Random) -> None:
    expected = moods(facts), state_after(facts)
    rng.shuffle(facts)
    assert (moods(facts), state_after(facts)) == expected


@given(SERIES, INSTANTS)
def test_as_of_an_instant_is_what_was_known_by_then(facts: list[MoodFact], at: datetime) -> None:
    known = [fact for fact in facts if fact.known_at <= at]
    assert moods(known) == moods(facts)[: len(known)]


@given(SERIES, FACTS)
def test_a_late_arrival_refolds_from_its_place(facts: list[MoodFact], late: MoodFact) -> None:
    former, place = moods(facts), in_order([*facts, late]).index(late)
    assert moods([*facts, late])[:place] == former[:place]
    before = state_after(in_order([*facts, late])[:place])
    assert reduce(advance, in_order([*facts, late])[place:], before) == state_after([*facts, late])
