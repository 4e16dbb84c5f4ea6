"""Print values on a terminal: lines, aligned labels and tables, described by templates.

`show_record` prints any dataclass without a description: its message, then its values, then its lists as tables.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from string import Formatter
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backsight.core.instants import nearest_minute
from backsight.core.memory.conditions import AllOf, AnyOf, FieldComparison, Not, condition_text
from backsight.core.memory.prospective import PlanSource
from backsight.core.trades.trade import Outcome

PIPE_WIDTH = 160
HIDDEN = ("owner_id", "recorded_at", "request_digest", "message")
"""Fields that the default leaves out; the message is printed first."""
SHOWN_AS_TEXT = (Outcome, AllOf, AnyOf, Not, FieldComparison, PlanSource)
"""Dataclasses that are one text, not a record of values."""
REPLAYED = "Already known: nothing was changed."

Template = str | Callable[[Any], str]
"""A format string whose names are attributes of the item, like `{trade.pnl:+,.2f}`, or a function of the item.

The text is empty if any of the values is unknown.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; left out if a value is unknown, or if the attribute `when` is false or empty."""

    template: Template
    style: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Each:
    """One line for each item of a list, at most `most`."""

    path: str
    template: Template
    style: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with one row for each item of a list, or for a single value.

    A heading that begins with `>` aligns its column to the right. A column without any text is left out.
    """

    path: str
    columns: Mapping[str, Template]
    empty: str = ""
    """What to print if the list is empty."""


@dataclass(frozen=True, slots=True)
class Values:
    """Aligned lines of label and value; for a list, one group of lines for each item."""

    path: str
    labels: Mapping[str, Template]


Block = Line | Each | Rows | Values | Callable[[Console, Any], None]
"""A part of a layout; a function prints what no other block can."""


def columns(text: str) -> dict[str, Template]:
    """Headings and templates from one line of text; a name alone is both heading and attribute.

    >>> columns("closed: {closed_at} | symbol | >net: {pnl:+,.2f}")
    {'closed': '{closed_at}', 'symbol': '{symbol}', '>net': '{pnl:+,.2f}'}
    """
    pairs = (column.strip().partition(": ") for column in text.split("|"))
    return {heading: template or f"{{{heading.removeprefix('>')}}}" for heading, _, template in pairs}


def console() -> Console:
    """The terminal; if the output goes to a file or a pipe, a plain page of 160 characters."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def show_block(to: Console, block: Block, answer: Any) -> None:
    """Print one part of an answer."""
    match block:
        case Line(template, style, when):
            if not when or value_at(answer, when):
                _print_line(to, fill(template, answer), style)
        case Each(path, template, style, most):
            for item in items_at(answer, path)[:most]:
                _print_line(to, fill(template, item), style)
        case Rows(path, columns, empty):
            items = items_at(answer, path)
            if items:
                to.print(table_of(items, columns))
            elif empty:
                to.print(Text(fill(empty, answer), style="dim"))
        case Values(path, labels):
            for number, item in enumerate(items_at(answer, path)):
                if number:
                    to.print()
                _print_values(to, {label: fill(template, item) for label, template in labels.items()})
        case _:
            block(to, answer)


def show_record(to: Console, record: Any, indent: int = 0) -> None:
    """Print any dataclass: its message, its values, its nested records, and its lists as tables."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    message = values.get("message") or (REPLAYED if values.get("replayed") is True else "")
    _print_line(to, message, "")
    visible = {name: value for name, value in values.items() if name not in HIDDEN and _is_known(name, value)}
    nested = {name: value for name, value in visible.items() if _is_record(value) or _is_list(value)}
    plain = {_label(name): text_of(value) for name, value in visible.items() if name not in nested}
    _print_values(to, plain, indent)
    for name, value in nested.items():
        to.print(Text(" " * indent + _label(name), style="bold"))
        if _is_list(value):
            to.print(Padding(table_of(value, _default_columns(value[0])), (0, 0, 0, indent + 2), expand=False))
        else:
            show_record(to, value, indent + 2)


def table_of(items: Iterable[Any], columns: Mapping[str, Template]) -> Table:
    """A table of items; signed numbers are green if positive and red if negative."""
    rows = [[fill(template, item) for template in columns.values()] for item in items]
    used = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    headings = list(columns)
    for index in used:
        right, heading = headings[index].startswith(">"), headings[index].removeprefix(">")
        table.add_column(
            heading, justify="right" if right else "left", no_wrap=right or heading == "id", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(row[index], style=_sign_style(row[index])) for index in used))
    return table


def fill(template: Template, item: Any) -> str:
    """The text of a template for one item; empty if a value is unknown.

    >>> noon = datetime(2026, 6, 4, 12)
    >>> fill("{month:02d}/{year}", noon), fill("{hour}:00 {tzinfo}", noon)
    ('06/2,026', '')
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
    '{"all":[{"field":"hour","op":"==","value":9.0}]}'
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
            return condition_text(value)
        case PlanSource():
            return value.text()
        case Mapping():
            return ", ".join(f"{text_of(name)} {text_of(item)}" for name, item in value.items())
        case tuple() | list():
            items = list(map(text_of, value))
            return ("\n" if any(" " in item for item in items) else ", ").join(items)
    if is_dataclass(value):
        values = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in HIDDEN}
        return ", ".join(f"{_label(name)} {text_of(item)}" for name, item in values.items() if text_of(item))
    return str(value)


def with_unit(value: float | None, unit: str | None, interval: tuple[float, float] | None = None) -> str:
    """A mean or a difference in R, in ATR or in percent, with half the width of its interval.

    >>> with_unit(0.5, "R"), with_unit(0.012, "pct"), with_unit(-1.07, "R", (-1.10, -1.04)), with_unit(None, "R")
    ('+0.50R', '+1.20%', '-1.07 ± 0.03R', '')
    """
    if value is None:
        return ""
    scale, suffix = {"R": (1.0, "R"), "vol": (1.0, " ATR")}.get(unit or "", (100.0, "%"))
    margin = "" if interval is None else f" ± {scale * (interval[1] - interval[0]) / 2:.2f}"
    return f"{scale * value:+.2f}{margin}{suffix}"


def signed(text: str, amount: float | None) -> Text:
    """Text in green for a profit and in red for a loss."""
    return Text(text, style="green" if (amount or 0) > 0 else "red" if (amount or 0) < 0 else "")


class _UnknownValueError(Exception):
    """A value of a template is None or empty."""


class _AttributeFormatter(Formatter):
    """Format strings whose names are attributes of one item; `{}` is the item itself."""

    def get_field(self, field_name: str, args: Any, _kwargs: Any) -> tuple[Any, str]:
        return (args[0] if field_name in ("", "0") else value_at(args[0], field_name)), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None or value in ("", ()):
            raise _UnknownValueError
        return format(value, format_spec) if format_spec else text_of(value)


_FORMATTER = _AttributeFormatter()


def _print_line(to: Console, text: str, style: str) -> None:
    if text:
        to.print(Text(text.rstrip("\n"), style=style), soft_wrap=True)


def _print_values(to: Console, values: Mapping[str, str], indent: int = 0) -> None:
    """Aligned labels and values; the further lines of a value start below its first line."""
    values = {label: value for label, value in values.items() if value}
    width = max(map(len, values), default=0) + 2
    for label, value in values.items():
        text = value.replace("\n", "\n" + " " * (indent + width))
        to.print(Text.assemble(" " * indent, (label.ljust(width), "bold"), text), soft_wrap=True)


def _is_known(name: str, value: object) -> bool:
    """Whether the default prints a value. `replayed` is printed as a sentence instead."""
    return text_of(value) != "" and not (name == "replayed" and isinstance(value, bool))


def _is_record(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, SHOWN_AS_TEXT)


def _is_list(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and _is_record(value[0])


def _default_columns(row: Any) -> dict[str, Template]:
    values = {field.name: getattr(row, field.name) for field in fields(row) if field.name not in HIDDEN}
    return {(">" if _is_number(value) else "") + _label(name): f"{{{name}}}" for name, value in values.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(name: str) -> str:
    return name.replace("_", " ")


def _sign_style(text: str) -> str:
    if text[:1] not in ("+", "-") or not any(digit in text for digit in "123456789"):
        return ""
    return "green" if text[0] == "+" else "red"
