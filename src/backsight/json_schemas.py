"""JSON schemas as a model reads them: without titles, and short, since a list of tools is paid for by the token."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

Schema = dict[str, Any]

_NAMED = ("properties", "$defs")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "maxProperties"})
LARGEST_WHOLE = 2**53
"""The largest range of integers that a JSON number (a double) represents exactly."""


def each_schema(schema: Mapping[str, Any], change: Callable[[Schema], Schema]) -> Schema:
    """The schema after a change of each schema in it, the innermost first."""
    changed: Schema = {}
    for keyword, value in schema.items():
        if keyword in _NAMED:
            changed[keyword] = {name: each_schema(named, change) for name, named in value.items()}
        elif keyword in _LISTED:
            changed[keyword] = [each_schema(kind, change) for kind in value]
        elif isinstance(value, dict) and keyword in ("items", "additionalProperties"):
            changed[keyword] = each_schema(value, change)
        else:
            changed[keyword] = value
    return change(changed)


def without_titles(schema: Schema) -> Schema:
    """The schema without titles, which only repeat the names.

    >>> without_titles({"title": "Bar", "properties": {"title": {"title": "Title", "type": "string"}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    return each_schema(schema, lambda each: {name: value for name, value in each.items() if name != "title"})


def slim_input(schema: Schema, *, without: Collection[str] = ()) -> Schema:
    """The schema of arguments without what a model does not need to make a call: null, empty defaults and lengths.

    An argument that is left out means the same as null, which is accepted all the same. A text that is too long is
    refused with a message that says so. Arguments in `without` are left out as well.

    >>> text = {"anyOf": [{"type": "string", "maxLength": 64}, {"type": "null"}], "default": None}
    >>> slim_input({"type": "object", "properties": {"symbol": text}})
    {'type': 'object', 'properties': {'symbol': {'type': 'string'}}}
    """
    arguments = {name: value for name, value in schema["properties"].items() if name not in without}
    return each_schema({**schema, "properties": arguments}, _slim)


def _slim(schema: Schema) -> Schema:
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) == 1:
        schema = {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
    elif kinds:
        schema = {**schema, "anyOf": kinds}
    return {name: value for name, value in schema.items() if name not in _LENGTHS and not _is_empty(name, value)}


def _is_empty(keyword: str, value: object) -> bool:
    """Whether a keyword says nothing: a default of null, false or no items, or a limit that no caller meets."""
    if keyword == "default":
        return value is None or value is False or value == []
    return (keyword, value) in (("maximum", LARGEST_WHOLE), ("additionalProperties", True))


def refer(schema: Schema, known: Mapping[str, str], names: Collection[str]) -> Schema:
    """The schema with the definitions of these names replaced by a reference to the text in `known`.

    >>> vector = {"$defs": {"Vector": {"type": "object"}}, "properties": {"context": {"$ref": "#/$defs/Vector"}}}
    >>> refer(vector, {"Vector": "Fields as in recall_memories."}, ["Vector"])
    {'properties': {'context': {'type': 'object', 'description': 'Fields as in recall_memories.'}}}
    """

    def replace(each: Schema) -> Schema:
        name = str(each.get("$ref", "")).rpartition("/")[2]
        if name not in names:
            return each
        rest = {keyword: value for keyword, value in each.items() if keyword != "$ref"}
        text = " ".join(filter(None, (rest.pop("description", ""), known[name])))
        return {"type": "object", "description": text, **rest}

    definitions = {name: value for name, value in schema.get("$defs", {}).items() if name not in names}
    rest = each_schema({keyword: value for keyword, value in schema.items() if keyword != "$defs"}, replace)
    inner = {name: each_schema(value, replace) for name, value in definitions.items()}
    return {**({"$defs": inner} if inner else {}), **rest}
