"""Evidence: worked examples, invariances, and when a pattern appears and disappears."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.reflection.alpha_spending import (
    FALSE_LESSON_RATE,
    FIRST_DOUBLING,
    SPENDING,
    TEST_SHARES,
    significance_level,
)
from backsight.core.reflection.evidence import find_evidence
from backsight.core.reflection.patterns import (
    ClosedTrade,
    InterimLook,
    Pattern,
    SearchState,
    SignificantPattern,
    TradeEvidence,
)
from backsight.core.reflection.wording import bullet_text
from backsight.core.trades.trade import Outcome

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
T_7 = 1.8945786
LATER = NOON + timedelta(days=5000)


def a_trade(number: int, *, r: float = 1.0, day: int | None = None, **changes: Any) -> ClosedTrade:
    at = NOON + timedelta(days=number if day is None else day, seconds=number)
    fields: dict[str, Any] = {"symbol": "BTC", "outcome": Outcome(value=r, unit="R"), "won": r > 0}
    return ClosedTrade(id=f"t{number:04d}", ended_at=at, known_at=at, **fields | changes)


def the(result: TradeEvidence, key: str) -> Pattern:
    (pattern,) = (each for each in result.groups if each.key == key)
    return pattern


def losing_in_chop(n: int = 120, **changes: Any) -> list[ClosedTrade]:
    """A trade a day; every third is in `chop_hivol`, where one in ten wins; elsewhere every second wins."""
    trades = []
    for number in range(n):
        chop = number % 3 == 0
        r = (1.0 if number % 30 == 0 else -1.0) if chop else (1.0 if number % 2 else -1.0)
        tag = "chop_hivol" if chop else "trend_up_lowvol"
        regime = "volatile" if chop else "trending_up"
        trades.append(a_trade(number, r=r, regime_tag=tag, regime=regime, **changes))
    return trades


CHOP = "regime_fit/regime_tag=chop_hivol"


def masked_trades(seed: int) -> list[ClosedTrade]:
    """Asia costs 3R and high volatility .7R; ETH gains, but is mostly traded in Asia, so its mean hardly differs."""
    rng, trades = random.Random(seed), list[ClosedTrade]()
    for number in range(200):
        session = "asia" if number % 2 == 0 else "london"
        symbol = "ETH" if rng.random() < (0.7 if session == "asia" else 0.3) else "BTC"
        volatility = "high" if rng.random() < 0.5 else "low"
        r = rng.gauss(0.0, 1.0) - 3.0 * (session == "asia") + 1.2 * (symbol == "ETH") - 0.7 * (volatility == "high")
        trades.append(a_trade(number, r=r, session=session, symbol=symbol, volatility_regime=volatility))
    return trades


# Figures


def test_a_group_beside_the_rest_by_hand() -> None:
    """m = −.5; V = 8/7 · 8 · 3² / 8², more than all trades vary; t at 7 is 1.894579."""
    chop = [a_trade(n, r=r, session="asia", hold_seconds=60.0) for n, r in enumerate([-3.5, 2.5] * 4)]
    rest = [a_trade(n, r=r, session="london") for n, r in enumerate([2.0, -1.0] * 4, start=8)]
    result = the(find_evidence(chop + rest, as_of=LATER), "entry_timing/session=asia")
    reach = T_7 * math.sqrt(8 / 7 * 8 * 9 / 64)
    assert (result.n, result.days, result.mean, result.win_rate, result.runs) == (8, 8, -0.5, 0.5, 1)
    assert (result.rest_n, result.rest_days, result.rest_mean, result.rest_win_rate) == (8, 8, 0.5, 0.5)
    assert result.interval == pytest.approx((-0.5 - reach, -0.5 + reach), rel=1e-6)
    apart = T_7 * math.sqrt(8 / 7 * (8 * 9 / 64 + 8 * 1.5**2 / 64))
    assert result.difference_interval == pytest.approx((-1.0 - apart, -1.0 + apart), rel=1e-6)
    assert (result.hold_seconds, result.rest_hold_seconds, result.captured) == (60.0, None, None)
    assert result.trade_ids == tuple(f"t{n:04d}" for n in range(8))


def test_trades_of_one_day_are_one_draw() -> None:
    once = [a_trade(n, r=[1.0, -1.0][n % 2], day=n % 8, direction="long") for n in range(8)]
    rest = [a_trade(n, r=0.5 * (n % 3), day=n, direction="short") for n in range(100, 110)]
    thrice = [replace(each, id=f"{each.id}-{copy}") for each in once for copy in range(3)]
    key = "symbol_selection/direction=long"
    alone, often = (the(find_evidence(group + rest, as_of=LATER), key) for group in (once, thrice))
    assert (alone.n, often.n, alone.days, often.days) == (8, 24, 8, 8)
    assert alone.interval == pytest.approx(often.interval)


def test_a_group_that_does_not_vary_varies_as_all_trades_do() -> None:
    trades = [a_trade(n, r=1.0 if n % 2 else -1.0, session="london" if n % 2 else "asia") for n in range(16)]
    result = the(find_evidence(trades, as_of=LATER), "entry_timing/session=asia")
    spread = 16 / 15  # of 8 times −1 and 8 times +1
    assert result.half_width == pytest.approx(T_7 * math.sqrt(spread / 8), rel=1e-6)


def test_a_group_without_a_winner_yet_has_the_doubt_of_the_strategy() -> None:
    """33 losers of nearly one size say little where one trade in twelve wins 12R."""
    rng = random.Random(8)
    trades = [
        a_trade(n, r=rng.gauss(-0.99, 0.05) if n % 3 or n % 12 == 0 else 12.0 if n % 12 == 3 else -1.0, session=session)
        for n in range(99)
        for session in ("asia" if n % 3 == 1 else "london",)
    ]
    result = find_evidence(trades, as_of=LATER)
    group = the(result, "entry_timing/session=asia")
    assert (group.n, round(group.mean, 1), result.patterns) == (33, -1.0, ())
    assert group.half_width is not None
    assert group.half_width > 0.9


@pytest.mark.parametrize(("trades", "days"), [(7, 7), (12, 7)])
def test_a_group_needs_eight_trades_on_eight_days(trades: int, days: int) -> None:
    group = [a_trade(n, day=n % days, session="asia") for n in range(trades)]
    rest = [a_trade(n, r=-1.0) for n in range(20, 40)]
    assert "entry_timing/session=asia" not in {each.key for each in find_evidence(group + rest, as_of=LATER).groups}


def test_units_do_not_mix() -> None:
    in_r = [a_trade(n, r=1.0, session="asia" if n % 2 else "london") for n in range(16)]
    shares = [a_trade(n, outcome=Outcome(value=50.0, unit="pct"), session="asia") for n in range(16, 24)]
    result = find_evidence(in_r + shares, as_of=LATER)
    assert (result.unit, result.n) == ("R", 24)
    assert (the(result, "entry_timing/session=asia").n, the(result, "entry_timing/session=asia").mean) == (8, 1.0)


def with_unknown(trades: Sequence[ClosedTrade], *, session: str, won: bool, every: int = 1) -> list[ClosedTrade]:
    """The trades without the outcomes of every so many winners or losers of a session."""
    hidden = [each.id for each in trades if each.session == session and each.won == won][::every]
    return [replace(each, outcome=None) if each.id in hidden else each for each in trades]


def sessions_in_turn(n: int = 120) -> list[ClosedTrade]:
    """A trade a day in Asia and London by turns; half of each win."""
    return [a_trade(n, r=1.0 if n % 4 < 2 else -1.0, session="asia" if n % 2 else "london") for n in range(n)]


def test_groups_count_their_trades_without_an_outcome() -> None:
    trades = with_unknown(sessions_in_turn(), session="asia", won=True, every=10)
    asia = the(find_evidence(trades, as_of=LATER), "entry_timing/session=asia")
    assert (asia.n, asia.unknown, asia.biased) == (57, 3, None)
    assert "over 57 of 60 trades (R is unknown for 3) on 57 days" in bullet_text(asia)


@pytest.mark.parametrize("won", [True, False])
def test_no_lesson_rests_on_outcomes_of_which_one_side_is_unknown(won: bool) -> None:
    """Asia wins as often as London, but only its losers, or only its winners, have an outcome."""
    result = find_evidence(with_unknown(sessions_in_turn(), session="asia", won=won), as_of=LATER)
    asia = the(result, "entry_timing/session=asia")
    assert asia.stands_out
    assert (result.level > 0.0, result.patterns) == (True, ())
    side = "0% of losing trades and 100% of winning" if won else "100% of losing trades and 0% of winning"
    assert result.passed_over[asia.key] == f"R is unknown for {side} ones there"
    london = result.passed_over["entry_timing/session=london"]
    assert london == f"R is unknown for {side} ones elsewhere"


def test_results_are_measured_and_never_groups() -> None:
    trades = [replace(each, captured=0.4, hold_seconds=60.0) for each in losing_in_chop()]
    dimensions = {each.dimension for each in find_evidence(trades, as_of=LATER).groups}
    assert dimensions <= {"regime_tag", "regime", "symbol"}


def test_sizes_are_thirds_of_the_sizes_there_are() -> None:
    trades = [a_trade(n, r=[1.0, -1.0][n % 2], size_share=0.01 * (1 + n % 30)) for n in range(60)]
    result = find_evidence(trades, as_of=LATER)
    sizes = {each.value: (each.n, each.label) for each in result.groups if each.slot == "sizing"}
    assert sizes == {
        "small": (20, "sizes below 11% of equity"),
        "medium": (20, "sizes of 11% to 20% of equity"),
        "large": (20, "sizes above 20% of equity"),
    }


# What is found


def test_a_losing_regime_is_found_once_by_the_word_agents_see() -> None:
    result = find_evidence(losing_in_chop(), as_of=LATER)
    assert [each.key for each in result.patterns] == [CHOP]
    (pattern,) = result.patterns
    assert (pattern.n, pattern.days, pattern.mean, pattern.rest_mean) == (40, 40, -0.8, 0.0)
    assert result.search_state.found[0].p <= result.level
    assert (result.search_state.found[0].since, result.search_state.found[0].closed) == (LATER, 120)


def test_a_pattern_in_the_captured_share_is_about_exits() -> None:
    rng = random.Random(3)
    trades = [
        a_trade(n, r=rng.choice((1.0, -1.0)), symbol="ETH" if n % 2 else "BTC", captured=0.2 + 0.4 * (n % 2) + noise)
        for n in range(120)
        for noise in (rng.uniform(-0.2, 0.2),)
    ]
    result = find_evidence(trades, as_of=LATER)
    assert [(each.slot, each.dimension, each.measure) for each in result.patterns] == [
        ("exit_timing", "symbol", "captured")
    ]
    assert result.patterns[0].unit is None


def test_no_trades_and_flat_trades_have_no_patterns() -> None:
    result = find_evidence([], as_of=LATER)
    assert (result.n, result.days, result.unit, result.groups, result.patterns) == (0, 0, None, (), ())
    flat = find_evidence([a_trade(n, r=0.0, hour=n % 3) for n in range(60)], as_of=LATER)
    assert flat.patterns == ()


def test_trades_known_later_change_nothing() -> None:
    trades = losing_in_chop()
    then = trades[79].known_at
    unseen = [replace(each, outcome=Outcome(value=99.0, unit="R")) for each in trades[80:]]
    assert find_evidence(trades[:80] + unseen, as_of=then) == find_evidence(trades[:80], as_of=then)


def test_only_the_last_five_hundred_trades_are_tested() -> None:
    trades = [a_trade(n, r=[1.0, -1.0][n % 2]) for n in range(600)]
    result = find_evidence(trades, as_of=LATER)
    assert (result.n, result.closed) == (500, 600)
    assert result == find_evidence(trades[100:], as_of=LATER, closed=600)


def test_a_pattern_found_stays_between_tests_and_leaves_when_its_interval_reaches_the_rest() -> None:
    first = find_evidence(losing_in_chop(), as_of=LATER)
    again = find_evidence(losing_in_chop(123), as_of=LATER, state=first.search_state)
    assert (again.level, [each.key for each in again.patterns]) == (0.0, [CHOP])
    won = [a_trade(n, r=1.0, regime_tag="chop_hivol", regime="volatile") for n in range(200, 230)]
    gone = find_evidence(losing_in_chop() + won, as_of=LATER, state=replace(again.search_state, looks=()), closed=9)
    assert (gone.patterns, gone.lost, gone.search_state.found) == ((), (CHOP,), ())


def test_a_pattern_without_trades_is_lost() -> None:
    state = SearchState(found=(SignificantPattern(key="sizing/size=large", since=NOON, closed=20, p=0.001),))
    assert find_evidence(losing_in_chop(), as_of=LATER, state=state, closed=5).lost == ("sizing/size=large",)


def test_looks_of_a_doubling_are_carried_and_lapse_with_it() -> None:
    trades = [a_trade(n, r=[1.0, -1.0][n % 2]) for n in range(80)]
    state, counts = SearchState(), []
    for closed in range(10, 81, 10):
        state = find_evidence(trades[:closed], as_of=trades[closed - 1].known_at, state=state).search_state
        counts.append([look.closed for look in state.looks])
    assert counts == [[], [20], [20], [20, 40], [50], [50], [50, 70], [50, 70]]


# Laws


trades_of = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from((-1.0, 0.5, 2.0)),
        st.sampled_from(("long", "short")),
        st.sampled_from(("asia", "london", None)),
        st.sampled_from((0.1, 0.9, None)),
    ),
    min_size=20,
    max_size=80,
)


def made(rows: Sequence[tuple[Any, ...]]) -> list[ClosedTrade]:
    return [
        a_trade(n, day=day, r=r, direction=direction, session=session, captured=captured, size_share=0.01 * (n % 5))
        for n, (day, r, direction, session, captured) in enumerate(rows)
    ]


@settings(max_examples=25, deadline=None)
@given(trades_of, st.randoms())
def test_the_order_of_trades_does_not_matter(rows: list[tuple[Any, ...]], rng: random.Random) -> None:
    trades = made(rows)
    shuffled = rng.sample(trades, len(trades))
    assert find_evidence(shuffled, as_of=LATER) == find_evidence(trades, as_of=LATER)


@settings(max_examples=25, deadline=None)
@given(trades_of)
def test_long_and_short_may_change_places(rows: list[tuple[Any, ...]]) -> None:
    other = {"long": "short", "short": "long"}
    trades = made(rows)
    swapped = [replace(each, direction=other[each.direction or "long"]) for each in trades]  # type: ignore[arg-type]
    ours, theirs = (find_evidence(x, as_of=LATER) for x in (trades, swapped))

    def figures(result: TradeEvidence, names: dict[str, str]) -> set[tuple[object, ...]]:
        values = {each: "_and_".join(names.get(part, part) for part in each.domain.values()) for each in result.groups}
        return {(each.slot, values[each], each.n, each.mean) for each in result.groups}

    assert figures(ours, {}) == figures(theirs, other)
    assert [f.p for f in ours.search_state.found] == [f.p for f in theirs.search_state.found]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=200))
def test_no_doubling_spends_more_than_its_level(counts: list[int]) -> None:
    spent: dict[int, float] = {}
    last = 0
    for closed in sorted(counts):
        level = significance_level(closed, tested_at=last)
        if level:
            last = closed
            doubling = max(0, (closed // FIRST_DOUBLING).bit_length() - 1)
            spent[doubling] = spent.get(doubling, 0.0) + level
    assert all(each <= SPENDING[min(doubling, 4)] + 1e-12 for doubling, each in spent.items())


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200))
def test_a_thousand_trades_spend_at_most_the_rate_of_false_lessons(counts: list[int]) -> None:
    spent, last = 0.0, 0
    for closed in sorted([*counts, 1000]):
        level = significance_level(closed, tested_at=last)
        spent, last = spent + level, closed if level else last
    assert spent <= FALSE_LESSON_RATE


# The test itself


def test_an_interim_look_within_a_doubling_counts_in_the_next_look() -> None:
    trades = losing_in_chop()
    look = InterimLook(at=trades[99].known_at, closed=100, level=significance_level(100))
    result = find_evidence(trades, as_of=LATER, state=SearchState(looks=(look,)), closed=140)
    assert [each.closed for each in result.search_state.looks] == [100, 140]
    assert result.level == pytest.approx(SPENDING[2] * TEST_SHARES[1])


# Groups that are passed over


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_a_group_that_does_not_stand_out_hides_no_weaker_group_that_does(seed: int) -> None:
    """Once Asia is known, ETH is the strongest group, but its mean says nothing; volatility is found behind it."""
    result = find_evidence(masked_trades(seed), as_of=LATER)
    assert not the(result, "symbol_selection/symbol=ETH").stands_out
    assert [pattern.dimension for pattern in result.patterns] == ["session", "volatility_regime"]


def test_a_difference_that_turns_around_is_no_pattern() -> None:
    """ETH trades look worse than the others, although ETH gains 1.2R once the session is taken into account."""
    result = find_evidence(masked_trades(3), as_of=LATER)
    eth = the(result, "symbol_selection/symbol=ETH")
    assert eth.stands_out
    assert eth.difference < 0.0
    assert [pattern.dimension for pattern in result.patterns] == ["session", "volatility_regime"]


def test_labels_in_few_separate_runs_prove_nothing() -> None:
    """Four long spells: in two of them all trades lose."""
    trades = [
        a_trade(n, r=1.0 if n // 30 % 2 else -1.0, session="asia" if n // 30 % 2 else "london") for n in range(120)
    ]
    result = find_evidence(trades, as_of=LATER)
    assert (result.patterns, the(result, "entry_timing/session=asia").runs) == ((), 2)
    reason = "its trades or the others come in 2 separate runs; 10 are needed"
    assert result.passed_over["entry_timing/session=asia"] == reason


def in_regimes(seed: int, effects: dict[tuple[str, str], float], n: int = 300) -> list[ClosedTrade]:
    """Trades in two regimes and both directions, with an effect in R for each combination."""
    rng, trades = random.Random(seed), list[ClosedTrade]()
    for number in range(n):
        regime, direction = rng.choice(("ranging", "trending_up")), rng.choice(("long", "short"))
        r = rng.gauss(0.0, 1.0) + effects.get((regime, direction), 0.0)
        trades.append(a_trade(number, r=r, regime=regime, direction=direction))
    return trades


def test_the_pair_is_found_where_one_half_carries_the_effect() -> None:
    result = find_evidence(in_regimes(1, {("ranging", "short"): -1.2}), as_of=LATER)
    assert [each.label for each in result.patterns] == ["shorts in ranging markets"]


def test_a_group_is_found_where_both_halves_carry_the_effect() -> None:
    result = find_evidence(in_regimes(2, {("ranging", "short"): -1.0, ("ranging", "long"): -1.0}), as_of=LATER)
    assert [each.dimension for each in result.patterns] == ["regime"]


def test_a_group_that_one_half_carries_is_passed_over() -> None:
    trades = in_regimes(3, {("ranging", "short"): -1.2, ("ranging", "long"): 0.2})
    result = find_evidence(trades, as_of=LATER, closed=9)  # no test is due
    assert result.passed_over["regime_fit/regime=ranging"] == (
        "only shorts in ranging markets differ; the others there do not"
    )
    watched = [each.label for each in result.watched]
    assert "shorts in ranging markets" in watched
    assert "ranging markets" not in watched


def after_losses(seed: int, *, spells: float, tilt: float) -> list[ClosedTrade]:
    """Outcomes at levels that last for twenty trades, and trades after a loss that are worse."""
    rng, trades, before, level = random.Random(seed), list[ClosedTrade](), 0.0, 0.0
    for number in range(400):
        level = rng.gauss(0.0, spells) if number % 20 == 0 else level
        before = rng.gauss(level, 1.0) - tilt * (before < 0.0)
        trades.append(replace(a_trade(number, r=before), opened_at=NOON + timedelta(days=number - 1, hours=6)))
    return trades


def test_what_follows_a_loss_is_found() -> None:
    result = find_evidence(after_losses(1, spells=0.0, tilt=1.0), as_of=LATER)
    assert [each.dimension for each in result.patterns] == ["after"]


def test_outcomes_in_spells_are_no_effect_of_the_last_trade() -> None:
    result = find_evidence(after_losses(2, spells=1.0, tilt=0.0), as_of=LATER)
    assert result.patterns == ()
    assert "the market may explain both" in result.passed_over["entry_timing/after=loss"]
