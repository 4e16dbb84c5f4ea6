"""Conditions of plans and beliefs: JSON that is checked when it is made, and can then always be evaluated.

    {"all": [condition, …]}    {"any": [condition, …]}    {"not": condition}
    {"field": "drawdown_pct", "op": ">=", "value": 0.15}
    {"regime": "ranging", "strategy": "IM"}               short for `all` of these equalities

`parse_condition` refuses an unknown field, a value of the wrong type or out of range (a drawdown of 15 instead of .15
would never hold, and nobody would notice), and a condition that is empty or too large. `evaluate_condition` then gives
a result for any values.

**Missing values.** A comparison with a missing value does not hold, and the result names the field. A `not` around such
a comparison must not become true. Evaluation therefore uses three-valued logic (Kleene 1952): a comparison with a
missing value is unknown; `not` of unknown is unknown; `all` is false if one part is false, else unknown if one part is
unknown; `any` is true if one part is true, else unknown if one part is unknown. An unknown condition does not hold.

**Names.** The fields of the context vector have their own names. The fields of the mood do too, except the two that the
context vector also has: these are `mood.confidence` and `mood.consecutive_losses`. `hour` and `hour_utc`, `weekday` and
`day_of_week` (0 is Monday) are UTC. `event.kind` and `hours_to_event` are about the next event. The last event of a
kind has figures of its own for three days, like `nfp.actual`: `surprise` is actual less forecast, `change` is actual
less previous.

This grammar is strict. `loose_conditions` carries out what people write for it.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, assert_never, get_args

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid, did_you_mean, nearest
from backsight.core.events import EVENT_KINDS
from backsight.core.ids import canonical_json, plain
from backsight.core.instants import parse_instant, to_utc
from backsight.core.instruments import spelling_of
from backsight.core.memory.affective import Mood, drawdown_state, risk_appetite
from backsight.core.numbers import positive_zero
from backsight.core.portfolio import DIRECTIONS, Direction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES, session_of

Operator = Literal[
    "==", "!=", "<", "<=", ">", ">=", "in", "not_in", "between", "crosses_above", "crosses_below", "changes"
]
TriggerType = Literal["market_condition", "time", "event", "state"]
FieldKind = Literal["number", "text", "instant"]
Scalar = float | str | datetime

OPERATORS: tuple[Operator, ...] = get_args(Operator)
FOR_TEXT: tuple[Operator, ...] = ("==", "!=", "in", "not_in", "changes")
OF_TWO_TICKS: tuple[Operator, ...] = ("crosses_above", "crosses_below", "changes")
"""Operators that compare with the value at the tick before."""
EVENT_FIGURES = ("actual", "forecast", "previous", "surprise", "change", "hours_since")
OUTCOME_KINDS = tuple(kind for kind in EVENT_KINDS if kind != "other")
"""The kinds of events whose last outcome has fields; `other` names no figure."""
TRIGGER_TYPES: tuple[TriggerType, ...] = get_args(TriggerType)
DEEPEST = 8
MOST_COMPARISONS = 100
MOST_VALUES = 100
LONGEST_TEXT = 250
FORMER = "former "
"""Prefix of a missing field whose value at the tick before is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The type of a field: a number in a range, text (perhaps one of some labels), or an instant."""

    kind: FieldKind = "number"
    labels: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    trigger: TriggerType = "market_condition"


_SHARE = Field(low=0, high=1)
_HOUR = Field(low=0, high=23, trigger="time")
_DAY = Field(low=0, high=6, trigger="time")
_OF_MOOD = Field(low=0, high=1, trigger="state")
_COUNT = Field(low=0, trigger="state")

NAMED_FIELDS: Mapping[str, Field] = {
    "symbol": Field(kind="text"),
    "price": Field(),
    "atr_d1": Field(low=0),
    "atr_h1": Field(low=0),
    "atr_m5": Field(low=0),
    "atr_ratio_h1_d1": Field(low=0),
    "regime": Field(kind="text", labels=REGIMES),
    "volatility_regime": Field(kind="text", labels=VOLATILITY_REGIMES),
    "session": Field(kind="text", labels=SESSIONS),
    "hour_utc": _HOUR,
    "day_of_week": _DAY,
    "spread_points": Field(low=0),
    "spread_as_atr_pct": Field(low=0),
    "drawdown_pct": _OF_MOOD,
    "consecutive_losses": _COUNT,
    "confidence": _SHARE,
    "mood.confidence": _OF_MOOD,
    "risk_appetite": _OF_MOOD,
    "drawdown_state": _OF_MOOD,
    "momentum_bias": Field(low=-1, high=1, trigger="state"),
    "consecutive_wins": _COUNT,
    "mood.consecutive_losses": _COUNT,
    "equity": Field(trigger="state"),
    "peak": Field(trigger="state"),
    "drawdown": _OF_MOOD,
    "strategy": Field(kind="text"),
    "direction": Field(kind="text", labels=DIRECTIONS),
    "now": Field(kind="instant", trigger="time"),
    "weekday": _DAY,
    "hour": _HOUR,
    "event.kind": Field(kind="text", trigger="event"),
    "hours_to_event": Field(trigger="event"),
    "hours_since_last_trade": _COUNT,
    "days_since_last_trade": _COUNT,
}
"""The fields that a remedy lists by name."""
OUTCOME_FIELDS = tuple(f"{kind}.{figure}" for kind in OUTCOME_KINDS for figure in EVENT_FIGURES)
FIELDS: Mapping[str, Field] = {**NAMED_FIELDS, **dict.fromkeys(OUTCOME_FIELDS, Field(trigger="event"))}

MOOD_FIELDS: Mapping[str, str] = {
    "mood.confidence": "confidence",
    "mood.consecutive_losses": "consecutive_losses",
} | {name: name for name in ("risk_appetite", "drawdown_state", "momentum_bias", "consecutive_wins", "equity", "peak")}
"""The fields of the mood by their names in conditions; `drawdown` is added where the equity is known."""
MOOD_AT_ENTRY = ("mood.confidence", "mood.consecutive_losses", "drawdown", "drawdown_state", "risk_appetite")
"""The fields of the mood that follow from the agent's state in a context vector."""
STATE_FIELDS = frozenset({*MOOD_FIELDS, *MOOD_AT_ENTRY, "drawdown_pct", "consecutive_losses", "confidence"})
"""The fields of the agent's state, by all their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldComparison:
    """A field compared with a value: several for `in` and `not_in`, both ends for `between`, none for `changes`."""

    field: str
    op: Operator
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Holds if all parts hold."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds if at least one part holds."""

    conditions: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Holds if the part is false."""

    condition: "Condition"


Condition = AllOf | AnyOf | Not | FieldComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionResult:
    """Whether a condition holds, and which of its fields had no value."""

    holds: bool
    missing: tuple[str, ...] = ()
    """In the order of the condition. `former price` is the price at the tick before, which a crossing needs."""
    unknown: bool = False
    """Whether the result depends on the missing values."""


def parse_condition(value: object, *, field: str = "condition") -> Condition:
    """Parse the JSON of a condition; raises `Invalid` with the place and the remedy. A `type` at the top is ignored.

    >>> parse_condition({"strategy": "IM", "regime": "ranging", "type": "market_condition"}) == parse_condition(
    ...     {"all": [{"field": "regime", "op": "==", "value": "ranging"},
    ...              {"field": "strategy", "op": "==", "value": "IM"}]})
    True
    >>> parse_condition({"drawdown": 0.15})
    FieldComparison(field='drawdown', op='==', value=0.15)
    >>> parse_condition({"field": "regmie", "op": "==", "value": "ranging"})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: condition.field: 'regmie' is not a known field; did you mean 'regime'? Known: ...
    >>> parse_condition({"field": "drawdown_pct", "op": ">=", "value": 15})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: condition.value: 15.0 is out of range for drawdown_pct; give 0 to 1, so 0.15 for 15%
    """
    stated_trigger(value, field=field)
    if isinstance(value, Mapping):
        value = {name: each for name, each in value.items() if name != "type"}
    return _parse(value, place=field, depth=1, parsed=[])


def stated_trigger(value: object, *, field: str = "condition") -> TriggerType | None:
    """The trigger type that a condition's JSON states as `type`; None where it states none.

    >>> stated_trigger({"regime": "ranging", "type": "market_condition"}), stated_trigger({"regime": "ranging"})
    ('market_condition', None)
    """
    stated = value.get("type") if isinstance(value, Mapping) else None
    if stated is None:
        return None
    for known in TRIGGER_TYPES:
        if stated == known:
            return known
    remedy = did_you_mean(_describe(stated), TRIGGER_TYPES)
    raise Invalid(f"{_describe(stated)} is not a trigger type; {remedy}", field=f"{field}.type")


def trigger_type_of(condition: Condition) -> TriggerType:
    """The trigger type of a condition by its fields: event, else state, else time if all fields are, else market.

    >>> conditions = {"hour": 9}, {"hour": 9, "regime": "ranging"}, {"drawdown_state": 1}
    >>> [trigger_type_of(parse_condition(condition)) for condition in conditions]
    ['time', 'market_condition', 'state']
    """
    kinds = {FIELDS[name].trigger for name in fields_in(condition)}
    for kind in ("event", "state"):
        if kind in kinds:
            return kind
    return "time" if kinds == {"time"} else "market_condition"


def condition_json(condition: Condition) -> dict[str, Any]:
    """The condition as JSON in full form; `parse_condition` reads it back.

    >>> condition_json(parse_condition({"regime": "ranging"}))
    {'field': 'regime', 'op': '==', 'value': 'ranging'}
    """
    match condition:
        case AllOf(conditions):
            return {"all": [condition_json(each) for each in conditions]}
        case AnyOf(conditions):
            return {"any": [condition_json(each) for each in conditions]}
        case Not(inner):
            return {"not": condition_json(inner)}
        case FieldComparison():
            compared = {"field": condition.field, "op": condition.op}
            return compared if condition.op == "changes" else {**compared, "value": plain(condition.value)}
    assert_never(condition)


def condition_text(condition: Condition) -> str:
    """The condition as canonical JSON text: equal conditions have equal texts."""
    return canonical_json(condition_json(condition))


@lru_cache(maxsize=1024)
def condition_from_text(text: str) -> Condition:
    """The condition of a canonical text: `condition_from_text(condition_text(condition)) == condition`; cached.

    >>> condition_from_text('{"regime":"ranging"}')
    FieldComparison(field='regime', op='==', value='ranging')
    """
    return parse_condition(json.loads(text))


def comparisons_in(condition: Condition) -> tuple[FieldComparison, ...]:
    """All comparisons in a condition, in its order."""
    match condition:
        case AllOf(conditions) | AnyOf(conditions):
            return tuple(comparison for each in conditions for comparison in comparisons_in(each))
        case Not(inner):
            return comparisons_in(inner)
        case FieldComparison():
            return (condition,)
    assert_never(condition)


def fields_in(condition: Condition) -> tuple[str, ...]:
    """The fields that a condition compares, each once, in its order."""
    return tuple(dict.fromkeys(each.field for each in comparisons_in(condition)))


def evaluate_condition(
    condition: Condition, values: Mapping[str, object], *, former_values: Mapping[str, object] | None = None
) -> ConditionResult:
    """Evaluate a condition for these values; `former_values` are those of the tick before, for crossings.

    A value of the wrong type counts as missing. `crosses_above` holds if the former value was at most the level and the
    value is above it. Without former values no crossing holds.

    >>> calm = parse_condition({"not": {"field": "volatility_regime", "op": "in", "value": ["high", "extreme"]}})
    >>> evaluate_condition(calm, {"volatility_regime": "low"})
    ConditionResult(holds=True, missing=(), unknown=False)
    >>> evaluate_condition(calm, {})
    ConditionResult(holds=False, missing=('volatility_regime',), unknown=True)
    >>> broke_out = parse_condition({"field": "price", "op": "crosses_above", "value": 2400})
    >>> evaluate_condition(broke_out, {"price": 2401.0}, former_values={"price": 2400.0}).holds
    True
    >>> evaluate_condition(broke_out, {"price": 2401.0})
    ConditionResult(holds=False, missing=('former price',), unknown=True)
    """
    missing: dict[str, None] = {}
    truth = _truth(condition, values, former_values or {}, missing)
    return ConditionResult(holds=truth is True, missing=tuple(missing), unknown=truth is None)


def condition_values(
    *,
    now: datetime | None = None,
    context: ContextVector | None = None,
    mood: Mood | None = None,
    strategy: str | None = None,
    symbol: str | None = None,
    direction: Direction | None = None,
    facts: Mapping[str, Scalar | None] | None = None,
) -> dict[str, Scalar]:
    """The values at an instant by field name; unknown values are left out. `facts` are those of events and trades.

    Values that the context lacks are taken from elsewhere: session, hour and day from `now`; drawdown, losses and
    confidence, which are the agent's state, from the mood. Where no mood is given, as for a past entry, the fields of
    the mood that follow from the agent's state in the context are known too.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 4, 13, tzinfo=UTC)
    >>> condition_values(now=now, context=ContextVector(regime="ranging"), strategy="IM")["session"]
    'overlap'
    >>> condition_values(mood=Mood(equity=900.0, peak=1000.0, drawdown=0.1))["drawdown_pct"]
    0.1
    >>> condition_values(context=ContextVector(drawdown_pct=0.1))["risk_appetite"]
    0.75
    """
    known = context or ContextVector()
    values: dict[str, Scalar | None] = {
        **_of_time(now),
        **(_of_agent_state(known) if mood is None else _of_mood(mood)),
        **{name: getattr(known, name) for name in known.known},
        "strategy": strategy,
        "symbol": symbol or known.symbol,
        "direction": direction,
        **(facts or {}),
    }
    return {name: value for name, value in values.items() if value is not None}


def _of_time(now: datetime | None) -> dict[str, Scalar | None]:
    if now is None:
        return {}
    now = to_utc(now, field="now")
    hour, day = now.hour, now.weekday()
    return {
        "now": now,
        "hour": hour,
        "hour_utc": hour,
        "weekday": day,
        "day_of_week": day,
        "session": session_of(now),
    }


def _of_agent_state(context: ContextVector) -> dict[str, Scalar | None]:
    """The fields of the mood that follow from the agent's state in a context."""
    drawdown = context.drawdown_pct
    values = (
        context.confidence,
        context.consecutive_losses,
        drawdown,
        None if drawdown is None else drawdown_state(drawdown),
        None if drawdown is None else risk_appetite(drawdown),
    )
    return dict(zip(MOOD_AT_ENTRY, values, strict=True))


def _of_mood(mood: Mood) -> dict[str, Scalar | None]:
    drawdown = None if mood.equity is None else mood.drawdown
    own: dict[str, Scalar | None] = {name: getattr(mood, attribute) for name, attribute in MOOD_FIELDS.items()}
    agent = {"confidence": mood.confidence, "consecutive_losses": mood.consecutive_losses, "drawdown_pct": drawdown}
    return {**own, "drawdown": drawdown, **agent}


def _parse(value: object, *, place: str, depth: int, parsed: list[FieldComparison]) -> Condition:
    """Parse one condition of a tree; `parsed` collects the comparisons of the whole tree, to limit their number."""
    if not isinstance(value, Mapping):
        example = '{"field": "regime", "op": "==", "value": "ranging"}'
        raise Invalid(f"{_describe(value)} is not a condition; give an object like {example}", field=place)
    if not value:
        raise Invalid('the condition is empty; give one, like {"regime": "ranging"}', field=place)
    if depth > DEEPEST:
        raise Invalid(f"the condition is nested deeper than {DEEPEST}; make it flatter", field=place)
    joint = [name for name in ("all", "any", "not") if name in value]
    if joint:
        return _parse_joint(value, joint[0], place=place, depth=depth, parsed=parsed)
    if any(name in value for name in ("field", "op", "value")):
        return _parse_comparison(value, place=place, parsed=parsed)
    return _parse_shorthand(value, place=place, parsed=parsed)


def _parse_joint(
    value: Mapping[Any, Any], joint: str, *, place: str, depth: int, parsed: list[FieldComparison]
) -> Condition:
    if len(value) > 1:
        extra = next(name for name in value if name != joint)
        message = f"{_describe(extra)} is in one object with {joint!r}; give it an object of its own inside {joint!r}"
        raise Invalid(message, field=place)
    inner, place = value[joint], f"{place}.{joint}"
    if joint == "not":
        return Not(_parse(inner, place=place, depth=depth + 1, parsed=parsed))
    if not isinstance(inner, list | tuple):
        raise Invalid(f"{_describe(inner)} is not a list; give a list of conditions", field=place)
    if not inner:
        raise Invalid("the list is empty; give at least one condition", field=place)
    parts = tuple(
        _parse(each, place=f"{place}[{number}]", depth=depth + 1, parsed=parsed) for number, each in enumerate(inner)
    )
    return AllOf(parts) if joint == "all" else AnyOf(parts)


def _parse_comparison(value: Mapping[Any, Any], *, place: str, parsed: list[FieldComparison]) -> FieldComparison:
    for name in value:
        if name not in ("field", "op", "value"):
            raise Invalid(f"{_describe(name)} is not a key of a comparison; give field, op and value", field=place)
    for name in ("field", "op"):
        if name not in value:
            raise Invalid(f"the comparison has no {name}; give field, op and value", field=place)
    known = _field(value["field"], place=f"{place}.field")
    op = _operator(value["op"], of=value["field"], known=known, place=f"{place}.op")
    if ("value" in value) == (op == "changes"):
        message = "changes compares with the tick before; leave the value out" if op == "changes" else ""
        raise Invalid(message or "the comparison has no value; give field, op and value", field=place)
    if op == "changes":
        return _counted(FieldComparison(field=value["field"], op=op, value=()), place=place, parsed=parsed)
    operand = _operand(value["value"], op=op, of=value["field"], known=known, place=f"{place}.value")
    return _counted(FieldComparison(field=value["field"], op=op, value=operand), place=place, parsed=parsed)


def _parse_shorthand(value: Mapping[Any, Any], *, place: str, parsed: list[FieldComparison]) -> Condition:
    """Equalities joined by `all`, sorted by field name, since the keys of a JSON object have no order."""
    for name in value:
        _field(name, place=place)
    parts = tuple(
        _counted(
            FieldComparison(field=name, op="==", value=_scalar(value[name], of=name, place=f"{place}.{name}")),
            place=place,
            parsed=parsed,
        )
        for name in sorted(value)
    )
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _counted(comparison: FieldComparison, *, place: str, parsed: list[FieldComparison]) -> FieldComparison:
    parsed.append(comparison)
    if len(parsed) > MOST_COMPARISONS:
        raise Invalid(
            f"the condition has more than {MOST_COMPARISONS} comparisons; split it into several plans", field=place
        )
    return comparison


def _field(name: object, *, place: str) -> Field:
    known = FIELDS.get(name) if isinstance(name, str) else None
    if known is None:
        raise Invalid(unknown_field(name), field=place)
    return known


def unknown_field(name: object) -> str:
    """Why a field is refused, with the nearest field and the list of all; the figures of events follow one pattern."""
    text = name if isinstance(name, str) else _describe(name)
    match = nearest(text, FIELDS if "." in text else NAMED_FIELDS)
    nearest_field = f"did you mean '{match}'? Known" if match else "known"
    figures = ", ".join(f"nfp.{figure}" for figure in EVENT_FIGURES)
    names = f"{', '.join(NAMED_FIELDS)}, and of the last event of a kind, like nfp: {figures}"
    return f"{_describe(name)} is not a known field; {nearest_field}: {names}"


def _operator(op: object, *, of: str, known: Field, place: str) -> Operator:
    for operator in OPERATORS:
        if op == operator:
            break
    else:
        raise Invalid(f"{_describe(op)} is not an operator; known: {' '.join(OPERATORS)}", field=place)
    if known.kind == "text" and operator not in FOR_TEXT:
        raise Invalid(f"{operator} needs a number or a time, and {of} is text; use {' '.join(FOR_TEXT)}", field=place)
    return operator


def _operand(value: object, *, op: Operator, of: str, known: Field, place: str) -> Scalar | tuple[Scalar, ...]:
    if op not in ("in", "not_in", "between"):
        return _scalar(value, of=of, place=place)
    if not isinstance(value, list | tuple):
        raise Invalid(f"{_describe(value)} is not a list; {op} needs one", field=place)
    if op == "between":
        return _ends(value, of=of, place=place)
    if not 0 < len(value) <= MOST_VALUES:
        raise Invalid(f"the list has {len(value)} values; give 1 to {MOST_VALUES}", field=place)
    return tuple(_scalar(each, of=of, place=f"{place}[{number}]") for number, each in enumerate(value))


def _ends(value: list[object] | tuple[object, ...], *, of: str, place: str) -> tuple[Scalar, ...]:
    if len(value) != 2:
        raise Invalid(f"the list has {len(value)} values; give the lower and the upper end", field=place)
    low, high = (_scalar(each, of=of, place=f"{place}[{number}]") for number, each in enumerate(value))
    if _compare(">", low, high):
        raise Invalid(f"{plain(low)} is above {plain(high)}; give the lower end first", field=place)
    return low, high


def _scalar(value: object, *, of: str, place: str) -> Scalar:
    """The value as the type of its field; raises `Invalid` for any other type."""
    known = FIELDS[of]
    match known.kind:
        case "number":
            return _number(value, of=of, known=known, place=place)
        case "text":
            return _text(value, of=of, known=known, place=place)
        case "instant":
            if isinstance(value, datetime):
                return to_utc(value, field=place)
            if isinstance(value, str):
                return parse_instant(value, field=place)
            raise Invalid(f"{_describe(value)} is not a time; give an instant like 2026-06-04T10:00:00Z", field=place)
    assert_never(known.kind)


def _number(value: object, *, of: str, known: Field, place: str) -> float:
    number = finite_number(value)
    if number is None:
        raise Invalid(f"{_describe(value)} is not a finite number; {of} needs one", field=place)
    if not known.low <= number <= known.high:
        ends = f"{known.low:g} to {known.high:g}" if known.high < math.inf else f"{known.low:g} or more"
        as_share = f", so {number / 100:g} for {number:g}%" if known.high == 1 < number <= 100 else ""
        raise Invalid(f"{number} is out of range for {of}; give {ends}{as_share}", field=place)
    return number


def _text(value: object, *, of: str, known: Field, place: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT:
        raise Invalid(f"{_describe(value)} is not text of 1 to {LONGEST_TEXT} characters; {of} needs it", field=place)
    if known.labels and value not in known.labels:
        raise Invalid(f"{_describe(value)} is not a {of}; {did_you_mean(value, known.labels)}", field=place)
    return value


def finite_number(value: object) -> float | None:
    """The value as a float; None where it is not a finite number.

    >>> finite_number(3), finite_number(float("nan")), finite_number(True), finite_number(10**400)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = positive_zero(float(value))
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _truth(
    condition: Condition, values: Mapping[str, object], former: Mapping[str, object], missing: dict[str, None]
) -> bool | None:
    """True, false or None for unknown; adds every missing field to `missing`, even if the result does not need it."""
    match condition:
        case AllOf(conditions):
            return _all([_truth(each, values, former, missing) for each in conditions])
        case AnyOf(conditions):
            return _negate(_all([_negate(_truth(each, values, former, missing)) for each in conditions]))
        case Not(inner):
            return _negate(_truth(inner, values, former, missing))
        case FieldComparison():
            return _holds(condition, values, former, missing)
    assert_never(condition)


def _all(truths: Iterable[bool | None]) -> bool | None:
    values = set(truths)
    return False if False in values else None if None in values else True


def _negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _holds(
    comparison: FieldComparison, values: Mapping[str, object], former: Mapping[str, object], missing: dict[str, None]
) -> bool | None:
    name, op, level = comparison.field, comparison.op, comparison.value
    value = _typed_value(values, name)
    if value is None:
        missing[name] = None
        return None
    if name == "symbol" and op not in OF_TWO_TICKS:
        return _compare(op, spelling_of(str(value)), _spellings_of(level))
    if op not in OF_TWO_TICKS:
        return _compare(op, value, level)
    before = _typed_value(former, name)
    if before is None:
        missing[FORMER + name] = None
        return None
    if op == "changes":
        return value != before
    if op == "crosses_above":
        return _compare("<=", before, level) and _compare(">", value, level)
    return _compare(">=", before, level) and _compare("<", value, level)


def _spellings_of(level: Scalar | tuple[Scalar, ...]) -> object:
    """Symbols in a form in which spellings of one market are equal."""
    return tuple(spelling_of(str(each)) for each in level) if isinstance(level, tuple) else spelling_of(str(level))


def _typed_value(values: Mapping[str, object], name: str) -> Scalar | None:
    """The value of a field; None where it is missing or of the wrong type."""
    value, kind = values.get(name), FIELDS[name].kind
    if kind == "number":
        return finite_number(value)
    if kind == "text":
        return value if isinstance(value, str) else None
    is_instant = isinstance(value, datetime) and value.utcoffset() is not None
    return value if is_instant and isinstance(value, datetime) else None


def _compare(op: Operator, value: Any, level: Any) -> bool:
    """Compare two values of the field's type."""
    match op:
        case "==":
            return bool(value == level)
        case "!=" | "changes":
            return bool(value != level)
        case "<" | "crosses_below":
            return bool(value < level)
        case "<=":
            return bool(value <= level)
        case ">" | "crosses_above":
            return bool(value > level)
        case ">=":
            return bool(value >= level)
        case "in":
            return value in level
        case "not_in":
            return value not in level
        case "between":
            return bool(level[0] <= value <= level[1])
    assert_never(op)


def _describe(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:39] + "…"
