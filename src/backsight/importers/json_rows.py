"""Rows of JSON files: a list, one object a line, or a list inside of an object."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backsight.core.errors import Invalid
from backsight.importers.cells import UnreadableError
from backsight.importers.export_tables import number_in_text
from backsight.importers.files import text_stream


@dataclass(frozen=True, slots=True)
class JsonRow:
    """One object of a file."""

    content: Mapping[str, Any]
    problem: str | None = None
    """Why the row is no object."""

    def text(self, name: str) -> str:
        """The text or number under a key; empty if there is none."""
        value = self._value(name)
        return str(value).strip() if isinstance(value, (str, int, float)) else ""

    def number_in(self, name: str) -> float | None:
        """The number under a key, also if it is written as text; None if there is none."""
        value = self._value(name)
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError(f"{name} is not a number")
        return number_in_text(str(value), column=name)

    def required(self, name: str) -> float:
        """The number under a key that must be there."""
        number = self.number_in(name)
        if number is None:
            raise ValueError(f"{name} is missing")
        return number

    def _value(self, name: str) -> Any:
        if self.problem is not None:
            raise ValueError(self.problem)
        return self.content.get(name)


def json_rows(path: Path, *keys: str) -> Iterator[tuple[int, JsonRow]]:
    """The objects of a file with their numbers; in an object, the list or object under these keys.

    A file that was cut off ends with a broken row; so does one that is not JSON from some row on.
    """
    text = _text(path)
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] == "{" and keys:
        yield from _inside(path, text, keys)
        return
    if text[start : start + 1] not in ("[", "{"):
        raise Invalid(f"{path} is not JSON; give a list of objects", field="path")
    is_list = text[start] == "["
    yield from _one_by_one(text, start + 1 if is_list else start, is_list=is_list)


def _text(path: Path) -> str:
    with text_stream(path) as stream:
        try:
            text = stream.read()
        except (EOFError, OSError, zlib.error):
            raise Invalid(f"{path} is a compressed file that is cut off or damaged", field="path") from None
    if not text.strip():
        raise Invalid(f"{path} is empty; give a file with rows", field="path")
    return text


def _one_by_one(text: str, at: int, *, is_list: bool) -> Iterator[tuple[int, JsonRow]]:
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    number = 0
    while True:
        while at < len(text) and (text[at].isspace() or (is_list and text[at] == ",")):
            at += 1
        if at >= len(text):
            if is_list:
                raise UnreadableError("the file is cut off before the end of its list", number + 1)
            return
        if is_list and text[at] == "]":
            return
        number += 1
        try:
            row, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            raise UnreadableError("the file is cut off or not JSON from here on", number) from None
        yield number, _row(row)


def _inside(path: Path, text: str, keys: tuple[str, ...]) -> Iterator[tuple[int, JsonRow]]:
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path} is cut off or not JSON ({error}); export it again", field="path") from None
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    rows = [content] if isinstance(content, dict) else content
    for number, row in enumerate(rows if isinstance(rows, list) else [], start=1):
        yield number, _row(row)


def _row(content: object) -> JsonRow:
    return JsonRow(content) if isinstance(content, dict) else JsonRow({}, problem="not an object")


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")
