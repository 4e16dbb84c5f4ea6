"""Values as text: times, numbers, prices, ids and outcomes, and templates that take them from an answer."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from string import Formatter
from typing import Any

from backsight.core.ids import ID, SHORT_ID
from backsight.core.instants import nearest_minute
from backsight.core.memory.conditions import AllOf, AnyOf, FieldComparison, Not
from backsight.core.memory.plan_words import condition_in_words
from backsight.core.memory.prospective import PlanSource
from backsight.core.numbers import half_width, with_margin
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Outcome

HIDDEN = ("owner_id", "recorded_at", "request_digest", "message")
"""Fields that are shown in no table and in no list of values; the message is the first sentence."""

SHOWN_AS_TEXT = (Outcome, AllOf, AnyOf, Not, FieldComparison, PlanSource)
"""Dataclasses that are one text, not a record of values."""

Template = str | Callable[[Any], str]
"""A format string whose names are attributes of the item, like `{trade.pnl:+,.2f}`, or a function of the item.

Besides the usual formats there are `{price:price}`, as a market quotes it, `{id:id}`, the beginning of an id, and
`{rows:count row}`, a number with its noun.
The text is empty if any of the values is unknown.
"""


def columns(text: str) -> dict[str, Template]:
    """Headings and templates from one line of text; a name alone is both heading and attribute.

    >>> columns("closed: {closed_at} | symbol | >net: {pnl:+,.2f}")
    {'closed': '{closed_at}', 'symbol': '{symbol}', '>net': '{pnl:+,.2f}'}
    """
    pairs = (column.strip().partition(": ") for column in text.split("|"))
    return {heading: template or f"{{{heading.lstrip('~>')}}}" for heading, _, template in pairs}


def fill(template: Template, item: Any) -> str:
    """The text of a template for one item; empty if a value is unknown.

    >>> noon = datetime(2026, 6, 4, 12)
    >>> fill("{month:02d}/{year}", noon), fill("{hour}:00 {tzinfo}", noon)
    ('06/2,026', '')
    >>> fill("{month:count trade} on {day:count day}", datetime(2026, 1, 4))
    '1 trade on 4 days'
    """
    if not isinstance(template, str):
        return template(item)
    try:
        return _FORMATTER.vformat(template, (item,), {})
    except _UnknownValueError:
        return ""


def value_at(item: Any, path: str) -> Any:
    """The value at a dotted path of attributes; None if any part of the path is None."""
    for name in path.split("."):
        item = None if item is None else getattr(item, name)
    return item


def items_at(answer: Any, path: str) -> tuple[Any, ...]:
    """The items of the list at a path; a single value is a list of one, and the empty path is the answer itself."""
    value = value_at(answer, path) if path else answer
    return value if isinstance(value, tuple) else () if value is None else (value,)


def text_of(value: object) -> str:
    """A value as a person reads it: times in UTC to the minute, numbers to six digits, no Python syntax.

    >>> [text_of(value) for value in (datetime(2026, 6, 4, 9, 30, tzinfo=UTC), 1234.5678901, True, ("a", "b"), None)]
    ['2026-06-04 09:30', '1,234.57', 'yes', 'a, b', '']
    >>> text_of(AllOf((FieldComparison(field="hour", op="==", value=9.0),)))
    'from 9:00 to 10:00 UTC'
    >>> text_of((PlanSource(kind="semantic", id="b1"),))
    '["semantic","b1"]'
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
        case datetime():
            return f"{nearest_minute(value.astimezone(UTC)):%Y-%m-%d %H:%M}"
        case Outcome():
            return with_unit(value.value, value.unit)
        case AllOf() | AnyOf() | Not() | FieldComparison():
            return condition_in_words(value)
        case PlanSource():
            return value.text()
        case Mapping():
            return ", ".join(f"{text_of(name)} {text_of(item)}" for name, item in value.items())
        case tuple() | list():
            items = list(map(text_of, value))
            return ("\n" if any(" " in item for item in items) else ", ").join(items)
    if is_dataclass(value):
        values = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in HIDDEN}
        return ", ".join(f"{label_of(name)} {text_of(item)}" for name, item in values.items() if text_of(item))
    return str(value)


def with_unit(value: float | None, unit: str | None, interval: tuple[float, float] | None = None) -> str:
    """A mean or a difference in R, in ATR or in percent, with half the width of its interval.

    >>> with_unit(0.5, "R"), with_unit(0.012, "pct"), with_unit(-1.07, "R", (-1.10, -1.04)), with_unit(None, "R")
    ('+0.50R', '+1.20%', '-1.07 ± 0.03R', '')
    """
    if value is None:
        return ""
    scale, suffix = {"R": (1.0, "R"), "vol": (1.0, " ATR")}.get(unit or "", (100.0, "%"))
    return with_margin(f"{scale * value:+.2f}", half_width(interval, scale=scale), suffix=suffix)


def price_digits(price: float) -> int:
    """The decimals with which markets quote a price of this size; below 0.1, four significant digits.

    >>> [price_digits(price) for price in (65_432.1, 156.123, 1.08345, 0.000012345)]
    [2, 3, 5, 8]
    """
    size = abs(price)
    if size >= 500:
        return 2
    if size >= 10:
        return 3
    if size >= 0.1 or size == 0:
        return 5
    return min(3 - int(f"{size:e}".partition("e")[2]), 15)


def price_text(price: float) -> str:
    """A price as the market quotes it, without zeros at the end.

    >>> [price_text(price) for price in (5175.254, 1.08, 156.12345, 0.0000123456)]
    ['5175.25', '1.08', '156.123', '0.00001235']
    """
    text = f"{price:.{price_digits(price)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def short_id(identifier: str) -> str:
    """The beginning of an id; other text as it is.

    >>> short_id("2bc9c40c-7e35-5802-bc64-c5c81cabeb8f"), short_id("rules.md")
    ('2bc9c4', 'rules.md')
    """
    return identifier[:SHORT_ID] if ID.fullmatch(identifier) else identifier


def label_of(name: str) -> str:
    return name.replace("_", " ")


class _UnknownValueError(Exception):
    """A value of a template is None or empty."""


class _AttributeFormatter(Formatter):
    """Format strings whose names are attributes of one item; `{}` is the item itself."""

    def get_field(self, field_name: str, args: Any, _kwargs: Any) -> tuple[Any, str]:
        return (args[0] if field_name in ("", "0") else value_at(args[0], field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None or value in ("", ()):
            raise _UnknownValueError
        if format_spec == "price":
            return price_text(value)
        if format_spec == "id":
            return short_id(value)
        if format_spec.startswith("count "):
            return count_of(value, format_spec.removeprefix("count "))
        return format(value, format_spec) if format_spec else text_of(value)


_FORMATTER = _AttributeFormatter()
