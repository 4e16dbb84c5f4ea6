"""Arguments that arrive as text, from a shell or in a query string, as the JSON values of an operation's schema."""

import json
from collections.abc import Iterator
from typing import Any

from backsight.json_schemas import Schema

BOOLEANS = {"true": True, "false": False}


def typed(text: Any, argument: Schema, schema: Schema) -> Any:
    """Text as a JSON value; text that cannot be converted is passed on, and the operation refuses it.

    A tuple holds the texts of an argument that is given more than once.

    >>> limit = {"type": "integer"}
    >>> typed("5", limit, {}), typed("many", limit, {})
    (5, 'many')
    """
    if isinstance(text, tuple):
        return [typed(item, item_of(argument, schema), schema) for item in text]
    if not isinstance(text, str):
        return text
    types = types_of(argument, schema)
    try:
        if "boolean" in types:
            return BOOLEANS.get(text.lower(), text)
        if "integer" in types:
            return int(text)
        if "number" in types:
            return float(text)
        if "object" in types:
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text


def alternatives(argument: Schema, schema: Schema) -> Iterator[Schema]:
    """The types that an argument may have, with references resolved."""
    if "$ref" in argument:
        yield from alternatives(schema["$defs"][argument["$ref"].rpartition("/")[2]], schema)
    elif "anyOf" in argument:
        for alternative in argument["anyOf"]:
            yield from alternatives(alternative, schema)
    else:
        yield argument


def types_of(argument: Schema, schema: Schema) -> set[str]:
    return {str(kind["type"]) for kind in alternatives(argument, schema) if "type" in kind}


def is_time(argument: Schema, schema: Schema) -> bool:
    return any(kind.get("format") == "date-time" for kind in alternatives(argument, schema))


def item_of(argument: Schema, schema: Schema) -> Schema:
    """The schema of the items of a list."""
    return next((kind["items"] for kind in alternatives(argument, schema) if kind.get("type") == "array"), {})
