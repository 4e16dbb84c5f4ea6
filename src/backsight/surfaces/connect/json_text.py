"""Edit one member of an object in a JSON text, and leave every other character as it is.

Editors allow comments and trailing commas in their settings, so the reader here does; it knows where every member is.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from backsight.core.errors import Invalid

BLANKS = re.compile(r"[ \t\r\n\ufeff]*")
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
COMMENTS = {"//": "\n", "/*": "*/"}
"""How comments begin and end."""
SCALAR = re.compile(r"[-+.\w]+")
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: its name, its value, and where both are in the text."""

    name: str
    start: int
    """Where the name begins."""
    value: "Value"
    comma: int | None
    """Where the comma after the value is; None if there is none."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it is; `members` are those of an object."""

    content: Any
    start: int
    end: int
    members: tuple[Member, ...] = field(default=())

    def member(self, name: str) -> Member | None:
        """The member with a name; as in other readers of JSON, the last one counts."""
        return next((member for member in reversed(self.members) if member.name == name), None)


def read_json(text: str, *, comments: bool) -> Value:
    """The object in a text; an empty text is an empty object. `Invalid` names the line of what cannot be read.

    Without `comments` the text must be what a strict reader takes.
    """
    if not text.strip(" \t\r\n\ufeff"):
        return Value({}, 0, len(text))
    reader = JsonReader(text, comments=comments)
    start = reader.after_trivia(0)
    root = reader.value(start, depth=0)
    end = reader.after_trivia(root.end)
    if end != len(text):
        raise reader.error("text after the end of the object", end)
    if not isinstance(root.content, dict):
        raise reader.error("a value that is not an object", start)
    return root


class JsonReader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments

    def error(self, problem: str, at: int) -> Invalid:
        line = self.text.count("\n", 0, at) + 1
        return Invalid(f"line {line} has {problem}")

    def after_trivia(self, at: int) -> int:
        """Where blanks, and comments if they are allowed, end."""
        while True:
            match = BLANKS.match(self.text, at)
            at = match.end() if match else at
            ending = COMMENTS.get(self.text[at : at + 2]) if self.comments else None
            if ending is None:
                return at
            end = self.text.find(ending, at + 2)
            at = len(self.text) if end < 0 else end + len(ending)

    def value(self, at: int, *, depth: int) -> Value:
        if depth > DEEPEST:
            raise self.error("too many nested brackets", at)
        match self.text[at : at + 1]:
            case "{":
                return self.object(at, depth=depth)
            case "[":
                return self.array(at, depth=depth)
            case _:
                return self.scalar(at)

    def scalar(self, at: int) -> Value:
        pattern = STRING if self.text[at : at + 1] == '"' else SCALAR
        match = pattern.match(self.text, at)
        try:
            content = json.loads(match[0] if match else "")
        except ValueError:
            raise self.error(f"{self.text[at : at + 12]!r}, which is not JSON", at) from None
        return Value(content, at, match.end() if match else at)

    def array(self, start: int, *, depth: int) -> Value:
        items = []
        at = self.after_trivia(start + 1)
        while self.text[at : at + 1] != "]":
            item = self.value(at, depth=depth + 1)
            items.append(item.content)
            _, at = self.separator(item.end, closing="]")
        return Value(items, start, at + 1)

    def object(self, start: int, *, depth: int) -> Value:
        members: list[Member] = []
        at = self.after_trivia(start + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise self.error(f"{self.text[at : at + 12]!r} where a name in quotes belongs", at)
            name = self.scalar(at)
            colon = self.after_trivia(name.end)
            if self.text[colon : colon + 1] != ":":
                raise self.error("a name without a colon", colon)
            value = self.value(self.after_trivia(colon + 1), depth=depth + 1)
            comma, next_at = self.separator(value.end, closing="}")
            members.append(Member(name.content, at, value, comma))
            at = next_at
        return Value({member.name: member.value.content for member in members}, start, at + 1, tuple(members))

    def separator(self, end: int, *, closing: str) -> tuple[int | None, int]:
        """Where the comma after an item is, if any, and where the next item or the closing bracket begins."""
        at = self.after_trivia(end)
        if self.text[at : at + 1] == ",":
            following = self.after_trivia(at + 1)
            if self.text[following : following + 1] == closing and not self.comments:
                raise self.error("a comma after the last item", at)
            return at, following
        if self.text[at : at + 1] != closing:
            raise self.error(f"no {closing!r} or comma after an item", end)
        return None, at


def with_member(text: str, path: tuple[str, ...], content: Any, *, comments: bool) -> str:
    """The text with the member at a path set; objects on the way are made. Other characters stay as they are.

    >>> print(with_member('{"a": 1}', ("b", "c"), 2, comments=False))
    {"a": 1,"b":{"c":2}}
    """
    if not text.strip(" \t\r\n\ufeff"):
        return text + _dumped(_nested(path, content), indent="  ", level=0, newline="\n") + "\n"
    root = read_json(text, comments=comments)
    parent, level = root, 0
    for name in path[:-1]:
        member = parent.member(name)
        if member is None:
            break
        if not isinstance(member.value.content, dict):
            raise Invalid(f"{name!r} is not an object")
        parent, level = member.value, level + 1
    name, rest = path[level], path[level + 1 :]
    style = _style_of(text, root)
    existing = parent.member(name)
    if existing is not None:
        value = _dumped(content, **style, level=level + 1)
        return text[: existing.value.start] + value + text[existing.value.end :]
    return _inserted(text, parent, name, _nested(rest, content), style, level=level)


def _inserted(text: str, parent: Value, name: str, content: Any, style: dict[str, str], *, level: int) -> str:
    """The text with a new last member in an object at a level."""
    close = parent.end - 1
    one_line = "\n" not in text[parent.start : parent.end] and bool(parent.members)
    if one_line:
        style = {"indent": "", "newline": ""}
    newline, indent = style["newline"], style["indent"]
    member = f"{json.dumps(name, ensure_ascii=False)}:{'' if one_line else ' '}"
    member += _dumped(content, **style, level=level + 1)
    before = newline + indent * (level + 1)
    if not parent.members:
        inner = text[parent.start + 1 : close].rstrip()  # comments in an object without members
        return text[: parent.start + 1] + inner + before + member + newline + indent * level + text[close:]
    last = parent.members[-1]
    tail = text[last.value.end : close]
    used = len(tail.rstrip())  # a comma and comments after the last member
    tail_text, blanks = tail[:used], tail[used:]
    if last.comma is None:
        return text[: last.value.end] + "," + tail_text + before + member + blanks + text[close:]
    return text[: last.value.end] + tail_text + before + member + "," + blanks + text[close:]


def without_member(text: str, path: tuple[str, ...], *, comments: bool) -> str:
    """The text without the member at a path, if it has one.

    >>> print(without_member('{"a": 1,"b": {"c":2}}', ("b",), comments=False))
    {"a": 1}
    """
    parent = read_json(text, comments=comments)
    for name in path[:-1]:
        member = parent.member(name)
        if member is None:
            return text
        parent = member.value
    member = parent.member(path[-1])
    if member is None:
        return text
    index = parent.members.index(member)
    start = len(text[: member.start].rstrip(" \t\r\n"))
    end = member.value.end if member.comma is None else member.comma + 1
    text = text[:start] + text[end:]
    comma = parent.members[index - 1].comma if index else None
    if member.comma is None and comma is not None:
        return text[:comma] + text[comma + 1 :]
    if len(parent.members) == 1:  # an object that is empty now
        rest = text[parent.start + 1 :]
        return text[: parent.start + 1] + (rest.lstrip() if rest.lstrip().startswith("}") else rest)
    return text


def _nested(path: tuple[str, ...], content: Any) -> Any:
    """Content within an object for each name of a path."""
    for name in reversed(path):
        content = {name: content}
    return content


def _style_of(text: str, root: Value) -> dict[str, str]:
    """The indent of a level and the line break of a text."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for line in _lines_before_members(text, root):
        return {"indent": line, "newline": newline}
    return {"indent": "  ", "newline": newline}


def _lines_before_members(text: str, root: Value) -> Iterator[str]:
    """The blanks before members that begin a line."""
    for member in root.members:
        blanks = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if "\n" in text[root.start : member.start] and blanks and not blanks.strip(" \t"):
            yield blanks


def _dumped(content: Any, *, indent: str, newline: str, level: int) -> str:
    """JSON of a value at a level; on one line where there is no line break. Lists of plain values stay on one line."""
    if not newline:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if isinstance(content, dict) and content:
        inner = indent * (level + 1)
        members = [
            f"{inner}{json.dumps(name, ensure_ascii=False)}: "
            + _dumped(value, indent=indent, newline=newline, level=level + 1)
            for name, value in content.items()
        ]
        return "{" + newline + f",{newline}".join(members) + newline + indent * level + "}"
    return json.dumps(content, ensure_ascii=False)
