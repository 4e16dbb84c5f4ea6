"""The brief form of an answer: a sentence, then slim rows. It is data, from which each surface makes its own output.

A terminal prints the parts as tables (`tables.py`). Over MCP they become compact text and a small JSON object, cut at a
row if they would take too many tokens. A long text is quoted line by line, so that a reader can tell it from ours.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from backsight.answers.values import label_of
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import clause, escaped

SAME_IN = 3
"""In a table of at least so many rows, a column with one value only is stated once, above the table."""
CUT_NOTE_TOKENS = 60
NEXT_CURSOR = "next_cursor"
REMEDY = 'pass detail="full" for all, or a smaller limit and then its cursor'
QUOTE_TOKENS = (24, 16, 12, 10, 8, 6, 5, 4)
"""To how many tokens the quotes of a table are cut, step by step, before a row of the answer is."""
SEPARATOR_TOKENS = 1
"""Tokens that set a row or a line apart from the next one."""

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class QuotedText:
    """A text that somebody wrote, as data in a cell."""

    text: str
    tokens: int
    """The most tokens of it that are shown."""
    is_whole: bool = False
    """Whether it is not cut further where there is no room."""

    def cell(self, most: int) -> "BriefCell":
        r"""A cell with so many tokens of the text, in quotes; in JSON, the text is a string already.

        >>> QuotedText('stop "moved"\nto 5', 20).cell(20).text, QuotedText("too late, and in doubt", 20).cell(4).value
        ('"stop \\"moved\\" to 5"', 'too late…')
        """
        text = clause(self.text, self.tokens if self.is_whole else min(most, self.tokens))
        return BriefCell(f'"{escaped(text)}"' if text else "", text or None, self)


@dataclass(frozen=True, slots=True)
class BriefCell:
    """A value as text and as JSON; in JSON, numbers are rounded as in the text."""

    text: str
    value: Value
    quote: QuotedText | None = field(default=None, compare=False)
    """What the cell quotes, if somebody wrote its text."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One line. Lines of a list share its name; a line on its own has none."""

    text: str
    style: str = ""
    name: str = ""
    for_models: bool = False
    """Whether a terminal leaves the line out, so that a document can be written to a file as it is."""

    def lines(self) -> Iterator[str]:
        yield self.text

    def add_to(self, content: dict[str, Any]) -> None:
        if not self.name and "message" not in content:
            content["message"] = self.text
        else:
            content.setdefault(self.name or "notes", []).append(self.text)

    def costs(self) -> Iterator[int]:
        yield _tokens(self.text, self.text) + estimate(self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, its key in JSON, and whether its cells are aligned to the right."""

    heading: str
    key: str
    right: bool
    optional: bool = False
    """Whether the column is shown on a terminal only: it has room, and a model has the other columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below the headings of their columns."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[BriefCell, ...], ...]
    listed: bool = True
    """Whether the rows are the items of a list, and not one value."""
    for_models: bool = False
    """Whether a terminal leaves the table out."""

    def lines(self) -> Iterator[str]:
        shared, table = self._slim()
        yield from table._heading(shared)
        for row in table.rows:
            yield _row_text(row)

    def _heading(self, shared: Mapping[Column, BriefCell]) -> Iterator[str]:
        """The lines above the rows."""
        if shared:
            yield "all rows: " + ", ".join(
                f"{column.heading} {_without_bar(cell.text)}" for column, cell in shared.items()
            )
        yield " | ".join(column.heading for column in self.columns)

    def add_to(self, content: dict[str, Any]) -> None:
        shared, table = self._slim()
        keys = [column.key for column in table.columns]
        if not self.listed:
            cells = zip(keys, table.rows[0], strict=True)
            content[self.name] = {key: cell.value for key, cell in cells if cell.text}
            return
        same = {"all": {column.key: cell.value for column, cell in shared.items()}} if shared else {}
        content[self.name] = {**same, "columns": keys, "rows": [[cell.value for cell in row] for row in table.rows]}

    def costs(self) -> Iterator[int]:
        shared, table = self._slim()
        keys: dict[str, Any] = {"all": {column.key: cell.value for column, cell in shared.items()}}
        keys |= {"columns": [column.key for column in table.columns], "rows": []}
        above = _tokens("\n".join(table._heading(shared)), {self.name: keys})
        for row in table.rows:
            yield above + _tokens(_row_text(row), [cell.value for cell in row])
            above = 0

    def first(self, count: int) -> "Table":
        return replace(self, rows=self.rows[:count])

    def with_quotes_of(self, tokens: int) -> "Table":
        """The table with its quotes cut to a number of tokens, except those that stay whole."""

        def cut(cell: BriefCell) -> BriefCell:
            return cell if cell.quote is None else cell.quote.cell(tokens)

        return replace(self, rows=tuple(tuple(map(cut, row)) for row in self.rows))

    def _slim(self) -> tuple[dict[Column, BriefCell], "Table"]:
        """The columns with one value only, and the table without them and without optional columns."""
        values = {index: {row[index] for row in self.rows} for index in range(len(self.columns))}
        needed = [index for index, column in enumerate(self.columns) if not column.optional]
        used = [index for index in needed if len(values[index]) > 1] if len(self.rows) >= SAME_IN else needed
        used = used or needed
        shared = {self.columns[index]: self.rows[0][index] for index in needed if index not in used}
        rows = tuple(tuple(row[index] for index in used) for row in self.rows)
        return shared, replace(self, columns=tuple(self.columns[index] for index in used), rows=rows)


@dataclass(frozen=True, slots=True)
class ValueList:
    """Labels with their values."""

    name: str
    cells: Mapping[str, BriefCell]
    listed: bool = False
    """Whether it is one of several."""

    def lines(self) -> Iterator[str]:
        yield "; ".join(f"{label}: {cell.text}" for label, cell in self.cells.items())

    def add_to(self, content: dict[str, Any]) -> None:
        _put(content, self.name, _by_key(self.cells), listed=self.listed)

    def costs(self) -> Iterator[int]:
        pairs = (2 * estimate(label) + _tokens(cell.text, cell.value) + 4 for label, cell in self.cells.items())
        yield sum(pairs) + estimate(self.name) + 6


@dataclass(frozen=True, slots=True)
class Text:
    """A text of several lines below its title; an excerpt has labelled values instead of a title."""

    name: str
    text: str
    title: str = ""
    listed: bool = False
    markdown: bool = False
    cells: Mapping[str, BriefCell] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    """Words that a terminal highlights."""
    for_models: bool = False
    """Whether a terminal leaves the text out."""

    def lines(self) -> Iterator[str]:
        if heading := self.title or " ".join(cell.text for cell in self.cells.values()):
            yield heading
        yield from (f"> {line}" for line in self.text.split("\n"))

    def add_to(self, content: dict[str, Any]) -> None:
        about = {"title": self.title} if self.title else _by_key(self.cells)
        _put(content, self.name, {**about, "text": self.text} if about else self.text, listed=self.listed)

    def costs(self) -> Iterator[int]:
        heads = (estimate(label) + _tokens(cell.text, cell.value) for label, cell in self.cells.items())
        above = sum(heads) + estimate(self.title) + estimate(self.name) + 16
        for line in self.text.split("\n"):
            yield above + _tokens(f"> {line}", line)
            above = 0

    def first(self, count: int) -> "Text":
        return replace(self, text="\n".join(self.text.split("\n")[:count]))


@dataclass(frozen=True, slots=True)
class FileText:
    """A text for a terminal only, which can write it to a file as it is; too long for a model."""

    text: str

    def lines(self) -> Iterator[str]:
        yield from ()

    def add_to(self, content: dict[str, Any]) -> None:
        pass

    def costs(self) -> Iterator[int]:
        yield from ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A value to be passed to another call: the cursor of the next page, or the handle of a recall."""

    key: str
    label: str
    value: str

    def lines(self) -> Iterator[str]:
        yield f"{self.label}={self.value}"

    def add_to(self, content: dict[str, Any]) -> None:
        content[self.key] = self.value

    def costs(self) -> Iterator[int]:
        yield _tokens(f"{self.label}={self.value}", {self.key: self.value})


Part = Sentence | Table | ValueList | Text | FileText | Reference


@dataclass(frozen=True, slots=True)
class Brief:
    """An answer in brief; its first part is a sentence."""

    parts: tuple[Part, ...]

    def with_note(self, text: str) -> "Brief":
        """The brief with a note after its first sentence, where no cut reaches it."""
        return Brief((*self.parts[:1], Sentence(text), *self.parts[1:]))

    def text(self) -> str:
        """Compact text for a model: a line for each row, its cells separated by bars."""
        return "\n".join(line for part in self.parts for line in part.lines())

    def as_json(self) -> dict[str, Any]:
        """The same as a small JSON object: `message`, `notes`, and each table with its `columns` and `rows`."""
        content: dict[str, Any] = {}
        for part in self.parts:
            part.add_to(content)
        return content

    def within(self, tokens: int, *, remedy: str = REMEDY) -> "Brief":
        """The beginning of the brief that takes at most this many tokens, as text and as JSON; a cut is stated.

        Quotes give way before rows do. The remedy says how a caller gets the rest.
        """
        if self._fits(tokens):
            return self
        for most in QUOTE_TOKENS:
            shorter = self._with_quotes_of(most)
            if shorter._fits(tokens):
                return shorter
        return shorter._cut(tokens, remedy)

    def _fits(self, tokens: int) -> bool:
        return _fitting(chain.from_iterable(part.costs() for part in self.parts), tokens) is None

    def _with_quotes_of(self, tokens: int) -> "Brief":
        return Brief(tuple(part.with_quotes_of(tokens) if isinstance(part, Table) else part for part in self.parts))

    def _cut(self, tokens: int, remedy: str) -> "Brief":
        """The beginning of the brief with as many rows and lines as fit, and a note of what was cut."""
        references = [part for part in self.parts if isinstance(part, Reference)]
        left = tokens - CUT_NOTE_TOKENS - sum(sum(part.costs()) for part in references)
        parts: list[Part] = []
        cuts: list[str] = []
        for part in self.parts:
            if isinstance(part, Reference):
                continue
            count = _fitting(part.costs(), left)
            if count is None:
                parts.append(part)
                left -= sum(part.costs())
                continue
            cuts.append(_cut_text(part, count))
            if count and isinstance(part, Table | Text):
                parts.append(part.first(count))
                left -= sum(islice(part.costs(), count))
        # The next page begins after the rows that were cut, so its cursor would skip them.
        usable = [part for part in references if part.key != NEXT_CURSOR or not any(cuts)]
        return Brief((*parts, *usable, Sentence(_cut_note(cuts, remedy))))


def _fitting(costs: Iterable[int], tokens: int) -> int | None:
    """How many of the first units fit into a number of tokens; None if all do."""
    for count, cost in enumerate(costs):
        tokens -= cost
        if tokens < 0:
            return count
    return None


def _cut_text(part: Part, count: int) -> str:
    match part:
        case Table(name, rows=rows):
            return f"{count} of {len(rows)} {label_of(name)}"
        case Text(name, text):
            return f"{count} of {text.count(chr(10)) + 1} lines of {label_of(name)}"
    return ""


def _cut_note(cuts: list[str], remedy: str) -> str:
    shown = ", ".join(filter(None, cuts[:3]))
    return f"Cut to fit{f': {shown}' if shown else ''}; {remedy}."


def _put(content: dict[str, Any], name: str, value: object, *, listed: bool) -> None:
    if listed:
        content.setdefault(name, []).append(value)
    else:
        content[name] = value


def _by_key(cells: Mapping[str, BriefCell]) -> dict[str, Value]:
    return {"_".join(re.findall(r"\w+", label)): cell.value for label, cell in cells.items()}


def _row_text(row: tuple[BriefCell, ...]) -> str:
    return " | ".join(_without_bar(cell.text) for cell in row)


def _without_bar(text: str) -> str:
    """The text with its bars escaped: a bar stands between two cells."""
    return text.replace("|", "\\|")


def _tokens(text: str, value: object) -> int:
    """The tokens of a line or of its JSON, whichever is more, and of what separates it from the next."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return max(estimate(text), estimate(written)) + SEPARATOR_TOKENS
