"""Beliefs: their posteriors, their evidence, and how rarely chance induces a belief."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.memory.belief_induction import (
    BeliefUpdate,
    Knowledge,
    founding_evidence,
    learn,
    learn_all,
    with_belief,
)
from backsight.core.memory.cells import Cell, DayCount, cells_at, difference, level_of_look
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import (
    Belief,
    BeliefDraft,
    Claim,
    Domain,
    EvidenceTally,
    Standing,
    place_of,
    posterior,
    seed_belief,
    strength,
    win_rate_interval,
    worth_testing,
)
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.statistics import rate_bounds
from backsight.core.trades.trade import Outcome

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = Knowledge(owner_id="ana", mode="live")
UP = Domain(strategy="IM", regime="trending_up")
CONDITIONS = parse_condition({"field": "confidence", "op": ">=", "value": 0.5})


def an_episode(number: int = 0, *, r: float = 1.0, at: datetime | None = None, **changes: Any) -> Episode:
    """The episode of a trade with a result of `r`; the trade of each number has its own day, unless `at` is given."""
    at = at or T0 + number * DAY
    fields: dict[str, Any] = dict.fromkeys(Episode.__dataclass_fields__)
    context = {name: changes.pop(name, None) for name in ("regime", "volatility_regime", "session")}
    fields |= {"owner_id": "ana", "id": f"e{number:05}", "kind": "trade", "strategy_name": "IM", "mode": "live"}
    fields |= {"symbol": "BTC", "count": 1, "tags": (), "pnl": 100 * r, "outcome": Outcome(value=r, unit="R")}
    fields |= {"deployment_id": "d", "run_id": f"e{number:05}", "context": ContextVector(**context)}
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


def noise(
    rng: random.Random, *, trades: int = 500, a_day: int = 1, together: float = 0.0, whole_days: bool = False
) -> list[Episode]:
    """Trades without an edge.

    On a share `together` of the days all trades end alike; with `whole_days` a regime lasts the whole day.
    """
    episodes: list[Episode] = []
    for number in range(trades):
        if number % a_day == 0:
            shared, result, regime = rng.random() < together, rng.choice((-1.0, 1.0)), rng.choice(REGIMES)
        episodes.append(
            an_episode(
                number,
                at=T0 + (number // a_day) * DAY + (number % a_day) * timedelta(minutes=30),
                r=result if shared else rng.choice((-1.0, 1.0)),
                regime=regime if whole_days else rng.choice(REGIMES),
                volatility_regime=rng.choice(VOLATILITY_REGIMES),
                session=rng.choice(SESSIONS),
                symbol=rng.choice(("BTC", "ETH", "XAUUSD")),
                direction=rng.choice(("long", "short")),
            )
        )
    return episodes


def edge(rng: random.Random, *, inside: float = 0.75, outside: float = 0.45) -> list[Episode]:
    """500 trades, exactly 80 of them in one regime, where they win more often."""
    chosen = set(rng.sample(range(500), 80))
    episodes = noise(rng)
    for number, episode in enumerate(episodes):
        r = 1.0 if rng.random() < (inside if number in chosen else outside) else -1.0
        context = replace(episode.context, regime="trending_up" if number in chosen else rng.choice(REGIMES[1:]))
        episodes[number] = replace(episode, pnl=r, outcome=Outcome(value=r, unit="R"), context=context)
    return episodes


def induces(episodes: Sequence[Episode]) -> bool:
    return bool(learn_all(episodes, knowledge=NOTHING).induced)


def finds_the_edge(episodes: Sequence[Episode]) -> bool:
    induced = learn_all(episodes, knowledge=NOTHING).induced
    return any(belief.domain == UP and belief.claims == "above" for belief in induced)


def hits(test: Callable[[Sequence[Episode]], bool], make: Callable[[random.Random], list[Episode]], runs: int) -> int:
    return sum(test(make(random.Random(seed))) for seed in range(runs))


def test_seven_of_ten_give_eight_and_four() -> None:
    belief = a_belief(prior=(1.0, 1.0))
    estimate = posterior(
        standing_after(belief, (an_episode(n, r=1 if n < 7 else -1, regime="trending_up") for n in range(10)))
    )
    assert (estimate.alpha, estimate.beta, estimate.n, estimate.confidence) == (8.0, 4.0, 10, 8 / 12)
    assert estimate.uncertainty == pytest.approx(32 / (144 * 13))


@pytest.mark.parametrize(("claims", "win_rate"), [("above", 2 / 3), ("below", 1 / 3)])
def test_a_seeded_belief_starts_at_two_to_one_for_its_claim(claims: Claim, win_rate: float) -> None:
    estimate = posterior(Standing(belief=a_belief(claims=claims, about="win_rate")))
    assert (estimate.alpha, estimate.beta, estimate.n) == (2.0, 1.0, 0)
    assert estimate.win_rate == pytest.approx(win_rate)
    assert estimate.credibility == pytest.approx(0.75)
    low, high = win_rate_interval(estimate, claims=claims)
    assert low < win_rate < high


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


def test_a_trend_that_wins_three_of_ten_and_earns_money_is_not_refuted() -> None:
    """30 % winners at +5R and −1R are +.8R a trade: "works in a trend" is true."""
    works, wins = a_belief(), a_belief(about="win_rate", proposition="Breakouts win in trends")
    knowledge = with_belief(with_belief(NOTHING, works), wins)
    learned = learn_all((three_of_ten(n, won=5.0) for n in range(160)), knowledge=knowledge)
    assert [belief.id for belief in learned.retired] == [wins.id]
    assert posterior(standing_of(learned, works)).credibility > 0.99


def test_a_trend_that_wins_seldom_and_loses_money_is_refuted() -> None:
    learned = learn_all((three_of_ten(n, won=1.0) for n in range(40)), knowledge=with_belief(NOTHING, a_belief()))
    assert len(learned.retired) == 1


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


def test_an_episode_lies_in_one_cell_of_each_one_and_two_dimensions() -> None:
    full = an_episode(1, regime="ranging", volatility_regime="low", session="asia", direction="long")
    assert [sum(domain.width == width for domain in cells_at(place_of(full))) for width in (0, 1, 2)] == [1, 5, 10]
    assert all(domain.matches(full) for domain in cells_at(place_of(full)))


def test_one_win_in_a_trend_and_nine_losses_elsewhere_say_nothing_about_trends() -> None:
    belief = a_belief()
    trades = [an_episode(0, regime="trending_up"), *(an_episode(n, r=-1, regime="ranging") for n in range(1, 10))]
    learned = learn_all(trades, knowledge=with_belief(NOTHING, belief))
    assert learned.induced == ()
    assert [evidence.episode_id for evidence in learned.evidence] == ["e00000"]
    assert posterior(standing_of(learned, belief)).alpha == 3.0


def test_conditions_of_a_belief_are_checked() -> None:
    belief = a_belief(conditions=CONDITIONS)
    trades = [an_episode(n, regime="trending_up", confidence=0.2 * n) for n in range(5)]
    assert standing_after(belief, trades, holds=lambda _, episode: (episode.confidence or 0) >= 0.5).n == 2
    with pytest.raises(Invalid, match="pass `holds`"):
        standing_after(belief, trades)


def test_only_trades_that_ended_are_evidence() -> None:
    others = [
        an_episode(1, regime="trending_up", kind="call"),
        an_episode(2, regime="trending_up", kind="inaction", pnl=None, outcome=None),
        an_episode(3, regime="trending_up", pnl=None, outcome=None),
    ]
    assert standing_after(a_belief(), others).n == 0
    assert standing_after(a_belief(), [an_episode(4, regime="trending_up", pnl=None)]).n == 1


def test_only_trades_known_after_a_seeded_belief_are_its_evidence() -> None:
    belief = a_belief(known_at=T0 + DAY)
    assert standing_after(belief, [an_episode(n, regime="trending_up") for n in range(4)]).n == 2


def test_evidence_of_another_mode_is_refused() -> None:
    with pytest.raises(Invalid, match="keep them apart"):
        learn(NOTHING, an_episode(1, mode="paper"))


def test_an_episode_that_comes_late_is_refused() -> None:
    with pytest.raises(Invalid, match="learn all episodes again"):
        learn_all([an_episode(2), an_episode(1)], knowledge=NOTHING)


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


def test_a_belief_is_retired_at_a_look_once_refuted() -> None:
    belief = a_belief()
    trades = [an_episode(n, r=-1, regime="trending_up") for n in range(1, 15)]
    learned = learn_all(trades, knowledge=with_belief(NOTHING, belief))
    assert [retired.retired_at for retired in learned.retired] == [trades[9].known_at]


def test_evidence_about_a_retired_belief_goes_on() -> None:
    refuted = [an_episode(n, r=-1, regime="trending_up") for n in range(1, 11)]
    back = [an_episode(n, regime="trending_up") for n in range(11, 61)]
    standing = standing_after(a_belief(), [*refuted, *back])
    assert standing.belief.retired_at == refuted[-1].known_at
    assert (standing.n, posterior(standing).alpha) == (60, 52.0)


def test_losses_of_one_day_retire_nothing() -> None:
    trades = [an_episode(n, r=-1, at=T0 + n * timedelta(hours=1), regime="trending_up") for n in range(1, 21)]
    assert standing_after(a_belief(), trades).belief.retired_at is None


def test_an_open_question_is_worth_testing() -> None:
    even = [an_episode(n, r=(-1) ** n, regime="trending_up") for n in range(12)]
    assert worth_testing(standing_after(a_belief(prior=(1.0, 1.0)), even))
    assert not worth_testing(standing_after(a_belief(prior=(1.0, 1.0)), even[:8]))
    assert not worth_testing(standing_after(a_belief(), [an_episode(n, regime="trending_up") for n in range(12)]))


def test_each_look_after_320_is_at_half_the_former_level() -> None:
    levels = [level_of_look(n, cells=4) for n in (10, 320, 640, 1280)]
    assert levels == pytest.approx([0.05 / 24, 0.05 / 24, 0.05 / 48, 0.05 / 96])


def a_cell(days: Sequence[tuple[int, int]], *, from_day: int = 0) -> Cell:
    """A cell with the given (trades, wins) of each day."""
    day_counts = {(T0 + (from_day + n) * DAY).date(): DayCount(n=a, wins=b) for n, (a, b) in enumerate(days)}
    total, wins = sum(a for a, _ in days), sum(b for _, b in days)
    squares = (sum(a * a for a, _ in days), sum(a * b for a, b in days), sum(b * b for _, b in days))
    tally = EvidenceTally(wins=wins, losses=total - wins, won_weight=wins, lost_weight=total - wins)
    return Cell(tally=tally, days=day_counts, traded_days=len(days), squares=squares)


def test_the_error_of_a_difference_counts_whole_days() -> None:
    """Ten days of three trades that end alike, inside and outside the cell, are ten draws each, not thirty."""
    days = [(3, 3)] * 7 + [(3, 0)] * 3 + [(3, 3)] * 5 + [(3, 0)] * 5
    result = difference(a_cell(days[:10]), a_cell(days))
    assert result is not None
    by_hand = sum((each / 10) ** 2 for each in [0.3] * 7 + [-0.7] * 3 + [0.5] * 10) * 10 / 9
    assert (result.rate, result.elsewhere, result.days) == (0.7, 0.5, 10)
    assert result.error == pytest.approx(by_hand**0.5)


def test_the_error_of_a_difference_is_never_below_binomial() -> None:
    result = difference(a_cell([(2, 1)] * 10), a_cell([(2, 1)] * 30))
    assert result is not None
    assert result.error == pytest.approx((0.25 * (1 / 20 + 1 / 40)) ** 0.5)
    assert result.p == pytest.approx(1.0)


def test_a_day_that_is_good_for_all_trades_makes_no_difference() -> None:
    """The cell has half the trades of each day, so that the effect of a day cancels."""
    result = difference(a_cell([(4, 4), (4, 0)] * 5), a_cell([(8, 8), (8, 0)] * 5))
    assert result is not None
    assert result.error == pytest.approx((0.25 * (1 / 40 + 1 / 40)) ** 0.5)


def test_a_look_on_fewer_than_eight_days_is_skipped() -> None:
    assert difference(a_cell([(5, 5)] * 7), a_cell([(5, 5)] * 7 + [(5, 0)] * 20)) is None
    assert difference(a_cell([(5, 5)] * 20), a_cell([(5, 5)] * 20 + [(5, 0)] * 7)) is None
    assert difference(a_cell([(5, 5)] * 20), a_cell([(5, 5)] * 20)) is None


def test_a_strategy_that_always_wins_differs_nowhere() -> None:
    result = difference(a_cell([(1, 1)] * 10), a_cell([(1, 1)] * 30))
    assert result is not None
    assert result.p == 1.0


def learned_edge() -> tuple[list[Episode], BeliefUpdate]:
    trades = [an_episode(n, r=1 if n % 2 else -1, regime="trending_up" if n % 2 else "ranging") for n in range(60)]
    return trades, learn_all(trades, knowledge=NOTHING)


def test_an_induced_belief_keeps_the_rate_elsewhere_and_its_founding_evidence() -> None:
    trades, learned = learned_edge()
    belief = next(each for each in learned.induced if each.domain == UP)
    founders = founding_evidence(standing_of(learned, belief), trades)
    assert (belief.claims, belief.reference, belief.source, belief.retired_at) == ("above", 1 / 12, "induced", None)
    standing = standing_of(learned, belief)
    assert (standing.founding.n, standing.tested.n, standing.n) == (len(founders), 30 - len(founders), 30)
    assert posterior(standing).alpha == 31.0
    assert posterior(standing, with_founding=False).n == 30 - len(founders)
    assert all(each.founding and each.confirms and each.known_at <= belief.known_at for each in founders)


def test_an_existing_belief_is_not_induced_again() -> None:
    _, learned = learned_edge()
    domains = [belief.domain for belief in learned.induced]
    assert len(domains) == len(set(domains)) > 0


def test_a_belief_that_the_owner_retired_stays_retired_when_all_is_learned_anew() -> None:
    trades, learned = learned_edge()
    belief = next(each for each in learned.induced if each.domain == UP)
    until = belief.known_at + 5 * DAY
    before = learn_all((each for each in trades if each.known_at <= until), knowledge=NOTHING).knowledge
    changed = with_belief(before, replace(belief, retired_at=until))
    later = (each for each in trades if each.known_at > until)
    carried_on = learn_all(later, knowledge=changed, retirements={belief.id: until})
    anew = learn_all(trades, knowledge=NOTHING, retirements={belief.id: until})
    assert carried_on.knowledge == anew.knowledge


EPISODES = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.booleans(),
        st.sampled_from((*REGIMES[:2], None)),
        st.sampled_from(("BTC", "ETH")),
        st.sampled_from(("long", "short", None)),
        st.sampled_from(("IM", "VB")),
        st.integers(0, 3),
    ),
    max_size=60,
)


@given(EPISODES, st.integers(0, 60))
def test_learning_one_by_one_at_once_and_in_parts_agree(rows: list[Any], cut: int) -> None:
    rows.sort(key=lambda row: row[0])
    trades = [
        an_episode(
            n,
            r=1.3 if win else -0.7,
            at=T0 + day * DAY / 2,
            ended_at=T0 + (day - late) * DAY / 2,
            regime=regime,
            symbol=symbol,
            direction=direction,
            strategy_name=strategy,
        )
        for n, (day, win, regime, symbol, direction, strategy, late) in enumerate(rows)
    ]
    start = with_belief(NOTHING, a_belief(known_at=T0 + 2 * DAY))
    at_once = learn_all(trades, knowledge=start)
    knowledge, evidence = start, list[Any]()
    for trade in trades:
        learned = learn(knowledge, trade)
        knowledge, evidence = learned.knowledge, [*evidence, *learned.evidence]
    assert knowledge == at_once.knowledge
    assert tuple(evidence) == at_once.evidence
    past = learn_all(trades[:cut], knowledge=start).knowledge
    assert learn_all(trades[cut:], knowledge=past).knowledge == knowledge


def test_an_induced_belief_has_the_same_evidence_one_by_one_and_at_once() -> None:
    trades, at_once = learned_edge()
    knowledge, evidence, induced = NOTHING, list[Any](), list[Belief]()
    for trade in trades:
        learned = learn(knowledge, trade)
        knowledge, evidence = learned.knowledge, [*evidence, *learned.evidence]
        induced += learned.induced
    assert (knowledge, tuple(evidence)) == (at_once.knowledge, at_once.evidence)
    assert tuple(induced) == at_once.induced != ()


def test_learning_does_not_change_the_knowledge_it_starts_from() -> None:
    before = learn_all(noise(random.Random(1), trades=50), knowledge=NOTHING).knowledge
    copy = learn_all(noise(random.Random(1), trades=50), knowledge=NOTHING).knowledge
    learn_all(noise(random.Random(1), trades=80)[50:], knowledge=before)
    assert before == copy


def test_learning_reads_only_the_day_of_the_episode_from_cells_without_a_look() -> None:
    """Only cells that are tested at this episode need their other days."""
    trades = noise(random.Random(2), trades=26, a_day=2)
    knowledge = learn_all(trades[:-1], knowledge=NOTHING).knowledge
    day = trades[-1].ended_at.date()
    part = {name: knowledge.cells[name] for name in cells_at(place_of(trades[-1])) if name in knowledge.cells}
    part = {
        name: replace(cell, days={at: count for at, count in cell.days.items() if at == day})
        if cell.tally.n + 1 not in (10, 20) and name.width
        else cell
        for name, cell in part.items()
    }
    whole = learn(knowledge, trades[-1]).knowledge
    learned = learn(replace(knowledge, cells=part), trades[-1]).knowledge
    assert learned.cells_by_width == whole.cells_by_width
    assert all(cell.squares == whole.cells[name].squares for name, cell in learned.cells.items())
    assert all(cell.traded_days == whole.cells[name].traded_days for name, cell in learned.cells.items())


def test_a_few_runs_of_noise_induce_nothing() -> None:
    assert hits(induces, lambda rng: noise(rng, trades=200, a_day=4, together=0.5), 6) == 0


def test_an_edge_is_found_in_most_of_a_few_runs() -> None:
    assert hits(finds_the_edge, edge, 3) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"a_day": 5},
        {"a_day": 5, "together": 0.5},
        {"a_day": 5, "together": 0.5, "whole_days": True},
    ],
    ids=["independent", "independent, five a day", "by day", "by day with its regime"],
)
def test_noise_induces_anything_in_at_most_one_run_of_twenty(options: dict[str, Any]) -> None:
    false_positives = hits(induces, lambda rng: noise(rng, **options), 300)
    assert rate_bounds(false_positives, 300)[1] <= 0.05, f"{false_positives} of 300"


@pytest.mark.slow
def test_an_edge_in_80_of_500_trades_is_found_in_four_runs_of_five() -> None:
    detections = hits(finds_the_edge, edge, 300)
    assert rate_bounds(detections, 300)[0] >= 0.8, f"{detections} of 300"


@pytest.mark.parametrize(
    ("truth", "gain", "loss"), [(0.35, 2.5, -1.0), (0.8, 0.3, -1.0), (0.9, 0.2, -3.0)], ids=["35 %", "80 %", "90 %"]
)
@pytest.mark.parametrize("claims", ["above", "below"])
@pytest.mark.slow
def test_nine_of_ten_intervals_hold_the_true_win_rate(truth: float, gain: float, loss: float, claims: Claim) -> None:
    belief, covered = a_belief(claims=claims), 0
    for seed in range(1000):
        rng = random.Random(seed)
        results = [gain if rng.random() < truth else loss for _ in range(80)]
        standing = standing_after(belief, (an_episode(n, r=r, regime="trending_up") for n, r in enumerate(results)))
        low, high = win_rate_interval(posterior(standing), claims=standing.belief.claims)
        covered += low <= truth <= high
    assert 850 <= covered <= 950, f"{covered} of 1000"


def test_a_belief_that_the_owner_retired_is_not_induced_again() -> None:
    trades, learned = learned_edge()
    belief = next(each for each in learned.induced if each.domain == UP)
    more = [replace(each, id=f"more{n}", known_at=trades[-1].known_at + (n + 1) * DAY) for n, each in enumerate(trades)]
    again = learn_all([*trades, *more], knowledge=NOTHING, retirements={belief.id: belief.known_at + DAY})
    assert [each.id for each in again.induced if each.domain == UP] == [belief.id]


def test_two_cells_with_the_same_trades_induce_one_belief() -> None:
    trades, learned = learned_edge()
    assert len({each.symbol for each in trades}) == 1
    assert [belief.domain.symbol for belief in learned.induced] == [None] * len(learned.induced)


def test_the_reference_rate_is_never_0_or_1() -> None:
    _, learned = learned_edge()
    assert all(0.0 < belief.reference < 1.0 for belief in learned.induced)
