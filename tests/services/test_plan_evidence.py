"""The figures of a plan that a belief made: in prompts and checks those of now, whatever the stored reason says."""

import pytest

from backsight.answers.layouts import brief
from backsight.core.memory.prospective import PlanDraft, PlanSource, make_plan
from backsight.memory import Memory
from backsight.store import plans as stored
from backsight.testing import FakeClock, a_snapshot, a_trade_call
from services.test_plans import DEPLOYMENT
from support import deployed

FOUNDING = "Trades there earn -0.90R (90%: -1.20 to -0.60R, n=20). Belief: ranges lose"


@pytest.fixture
def belief(memory: Memory) -> str:
    """A belief about ranging markets, and the plan that it made."""
    deployed(memory)
    belief = memory.add_belief(proposition="ranges lose", strategy_name="VolBreakout", regime="ranging", claims="below")
    draft = PlanDraft(
        condition={"symbol": "BTC"},
        action={"type": "skip_trade"},
        reasoning=FOUNDING,
        sources=(PlanSource(kind="semantic", id=belief.belief.belief.id),),
    )
    with memory.writing() as transaction:
        transaction.add(stored.PLANS, make_plan(draft, owner_id=memory.owner, now=memory.now))
    return belief.belief.belief.id


def test_the_figures_follow_the_evidence(memory: Memory, clock: FakeClock, belief: str) -> None:
    texts = []
    for number, pnl_r in enumerate((-1.0, -0.5, 2.0)):
        clock.advance(days=1)
        call = a_trade_call(deployment=DEPLOYMENT, context_regime="ranging", pnl=10 * pnl_r, pnl_r=pnl_r)
        memory.remember_trade(**call, idempotency_key=str(number))
        clock.advance(hours=1)
        prompt = memory.open_tick(
            deployment=DEPLOYMENT, at=clock.now(), before=a_snapshot(at=clock.now()), symbols=["BTC"]
        )
        (line,) = [line for line in prompt.text.split("\n") if line.startswith("- BTC: skip the trade")]
        (figures,) = memory.check_active_plans(deployment=DEPLOYMENT, symbol="BTC", dry_run=True).figures
        assert figures.text in line
        assert "0.90R" not in line
        texts.append(figures.text.partition(" (")[0])
    assert texts == ["trades there earn -1.00R", "trades there earn -0.75R", "trades there earn +0.17R"]
    (former,) = memory.check_active_plans(
        deployment=DEPLOYMENT, symbol="BTC", dry_run=True, as_of=clock.now().replace(microsecond=0)
    ).figures
    assert former.text.startswith(texts[-1])
    assert "+0.17R" in brief(memory.check_active_plans(deployment=DEPLOYMENT, symbol="BTC"))


def test_a_plan_that_no_belief_made_has_no_such_figures(memory: Memory) -> None:
    deployed(memory)
    memory.create_trading_plan(
        trigger_condition={"symbol": "BTC"}, planned_action={"type": "skip_trade"}, reasoning="so"
    )
    assert memory.check_active_plans(deployment=DEPLOYMENT, symbol="BTC").figures == ()
