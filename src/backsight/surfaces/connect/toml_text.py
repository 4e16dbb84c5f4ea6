"""Set one table in a TOML text, and leave every other character as it is."""

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from backsight.core.errors import Invalid

TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[\[\]{}\n]|[^#\"'\[\]{}\n]+|.",
    re.DOTALL,
)
"""A comment, a text of one or several lines, a bracket, a line break, or what is between these."""
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class TomlTable(NamedTuple):
    """The header of a table: its path, where its line begins, and where the last line with one of its keys ends."""

    path: tuple[str, ...]
    start: int
    end: int


def read_toml(text: str) -> dict[str, Any]:
    """The content of a text. `Invalid` names the line of what cannot be read."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Invalid(str(error)) from None


def with_table(text: str, path: tuple[str, ...], content: dict[str, Any]) -> str:
    """The text with the table at a path set: in its place if there is one, else at the end.

    >>> print(with_table("model = 'x'", ("servers", "memory"), {"command": "backsight"}))
    model = 'x'
    <BLANKLINE>
    [servers.memory]
    command = "backsight"
    <BLANKLINE>
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(name)} = {_value(item)}" for name, item in content.items())]
    block = newline.join(lines) + newline
    before, after = _around(text, path)
    if before is not None:
        return before + block + after
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + block


def without_table(text: str, path: tuple[str, ...]) -> str:
    """The text without the table at a path and the blank line before it, if the table has a header of its own."""
    before, after = _around(text, path)
    if before is None:
        return text
    for blank in ("\r\n\r\n", "\n\n"):
        if before.endswith(blank):
            return before[: -len(blank) // 2] + after
    return before + after


def _around(text: str, path: tuple[str, ...]) -> tuple[str | None, str]:
    """The text before and after a table and its inner tables; None before if the table has no header."""
    tables = [table for table in _tables(text) if table.path[: len(path)] == path]
    if not tables:
        return None, ""
    ends = [table.end for table in tables]
    middle = "".join(text[table.end : following.start] for table, following in pairwise(tables))
    return text[: tables[0].start], middle.lstrip("\r\n") + text[ends[-1] :]


def _tables(text: str) -> list[TomlTable]:
    """The tables of a text that have headers, in their order."""
    tables: list[TomlTable] = []
    for start, line in _statements(text):
        stripped = line.strip()
        if stripped.startswith("["):
            tables.append(TomlTable(_path_of(stripped), start, start + len(line)))
        elif tables and stripped and not stripped.startswith("#"):
            tables[-1] = tables[-1]._replace(end=start + len(line))
    return tables


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, where each begins; a value over several lines is one line."""
    start = end = depth = 0
    for token in TOKEN.finditer(text):
        end = token.end()
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] == "\n" and depth <= 0:
            yield start, text[start:end]
            start, depth = end, 0
    if end > start:
        yield start, text[start:end]


def _path_of(header: str) -> tuple[str, ...]:
    """The path in the header of a table.

    >>> _path_of('[servers."my memory".env]  # note')
    ('servers', 'my memory', 'env')
    """
    content: Any = tomllib.loads(header)
    names = []
    while content:
        ((name, content),) = content.items() if isinstance(content, dict) else content[0].items()
        names.append(name)
        if content == [{}]:
            break
    return tuple(names)


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """A text in quotes; the escapes of JSON are those of TOML, which also wants one for delete."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(content: Any) -> str:
    match content:
        case bool():
            return "true" if content else "false"
        case int() | float():
            return repr(content)
        case str():
            return _text(content)
        case list():
            return f"[{', '.join(map(_value, content))}]"
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in content.items()) + " }"
        case _:
            raise Invalid(f"{content!r} in the entry cannot be written again")
