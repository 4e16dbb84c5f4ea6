"""Ids derived from what they name, so that a replay names the same rows."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from uuid import UUID, uuid5

from backsight.core.instants import format_instant

NAMESPACE = UUID("b5a3c1f0-5e0b-5c1d-9a53-626163736967")


def canonical_json(value: object) -> str:
    """One spelling of a JSON value: sorted keys, no spaces, shortest floats, no NaN.

    >>> canonical_json({"b": 1.0, "a": ["é", None]})
    '{"a":["é",null],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plain(value: object) -> object:
    """A value as JSON has it: instants as fixed-width text, dataclasses as objects.

    >>> from datetime import UTC, datetime
    >>> plain({"at": datetime(2026, 6, 4, tzinfo=UTC), "tags": ("a",)})
    {'at': '2026-06-04T00:00:00.000000Z', 'tags': ['a']}
    """
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


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
    return str(uuid5(NAMESPACE, canonical_json([kind, *parts])))
