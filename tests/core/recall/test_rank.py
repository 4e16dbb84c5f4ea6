"""The sentence of a recalled memory: what it was like, and how that is known."""

from datetime import timedelta
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.recall.rank import sentence
from backsight.core.recall.score import Situation
from backsight.testing import T0, an_episode


def described(asked: ContextVector, *, sim: float, **changes: Any) -> str:
    """The sentence of a memory that has regime, session and daily ATR, for a query with this context."""
    context = ContextVector(regime="ranging", session="asia", atr_d1=50.0)
    memory = an_episode(pnl_r=3.0, context=context, direction=None, **changes)
    return sentence(memory, situation=Situation(context=asked), sim=sim, now=T0 + timedelta(days=12))


def test_a_memory_gives_its_reason_in_one_sentence() -> None:
    text = described(ContextVector(regime="ranging", session="asia", atr_d1=50.0), sim=0.91)
    assert text == "+3.0R in a very similar context (Sim .91 by regime, session, daily ATR), 12 days old"


def test_two_fields_make_no_context_very_similar() -> None:
    two = described(ContextVector(regime="ranging", session="asia"), sim=1.0)
    assert two == "+3.0R in a similar context (Sim 1.00 by regime, session), 12 days old"


def test_a_field_that_the_memory_lacks_is_not_called_compared() -> None:
    lacking = described(ContextVector(regime="ranging", session="asia", atr_h1=5.0), sim=0.8)
    assert lacking == "+3.0R in a similar context (Sim .80 by regime, session), 12 days old"


def test_without_a_common_field_nothing_is_called_similar() -> None:
    assert described(ContextVector(), sim=0.5) == "+3.0R, no context to compare, 12 days old"


def test_a_description_counts_where_both_sides_give_one() -> None:
    query = Situation(context=ContextVector(regime="ranging", session="asia"), words=frozenset({"break"}))
    memory = an_episode(pnl_r=1.0, context=query.context, direction=None, market_context="a break")
    text = sentence(memory, situation=query, sim=1.0, now=T0 + timedelta(days=1))
    assert text == "+1.0R in a very similar context (Sim 1.00 by regime, session, description), 1 day old"
