"""The grammar of conditions: which conditions are accepted or refused, and that evaluation always has an answer."""

import json
import math
from contextlib import suppress
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import (
    DEEPEST,
    FIELDS,
    FOR_TEXT,
    MOOD_FIELDS,
    MOST_COMPARISONS,
    OPERATORS,
    TRIGGER_TYPES,
    Condition,
    comparisons_in,
    condition_json,
    condition_text,
    condition_values,
    evaluate_condition,
    fields_in,
    parse_condition,
    stated_trigger,
    trigger_type_of,
)
from backsight.testing import T0

Json = dict[str, Any]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


def scalars(name: str) -> st.SearchStrategy[Any]:
    known = FIELDS[name]
    if known.kind == "instant":
        return st.integers(-(10**6), 10**6).map(lambda seconds: format_instant(T0 + timedelta(seconds=seconds)))
    if known.kind == "text":
        return st.sampled_from(known.labels or ("IM", "BTC"))
    return st.floats(max(known.low, -1e9), min(known.high, 1e9))


@st.composite
def compared(draw: st.DrawFn) -> Json:
    name = draw(st.sampled_from(sorted(FIELDS)))
    op = draw(st.sampled_from(FOR_TEXT if FIELDS[name].kind == "text" else OPERATORS))
    values: Any = scalars(name)
    if op == "changes":
        return {"field": name, "op": op}
    if op == "between":
        values = st.lists(values, min_size=2, max_size=2).map(sorted)
    elif op in ("in", "not_in"):
        values = st.lists(values, min_size=1, max_size=3)
    return {"field": name, "op": op, "value": draw(values)}


CONDITIONS = st.recursive(
    compared(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=5,
).filter(lambda condition: depth_of(condition) <= DEEPEST)
KNOWN = st.fixed_dictionaries({}, optional={name: scalars(name) for name in FIELDS if name != "now"})
VALUES = KNOWN | st.dictionaries(st.sampled_from(sorted(FIELDS)), ANYTHING)


def depth_of(condition: Json) -> int:
    inner = condition.get("all") or condition.get("any") or ([condition["not"]] if "not" in condition else [])
    return 1 + max(map(depth_of, inner), default=0)


def holds(condition: Json, values: Json, former: Json | None = None) -> bool:
    return evaluate_condition(parse_condition(condition), values, former_values=former).holds


def at_least(level: float) -> Json:
    return {"field": "drawdown_pct", "op": ">=", "value": level}


def refused(condition: object) -> str:
    with pytest.raises(Invalid) as raised:
        parse_condition(condition)
    return raised.value.message


def test_every_field_of_the_context_and_of_the_mood_can_be_in_a_condition() -> None:
    assert {field.name for field in fields(ContextVector)} <= FIELDS.keys()
    mood_fields = {field.name for field in fields(Mood)} - {"at", "known_at", "cause"}
    assert {*MOOD_FIELDS.values(), "drawdown"} == mood_fields
    assert MOOD_FIELDS.keys() <= FIELDS.keys()


@pytest.mark.parametrize(
    ("op", "value", "holding"),
    [
        ("==", 5, [5]),
        ("!=", 5, [4, 6]),
        ("<", 5, [4]),
        ("<=", 5, [4, 5]),
        (">", 5, [6]),
        (">=", 5, [5, 6]),
        ("in", [4, 6], [4, 6]),
        ("not_in", [4, 6], [5]),
        ("between", [4, 5], [4, 5]),
    ],
)
def test_each_operator_compares(op: str, value: object, holding: list[int]) -> None:
    condition = {"field": "price", "op": op, "value": value}
    assert [price for price in (4, 5, 6) if holds(condition, {"price": price})] == holding


@pytest.mark.parametrize(
    ("op", "former", "now", "crossed"),
    [
        ("crosses_above", 4, 6, True),
        ("crosses_above", 5, 6, True),
        ("crosses_above", 4, 5, False),
        ("crosses_above", 6, 7, False),
        ("crosses_below", 6, 4, True),
        ("crosses_below", 5, 4, True),
        ("crosses_below", 6, 5, False),
    ],
)
def test_a_level_is_crossed_from_one_tick_to_the_next(op: str, former: int, now: int, crossed: bool) -> None:
    assert holds({"field": "price", "op": op, "value": 5}, {"price": now}, {"price": former}) is crossed


def test_without_a_former_value_nothing_is_crossed_and_the_value_is_missing() -> None:
    above = {"field": "price", "op": "crosses_above", "value": 5}
    for condition in (above, {"not": above}):
        verdict = evaluate_condition(parse_condition(condition), {"price": 9})
        assert (verdict.holds, verdict.missing) == (False, ("former price",))


def test_time_is_compared_as_time() -> None:
    later = {"field": "now", "op": ">=", "value": "2026-06-04T12:00:00+02:00"}
    assert holds(later, {"now": T0})
    assert not holds(later, {"now": "2026-06-05T00:00:00Z"})


def test_shorthand_is_all_of_these_in_any_order() -> None:
    one, other = (
        parse_condition({"regime": "ranging", "strategy": "IM"}),
        parse_condition({"strategy": "IM", "regime": "ranging"}),
    )
    assert one == other
    assert holds(condition_json(one), {"regime": "ranging", "strategy": "IM"})
    assert not holds(condition_json(one), {"regime": "ranging", "strategy": "VB"})


def test_a_type_is_the_trigger_and_no_condition() -> None:
    stated = {"type": "market_condition", "regime": "ranging"}
    assert parse_condition(stated) == parse_condition({"regime": "ranging"})
    assert stated_trigger(stated) == "market_condition"
    assert stated_trigger([]) is None


def test_a_missing_field_makes_its_comparison_false_and_is_named() -> None:
    verdict = evaluate_condition(parse_condition({"any": [at_least(0.15), {"hour": 9}]}), {"hour": 9})
    assert (verdict.holds, verdict.missing) == (True, ("drawdown_pct",))
    assert evaluate_condition(parse_condition(at_least(0.15)), {}).holds is False


@pytest.mark.parametrize(
    "condition",
    [
        {"not": at_least(0.15)},
        {"not": {"all": [at_least(0.15), {"hour": 9}]}},
        {"not": {"any": [at_least(0.15), {"hour": 8}]}},
        {"not": {"not": at_least(0.15)}},
        {"field": "drawdown_pct", "op": "!=", "value": 0.15},
        {"field": "drawdown_pct", "op": "not_in", "value": [0.15]},
    ],
)
def test_a_condition_on_a_missing_value_never_holds(condition: Json) -> None:
    verdict = evaluate_condition(parse_condition(condition), {"hour": 9})
    assert (verdict.holds, verdict.missing) == (False, ("drawdown_pct",))


def test_known_values_decide_where_missing_ones_do_not_matter() -> None:
    assert holds({"not": {"all": [at_least(0.15), {"hour": 8}]}}, {"hour": 9})


@pytest.mark.parametrize("value", [None, "0.2", True, math.nan, math.inf, 10**400, [0.2]])
def test_a_value_of_another_type_is_missing(value: object) -> None:
    assert evaluate_condition(parse_condition(at_least(0.15)), {"drawdown_pct": value}).missing == ("drawdown_pct",)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ([at_least(0.1)], "condition: a list is not a condition; give an object like"),
        ("regime", "condition: 'regime' is not a condition"),
        (None, "condition: None is not a condition"),
        ({}, "condition: the condition is empty; give one"),
        ({"type": "time"}, "condition: the condition is empty"),
        ({"type": "tiem", "hour": 9}, "condition.type: 'tiem' is not a trigger type; did you mean 'time'?"),
        ({"all": []}, "condition.all: the list is empty; give at least one condition"),
        ({"all": {"hour": 9}}, "condition.all: an object is not a list; give a list of conditions"),
        ({"any": [{"hour": 9}, {}]}, "condition.any[1]: the condition is empty"),
        ({"not": [{"hour": 9}]}, "condition.not: a list is not a condition"),
        ({"all": [{"hour": 9}], "hour": 9}, "condition: 'hour' is in one object with 'all'; give it an object"),
        ({"regmie": "ranging"}, "condition: 'regmie' is not a known field; did you mean 'regime'?"),
        ({"mood.drawdown_state": 1}, "condition: 'mood.drawdown_state' is not a known field; did you mean 'drawdown_s"),
        ({7: 1}, "condition: 7 is not a known field; known: symbol"),
        ({"all": [{"type": "time", "hour": 9}]}, "condition.all[0]: 'type' is not a known field"),
        ({"field": "drawdwn_pct", "op": ">", "value": 1}, "condition.field: 'drawdwn_pct' is not a known field; did"),
        ({"field": "price", "op": ">"}, "condition: the comparison has no value; give field, op and value"),
        ({"field": "price", "op": ">", "value": 1, "x": 2}, "condition: 'x' is not a key of a comparison"),
        ({"field": "price", "op": "=>", "value": 1}, "condition.op: '=>' is not an operator; known: == !="),
        ({"field": "regime", "op": "<", "value": "ranging"}, "condition.op: < needs a number or a time, and regime is"),
        ({"field": "price", "op": ">", "value": "5"}, "condition.value: '5' is not a finite number; price needs one"),
        ({"field": "price", "op": ">", "value": True}, "condition.value: True is not a finite number"),
        ({"field": "price", "op": ">", "value": math.nan}, "condition.value: nan is not a finite number"),
        ({"field": "price", "op": ">", "value": 10**400}, "condition.value: 1000000"),
        ({"field": "price", "op": "in", "value": 5}, "condition.value: 5 is not a list; in needs one"),
        ({"field": "price", "op": "in", "value": []}, "condition.value: the list has 0 values; give 1 to 100"),
        ({"field": "price", "op": "in", "value": [1, "a"]}, "condition.value[1]: 'a' is not a finite number"),
        (
            {"field": "price", "op": "between", "value": [1]},
            "condition.value: the list has 1 values; give the lower and the",
        ),
        ({"field": "price", "op": "between", "value": [2, 1]}, "condition.value: 2.0 is above 1.0; give the lower end"),
        ({"drawdown_pct": 15}, "condition.drawdown_pct: 15.0 is out of range for drawdown_pct; give 0 to 1"),
        (
            {"consecutive_wins": -1},
            "condition.consecutive_wins: -1.0 is out of range for consecutive_wins; give 0 or m",
        ),
        ({"regime": "range"}, "condition.regime: 'range' is not a regime; did you mean 'ranging'?"),
        ({"regime": ["ranging"]}, "condition.regime: a list is not text"),
        ({"strategy": ""}, "condition.strategy: '' is not text of 1 to 250 characters"),
        ({"now": "noon"}, "condition.now: 'noon' is not an ISO 8601 time"),
        ({"now": "2026-06-04T10:00:00"}, "condition.now: 2026-06-04T10:00:00 has no time zone"),
        ({"now": 9}, "condition.now: 9 is not a time"),
    ],
)
def test_a_condition_that_cannot_be_evaluated_is_refused_when_parsed(condition: object, message: str) -> None:
    assert refused(condition).startswith(message)


def test_a_condition_is_not_endless() -> None:
    deep: Json = {"hour": 9}
    for _ in range(DEEPEST - 1):
        deep = {"not": deep}
    parse_condition(deep)
    assert "nested deeper than 8" in refused({"not": deep})
    wide = [{"hour": 9}] * MOST_COMPARISONS
    parse_condition({"any": wide})
    assert "more than 100 comparisons" in refused({"any": [*wide, {"hour": 9}]})


def test_a_condition_that_contains_itself_is_refused() -> None:
    endless: Json = {}
    endless["all"] = [endless, endless]
    assert "nested deeper than 8" in refused(endless)


@given(CONDITIONS)
def test_a_condition_reads_back_as_itself(stated: Json) -> None:
    condition = parse_condition(stated)
    assert parse_condition(condition_json(condition)) == condition
    assert parse_condition(json.loads(condition_text(condition))) == condition
    assert set(fields_in(condition)) == {each.field for each in comparisons_in(condition)}
    assert trigger_type_of(condition) in TRIGGER_TYPES


@given(ANYTHING)
def test_anything_is_a_condition_or_refused(value: object) -> None:
    with suppress(Invalid):
        evaluate_condition(parse_condition(value), {})


@given(CONDITIONS, VALUES, st.none() | VALUES)
def test_evaluation_always_has_an_answer(stated: Json, values: Json, former: Json | None) -> None:
    verdict = evaluate_condition(parse_condition(stated), values, former_values=former)
    names = fields_in(parse_condition(stated))
    assert {name.removeprefix("former ") for name in verdict.missing} <= set(names)


@given(CONDITIONS, VALUES, st.none() | VALUES)
def test_a_condition_and_its_contrary_never_both_hold(stated: Json, values: Json, former: Json | None) -> None:
    one, other = (
        evaluate_condition(parse_condition(each), values, former_values=former) for each in (stated, {"not": stated})
    )
    assert not (one.holds and other.holds)
    assert one.holds or other.holds or one.missing


@given(CONDITIONS)
def test_without_values_no_condition_holds(stated: Json) -> None:
    condition: Condition = parse_condition(stated)
    assert evaluate_condition(condition, {}) == evaluate_condition(condition, {}, former_values={})
    assert evaluate_condition(condition, {}).holds is False
    assert evaluate_condition(condition, {}).missing == fields_in(condition)


def test_values_have_the_names_that_conditions_use() -> None:
    context = ContextVector(symbol="BTC", regime="ranging", confidence=0.9)
    mood = Mood(confidence=0.3, consecutive_losses=4, drawdown_state=0.5, drawdown=0.1, equity=9.0, peak=10.0)
    values = condition_values(
        now=T0, context=context, mood=mood, strategy="IM", direction="long", facts={"hours_to_event": 2.0}
    )
    assert values.keys() <= FIELDS.keys()
    assert (values["confidence"], values["mood.confidence"], values["drawdown_pct"]) == (0.9, 0.3, 0.1)
    assert (values["symbol"], values["weekday"], values["hour"], values["session"]) == ("BTC", 3, 10, "london")
    assert format_instant(values["now"]) == format_instant(T0)  # type: ignore[arg-type]


def test_unknown_fields_are_left_out_of_the_values() -> None:
    assert condition_values() == {}
    assert not {"drawdown", "drawdown_pct", "equity", "peak"} & condition_values(mood=Mood()).keys()
