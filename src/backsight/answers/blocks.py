"""Blocks of a layout: which lines, tables and texts of an answer are shown, and how they become the parts of its brief.

Values may come from models, markets and documents. Each is put on one line, without characters that are invisible or
that control a terminal. A long text keeps its lines.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from backsight.answers.brief import (
    NEXT_CURSOR,
    Brief,
    BriefCell,
    Column,
    FileText,
    Part,
    QuotedText,
    Reference,
    Sentence,
    Table,
    Text,
    ValueList,
)
from backsight.answers.values import (
    HIDDEN,
    SHOWN_AS_TEXT,
    Template,
    fill,
    items_at,
    label_of,
    price_digits,
    text_of,
    value_at,
)
from backsight.core import call_notes
from backsight.core.text.untrusted_text import flat, shorten

CELL_WIDTH, CELL_TOKENS = 100, 60
LINE_WIDTH, LINE_TOKENS = 1_200, 300
REPLAYED = "Already known: nothing was changed."

_ONE_FIELD = re.compile(r"\{([\w.]*)(?::([^{}]*))?\}")
_DECIMALS = re.compile(r"\.(\d+)([f%])")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A cell with a text that somebody wrote, in quotes."""

    text: Template
    tokens: int
    whole: str = ""
    """The attribute of an item that is true if all of its text is shown, up to `CELL_TOKENS`, even without room."""


CellTemplate = Template | Quoted


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; left out if a value is unknown, or if the attribute `when` is false or empty."""

    template: Template
    style: str = ""
    when: str = ""
    for_models: bool = False
    """Whether a terminal leaves the line out."""

    def parts(self, answer: Any) -> Iterator[Part]:
        if not self.when or value_at(answer, self.when):
            for sentence in _sentences(fill(self.template, answer), self.style):
                yield replace(sentence, for_models=self.for_models)


@dataclass(frozen=True, slots=True)
class Each:
    """One line for each item of a list, at most `most`."""

    path: str
    template: Template
    style: str = ""
    most: int | None = None
    name: str = ""
    """The name of the lines; by default the last name of the path."""

    @property
    def key(self) -> str:
        return self.name or _last(self.path)

    def parts(self, answer: Any) -> Iterator[Part]:
        for item in items_at(answer, self.path)[: self.most]:
            yield from _sentences(fill(self.template, item), self.style, name=self.key)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with one row for each item of a list, or for a single value.

    A heading that begins with `>` aligns its column to the right. One that begins with `~` is of an optional column,
    for a terminal only; `~>` is both. A column without any text is left out.
    """

    path: str | Callable[[Any], tuple[Any, ...]]
    """The path of the list, or a function that makes it from the answer."""
    columns: Mapping[str, CellTemplate]
    name: str = ""
    """The name of the table; by default the last name of the path."""
    for_models: bool = False
    """Whether a terminal leaves the table out."""

    def parts(self, answer: Any) -> Iterator[Part]:
        items = self.path(answer) if callable(self.path) else items_at(answer, self.path)
        if items:
            listed = callable(self.path) or is_listed(answer, self.path)
            yield replace(_table(self.key, items, self.columns, listed=listed), for_models=self.for_models)

    @property
    def key(self) -> str:
        return self.name or ("rows" if callable(self.path) else _last(self.path))

    def slim_columns(self) -> list[Column]:
        """The columns that are shown to a model."""
        every = (_column(heading, template) for heading, template in self.columns.items())
        return [column for column in every if not column.optional]


@dataclass(frozen=True, slots=True)
class Values:
    """Labels with their values; for a list, one group for each item.

    Left out if the attribute `unless` is neither false nor empty.
    """

    path: str
    labels: Mapping[str, CellTemplate]
    unless: str = ""

    @property
    def key(self) -> str:
        return _last(self.path)

    def parts(self, answer: Any) -> Iterator[Part]:
        if self.unless and value_at(answer, self.unless):
            return
        for item in items_at(answer, self.path):
            cells = _known_cells(self.labels, item)
            if cells:
                yield ValueList(self.key, cells, listed=is_listed(answer, self.path))


@dataclass(frozen=True, slots=True)
class Body:
    """A text of several lines, or one for each item of a list, below its title."""

    path: str
    text: Template = "{}"
    title: Template = ""
    markdown: bool = False
    name: str = ""
    """The name of the text; by default the last name of the path."""
    for_people: bool = False
    """Whether only a terminal prints the text."""
    for_models: bool = False
    """Whether a terminal leaves the text out."""

    @property
    def key(self) -> str:
        return self.name or _last(self.path)

    def parts(self, answer: Any) -> Iterator[Part]:
        for item in items_at(answer, self.path):
            if text := visible_lines(fill(self.text, item)):
                if self.for_people:
                    yield FileText(text)
                    continue
                listed, title = is_listed(answer, self.path), flat(fill(self.title, item))
                yield Text(
                    self.key, text, title=title, listed=listed, markdown=self.markdown, for_models=self.for_models
                )


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Excerpts of documents: what is known of each, and its text; a terminal highlights the words of the query."""

    path: str
    labels: Mapping[str, Template]
    text: Callable[[Any, Any], str]
    """From the answer and the item."""
    words: str
    """The path of the words in the answer."""

    @property
    def key(self) -> str:
        return _last(self.path)

    def parts(self, answer: Any) -> Iterator[Part]:
        words = value_at(answer, self.words)
        for item in items_at(answer, self.path):
            text = visible_lines(self.text(answer, item))
            yield Text(self.key, text, listed=True, cells=_known_cells(self.labels, item), words=words)


@dataclass(frozen=True, slots=True)
class Handle:
    """A value to be passed to another call; left out if it is unknown, or if the attribute `when` is false or empty."""

    path: str
    label: str
    when: str = ""
    name: str = ""
    """The name of the value; by default the last name of the path."""

    @property
    def key(self) -> str:
        return self.name or _last(self.path)

    def parts(self, answer: Any) -> Iterator[Part]:
        value = value_at(answer, self.path)
        if value and (not self.when or value_at(answer, self.when)):
            yield Reference(self.key, self.label, value)


MORE = Handle(NEXT_CURSOR, "More: cursor")
Block = Line | Each | Rows | Values | Body | Excerpts | Handle


def parts_of(layout: Iterable[Block], answer: Any) -> Brief:
    """The brief form of an answer by a layout."""
    return Brief(tuple(part for block in layout for part in block.parts(answer)))


def default_parts(answer: Any) -> Brief:
    """The brief form of an answer without a layout: its message, its values, its nested records and its lists."""
    values = {field.name: getattr(answer, field.name) for field in fields(answer)}
    visible = {
        name: value
        for name, value in values.items()
        if name not in (*HIDDEN, call_notes.FIELD, "replayed") and text_of(value)
    }
    plain = columns_of(answer, [name for name, value in visible.items() if not is_record(value) and not is_list(value)])
    parts: list[Part] = [*_sentences(_default_sentence(answer), "")]
    if plain:
        parts.append(ValueList("values", _known_cells(plain, answer)))
    for name, value in visible.items():
        if is_list(value):
            parts.append(_table(name, value, columns_of(value[0])))
        elif is_record(value):
            parts.append(ValueList(name, _known_cells(columns_of(value), value)))
    return Brief(tuple(parts))


def _default_sentence(answer: Any) -> str:
    """The message of an answer, or that it was a repeat, or the words of its type."""
    if getattr(answer, "replayed", None) is True:
        return getattr(answer, "message", None) or REPLAYED
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(answer).__name__).capitalize()
    return getattr(answer, "message", None) or f"{words}:"


def columns_of(row: Any, names: Iterable[str] | None = None) -> dict[str, Template]:
    """A column for each of these fields of a dataclass, by default for all that are not hidden."""
    names = [field.name for field in fields(row) if field.name not in HIDDEN] if names is None else names
    numbers = {name for name in names if _is_number(getattr(row, name))}
    return {(">" if name in numbers else "") + label_of(name): f"{{{name}}}" for name in names}


def is_listed(answer: Any, path: str) -> bool:
    """Whether the value at a path is a list."""
    return bool(path) and isinstance(value_at(answer, path), tuple)


def is_record(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, SHOWN_AS_TEXT)


def is_list(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and is_record(value[0])


def visible_lines(text: str) -> str:
    r"""A text with its lines and their indentation, without control characters and invisible ones.

    >>> visible_lines("  one\u200b\x1b[31m\r\ntwo  \n")
    '  one [31m\ntwo'
    """
    lines = (line[: len(line) - len(line.lstrip(" "))] + flat(line) for line in text.expandtabs(4).splitlines())
    return "\n".join(lines).rstrip()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _last(path: str) -> str:
    """The name of a part: the last name of its path.

    >>> _last("learned.evidence"), _last("")
    ('evidence', 'values')
    """
    return path.rpartition(".")[2] or "values"


def _sentences(text: str, style: str, name: str = "") -> Iterator[Sentence]:
    if text.strip():
        yield Sentence(shorten(text, most=LINE_WIDTH, tokens=LINE_TOKENS), style, name)


def _table(name: str, items: tuple[Any, ...], templates: Mapping[str, CellTemplate], *, listed: bool = True) -> Table:
    rows = [tuple(_cell(template, item) for template in templates.values()) for item in items]
    used = [index for index in range(len(templates)) if any(row[index].text for row in rows)]
    columns = [_column(heading, template) for heading, template in templates.items()]
    cells = tuple(tuple(row[index] for index in used) for row in rows)
    return Table(name, tuple(columns[index] for index in used), cells, listed)


def _column(heading: str, template: CellTemplate) -> Column:
    """A column; in JSON its key is the attribute that it shows, else its heading.

    >>> _column(">net", "{trade.pnl:+,.2f}")
    Column(heading='net', key='pnl', right=True, optional=False)
    """
    field = _ONE_FIELD.fullmatch(template) if isinstance(template, str) else None
    label = heading.lstrip("~>")
    key = field[1].rpartition(".")[2] if field and field[1] else label
    return Column(label, key, right=">" in heading[:2], optional=heading.startswith("~"))


def _known_cells(labels: Mapping[str, CellTemplate], item: Any) -> dict[str, BriefCell]:
    cells = {label.removeprefix(">"): _cell(template, item) for label, template in labels.items()}
    return {label: cell for label, cell in cells.items() if cell.text}


def _cell(template: CellTemplate, item: Any) -> BriefCell:
    """The text of a template, and its value: a number if the template shows one number, else the text."""
    if isinstance(template, Quoted):
        is_whole = bool(template.whole) and bool(value_at(item, template.whole))
        tokens = max(CELL_TOKENS, template.tokens) if is_whole else template.tokens
        return QuotedText(fill(template.text, item), tokens, is_whole).cell(tokens)
    text = shorten(fill(template, item), most=CELL_WIDTH, tokens=CELL_TOKENS)
    field = _ONE_FIELD.fullmatch(template) if isinstance(template, str) else None
    value = value_at(item, field[1]) if field and field[1] else None
    if text and field and isinstance(value, int | float):
        return BriefCell(text, _rounded(value, field[2] or ""))
    return BriefCell(text, text or None)


def _rounded(value: float, spec: str) -> float:
    """A number rounded as a format shows it.

    >>> _rounded(1.23456, "+,.2f"), _rounded(0.12345, ".1%"), _rounded(1234.5678, "price"), _rounded(7, "")
    (1.23, 0.123, 1234.57, 7)
    """
    if isinstance(value, int):
        return value
    if spec == "price":
        return round(value, price_digits(value))
    decimals = _DECIMALS.search(spec)
    if decimals is None:
        return float(f"{value:.6g}")
    return round(value, int(decimals[1]) + (2 if decimals[2] == "%" else 0))
