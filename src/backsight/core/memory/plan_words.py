"""Conditions, actions and ends of plans in plain English, for the prompt, for answers and for pages.

The words follow from the plan alone, so equal plans have equal words. Text that somebody wrote, like a symbol, is
flattened to one word.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, assert_never

from backsight.core.instants import nearest_minute
from backsight.core.memory.affective import MAX_DRAWDOWN
from backsight.core.memory.conditions import (
    FIELDS,
    AllOf,
    AnyOf,
    Condition,
    FieldComparison,
    Not,
    Operator,
    evaluate_condition,
    fields_in,
)
from backsight.core.memory.planned_action import PlannedAction
from backsight.core.memory.prospective import Plan
from backsight.core.text.untrusted_text import name as word

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LABEL_WORDS: Mapping[str, str] = {
    "trending_up": "in an uptrend",
    "trending_down": "in a downtrend",
    "ranging": "in a ranging market",
    "volatile": "in a volatile market",
    "asia": "in the Asian session",
    "london": "in the London session",
    "overlap": "in the overlap of London and New York",
    "newyork": "in the New York session",
}
KIND_WORDS: Mapping[str, str] = {
    "jobless_claims": "jobless claims",
    "ecb_rate": "ECB rate",
    "boe_rate": "BoE rate",
    "boj_rate": "BoJ rate",
    "crypto_unlock": "crypto unlock",
    "exchange_listing": "exchange listing",
    "mainnet_launch": "mainnet launch",
    **{kind: kind for kind in ("halving", "earnings", "regulatory")},
}
OPPOSITES: Mapping[Operator, Operator] = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not_in", "not_in": "in",
}  # fmt: skip
_PREPOSITIONS = (
    "on ",
    "in ",
    "from ",
    "before ",
    "after ",
    "not ",
    "neither ",
    "at any hour",
    "at no hour",
    "at exactly",
)
"""How the parts begin that say where and when; the others are figures."""
SUBJECTS = ("symbol", "direction", "strategy")
MOST_VALUES = 4
"""Values of a list that are named; the others are counted."""
YEARLESS = timedelta(days=300)
SAME_DAY = timedelta(hours=24)


def number(value: float) -> str:
    """A number with thousands separators, without an exponent and without zeros at its end.

    >>> [number(value) for value in (200000.0, 0.15, 2400.5, -0.0, 1e-7)]
    ['200,000', '0.15', '2,400.5', '0', '0.0000001']
    """
    text = f"{value:,.10f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else "more than 1,000,000,000,000,000"
    return "0" if text in ("-0", "") else text


def percentage(value: float) -> str:
    """A share as a percentage.

    >>> percentage(0.15), percentage(0.125), percentage(1.954)
    ('15%', '12.5%', '195%')
    """
    return f"{number(round(value * 100, 0 if abs(value) >= 1 else 4))}%"


def condition_in_words(condition: Condition) -> str:
    """A condition in plain English, what it is about first.

    >>> from backsight.core.memory.conditions import parse_condition
    >>> condition_in_words(parse_condition({"weekday": 4, "symbol": "XAUUSD"}))
    'XAUUSD on Fridays'
    >>> deep = {"field": "drawdown_pct", "op": ">=", "value": 0.15}
    >>> condition_in_words(parse_condition({"all": [deep, {"not": {"regime": "ranging"}}]}))
    'not in a ranging market with drawdown at least 15%'
    >>> condition_in_words(parse_condition({"field": "nfp.actual", "op": ">", "value": 200000}))
    'NFP above 200,000'
    """
    subjects, rest = parts_of(condition)
    return in_one_line(" ".join(subjects), rest)


def in_one_line(subject: str, rest: Sequence[str]) -> str:
    """The subject of a condition and its other parts: where and when first, then the figures.

    >>> in_one_line("BTC", ["price above 9", "on Fridays"]), in_one_line("", ["price above 9"])
    ('BTC on Fridays with price above 9', 'price above 9')
    """
    places = [part for part in rest if part.startswith(_PREPOSITIONS)]
    figures = joined([part for part in rest if not part.startswith(_PREPOSITIONS)])
    before = " ".join(filter(None, (subject, joined(places))))
    return f"{before} with {figures}" if before and figures else before or figures


def parts_of(condition: Condition) -> tuple[list[str], list[str]]:
    """What a condition is about (symbol, direction, strategy), and its other parts, each in words."""
    parts = _joint_parts(condition)
    subjects = [part for part in parts if _is_subject(part)]
    subjects.sort(key=lambda part: SUBJECTS.index(fields_in(part)[0]))
    rest = [_in_words(part, nested=len(parts) > 1) for part in parts if not _is_subject(part)]
    words = [_in_words(part, nested=True) for part in subjects]
    if len(words) > 1 and fields_in(subjects[-1]) == ("strategy",):
        words[-1] = f"of {words[-1]}"
    return words, rest


def names_symbol(condition: Condition) -> bool:
    """Whether the words of a condition begin with its symbol."""
    parts = _joint_parts(condition)
    return any(_is_subject(part) and fields_in(part) == ("symbol",) for part in parts)


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence with commas, and `and` before the last.

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def action_in_words(action: PlannedAction) -> str:
    """A planned action in plain English.

    >>> action_in_words(PlannedAction(kind="adjust_param", parameter="size", magnitude=0.5))
    'size × 0.5'
    >>> action_in_words(PlannedAction(kind="force_exit", magnitude=0.25))
    'close 25% of the position'
    >>> [action_in_words(PlannedAction(kind=kind)) for kind in ("force_exit", "skip_trade", "alert")]
    ['close the position', 'skip the trade', 'take note']
    """
    match action.kind:
        case "adjust_param":
            return f"{word(action.parameter or '')} × {number(action.magnitude or 1.0)}"
        case "skip_trade":
            return "skip the trade"
        case "force_exit":
            share = 1.0 if action.magnitude is None else action.magnitude
            return f"close {'' if share >= 1 else f'{percentage(share)} of '}the position"
        case "alert":
            return "take note"
    assert_never(action.kind)


def end_in_words(plan: Plan, *, now: datetime | None = None) -> str:
    """When a plan ends, in plain English.

    >>> from datetime import UTC
    >>> from backsight.core.memory.prospective import PlanDraft, make_plan
    >>> draft = PlanDraft(condition={"regime": "ranging"}, action={"type": "alert"}, reasoning="so")
    >>> now = datetime(2025, 10, 3, 9, tzinfo=UTC)
    >>> end_in_words(make_plan(draft, owner_id="ana", now=now), now=now)
    'until 2 Nov'
    """
    ends = [] if plan.expires_at is None else [day_in_words(plan.expires_at, now=now)]
    if plan.expires_when is not None and _negates(plan.expires_when, plan.condition):
        ends.append("this no longer holds")
    elif plan.expires_when is not None:
        ends.append(condition_in_words(plan.expires_when))
    return f"until {' or '.join(ends)}" if ends else "without an end"


def day_in_words(at: datetime, *, now: datetime | None = None) -> str:
    """An instant as a day: soon with the time, far from now, or where now is not given, with the year.

    >>> from datetime import UTC
    >>> now = datetime(2025, 10, 3, 9, tzinfo=UTC)
    >>> [day_in_words(now + timedelta(hours=hours), now=now) for hours in (5, 720, 10_000, -720)]
    ['14:00 UTC', '2 Nov', '24 Nov 2026', '3 Sep']
    """
    at = nearest_minute(at)
    if now is None:
        return f"{at.day} {at:%b %Y}"
    distance = abs(at - now)
    if distance < SAME_DAY and at > now:
        return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at.day} {at:%b} {at:%H:%M} UTC"
    return f"{at.day} {at:%b}" if distance < YEARLESS else f"{at.day} {at:%b %Y}"


def plan_in_words(plan: Plan, *, now: datetime | None = None) -> str:
    """A plan in one line: when, what, until when."""
    return f"{condition_in_words(plan.condition)}: {action_in_words(plan.action)} ({end_in_words(plan, now=now)})"


def values_in_words(condition: Condition, values: Mapping[str, object]) -> list[str]:
    """The present values of the figures of the agent's state that a condition compares.

    >>> from backsight.core.memory.conditions import parse_condition
    >>> deep = parse_condition({"field": "drawdown_state", "op": ">=", "value": 0.5})
    >>> values_in_words(deep, {"drawdown_state": 1.0, "drawdown": 0.39})
    ['195% of the accepted drawdown']
    """
    texts = []
    for field in fields_in(condition):
        value = values.get(field)
        if FIELDS[field].trigger != "state" or not isinstance(value, int | float) or isinstance(value, bool):
            continue
        drawdown = values.get("drawdown")
        if field == "drawdown_state" and isinstance(drawdown, float):
            value = drawdown / MAX_DRAWDOWN  # the state itself ends at 1
        before, text, noun = _NUMBERS[field]
        if text is percentage:
            value = round(value, 2 if value >= 0.1 else 3)
        texts.append(" ".join(filter(None, (before, text(value), _of_one(noun) if value == 1 else noun))))
    return texts


def plan_with_reason(plan: Plan) -> str:
    """A plan in words, and why it was made, with the day: the figures of a reason are those of that day."""
    return f"{plan_in_words(plan)}; reason of {day_in_words(plan.known_at)}: {plan.reasoning}"


def _joint_parts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that must all hold."""
    if not isinstance(condition, AllOf):
        return (condition,)
    return tuple(part for inner in condition.conditions for part in _joint_parts(inner))


def _is_subject(condition: Condition) -> bool:
    inner = condition.condition if isinstance(condition, Not) else condition
    return isinstance(inner, FieldComparison) and inner.field in SUBJECTS and inner.op != "changes"


def _in_words(condition: Condition, *, nested: bool) -> str:
    match condition:
        case AllOf(conditions):
            text = condition_in_words(condition)
            return f"({text})" if nested and len(conditions) > 1 else text
        case AnyOf(conditions):
            text = " or ".join(_in_words(part, nested=True) for part in conditions)
            return f"({text})" if nested and len(conditions) > 1 else text
        case Not(Not(inner)):
            return _in_words(inner, nested=nested)
        case Not(FieldComparison() as inner) if inner.op in OPPOSITES:
            opposite = FieldComparison(field=inner.field, op=OPPOSITES[inner.op], value=inner.value)
            return _comparison_in_words(opposite)
        case Not(FieldComparison() as inner) if inner.op != "between":
            return f"without {_comparison_in_words(inner)}"
        case Not(inner):
            text = _in_words(inner, nested=True)
            return f"not {text}" if text.startswith("(") else f"not ({text})"
        case FieldComparison():
            return _comparison_in_words(condition)
    assert_never(condition)


def _comparison_in_words(comparison: FieldComparison) -> str:
    """One comparison in words."""
    if comparison.op in ("in", "not_in") and isinstance(comparison.value, tuple) and len(comparison.value) == 1:
        op: Operator = "==" if comparison.op == "in" else "!="
        comparison = FieldComparison(field=comparison.field, op=op, value=comparison.value[0])
    field, op = comparison.field, comparison.op
    if field in _TEXTS:
        noun, label = _TEXTS[field]
        return noun(_listed(comparison, label), op)
    if field in ("weekday", "day_of_week"):
        return _days(comparison)
    if field in ("hour", "hour_utc"):
        return _hours(comparison)
    if field == "now":
        return _compared(comparison, "", lambda at: f"{at.day} {at:%b %Y %H:%M} UTC", "").strip()
    noun_before, text, noun_after = _number_words(field)
    if field.endswith((".surprise", ".change")) and comparison.value == 0 and op in ("<", "<=", ">", ">="):
        than = "its forecast" if field.endswith(".surprise") else "its previous value"
        side = {"<": "below", "<=": "not above", ">": "above", ">=": "not below"}[op]
        return f"{_kind(field.partition('.')[0])} {side} {than}"
    if comparison.value == 1:
        noun_after = _of_one(noun_after)
    return _compared(comparison, noun_before, text, noun_after)


def _of_one(noun: str) -> str:
    """A counted noun in the singular.

    >>> _of_one("losses in a row"), _of_one("days since the last trade")
    ('loss in a row', 'day since the last trade')
    """
    first, *rest = noun.split(" ")
    return " ".join((_SINGULAR.get(first, first), *rest))


_SINGULAR: Mapping[str, str] = {"losses": "loss", "wins": "win", "hours": "hour", "days": "day", "points": "point"}


def _compared(comparison: FieldComparison, before: str, text: Callable[[Any], str], after: str) -> str:
    """A figure and its bound; figures that are counted are less or more, others below or above."""
    op, value = comparison.op, comparison.value
    is_count, is_time = not before, comparison.field == "now"
    less, more = ("before", "after") if is_time else ("less than", "more than") if is_count else ("below", "above")
    match op:
        case "changes":
            return f"{before or after} changing"
        case "in" | "not_in":
            bound = f"{'' if op == 'in' else 'other than '}{_listed(comparison, text)}"
        case "between" if isinstance(value, tuple):
            bound = f"from {text(value[0])} to {text(value[1])}"
        case _:
            word_of_op = {
                "==": "at exactly" if is_time else "exactly",
                "!=": "other than",
                "<": less,
                "<=": f"not {more}" if is_time else "at most",
                ">": more,
                ">=": f"not {less}" if is_time else "at least",
                "crosses_above": "crossing above",
                "crosses_below": "crossing below",
            }[op]
            bound = f"{word_of_op} {text(value)}"
    return " ".join(filter(None, (before, bound, after)))


def _listed(comparison: FieldComparison, text: Callable[[Any], str]) -> str:
    """The values of a comparison, joined by `or`; of many, the first."""
    values = comparison.value if isinstance(comparison.value, tuple) else (comparison.value,)
    texts = [text(value) for value in values[:MOST_VALUES]]
    more = [] if len(values) <= MOST_VALUES else [f"{len(values) - MOST_VALUES} more"]
    return " or ".join([*texts, *more])


def _days(comparison: FieldComparison) -> str:
    """Days of the week: `on Fridays`, `from Wednesday to Sunday`."""

    def day(value: Any) -> str:
        return DAYS[int(value)] if float(value).is_integer() else number(value)

    days = [number for number in range(7) if _holds_for(comparison, float(number))]
    if comparison.op in ("crosses_above", "crosses_below", "changes"):
        return _compared(comparison, "the day of the week", day, "")
    if not days:
        return "on no day"
    runs = days == list(range(days[0], days[-1] + 1))
    if len(days) == 7:
        return "on any day"
    if runs and len(days) > 2:
        return f"from {DAYS[days[0]]} to {DAYS[days[-1]]}"
    if len(days) > MOST_VALUES:
        return f"on any day but {' or '.join(DAYS[n] for n in range(7) if n not in days)}"
    return f"on {' or '.join(f'{DAYS[n]}s' for n in days)}"


def _hours(comparison: FieldComparison) -> str:
    """Hours of the day as a span of time: `from 13:00 to 14:00 UTC`."""
    hours = [hour for hour in range(24) if _holds_for(comparison, float(hour))]
    if comparison.op in ("crosses_above", "crosses_below", "changes"):
        return _compared(comparison, "the hour", number, "")
    if not hours:
        return "at no hour"
    spans: list[list[int]] = []
    for hour in hours:
        if spans and spans[-1][1] == hour:
            spans[-1][1] = hour + 1
        else:
            spans.append([hour, hour + 1])
    if spans == [[0, 24]]:
        return "at any hour"
    texts = [
        f"before {end}:00 UTC"
        if start == 0
        else f"from {start}:00 UTC on"
        if end == 24
        else f"from {start}:00 to {end}:00 UTC"
        for start, end in spans[:MOST_VALUES]
    ]
    more = [] if len(spans) <= MOST_VALUES else [f"{len(spans) - MOST_VALUES} more spans"]
    return " or ".join([*texts, *more])


def _holds_for(comparison: FieldComparison, value: float) -> bool:
    return evaluate_condition(comparison, {comparison.field: value}).holds


def _negates(condition: Condition, other: Condition) -> bool:
    """Whether one comparison is the opposite of another."""
    if not isinstance(condition, FieldComparison) or not isinstance(other, FieldComparison):
        return condition == Not(other) or other == Not(condition)
    opposite = FieldComparison(field=other.field, op=OPPOSITES.get(other.op, other.op), value=other.value)
    return condition == opposite and condition != other


def _kind(kind: str) -> str:
    return KIND_WORDS.get(kind, kind.upper())


def _subject(noun: str) -> Callable[[str, Operator], str]:
    return lambda values, op: (
        f"{noun} changing" if op == "changes" else values if op in ("==", "in") else f"any {noun} but {values}"
    )


def _place(noun: str) -> Callable[[str, Operator], str]:
    """The phrase of a label: in it, not in it, or the label changing."""

    def phrase(values: str, op: Operator) -> str:
        if op == "changes":
            return f"{noun} changing"
        if op in ("==", "in"):
            return values
        return f"neither {values.replace(' or ', ' nor ')}" if " or " in values else f"not {values}"

    return phrase


def _next_event(values: str, op: Operator) -> str:
    if op == "changes":
        return "next event changing"
    return f"next event {'' if op in ('==', 'in') else 'other than '}{values}"


_TEXTS: Mapping[str, tuple[Callable[[str, Operator], str], Callable[[Any], str]]] = {
    "symbol": (_subject("symbol"), word),
    "direction": (_subject("direction"), lambda value: f"{value}s"),
    "strategy": (_subject("strategy"), lambda value: f"strategy {word(value)}"),
    "regime": (_place("regime"), LABEL_WORDS.__getitem__),
    "volatility_regime": (_place("volatility"), "in {} volatility".format),
    "session": (_place("session"), LABEL_WORDS.__getitem__),
    "event.kind": (_next_event, lambda value: _kind(word(value).lower())),
}
"""Of each field with text: the phrase for its values, and the words of a value."""

_NUMBERS: Mapping[str, tuple[str, Callable[[float], str], str]] = {
    "price": ("price", number, ""),
    "atr_d1": ("daily ATR", number, ""),
    "atr_h1": ("hourly ATR", number, ""),
    "atr_m5": ("5-minute ATR", number, ""),
    "atr_ratio_h1_d1": ("hourly ATR", percentage, "of the daily"),
    "spread_points": ("spread", number, "points"),
    "spread_as_atr_pct": ("spread", percentage, "of the 5-minute ATR"),
    "drawdown_pct": ("drawdown", percentage, ""),
    "drawdown": ("drawdown", percentage, ""),
    "drawdown_state": ("", percentage, "of the accepted drawdown"),
    "confidence": ("confidence", number, ""),
    "mood.confidence": ("confidence", number, ""),
    "risk_appetite": ("risk appetite", percentage, "of normal"),
    "momentum_bias": ("momentum bias", number, ""),
    "consecutive_losses": ("", number, "losses in a row"),
    "mood.consecutive_losses": ("", number, "losses in a row"),
    "consecutive_wins": ("", number, "wins in a row"),
    "equity": ("equity", number, ""),
    "peak": ("peak equity", number, ""),
    "hours_to_event": ("", number, "hours to the next event"),
    "hours_since_last_trade": ("", number, "hours since the last trade"),
    "days_since_last_trade": ("", number, "days since the last trade"),
}
"""Of each field with numbers: its name before the number, how the number is written, and what it is of."""


def _number_words(field: str) -> tuple[str, Callable[[float], str], str]:
    if field in _NUMBERS:
        return _NUMBERS[field]
    kind, _, figure = field.partition(".")
    name = _kind(kind)
    return {
        "actual": (name, number, ""),
        "forecast": (f"{name} forecast", number, ""),
        "previous": (f"{name} before", number, ""),
        "surprise": (f"{name} less its forecast", number, ""),
        "change": (f"change of {name}", number, ""),
    }.get(figure, ("", number, f"hours since {name}"))
