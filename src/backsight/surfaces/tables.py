"""Print answers on a terminal: the parts of a brief, or with `show_record` every field of an answer."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Styled

from backsight.answers.blocks import REPLAYED, columns_of, is_list, is_record
from backsight.answers.brief import NEXT_CURSOR, Column, FileText, Part, Reference, Sentence, Table, Text, ValueList
from backsight.answers.layouts import brief_of
from backsight.answers.values import HIDDEN, fill, label_of, text_of
from backsight.core.text.untrusted_text import flat
from backsight.surfaces.column_widths import GAP, fit, least_width, may_wrap

PIPE_WIDTH = 160
ABBREVIATIONS = {"Q": "outcome", "Sim": "similarity", "Rec": "recency", "Conf": "confidence", "Aff": "mood"}
LEAST_VALUE_WIDTH = 20
NUMBER = re.compile(r"[+-]?[\d,]*(?:\.\d*)?")
MOST_COLUMNS = 12
"""A list of records with more fields is printed one record below the other."""


class Page(Console):
    """A console that leaves it to the program to end quietly when the reader of a pipe has read enough."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console() -> Console:
    """The terminal; if the output goes to a file or a pipe, a plain page of 160 characters."""
    terminal = Page(highlight=False)
    return terminal if terminal.is_terminal else Page(highlight=False, width=PIPE_WIDTH)


def show(to: Console, answer: Any) -> None:
    """Print an answer in brief."""
    for part in brief_of(answer).parts:
        show_part(to, part)


def show_part(to: Console, part: Part) -> None:
    """Print one part of a brief."""
    match part:
        case Sentence(text, style, for_models=False):
            _print_line(to, text, style)
        case Table(_, columns, rows, for_models=False):
            _print_table(to, columns, _on_the_point(columns, [[cell.text for cell in row] for row in rows]))
        case ValueList(_, cells):
            _print_values(to, {label: cell.text for label, cell in cells.items()})
        case Text(for_models=False):
            _print_text(to, part)
        case FileText(text):
            to.out(text, highlight=False)
        case Reference(key, _, value) if key == NEXT_CURSOR:
            to.print(Styled(f"More: --cursor {value}", style="dim"), soft_wrap=True)  # to be copied as one word


def legend_of(headings: Sequence[str]) -> str:
    """The meaning of the headings that are abbreviations, in one line; empty if there are none.

    >>> legend_of(["score", "Q", "Rec"])
    'Q: outcome, Rec: recency'
    """
    return ", ".join(f"{heading}: {ABBREVIATIONS[heading]}" for heading in headings if heading in ABBREVIATIONS)


def show_record(to: Console, record: Any, indent: int = 0) -> None:
    """Print every field of a dataclass: its message, its values, its nested records, and its lists as tables."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    message = values.get("message") or (REPLAYED if values.get("replayed") is True else "")
    _print_line(to, flat(message), "")
    visible = {name: value for name, value in values.items() if name not in HIDDEN and _is_known(name, value)}
    nested = {name: value for name, value in visible.items() if is_record(value) or is_list(value)}
    plain = {label_of(name): _printable(value) for name, value in visible.items() if name not in nested}
    _print_values(to, plain, indent)
    for name, value in nested.items():
        to.print(Styled(" " * indent + label_of(name), style="bold"))
        if is_list(value) and len(fields(value[0])) <= MOST_COLUMNS:
            to.print(Padding(_grid(*_record_table(value)), (0, 0, 0, indent + 2), expand=False))
            continue
        for number, item in enumerate(value if is_list(value) else (value,)):
            if number:
                to.print()
            show_record(to, item, indent + 2)


def signed(text: str, amount: float | None) -> Styled:
    """Text in green for a profit and in red for a loss."""
    return Styled(text, style="green" if (amount or 0) > 0 else "red" if (amount or 0) < 0 else "")


def _print_table(to: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print the columns that fit; those with one value are stated once, and those that are left out are named."""
    chosen = fit(columns, rows, to.width)
    if chosen.stated:
        same = ", ".join(f"{columns[index].heading} {rows[0][index]}" for index in chosen.stated if rows[0][index])
        _print_line(to, f"All rows: {same}", "dim")
    shown = [columns[index] for index in chosen.shown]
    to.print(_grid(shown, [[row[index] for index in chosen.shown] for row in rows]))
    _print_line(to, legend_of([columns[index].heading for index in sorted((*chosen.shown, *chosen.stated))]), "dim")
    if chosen.left_out:
        names = ", ".join(columns[index].heading for index in chosen.left_out)
        _print_line(to, f"Not shown in {to.width} columns: {names}", "dim")


def _on_the_point(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows, with numbers that differ in their decimals padded on both sides to the width of their column."""
    aligned = [list(row) for row in rows]
    for index, column in enumerate(columns):
        tails = [len(row[index]) - len(row[index].partition(".")[0]) for row in rows]
        if column.right and len(set(tails)) > 1 and all(NUMBER.fullmatch(row[index]) for row in rows):
            padded = [row[index] + " " * (max(tails) - tail) for row, tail in zip(rows, tails, strict=True)]
            width = max(map(len, [column.heading, *padded]))
            for row, text in zip(aligned, padded, strict=True):
                row[index] = text.rjust(width)
    return aligned


def _grid(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Grid:
    """A table; signed numbers are green if positive and red if negative."""
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for index, column in enumerate(columns):
        cells = [row[index] for row in rows]
        least = least_width(column, cells)
        grid.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=not may_wrap(column, cells),
            overflow="fold",
            min_width=least,
        )
    for row in rows:
        grid.add_row(*(_cell(text) for text in row))
    return grid


def _cell(text: str) -> Styled:
    """A cell; one that is padded already keeps its spaces."""
    return Styled(text, style=_sign_style(text.strip()), justify="left" if text != text.strip() else None)


def _record_table(items: tuple[Any, ...]) -> tuple[list[Column], list[list[str]]]:
    """The columns and rows of a table with a column for each field that has a value in any of the items."""
    templates = columns_of(items[0])
    cells = [[_printable(fill(template, item)) for template in templates.values()] for item in items]
    used = [index for index in range(len(templates)) if any(row[index] for row in cells)]
    headings = [Column(heading.removeprefix(">"), "", heading.startswith(">")) for heading in templates]
    return [headings[index] for index in used], [[row[index] for index in used] for row in cells]


def _print_text(to: Console, part: Text) -> None:
    """A text: Markdown is rendered on a terminal; an excerpt is indented, and the words of the query stand out."""
    if part.markdown and to.is_terminal:
        from rich.markdown import Markdown

        to.print(Markdown(part.text))
    elif part.cells:
        place, *rest = (cell.text for cell in part.cells.values())
        to.print(Styled.assemble((place, "bold"), *(f"  {text}" for text in rest)))
        excerpt = Styled(part.text)
        excerpt.highlight_words(part.words, "bold yellow", case_sensitive=False)
        to.print(Padding(excerpt, (0, 0, 1, 4)))
    else:
        _print_line(to, part.title, "bold")
        _print_line(to, part.text, "")


def _print_line(to: Console, text: str, style: str) -> None:
    """Print a line; a terminal breaks it between words, a file or a pipe not at all."""
    if text:
        to.print(Styled(text, style=style), soft_wrap=not to.is_terminal)


def _print_values(to: Console, values: Mapping[str, str], indent: int = 0) -> None:
    """Aligned labels and values; the further lines of a value start below its first line."""
    values = {label: value for label, value in values.items() if value}
    width = max(map(len, values), default=0) + 2
    for label, value in values.items():
        lines = value.split("\n")
        if to.is_terminal:
            room = max(to.width - indent - width, LEAST_VALUE_WIDTH)
            lines = [part for line in lines for part in _wrapped(line, room)]
        text = f"\n{' ' * (indent + width)}".join(lines)
        to.print(Styled.assemble(" " * indent, (label.ljust(width), "bold"), text), soft_wrap=True)


def _wrapped(line: str, width: int) -> list[str]:
    """A line broken between words; a long word, like the head of a chain, stays whole, so that it can be copied."""
    return textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) or [line]


def _printable(value: object) -> str:
    """A value as text without control characters."""
    return "\n".join(map(flat, text_of(value).splitlines()))


def _is_known(name: str, value: object) -> bool:
    """Whether a value is printed. `replayed` is printed as a sentence instead."""
    return text_of(value) != "" and not (name == "replayed" and isinstance(value, bool))


def _sign_style(text: str) -> str:
    if text[:1] not in ("+", "-") or not any(digit in text for digit in "123456789"):
        return ""
    return "green" if text[0] == "+" else "red"
