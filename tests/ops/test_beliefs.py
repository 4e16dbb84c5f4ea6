"""Operations on beliefs: stated or induced, updated by later trades, retired, and turned into plans."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.prospective import PlanState
from backsight.core.memory.semantic import Claim, Domain
from backsight.core.reflection.notes import Proposal
from backsight.core.strategies import MemoryOverrides
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.ops.beliefs import BeliefList
from backsight.services.beliefs import BeliefView
from backsight.services.learning import LearningReport
from backsight.testing import T0, FakeClock, a_position, a_trade_call
from ops.test_ticks import Desk, a_report, an_order, at
from support import deployed

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
DEPLOYMENT = "VolBreakout@main"
NIGHT = T0 - timedelta(hours=8)
CALM = {"volatility_regime": "low"}
UP = Domain(strategy="VolBreakout", regime="trending_up")


@pytest.fixture
def quick(clock: FakeClock) -> Iterator[Memory]:
    """A memory for many trades."""
    with open_memory("sqlite://", owner="ana", actor="test", clock=clock) as opened:
        yield opened


def stated(memory: Memory, **changes: Any) -> str:
    """State a belief, by default about uptrends, and return its id."""
    claim: dict[str, Any] = {"proposition": "Breaks carry in a trend"}
    where = {} if changes.keys() & {"symbol", "direction", "session", "conditions"} else {"regime": "trending_up"}
    return memory.add_belief(**(claim | where | changes)).belief.belief.id


def traded(
    memory: Memory, clock: FakeClock, *results: float, regime: str = "trending_up", **changes: Any
) -> LearningReport:
    """Remember one trade a day, each with its result in R, and return what the last one changed."""
    for r in results:
        clock.advance(days=1)
        call = a_trade_call(pnl=100 * r, pnl_r=r, context_regime=regime, **changes)
        learned = memory.remember_trade(**call).learned
    assert learned is not None
    return learned


def view_of(memory: Memory, belief_id: str, **query: Any) -> BeliefView:
    beliefs = memory.list_beliefs(**({"retired": True} | query)).beliefs
    return next(each for each in beliefs if each.belief.id == belief_id)


def counts(memory: Memory, belief_id: str, **query: Any) -> tuple[float, float, int]:
    posterior = view_of(memory, belief_id, **query).posterior
    return posterior.alpha, posterior.beta, posterior.n


def plans_of(memory: Memory, belief_id: str) -> list[PlanState]:
    return [each for each in memory.list_plans().plans if belief_id in {source.id for source in each.plan.sources}]


# Stated beliefs.


@pytest.mark.parametrize(("claims", "win_rate"), [("above", 2 / 3), ("below", 1 / 3)])
def test_a_seeded_belief_starts_at_two_to_one_for_its_claim(memory: Memory, claims: Claim, win_rate: float) -> None:
    added = memory.add_belief(proposition="Breaks carry", regime="trending_up", about="win_rate", claims=claims)
    view = added.belief
    assert (view.posterior.alpha, view.posterior.beta, view.posterior.n) == (2.0, 1.0, 0)
    assert view.posterior.credibility == pytest.approx(0.75)
    assert view.posterior.win_rate == pytest.approx(win_rate)
    assert view.win_rate_low < win_rate < view.win_rate_high
    assert (view.founding, view.outcomes, view.strength, view.worth_testing) == (0, (), 1.0, False)
    assert (view.belief.source, view.belief.known_at, view.last_evidence_at) == ("seeded", T0, T0)
    assert not added.replayed
    assert memory.list_beliefs().beliefs == (view,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "symbol, direction, session, regime, volatility_regime, or give conditions"),
        ({"strategy_name": "VolBreakout"}, "does not say where it holds"),
        ({"proposition": " ", "symbol": "BTC"}, r"^proposition: "),
        ({"conditions": {"regimee": "ranging"}}, "did you mean 'regime'"),
        ({"conditions": {"field": "drawdown_pc", "op": ">", "value": 0.1}}, "drawdown_pct"),
        ({"conditions": {}}, r"^conditions: "),
        ({"symbol": "BTC", "about": "win_rate", "reference": 1.0}, r"^reference: "),
        ({"symbol": "BTC", "reference": float("nan")}, r"^reference: "),
        ({"regime": "choppy"}, r"^regime: "),
    ],
)
def test_a_belief_that_cannot_be_judged_is_refused_and_nothing_is_written(
    quick: Memory, changes: dict[str, Any], message: str
) -> None:
    links = quick.verify_audit().links
    with pytest.raises(Invalid, match=message):
        quick.add_belief(**({"proposition": "Breaks work"} | changes))
    assert quick.verify_audit().links == links


def test_the_same_belief_again_is_a_replay_and_another_reference_a_conflict(memory: Memory, clock: FakeClock) -> None:
    stated(memory)
    links = memory.verify_audit().links
    clock.advance(days=1)
    again = memory.add_belief(proposition="Breaks carry in a trend", regime="trending_up")
    assert (again.replayed, again.belief.belief.known_at) == (True, T0)
    with pytest.raises(Conflict, match="reference: this belief compares its mean_outcome with 0 since"):
        stated(memory, reference=0.4)
    assert memory.verify_audit().links == links
    assert len(memory.list_beliefs().beliefs) == 1


# Evidence.


def test_only_trades_known_after_the_belief_count(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call(pnl=1.0))
    belief = stated(memory)
    memory.remember_trade(**a_trade_call(pnl=2.0))
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(pnl=3.0, closed_at=T0))
    assert counts(memory, belief) == (2.0, 1.0, 0)
    traded(memory, clock, 1.0)
    assert counts(memory, belief) == (3.0, 1.0, 1)


@pytest.mark.parametrize(
    ("where", "trade", "counted"),
    [
        ({"regime": "trending_up"}, {}, 1),
        ({"regime": "trending_up"}, {"context_regime": None}, 0),
        ({"symbol": "XAUUSD", "direction": "short"}, {}, 0),
        ({"symbol": "XAUUSD", "direction": "short"}, {"direction": "short"}, 1),
        ({"symbol": "XAUUSD", "strategy_name": "Fade"}, {}, 0),
        ({"volatility_regime": "low"}, {"context": CALM}, 1),
        ({"session": "asia"}, {"opened_at": NIGHT}, 1),
        ({"session": "asia"}, {}, 0),
        ({"conditions": {"field": "atr_d1", "op": ">", "value": 90}}, {}, 1),
        ({"conditions": {"field": "atr_d1", "op": ">", "value": 90}}, {"context_atr_d1": 80.0}, 0),
        ({"conditions": {"field": "hour", "op": "<", "value": 3}}, {"opened_at": NIGHT}, 1),
        ({"conditions": {"not": {"field": "spread_points", "op": ">", "value": 1}}}, {}, 0),
        ({"regime": "trending_up", "conditions": CALM}, {}, 0),
        ({"regime": "ranging", "conditions": CALM}, {"context": CALM}, 0),
        ({"regime": "trending_up", "conditions": CALM}, {"context": CALM}, 1),
    ],
)
def test_only_trades_in_its_domain_and_under_its_conditions_count(
    quick: Memory, clock: FakeClock, where: dict[str, Any], trade: dict[str, Any], counted: int
) -> None:
    belief = quick.add_belief(proposition="It works there", **where).belief.belief.id
    clock.advance(hours=1)
    quick.remember_trade(**a_trade_call(**trade))
    assert counts(quick, belief) == (2.0 + counted, 1.0, counted)


def test_each_episode_counts_one_whatever_its_size(memory: Memory, clock: FakeClock) -> None:
    belief, opposite = stated(memory), stated(memory, claims="below")
    learned = traded(memory, clock, 20.0, 0.1, -5.0)
    assert counts(memory, belief) == (4.0, 2.0, 3)
    assert counts(memory, opposite) == (3.0, 3.0, 3)
    confirms = {each.belief_id: (each.confirms, each.founding, each.n) for each in learned.evidence}
    assert confirms == {belief: (False, False, 3), opposite: (True, False, 3)}


def test_one_win_in_a_trend_and_nine_losses_in_ranges_neither_make_nor_feed_a_belief_about_trends(
    memory: Memory, clock: FakeClock
) -> None:
    belief = stated(memory)
    induced = traded(memory, clock, 1.0).induced
    for _ in range(9):
        induced += traded(memory, clock, -1.0, regime="ranging").induced
    assert induced == ()
    assert counts(memory, belief) == (3.0, 1.0, 1)


def test_live_trades_do_not_feed_paper_beliefs_nor_paper_trades_live_ones(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.open_account(venue="binance", name="paper", mode="paper")
    memory.deploy(strategy_name="VolBreakout", account="paper")
    live, paper = stated(memory), stated(memory, mode="paper")
    traded(memory, clock, -1.0, deployment=DEPLOYMENT)
    traded(memory, clock, 1.0, 1.0, deployment="VolBreakout@paper")
    assert counts(memory, live, mode="live") == (2.0, 2.0, 1)
    assert counts(memory, paper, mode="paper") == (4.0, 1.0, 2)
    (view,) = memory.list_beliefs(deployment="VolBreakout@paper").beliefs
    assert (view.belief.id, view.belief.mode) == (paper, "paper")


def test_outcomes_have_a_mean_and_an_interval_in_each_unit(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory)
    traded(memory, clock, 3.0, -1.0, 4.0, -1.0, 2.0)
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(pnl_r=None, size=10.0, context_atr_d1=None))
    in_r, in_percent = view_of(memory, belief).outcomes
    reach = 2.131847 * (5.3 / 5) ** 0.5  # Student's t of .95 with 4 degrees of freedom
    assert (in_r.unit, in_r.n, in_percent.unit, in_percent.n) == ("R", 5, "pct", 1)
    assert [in_r.low, in_r.mean, in_r.high] == pytest.approx([1.4 - reach, 1.4, 1.4 + reach])
    assert (in_percent.low, in_percent.high) == (None, None)


def test_the_interval_of_the_win_rate_contains_its_mean_and_narrows(memory: Memory, clock: FakeClock) -> None:
    belief, widths = stated(memory, claims="below"), []
    for r in (1.0, -1.0, -1.0, 1.0):
        traded(memory, clock, r, r)
        view = view_of(memory, belief)
        assert 0 < view.win_rate_low < view.posterior.win_rate < view.win_rate_high < 1
        widths.append(view.win_rate_high - view.win_rate_low)
    assert widths == sorted(widths, reverse=True)


def test_weighting_by_outcome_changes_the_answer_and_is_not_stored(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory)
    traded(memory, clock, 5.0, 0.5, -1.0)
    before = memory.list_beliefs()
    assert counts(memory, belief, weighting="outcome") == (2.0 + 2.0 + 0.5, 2.0, 3)
    assert memory.list_beliefs() == before
    assert counts(memory, belief) == (4.0, 2.0, 3)


# Induced and refuted beliefs.


def an_edge(memory: Memory, clock: FakeClock, trades: Iterable[int] = range(46)) -> list[LearningReport]:
    """Nine of ten won in trends and three of ten in ranges, in turn, one trade a day."""
    reports = []
    for n in trades:
        trending, of_ten = n % 2 == 0, n // 2 % 10
        won = of_ten != 4 if trending else of_ten in (1, 4, 8)
        regime = "trending_up" if trending else "ranging"
        reports.append(traded(memory, clock, 1.0 if won else -1.0, regime=regime))
    return reports


def test_a_real_edge_makes_a_belief_by_itself(quick: Memory, clock: FakeClock) -> None:
    reports = an_edge(quick, clock)
    ((number, belief),) = [
        (n, each) for n, report in enumerate(reports) for each in report.induced if each.domain == UP
    ]
    assert (number, belief.claims, belief.source) == (38, "above", "induced")
    assert belief.known_at == T0 + 39 * DAY
    assert belief.reference == pytest.approx(6 / 19)
    (change,) = (each for each in reports[number].evidence if each.belief_id == belief.id)
    assert (change.confirms, change.founding, change.n) == (True, True, 20)
    view = view_of(quick, belief.id)
    assert (view.founding, view.posterior.n, view.without_founding.n) == (20, 23, 3)
    assert (view.posterior.alpha, view.posterior.beta) == (1.0 + 21, 1.0 + 2)
    assert (view.without_founding.alpha, view.without_founding.beta) == (1.0 + 3, 1.0)


def test_a_refuted_belief_is_retired_at_its_tenth_trade_with_the_date(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory)
    assert traded(memory, clock, *[-1.0] * 9).retired == ()
    assert [each.id for each in traded(memory, clock, -1.0).retired] == [belief]
    assert memory.list_beliefs().beliefs == ()
    assert view_of(memory, belief).belief.retired_at == T0 + 10 * DAY
    (before,) = memory.list_beliefs(as_of=T0 + 10 * DAY - SECOND).beliefs
    assert (before.belief.retired_at, before.posterior.n) == (None, 9)
    assert traded(memory, clock, -1.0).retired == ()
    assert counts(memory, belief) == (2.0, 12.0, 11)


def test_an_open_question_is_worth_testing(memory: Memory, clock: FakeClock) -> None:
    question, sure = stated(memory), stated(memory, symbol="XAUUSD", claims="below", reference=0.9)
    traded(memory, clock, *[1.0, -1.0] * 4, 1.0)
    assert memory.list_beliefs(worth_testing=True).beliefs == ()
    traded(memory, clock, -1.0)
    assert [each.belief.id for each in memory.list_beliefs(worth_testing=True).beliefs] == [question]
    assert [each.belief.id for each in memory.list_beliefs(worth_testing=False).beliefs] == [sure]
    assert 0.3 <= view_of(memory, question).posterior.credibility <= 0.7
    assert [each.belief.id for each in memory.list_beliefs().beliefs] == [sure, question]


# Reading beliefs.


def test_strength_fades_since_the_last_evidence_and_is_little_in_another_regime(
    memory: Memory, clock: FakeClock
) -> None:
    belief, anywhere = stated(memory), stated(memory, symbol="XAUUSD")
    traded(memory, clock, 1.0)
    clock.advance(days=180)
    assert view_of(memory, belief).strength == pytest.approx(2**-0.3)
    assert view_of(memory, belief, regime="trending_up").strength == pytest.approx(2**-0.3)
    assert view_of(memory, belief, regime="ranging").strength == pytest.approx(0.3 * 2**-0.3)
    assert view_of(memory, anywhere, regime="ranging").strength == pytest.approx(2**-0.3)
    assert view_of(memory, belief, as_of=T0 + DAY).strength == 1.0
    traded(memory, clock, -1.0)
    assert view_of(memory, belief).strength == 1.0


def test_beliefs_of_another_strategy_are_left_out(memory: Memory) -> None:
    deployed(memory)
    own, any_ones = stated(memory, strategy_name="VolBreakout"), stated(memory)
    stated(memory, strategy_name="Fade")
    for answer in (memory.list_beliefs(strategy_name="VolBreakout"), memory.list_beliefs(deployment=DEPLOYMENT)):
        assert {each.belief.id for each in answer.beliefs} == {own, any_ones}
    assert len(memory.list_beliefs().beliefs) == 3
    with pytest.raises(NotFound, match="deployment: no deployment 'nowhere'"):
        memory.list_beliefs(deployment="nowhere")


def corrected(memory: Memory, desk: Desk) -> dict[datetime, BeliefList]:
    """The answers after a winning trade, and after a late fee that turned it into a loss."""
    bought, sold = a_report("in", at(1), 2.0, 100.0), a_report("out", at(2), -2.0, 110.0)
    fee, answers = a_report("late", at(2), kind="fee", fee=50.0), {}
    desk.tick(1, [], [a_position(2.0)], done=[bought], order=an_order(2.0))
    for hours, fills in ((2, [sold]), (3, []), (4, [fee]), (5, [])):
        desk.tick(hours, fills=fills)
        answers[at(hours)] = memory.list_beliefs()
    return answers


def test_corrections_and_late_trades_change_no_answer_as_of_an_earlier_instant(
    memory: Memory, clock: FakeClock
) -> None:
    desk, belief = Desk(memory, clock), stated(memory, symbol="BTC")
    answers = corrected(memory, desk)
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(symbol="BTC", closed_at=at(2.5)))
    assert [each.beliefs[0].posterior.alpha for each in answers.values()] == [3.0, 3.0, 2.0, 2.0]
    for when, answer in answers.items():
        assert memory.list_beliefs(as_of=when, seen_at=when) == answer
    assert [counts(memory, belief, as_of=at(hours))[:2] for hours in (2, 3, 4)] == [(3.0, 1.0), (4.0, 1.0), (3.0, 2.0)]
    assert memory.list_beliefs(as_of=T0 - SECOND, retired=True).beliefs == ()


def test_later_trades_change_no_earlier_answer_about_induced_beliefs(quick: Memory, clock: FakeClock) -> None:
    answers = {}
    for n in range(4):
        an_edge(quick, clock, range(12 * n, 12 * n + 12))
        answers[clock.now()] = quick.list_beliefs()
    assert [bool(each.beliefs) for each in answers.values()] == [False, False, False, True]
    clock.advance(days=1)
    for day in range(1, 25):
        lost = a_trade_call(pnl=-100.0, pnl_r=-1.0, closed_at=T0 + day * DAY + SECOND)
        quick.remember_trade(**lost)
    assert quick.list_beliefs().beliefs == ()
    for when, answer in answers.items():
        assert quick.list_beliefs(as_of=when, seen_at=when) == answer
    assert quick.doctor().healthy


# Retired beliefs, and plans made from beliefs.


def test_a_retired_belief_is_hidden_and_still_collects_evidence(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory)
    traded(memory, clock, 1.0)
    gone = memory.retire_belief(belief_id=belief, reason="not mine")
    links = memory.verify_audit().links
    clock.advance(days=1)
    again = memory.retire_belief(belief_id=belief)
    assert (gone.replayed, again.replayed, again.belief.belief.retired_at) == (False, True, T0 + DAY)
    assert memory.verify_audit().links == links
    assert memory.list_beliefs().beliefs == ()
    assert len(memory.list_beliefs(as_of=T0 + DAY - SECOND).beliefs) == 1
    traded(memory, clock, 1.0)
    assert counts(memory, belief) == (4.0, 1.0, 2)


def test_a_belief_that_is_not_there_cannot_be_retired(memory: Memory) -> None:
    with pytest.raises(NotFound, match="belief_id: no belief 'nothing'; list_beliefs lists them"):
        memory.retire_belief(belief_id="nothing")


# Plans that beliefs propose.


def proposals_of(memory: Memory, belief_id: str) -> list[Proposal]:
    proposals = (view.proposal for view in memory.list_proposals().proposals)
    return [each for each in proposals if each.belief_id == belief_id]


def traded_elsewhere(memory: Memory, clock: FakeClock, **changes: Any) -> None:
    """Twenty trades in ranging markets that break even."""
    traded(memory, clock, *[1.0, -1.0] * 10, regime="ranging", **changes)


@pytest.mark.parametrize(
    ("claims", "r", "action"), [("below", -1.0, ("skip_trade", None)), ("above", 1.0, ("adjust_param", 1.2))]
)
def test_a_credible_belief_proposes_one_plan_to_the_deployment_that_fed_it(
    memory: Memory, clock: FakeClock, claims: Claim, r: float, action: tuple[str, float | None]
) -> None:
    deployed(memory)
    belief = stated(memory, claims=claims)
    traded_elsewhere(memory, clock, deployment=DEPLOYMENT)
    assert traded(memory, clock, *[r] * 19, deployment=DEPLOYMENT).proposals == ()
    learned = traded(memory, clock, r, deployment=DEPLOYMENT)
    assert traded(memory, clock, r, r, deployment=DEPLOYMENT).proposals == ()
    (proposal,) = proposals_of(memory, belief)
    assert (learned.plans, learned.proposals, memory.list_plans().plans) == ((), (proposal.id,), ())
    assert (proposal.status, proposal.known_at, proposal.reflection_id) == ("proposed", T0 + 40 * DAY, None)
    assert proposal.statement.startswith(
        f"Trades there earn {r:+.2f}R (90%: {r:+.2f} to {r:+.2f}R, n=20) against 0.00R"
    )
    made = memory.accept_proposal(proposal_id=proposal.id).proposal.made_id
    (view,) = plans_of(memory, belief)
    assert (view.plan.id, view.status) == (made, "active")
    assert (view.plan.action.kind, view.plan.action.magnitude) == action
    assert view.plan.condition == parse_condition({"regime": "trending_up"})
    checked = memory.check_active_plans(deployment=DEPLOYMENT, current_context=ContextVector(regime="trending_up"))
    assert [each.plan.id for each in checked.applying] == [made]


def test_automatic_plans_are_made_without_asking(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    automatic = MemoryOverrides(automatic_plans=True)
    memory.deploy(strategy_name="VolBreakout", account="main", name="automatic", memory=automatic)
    belief = stated(memory, claims="below")
    learned = traded(memory, clock, *[-1.0] * 20, deployment="automatic")
    (proposal,), (view,) = proposals_of(memory, belief), plans_of(memory, belief)
    assert learned.plans == (view.plan.id,)
    assert (proposal.status, proposal.made_id) == ("accepted", view.plan.id)
    assert proposal.decided_reason == "accepted automatically: the deployment has automatic_plans"


def test_a_belief_with_few_trades_or_little_credibility_proposes_nothing(quick: Memory, clock: FakeClock) -> None:
    stated(quick)
    assert traded(quick, clock, *[1.0] * 12).proposals == ()
    assert traded(quick, clock, *[-1.0] * 12).proposals == ()
    assert quick.list_proposals().proposals == ()


def test_a_belief_that_trades_win_seldom_does_not_propose_to_skip_trades_that_earn(
    quick: Memory, clock: FakeClock
) -> None:
    belief = stated(quick, about="win_rate", claims="below")
    traded(quick, clock, *[5.0, -1.0, -1.0] * 20)
    view = view_of(quick, belief)
    assert view.posterior.credibility > 0.9
    assert view.outcomes[0].mean == pytest.approx(1.0)
    assert quick.list_proposals().proposals == ()


def test_a_belief_that_trades_win_often_proposes_to_skip_trades_that_lose(quick: Memory, clock: FakeClock) -> None:
    belief = stated(quick, about="win_rate")
    traded(quick, clock, *[0.1, 0.1, 0.1, -1.0] * 20)
    view = view_of(quick, belief)
    assert view.established
    assert view.posterior.credibility > 0.9
    (proposal,) = proposals_of(quick, belief)
    assert json.loads(proposal.content)["planned_action"] == {"type": "skip_trade"}


def test_retiring_a_belief_ends_the_plan_and_withdraws_the_proposal_that_came_from_it(
    memory: Memory, clock: FakeClock
) -> None:
    belief, other = stated(memory, claims="below"), stated(memory, claims="below", symbol="XAUUSD")
    third = stated(memory, claims="below", direction="long")
    traded(memory, clock, *[-1.0] * 20)
    for each in (belief, other):
        memory.accept_proposal(proposal_id=proposals_of(memory, each)[0].id)
    clock.advance(days=1)
    memory.retire_belief(belief_id=belief)
    memory.retire_belief(belief_id=third)
    (gone,), (left,), (open_before,) = plans_of(memory, belief), plans_of(memory, other), proposals_of(memory, third)
    assert (gone.status, gone.ended_at, left.status) == ("cancelled", T0 + 21 * DAY, "active")
    assert (open_before.status, open_before.decided_reason) == ("withdrawn", "its belief was retired")
    assert traded(memory, clock, -1.0).proposals == ()


def test_a_proposal_and_a_plan_that_outcomes_no_longer_support_end_with_the_reason(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    belief, other = stated(memory, claims="below"), stated(memory, claims="below", symbol="XAUUSD")
    traded(memory, clock, *[-1.0] * 20, deployment=DEPLOYMENT)
    (accepted,) = proposals_of(memory, belief)
    memory.accept_proposal(proposal_id=accepted.id)
    traded(memory, clock, *[3.0] * 6, deployment=DEPLOYMENT)
    (plan,), (withdrawn,) = plans_of(memory, belief), proposals_of(memory, other)
    assert (plan.status, withdrawn.status) == ("cancelled", "withdrawn")
    assert str(withdrawn.decided_reason).startswith("no longer supported: the mean outcome there is -0.")
    with pytest.raises(Conflict, match="the proposal was withdrawn: no longer supported"):
        memory.accept_proposal(proposal_id=withdrawn.id)
    assert memory.verify_audit().intact


def test_a_proposal_that_is_not_supported_when_the_owner_accepts_it_is_refused(
    memory: Memory, clock: FakeClock
) -> None:
    belief = stated(memory, claims="below")
    traded(memory, clock, *[-1.0] * 20)
    (proposal,) = proposals_of(memory, belief)
    deployed(memory)
    traded(memory, clock, *[3.0] * 6, deployment=DEPLOYMENT)  # which reviews only the advice to that deployment
    with pytest.raises(Conflict, match="proposal_id: the advice is not supported any more: the mean outcome there is"):
        memory.accept_proposal(proposal_id=proposal.id)
    assert memory.list_plans().plans == ()


def test_a_rejected_plan_is_not_proposed_again(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory, claims="below")
    traded(memory, clock, *[-1.0] * 20)
    memory.reject_proposal(proposal_id=proposals_of(memory, belief)[0].id)
    assert traded(memory, clock, *[-1.0] * 5).proposals == ()
    assert [each.status for each in proposals_of(memory, belief)] == ["rejected"]


def test_a_plan_is_proposed_again_after_its_expiry_and_not_before(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory, claims="below")
    traded(memory, clock, *[-1.0] * 20)
    (proposal,) = proposals_of(memory, belief)
    memory.accept_proposal(proposal_id=proposal.id)
    memory.cancel_plan(plan_id=plans_of(memory, belief)[0].plan.id)
    assert traded(memory, clock, -1.0, -1.0).proposals == ()
    clock.advance(days=30)
    assert traded(memory, clock, -1.0).proposals == (proposal.id,)
    assert [each.status for each in proposals_of(memory, belief)] == ["proposed"]
    memory.accept_proposal(proposal_id=proposal.id)
    assert [each.status for each in plans_of(memory, belief)] == ["cancelled", "active"]


def test_trades_remembered_long_after_their_close_propose_nothing(memory: Memory, clock: FakeClock) -> None:
    belief = stated(memory, claims="below")
    clock.advance(days=60)
    for number in range(24):
        memory.remember_trade(**a_trade_call(closed_at=T0 + (1 + number) * DAY, pnl=-100.0, pnl_r=-1.0))
    assert view_of(memory, belief).posterior.credibility > 0.9
    assert memory.list_proposals().proposals == ()
    (proposal,) = traded(memory, clock, -1.0).proposals
    assert memory.list_proposals().proposals[0].proposal.id == proposal


# Conditions.


def test_conditions_are_an_object_in_python_and_canonical_text_in_the_answer(memory: Memory) -> None:
    stated = {
        "any": [{"regime": "ranging", "hour": 9}, {"not": {"field": "confidence", "op": "in", "value": [0.5, 1]}}]
    }
    added = memory.add_belief(proposition="it holds", conditions=stated)
    assert added.belief.belief.conditions == parse_condition(stated)
    assert added.belief.belief.id == "2f4b6f82-2b9a-5a6c-a846-f7c271355833"
    answer = OPERATIONS["list_beliefs"].as_json(memory.list_beliefs())
    hour, regime = '{"field":"hour","op":"==","value":9.0}', '{"field":"regime","op":"==","value":"ranging"}'
    confidence = '{"not":{"field":"confidence","op":"in","value":[0.5,1.0]}}'
    assert answer["beliefs"][0]["belief"]["conditions"] == f'{{"any":[{{"all":[{hour},{regime}]}},{confidence}]}}'


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"field": "momentum_bias", "op": ">", "value": 0.5}, "'momentum_bias' is not known when a trade is entered"),
        ({"hours_to_event": 2}, "'hours_to_event' is not known when a trade is entered"),
        ({"field": "price", "op": "crosses_above", "value": 100}, "crosses_above compares two ticks"),
    ],
)
def test_conditions_that_no_trade_can_meet_are_refused(
    memory: Memory, conditions: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid, match=f"conditions: {message}"):
        memory.add_belief(proposition="it holds", conditions=conditions)
    assert memory.verify_audit().links == 0
