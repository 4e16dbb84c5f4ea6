"""Learning beliefs from episodes: evidence, retirement and induction, one by one or at once."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.memory.belief_induction import (
    BeliefUpdate,
    founding_evidence,
    judged_trades,
    learn,
    learn_all,
    with_belief,
)
from backsight.core.memory.cells import Cell
from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import (
    Belief,
    Domain,
    main_outcome,
    posterior,
    win_rate_interval,
)
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.statistics import rate_bounds
from backsight.core.trades.trade import Outcome
from core.memory.test_semantic import (
    CONDITIONS,
    DAY,
    NOTHING,
    T0,
    a_belief,
    an_episode,
    standing_after,
    standing_of,
    three_of_ten,
)
from noise import SHAPES, START
from noise import noise as noise_trades

UP = Domain(strategy="IM", regime="trending_up")


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


def market(shape: str, rng: random.Random, trades: int = 1000) -> list[Episode]:
    """The trades of a market without an edge, in one of the shapes of noise."""
    return [
        an_episode(
            number,
            at=trade.closed_at,
            r=trade.outcome,
            outcome=Outcome(value=trade.outcome, unit="R" if trade.in_r else "pct"),
            regime=trade.regime,
            volatility_regime=trade.volatility_regime,
            session=trade.session,
            symbol=trade.symbol,
            direction=trade.direction,
        )
        for number, trade in enumerate(noise_trades(shape, rng.randrange(1 << 30), trades))
    ]


def about_btc(**changes: Any) -> Belief:
    """A belief about one of the three symbols of a market, stated before its first trade."""
    return a_belief(domain=Domain(symbol="BTC"), known_at=START - DAY, **changes)


def ever_established(episodes: Sequence[Episode], *beliefs: Belief) -> list[bool]:
    """Whether each of some stated beliefs is established at any of its looks."""
    knowledge, established = NOTHING, set[str]()
    for belief in beliefs:
        knowledge = with_belief(knowledge, belief)
    for start in range(0, len(episodes), 10):  # between two looks a domain has at least ten episodes
        knowledge = learn_all(episodes[start : start + 10], knowledge=knowledge).knowledge
        established |= {belief.id for belief in beliefs if knowledge.standings[belief.id].established}
    return [belief.id in established for belief in beliefs]


def induces(episodes: Sequence[Episode]) -> bool:
    return bool(learn_all(episodes, knowledge=NOTHING).induced)


def finds_the_edge(episodes: Sequence[Episode]) -> bool:
    induced = learn_all(episodes, knowledge=NOTHING).induced
    return any(belief.domain == UP and belief.claims == "above" for belief in induced)


def hits(test: Callable[[Sequence[Episode]], bool], make: Callable[[random.Random], list[Episode]], runs: int) -> int:
    return sum(test(make(random.Random(seed))) for seed in range(runs))


def test_a_trend_that_wins_three_of_ten_and_earns_money_is_not_refuted() -> None:
    """30% winners at +5R and −1R are +.8R a trade: "works in a trend" is true."""
    works, wins = a_belief(), a_belief(about="win_rate", proposition="Breakouts win in trends")
    knowledge = with_belief(with_belief(NOTHING, works), wins)
    learned = learn_all((three_of_ten(n, won=5.0) for n in range(160)), knowledge=knowledge)
    assert [belief.id for belief in learned.retired] == [wins.id]
    assert posterior(standing_of(learned, works)).credibility > 0.99


def test_a_trend_that_wins_seldom_and_loses_money_is_refuted() -> None:
    learned = learn_all((three_of_ten(n, won=1.0) for n in range(40)), knowledge=with_belief(NOTHING, a_belief()))
    assert len(learned.retired) == 1


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


def learned_edge() -> tuple[list[Episode], BeliefUpdate]:
    trades = [an_episode(n, r=1 if n % 2 else -1, regime="trending_up" if n % 2 else "ranging") for n in range(60)]
    return trades, learn_all(trades, knowledge=NOTHING)


def test_an_induced_belief_keeps_the_rate_elsewhere_and_its_founding_evidence() -> None:
    trades, learned = learned_edge()
    belief = next(each for each in learned.induced if each.domain == UP)
    founders = founding_evidence(standing_of(learned, belief), judged_trades(UP, trades))
    assert (belief.claims, belief.reference, belief.source, belief.retired_at) == ("above", 1 / 12, "induced", None)
    standing = standing_of(learned, belief)
    assert (standing.founding.n, standing.tested.n, standing.n) == (len(founders), 30 - len(founders), 30)
    assert posterior(standing).alpha == 31.0
    assert posterior(standing, with_founding=False).n == 30 - len(founders)
    assert all(each.founding and each.confirms and each.known_at <= belief.known_at for each in founders)


def test_an_induced_belief_says_for_how_many_trades_r_is_known() -> None:
    trades, learned = learned_edge()
    belief = next(each for each in learned.induced if each.domain == UP)
    assert "unknown" not in belief.proposition
    hidden = [replace(each, outcome=None, pnl=1.0) if n % 6 == 1 else each for n, each in enumerate(trades)]
    belief = next(each for each in learn_all(hidden, knowledge=NOTHING).induced if each.domain == UP)
    assert "R is unknown for" in belief.proposition


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


def test_learning_asks_for_other_days_only_for_tests_that_may_be_significant() -> None:
    """Cells may be given with the days of the episodes alone; a belief is then induced from all their days."""
    trades, at_once = learned_edge()
    questions = list[frozenset[Domain]]()
    knowledge, induced = NOTHING, list[Belief]()
    for trade in trades:
        before, day = knowledge.cells, trade.ended_at.date()

        def days_of(domains: Collection[Domain], whole: Mapping[Domain, Cell] = before) -> Mapping[Domain, Any]:
            questions.append(frozenset(domains))
            return {domain: whole[domain].days for domain in domains}

        part = {
            domain: replace(cell, days={at: count for at, count in cell.days.items() if at == day})
            for domain, cell in before.items()
        }
        learned = learn_all([trade], knowledge=replace(knowledge, cells=part), days_of=days_of)
        whole = learn(knowledge, trade).knowledge
        assert learned.knowledge.standings == whole.standings
        assert [(cell.squares, cell.traded_days) for cell in learned.knowledge.cells.values()] == [
            (cell.squares, cell.traded_days) for cell in whole.cells.values()
        ]
        knowledge, induced = whole, [*induced, *learned.induced]
    assert tuple(induced) == at_once.induced
    assert len(questions) == 2


def test_a_few_runs_of_noise_induce_nothing() -> None:
    assert hits(induces, lambda rng: noise(rng, trades=200, a_day=4, together=0.5), 6) == 0


def test_an_edge_is_found_in_most_of_a_few_runs() -> None:
    assert hits(finds_the_edge, edge, 3) >= 2


def test_a_few_markets_whose_regimes_last_induce_nothing() -> None:
    assert hits(induces, lambda rng: market("regimes in spells", rng), 4) <= 1


def test_a_coin_seldom_establishes_a_stated_belief() -> None:
    markets = [market("normal", random.Random(seed), 300) for seed in range(6)]
    assert sum(ever_established(trades, about_btc())[0] for trades in markets) <= 1


def test_a_true_edge_establishes_a_stated_belief() -> None:
    """.5R in one of three symbols."""
    trades = [
        replace(each, outcome=Outcome(value=each.outcome.value + 0.5, unit="R"))
        for each in market("normal", random.Random(1), 400)
        if each.outcome is not None
    ]
    assert ever_established(trades, about_btc(), about_btc(claims="below")) == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_market_without_an_edge_establishes_a_stated_belief_in_at_most_one_run_of_twenty(shape: str) -> None:
    """Of a belief about the mean of one symbol against its true mean, and of one about its win rate."""
    runs, about_mean, about_rate = 150, 0, 0
    mean = about_btc(reference=SHAPES[shape].mean_r)
    rate = about_btc(proposition="rate", about="win_rate", reference=SHAPES[shape].win_rate, prior=(1.0, 1.0))
    for seed in range(runs):
        mean_established, rate_established = ever_established(market(shape, random.Random(seed)), mean, rate)
        about_mean += mean_established
        about_rate += rate_established
    print(f"| {shape} | {runs} | {share(about_mean, runs)} | {share(about_rate, runs)} |")  # noqa: T201
    assert max(rate_bounds(count, runs)[0] for count in (about_mean, about_rate)) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("trades", [300, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_nine_of_ten_intervals_of_a_belief_hold_the_truth_in_every_shape(shape: str, trades: int) -> None:
    runs, means, rates = 300, 0, 0
    belief = about_btc(about="win_rate", reference=SHAPES[shape].win_rate, prior=(1.0, 1.0))
    for seed in range(runs):
        standing = standing_after(belief, market(shape, random.Random(seed), trades))
        low, high = win_rate_interval(standing)
        rates += low <= belief.reference <= high
        _, moments = main_outcome({"R": standing.outcomes["R"]})
        low, high = moments.interval() or (0.0, 0.0)
        means += low <= SHAPES[shape].mean_r <= high
    print(f"| {shape} | {trades} | {runs} | {share(means, runs)} | {share(rates, runs)} |")  # noqa: T201
    for count in (means, rates):
        below, above = rate_bounds(count, runs)
        assert above >= 0.85, f"{count} of {runs}"
        assert below <= 0.95, f"{count} of {runs}"


def share(count: int, of: int) -> str:
    """A share of runs in percent, with its two-sided 95% bounds."""
    low, high = rate_bounds(count, of, confidence=0.975)
    return f"{count / of:.1%} ({low:.1%} to {high:.1%})"


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_market_without_an_edge_induces_anything_in_at_most_one_run_of_twenty(shape: str) -> None:
    runs = 300
    count = hits(induces, lambda rng: market(shape, rng), runs)
    print(f"| {shape} | {runs} | {share(count, runs)} |")  # noqa: T201
    assert rate_bounds(count, runs)[1] <= 0.05, f"{count} of {runs}"


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
