"""Walk through a large JSON text member by member, so that only one of many objects is in memory at a time."""

import json
from collections.abc import Iterator
from typing import Any

from backsight.importers.cells import UnreadableError

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


class JsonCursor:
    """A place in a JSON text. `members` and `elements` walk through what is there; `value` reads it.

    >>> cursor, values = JsonCursor('{"a": [1, {"b": 2}], "c": {"d": 3}}'), []
    >>> for name in cursor.members():
    ...     if name == "a":
    ...         for _ in cursor.elements():
    ...             values.append(cursor.value())
    >>> values
    [1, {'b': 2}]
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def members(self) -> Iterator[str]:
        """The names of the members of an object; at each, the cursor is at its value. A value not read is skipped."""
        for _ in self._items("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise UnreadableError("not JSON")
            self._expect(":")
            before = self._skip_space()
            yield name
            if self._at == before:
                self.value()

    def elements(self) -> Iterator[None]:
        """One step for each element of a list; at each, the cursor is at the element. One not read is skipped."""
        for _ in self._items("[", "]"):
            before = self._skip_space()
            yield
            if self._at == before:
                self.value()

    def value(self) -> Any:
        """The value at the cursor, which moves behind it."""
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._skip_space())
        except (ValueError, RecursionError):
            raise UnreadableError("not JSON, or cut off") from None
        return value

    @property
    def next_character(self) -> str:
        """The first character of the value at the cursor; empty at the end of the text."""
        at = self._skip_space()
        return self._text[at : at + 1]

    def _items(self, first: str, last: str) -> Iterator[None]:
        self._expect(first)
        if self.next_character == last:
            self._expect(last)
            return
        while True:
            yield
            if self.next_character == last:
                self._expect(last)
                return
            self._expect(",")

    def _expect(self, character: str) -> None:
        if self.next_character != character:
            raise UnreadableError("not JSON, or cut off")
        self._at += 1

    def _skip_space(self) -> int:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return self._at
