"""Conditions as people write them: what has one meaning is read and named, and all else is left to the grammar."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given

from backsight.core.errors import Invalid
from backsight.core.memory.conditions import condition_json, parse_condition
from backsight.core.memory.loose_conditions import loosen_condition
from core.memory.test_conditions import ANYTHING, CONDITIONS


def meaning(value: object) -> Any:
    loose, notes = loosen_condition(value, field="trigger_condition")
    condition = condition_json(parse_condition(loose, field="trigger_condition"))
    assert (notes != ()) == (loose != value), "what is rewritten is named, and nothing else"
    return condition


def compared(field: str, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def all_of(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"all": list(parts)}


DEEP = compared("drawdown_pct", ">", 0.15)
NFP = compared("nfp.actual", ">", 200000.0)
LOW = compared("volatility_regime", "==", "low")
TRENDING = compared("regime", "in", ["trending_up", "trending_down"])
LOSSES = compared("consecutive_losses", ">=", 3.0)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"drawdown_pct": {">": 0.15}}, DEEP),
        ({"drawdown_pct": {"$gt": "15%"}}, DEEP),
        ({"any_signal": True, "drawdown_pct": {">": 0.15}}, DEEP),
        ({"drawdown_pct": {"op": ">", "value": 0.15}}, DEEP),
        ({"field": "drawdown_pct", "operator": "gt", "threshold": 0.15}, DEEP),
        ({"drawdown pct": "> 15%"}, DEEP),
        ({"if": "Drawdown_pct > 15%"}, DEEP),
        ({"price": {">=": 2000, "<": 2400}}, all_of(compared("price", ">=", 2000.0), compared("price", "<", 2400.0))),
        ({"price": {"min": 2000}}, compared("price", ">=", 2000.0)),
        ({"price": {"between": ["2,000", 2400]}}, compared("price", "between", [2000.0, 2400.0])),
        ({"losing_streak": {"at least": 3}}, LOSSES),
        ({"consecutive_losses": {"gte": "3"}}, LOSSES),
        ({"weekday": ["Mon", "Friday"]}, compared("weekday", "in", [0.0, 4.0])),
        ({"weekday": "fridays"}, compared("weekday", "==", 4.0)),
        ({"hour": {">=": "13:00"}}, compared("hour", ">=", 13.0)),
        ({"regime": "low_vol"}, LOW),
        ({"regime": "Low Volatility"}, LOW),
        ({"volatility": "low"}, LOW),
        ({"regime": "low_vol", "strategy": "IM"}, all_of(LOW, compared("strategy", "==", "IM"))),
        ({"if": "regime=low_vol AND strategy=IM"}, all_of(LOW, compared("strategy", "==", "IM"))),
        ({"when": "regime is ranging"}, compared("regime", "==", "ranging")),
        ({"or": ["price > 2400", {"price": {"lt": 2000}}]},
         {"any": [compared("price", ">", 2400.0), compared("price", "<", 2000.0)]}),
        ({"regime": "trending"}, TRENDING),
        ({"regime": {"!=": "trending"}}, {**TRENDING, "op": "not_in"}),
        ({"regime": ["trending", "ranging"]}, compared("regime", "in", ["trending_up", "trending_down", "ranging"])),
        ({"regime": "Trending Up"}, compared("regime", "==", "trending_up")),
        ({"side": "BUY"}, compared("direction", "==", "long")),
        ({"session": "New York"}, compared("session", "==", "newyork")),
        ({"field": "regime", "value": "ranging"}, compared("regime", "==", "ranging")),
        ({"regime": "changes"}, {"field": "regime", "op": "changes"}),
        ({"field": "regime", "op": "changed"}, {"field": "regime", "op": "changes"}),
        ({"price": {"reaches": 2400}},
         {"any": [compared("price", "crosses_above", 2400.0), compared("price", "crosses_below", 2400.0)]}),
        ({"NFP": "> 200K"}, NFP),
        ({"if": "NFP above 200K"}, NFP),
        ({"event": "NFP > 200K"}, NFP),
        ({"event": "NFP", "actual": {">": 200000}}, NFP),
        ({"event": "NFP", "op": ">", "value": "200K"}, NFP),
        ({"event": "NFP", "op": ">", "value": "200K", "weekday": "Friday"},
         all_of(NFP, compared("weekday", "==", 4.0))),
        ({"Non-Farm Payrolls": {"actual": {">": 200000}}}, NFP),
        ({"nfp_actual": {">": 200000}}, NFP),
        ({"event": "NFP", "outcome": "beats"}, compared("nfp.surprise", ">", 0.0)),
        ({"Fed": "hikes"}, compared("fomc.change", ">", 0.0)),
        ({"fomc": {"change": {">": 0}}}, compared("fomc.change", ">", 0.0)),
        ({"cpi_actual": "> 3.2%"}, compared("cpi.actual", ">", 3.2)),
        ({"event": "CPI"}, compared("event.kind", "==", "cpi")),
        ({"not": {"regime": "low_vol"}}, {"not": LOW}),
    ],
)  # fmt: skip
def test_what_has_one_meaning_is_read(written: Any, read: Any) -> None:
    assert meaning(written) == read


@given(CONDITIONS)
def test_a_condition_of_the_grammar_is_not_touched_in_its_meaning(condition: Any) -> None:
    assert meaning(condition) == condition_json(parse_condition(condition))


@given(ANYTHING)
def test_anything_is_read_or_refused(value: object) -> None:
    with suppress(Invalid):
        loose, notes = loosen_condition(value, field="trigger_condition")
        assert notes or loose is value


@pytest.mark.parametrize("depth", [20, 2_000])
def test_deep_conditions_are_left_to_the_grammar(depth: int) -> None:
    condition: dict[str, Any] = {"regime": "low_vol"}
    for _ in range(depth):
        condition = {"not": condition}
    with pytest.raises(Invalid, match="nested deeper"):
        meaning(condition)


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ({"VB_signal": True}, 'leave it out; for its strategy, write {"strategy": "VB"}'),
        ({"the_VB_signals": True}, 'for its strategy, write {"strategy": "VB"}'),
        ({"any_signal": True}, "a plan applies to every signal, so leave it out"),
        ({"not_traded_since": "Wednesday"}, 'write {"field": "days_since_last_trade", "op": ">=", "value": 3}'),
        ({"regmie": "low_vol"}, "did you mean 'regime'"),
        ({"drawdown_pct": {"foo": 1}}, 'compare with operators, like {"drawdown_pct": {">=": 0}}'),
        ({"drawdown_pct": {">": 15}}, "so 0.15 for 15%"),
        ({"event": "company picnic"}, "known: fomc, cpi"),
        ({"if": "what a lovely day"}, "write conditions like"),
        ({"if": "hour > 9 AND hour < 12 OR regime = ranging"}, "write conditions like"),
        ({"field": "drawdown_pct", "value": 0.1}, "has no op"),
        ({"regime": ["low_vol", "ranging"]}, "'low_vol' is not a regime"),
        ({"price": "cheap"}, "'cheap' is not a finite number"),
    ],
)
def test_what_has_no_meaning_or_two_is_refused_with_a_remedy(written: Any, remedy: str) -> None:
    with pytest.raises(Invalid) as refused:
        meaning(written)
    assert remedy in refused.value.message


def test_a_note_says_what_was_read_as_what() -> None:
    _, notes = loosen_condition({"NFP": "> 200K", "strategy": "IM"}, field="trigger_condition")
    assert notes == ('trigger_condition: {"NFP": "> 200K"} is read as nfp.actual > 200000',)
