"""Beliefs: their posteriors, their evidence, and how rarely chance induces a belief."""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.memory.belief_induction import (
    BeliefUpdate,
    Knowledge,
    learn,
    learn_all,
    with_belief,
)
from backsight.core.memory.cells import cells_at
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import (
    Belief,
    BeliefDraft,
    Claim,
    Domain,
    EvidenceTally,
    Standing,
    credibility_of,
    place_of,
    posterior,
    seed_belief,
    strength,
    win_rate_interval,
    worth_testing,
)
from backsight.core.trades.trade import Outcome

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = Knowledge(owner_id="ana", mode="live")
CONDITIONS = parse_condition({"field": "confidence", "op": ">=", "value": 0.5})


def an_episode(number: int = 0, *, r: float = 1.0, at: datetime | None = None, **changes: Any) -> Episode:
    """The episode of a trade with a result of `r`; the trade of each number has its own day, unless `at` is given."""
    at = at or T0 + number * DAY
    fields: dict[str, Any] = dict.fromkeys(Episode.__dataclass_fields__)
    context = {name: changes.pop(name, None) for name in ("regime", "volatility_regime", "session")}
    fields |= {"owner_id": "ana", "id": f"e{number:05}", "kind": "trade", "strategy_name": "IM", "mode": "live"}
    fields |= {"symbol": "BTC", "count": 1, "tags": (), "pnl": 100 * r, "outcome": Outcome(value=r, unit="R")}
    fields |= {"deployment_id": "d", "series_id": f"e{number:05}", "context": ContextVector(**context)}
    return Episode(**(fields | {"ended_at": at, "first_known_at": at, "known_at": at, "recorded_at": at} | changes))


def a_belief(**changes: Any) -> Belief:
    known_at = changes.pop("known_at", T0 - DAY)
    fields: dict[str, Any] = {"proposition": "Breakouts work in trends", "domain": Domain(regime="trending_up")}
    return seed_belief(BeliefDraft(**(fields | changes)), owner_id="ana", known_at=known_at)


def standing_of(update: BeliefUpdate, belief: Belief) -> Standing:
    return update.knowledge.standings[belief.id]


def standing_after(belief: Belief, episodes: Iterable[Episode], **options: Any) -> Standing:
    """The standing of a belief after the episodes."""
    return standing_of(learn_all(episodes, knowledge=with_belief(NOTHING, belief), **options), belief)


def test_seven_of_ten_give_eight_and_four() -> None:
    belief = a_belief(prior=(1.0, 1.0))
    estimate = posterior(
        standing_after(belief, (an_episode(n, r=1 if n < 7 else -1, regime="trending_up") for n in range(10)))
    )
    assert (estimate.alpha, estimate.beta, estimate.n, estimate.confidence) == (8.0, 4.0, 10, 8 / 12)
    assert estimate.uncertainty == pytest.approx(32 / (144 * 13))


@pytest.mark.parametrize(("claims", "win_rate"), [("above", 2 / 3), ("below", 1 / 3)])
def test_a_seeded_belief_starts_at_two_to_one_for_its_claim(claims: Claim, win_rate: float) -> None:
    standing = Standing(belief=a_belief(claims=claims, about="win_rate"))
    estimate = posterior(standing)
    assert (estimate.alpha, estimate.beta, estimate.n) == (2.0, 1.0, 0)
    assert estimate.win_rate == pytest.approx(win_rate)
    assert estimate.credibility == pytest.approx(0.75)
    low, high = win_rate_interval(standing)
    assert low < win_rate < high


def test_copies_of_one_signal_count_as_one_in_credibility_and_interval() -> None:
    """Fourteen of twenty days won: four copies of each trade say hardly more than one."""
    belief = a_belief(about="win_rate", prior=(1.0, 1.0))
    hours = timedelta(hours=1)
    once, four_times = (
        standing_after(
            belief,
            [
                an_episode(
                    10 * n + copy,
                    at=T0 + n * DAY + copy * hours,
                    r=-1.0 if n % 10 in (1, 4, 7) else 1.0,
                    regime="trending_up",
                )
                for n in range(20)
                for copy in range(copies)
            ],
        )
        for copies in (1, 4)
    )
    assert four_times.design_effect() > 3.5 * once.design_effect()
    assert posterior(four_times).credibility == pytest.approx(posterior(once).credibility, abs=0.02)
    assert win_rate_interval(four_times) == pytest.approx(win_rate_interval(once), abs=0.03)


def test_an_estimated_reference_leaves_more_doubt() -> None:
    tested = EvidenceTally(wins=30, losses=10, won_weight=30.0, lost_weight=10.0)
    sure = Standing(belief=a_belief(about="win_rate", reference=0.6), tested=tested)
    unsure = replace(sure, belief=replace(sure.belief, reference_error=0.1))
    negligible = replace(sure, belief=replace(sure.belief, reference_error=1e-9))
    assert 0.5 < credibility_of(unsure) < credibility_of(sure) - 0.03
    assert credibility_of(negligible) == pytest.approx(credibility_of(sure))


def test_founding_evidence_makes_no_belief_credible() -> None:
    founding = EvidenceTally(wins=90, losses=10, won_weight=90.0, lost_weight=10.0)
    induced = Standing(belief=a_belief(about="win_rate", reference=0.5, prior=(1.0, 1.0)), founding=founding)
    assert posterior(induced).confidence > 0.85
    assert posterior(induced).credibility == pytest.approx(0.5)


@pytest.mark.parametrize("claims", ["above", "below"])
def test_a_seeded_belief_is_about_the_mean_outcome_and_without_evidence_undecided(claims: Claim) -> None:
    belief = a_belief(claims=claims)
    assert (belief.about, belief.reference) == ("mean_outcome", 0.0)
    assert posterior(Standing(belief=belief)).credibility == 0.5
    one_day = [an_episode(n, at=T0 + n * timedelta(hours=1), regime="trending_up") for n in range(20)]
    assert posterior(standing_after(belief, one_day)).credibility == 0.5


def three_of_ten(number: int, *, won: float) -> Episode:
    """A trade in a trend: three of ten win `won` R, the others lose 1R."""
    return an_episode(number, r=won if number % 10 in (2, 5, 8) else -1.0, regime="trending_up")


def test_a_mean_outcome_may_be_compared_with_any_number_of_r() -> None:
    trades = [three_of_ten(n, won=5.0) for n in range(160)]
    for reference, credible in ((0.2, True), (1.5, False)):
        belief = a_belief(reference=reference, proposition=f"more than {reference}")
        assert (posterior(standing_after(belief, trades)).credibility > 0.9) is credible


def test_outcomes_in_percent_support_a_belief_about_money_and_not_one_about_r() -> None:
    gains = [replace(an_episode(n, regime="trending_up"), outcome=Outcome(value=0.01, unit="pct")) for n in range(20)]
    assert posterior(standing_after(a_belief(), gains)).credibility > 0.9
    assert posterior(standing_after(a_belief(reference=0.001), gains)).credibility == 0.5


def test_a_loss_confirms_a_belief_that_claims_less() -> None:
    belief = a_belief(claims="below")
    learned = learn(with_belief(NOTHING, belief), an_episode(1, r=-1, regime="trending_up"))
    assert [evidence.confirms for evidence in learned.evidence] == [True]
    assert posterior(standing_of(learned, belief)).alpha == 3.0


def test_a_belief_says_where_it_holds() -> None:
    with pytest.raises(Invalid, match="symbol, direction, session, regime, volatility_regime, or give conditions"):
        a_belief(domain=Domain(strategy="IM"))
    assert a_belief(domain=Domain(strategy="IM"), conditions=CONDITIONS).conditions == CONDITIONS


@pytest.mark.parametrize(
    "wrong", [{"about": "win_rate", "reference": 1.0}, {"reference": float("nan")}, {"prior": (0.0, 1.0)}]
)
def test_a_belief_without_a_possible_reference_or_prior_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        a_belief(**wrong)


def test_an_episode_without_a_dimension_is_no_evidence_about_it() -> None:
    assert standing_after(a_belief(), [an_episode(1)]).n == 0
    assert cells_at(place_of(an_episode(1))) == (Domain(strategy="IM"), Domain(strategy="IM", symbol="BTC"))


def test_outcomes_weigh_only_under_outcome_weighting() -> None:
    belief = a_belief()
    trades = [an_episode(n, r=r, regime="trending_up") for n, r in enumerate((2.5, 0.5, -1.0))]
    weighted = with_belief(replace(NOTHING, weighting="outcome"), belief)
    estimate = posterior(standing_of(learn_all(trades, knowledge=weighted), belief))
    assert (estimate.alpha, estimate.beta, estimate.n) == (2.0 + 2.0 + 0.5, 2.0, 3)
    assert posterior(standing_after(belief, trades)).alpha == 4.0


def test_outcomes_have_their_own_mean_in_each_unit() -> None:
    percent = an_episode(3, regime="trending_up", outcome=Outcome(value=0.02, unit="pct"))
    trades = [an_episode(n, r=r, regime="trending_up") for n, r in enumerate((2.0, -1.0, 2.0))]
    outcomes = standing_after(a_belief(), [*trades, percent]).outcomes
    assert (outcomes["R"].n, outcomes["R"].mean, outcomes["pct"].mean) == (3, 1.0, 0.02)
    low, high = outcomes["R"].interval() or (0.0, 0.0)
    assert low < 1.0 < high
    assert outcomes["pct"].interval() is None


def test_decay_is_slow_with_time_and_fast_with_the_regime() -> None:
    standing = Standing(belief=a_belief(known_at=T0))
    later = {"now": T0 + 180 * DAY}
    assert strength(standing, regime="trending_up", now=T0) == 1.0
    assert strength(standing, regime="trending_up", **later) == pytest.approx(2**-0.3)
    assert strength(standing, regime="ranging", **later) == pytest.approx(0.3 * 2**-0.3)
    assert strength(standing, regime=None, **later) == pytest.approx(0.3 * 2**-0.3)
    anywhere = Standing(belief=a_belief(domain=Domain(symbol="BTC"), known_at=T0))
    assert strength(anywhere, regime=None, **later) == pytest.approx(2**-0.3)


def test_an_open_question_is_worth_testing() -> None:
    even = [an_episode(n, r=(-1) ** n, regime="trending_up") for n in range(12)]
    assert worth_testing(standing_after(a_belief(prior=(1.0, 1.0)), even))
    assert not worth_testing(standing_after(a_belief(prior=(1.0, 1.0)), even[:8]))
    assert not worth_testing(standing_after(a_belief(), [an_episode(n, regime="trending_up") for n in range(12)]))


@pytest.mark.parametrize(
    ("truth", "gain", "loss"), [(0.35, 2.5, -1.0), (0.8, 0.3, -1.0), (0.9, 0.2, -3.0)], ids=["35%", "80%", "90%"]
)
@pytest.mark.parametrize("claims", ["above", "below"])
@pytest.mark.slow
def test_nine_of_ten_intervals_hold_the_true_win_rate(truth: float, gain: float, loss: float, claims: Claim) -> None:
    belief, covered = a_belief(claims=claims), 0
    for seed in range(1000):
        rng = random.Random(seed)
        results = [gain if rng.random() < truth else loss for _ in range(80)]
        standing = standing_after(belief, (an_episode(n, r=r, regime="trending_up") for n, r in enumerate(results)))
        low, high = win_rate_interval(standing)
        covered += low <= truth <= high
    assert 850 <= covered <= 950, f"{covered} of 1000"
