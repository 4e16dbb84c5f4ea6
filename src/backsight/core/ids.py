"""Ids derived from what they name, so that a replay names the same rows."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from typing import Any
from uuid import UUID

from backsight.core.instants import format_instant

NAMESPACE = UUID("b5a3c1f0-5e0b-5c1d-9a53-626163736967")


def canonical_json(value: object) -> str:
    """One spelling of a value as JSON has it: sorted keys, no spaces, shortest floats, no NaN.

    Instants and dataclasses are spelt as `plain` makes them: `canonical_json(value) == canonical_json(plain(value))`.

    >>> canonical_json({"b": 1.0, "a": ["é", None]})
    '{"a":["é",null],"b":1.0}'
    """
    return _canonical(value)


def plain(value: object) -> object:
    """A value as JSON has it: instants as fixed-width text, dataclasses as objects.

    >>> from datetime import UTC, datetime
    >>> plain({"at": datetime(2026, 6, 4, tzinfo=UTC), "tags": ("a",)})
    {'at': '2026-06-04T00:00:00.000000Z', 'tags': ['a']}
    """
    if value is None or isinstance(value, _KNOWN):
        return value
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    opened = _opened(value)
    return {name: plain(each) for name, each in opened.items()} if isinstance(opened, dict) else opened


_KNOWN = (str, int, float)
"""What JSON has itself, beside nothing."""


def _opened(value: object) -> object:
    """A value without a place in JSON as one that has one: the outermost of it, its parts as they are."""
    if isinstance(value, datetime):
        return format_instant(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, date):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _names(of: type[Any]) -> list[str]:
    return sorted(field.name for field in fields(of))


def _placed(value: object) -> object:
    opened = _opened(value)
    if opened is value:
        raise TypeError(f"{type(value).__name__} has no place in JSON")
    return opened


_canonical = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,  # what is written here has no cycles: it is made of frozen parts
    default=_placed,
).encode


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON, in hex.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def derive_id(kind: str, *parts: str | int | None) -> str:
    """The id of the thing of this kind that these parts name (uuid5).

    >>> derive_id("account", "me", "binance", "main")
    'a1b1d71f-3770-5b8c-9e98-b96ce2ea1184'
    >>> derive_id("x", "a", "bc") == derive_id("x", "ab", "c")
    False
    """
    named = hashlib.sha1(NAMESPACE.bytes + canonical_json([kind, *parts]).encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(named[16], 16) & 3]  # as `uuid.uuid5` does, without an object on the way
    return f"{named[:8]}-{named[8:12]}-5{named[13:16]}-{variant}{named[17:20]}-{named[20:32]}"
