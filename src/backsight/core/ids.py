"""Ids and digests computed from content, so that a replayed command names the same rows."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from json.encoder import encode_basestring
from typing import Any, get_args
from uuid import UUID

from backsight.core.instants import format_instant

NAMESPACE = UUID("b5a3c1f0-5e0b-5c1d-9a53-626163736967")
_NAMESPACE_BYTES = NAMESPACE.bytes
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""The ids that are derived from content."""
SHORT_ID = 6
"""Characters of an id that answers show; every operation accepts an id by a beginning of this length."""


def canonical_json(value: object) -> str:
    """The canonical JSON text of a value: sorted keys, no spaces, shortest floats, no NaN.

    Instants and dataclasses are converted first: `canonical_json(value) == canonical_json(plain(value))`.

    >>> canonical_json({"b": 1.0, "a": ["é", None]})
    '{"a":["é",null],"b":1.0}'
    """
    return _canonical(value)


class ShownAsJson:
    """Marks a field whose value an answer shows as canonical JSON text; `none` is the text of None.

    `encode` gives the text where it is not the JSON of the value's fields, as for a condition. Use the marker as
    `Annotated[Order | None, ShownAsJson()]`. Pydantic calls the method when it builds the answer's schema; an answer is
    only written, so nothing is validated.
    """

    def __init__(self, none: str | None = None, *, encode: Callable[[Any], str] = canonical_json) -> None:
        self.none = none
        self.encode = encode

    def __get_pydantic_core_schema__(self, source: Any, handler: object) -> dict[str, Any]:
        text: dict[str, Any] = {"type": "str"}
        if self.none is None and type(None) in get_args(source):
            text = {"type": "nullable", "schema": text}
        return {
            "type": "any",
            "serialization": {"type": "function-plain", "function": self.to_text, "return_schema": text},
        }

    def to_text(self, value: object) -> str | None:
        """The text that the answer shows."""
        return self.none if value is None else self.encode(value)


def plain(value: object) -> object:
    """A value in JSON types: instants become fixed-width text, dataclasses become objects.

    >>> from datetime import UTC, datetime
    >>> plain({"at": datetime(2026, 6, 4, tzinfo=UTC), "tags": ("a",)})
    {'at': '2026-06-04T00:00:00.000000Z', 'tags': ['a']}
    """
    if value is None or isinstance(value, _SCALARS):
        return value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    converted = _converted(value)
    return {name: plain(item) for name, item in converted.items()} if isinstance(converted, dict) else converted


_SCALARS = (str, int, float)


def _converted(value: object) -> object:
    """The JSON type for an instant, a date, a dataclass or a mapping; the values inside are not converted."""
    if isinstance(value, datetime):
        return format_instant(value)
    of: type[Any] = type(value)
    names = _field_names(of)  # type: ignore[arg-type, unused-ignore]
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, date):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _field_names(of: type[Any]) -> list[str] | None:
    """The names of a dataclass's fields in alphabetical order; None for any other type."""
    return sorted(field.name for field in fields(of)) if is_dataclass(of) else None


def _converted_or_refused(value: object) -> object:
    converted = _converted(value)
    if converted is value:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return converted


_canonical = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,  # the values are frozen, so they cannot contain themselves
    default=_converted_or_refused,
).encode


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON, in hex.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def derive_id(kind: str, *parts: str | int | None) -> str:
    """The id (UUID version 5) of a thing, from its kind and the parts that identify it.

    >>> derive_id("account", "me", "binance", "main")
    'a1b1d71f-3770-5b8c-9e98-b96ce2ea1184'
    >>> derive_id("x", "a", "bc") == derive_id("x", "ab", "c")
    False
    """
    texts = (encode_basestring(part) if type(part) is str else canonical_json(part) for part in (kind, *parts))
    sha1 = hashlib.sha1(_NAMESPACE_BYTES + f"[{','.join(texts)}]".encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(sha1[16], 16) & 3]  # the bits that `uuid.uuid5` sets, without making a UUID object
    return f"{sha1[:8]}-{sha1[8:12]}-5{sha1[13:16]}-{variant}{sha1[17:20]}-{sha1[20:32]}"
