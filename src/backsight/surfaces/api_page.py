"""The page at /api/v1/docs: every operation with its arguments, an example to copy, and for queries a link."""

import json
from functools import cache
from html import escape
from typing import Any
from urllib.parse import urlencode

from backsight import __version__
from backsight.memory import OPERATIONS
from backsight.operation import Operation
from backsight.ops import NOUNS
from backsight.surfaces.access import PREFIX
from backsight.surfaces.call_examples import example_call
from backsight.surfaces.html_page import html_page, link
from backsight.surfaces.openapi import path_of
from backsight.surfaces.typed_text import alternatives

INTRODUCTION = f"""
<p>Every operation is a POST of its arguments as JSON. A query also answers to GET with its arguments in the URL: a list
is repeated (<code>?tags=a&amp;tags=b</code>), an object is JSON, a date is midnight in UTC. With
<code>detail=brief</code> in the URL the answer is text instead of JSON. An error is a problem document (RFC 9457) that
names the field and the remedy. A caller without a key may use what is the trader's, and every query; others send
<code>Authorization: Bearer KEY</code>.</p>
<p>{link(f"{PREFIX}/openapi.json", "OpenAPI document")}, for clients and tools ·
{link("/health", "health")} · {link("/", "start")}</p>
"""


@cache
def api_page() -> str:
    """The page; made once, since it is the same for every caller."""
    parts = [f"<h1>Backsight {escape(__version__)}: REST API</h1>", INTRODUCTION]
    for noun, purpose in NOUNS.items():
        names = OPERATIONS.of_noun(noun)
        if names:
            parts.append(f'<h2 id="{escape(noun)}">{escape(noun)}</h2><p>{escape(purpose)}</p>')
            parts.extend(_operation(OPERATIONS[name]) for name in names)
    return html_page("Backsight: REST API", "".join(parts))


def _operation(operation: Operation) -> str:
    schema = operation.input_schema
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{' (required)' if name in required else ''}</td>"
        f"<td>{escape(_kind(argument, schema))}</td><td>{escape(argument.get('description', ''))}</td></tr>"
        for name, argument in schema["properties"].items()
    )
    heads = "<tr><th>argument</th><th>type</th><th>meaning</th></tr>"
    table = f"<table>{heads}{rows}</table>" if rows else "<p>It takes no arguments.</p>"
    methods = "GET, POST" if operation.kind == "query" else "POST"
    callers = ", ".join(sorted(operation.audience))
    return (
        f'<details id="{operation.name}"><summary><code>{operation.name}</code> {escape(operation.summary)}</summary>'
        f"<p><code>{methods} {path_of(operation)}</code> · for: {escape(callers)} · answers with"
        f" <code>{escape(operation.returns.__name__)}</code></p>{table}{_example(operation)}</details>"
    )


def _kind(argument: dict[str, Any], schema: dict[str, Any]) -> str:
    """The JSON types of an argument, or its choices."""
    kinds = [kind for kind in alternatives(argument, schema) if kind.get("type") != "null"]
    return " or ".join(dict.fromkeys(", ".join(kind["enum"]) if "enum" in kind else _name(kind) for kind in kinds))


def _name(kind: dict[str, Any]) -> str:
    return "time" if kind.get("format") == "date-time" else str(kind.get("type", "any"))


def _example(operation: Operation) -> str:
    call = example_call(operation)
    if call is None:
        return ""
    body = json.dumps(call, ensure_ascii=False)
    parts = [f"<pre>POST {path_of(operation)}\nContent-Type: application/json\n\n{escape(body)}</pre>"]
    if operation.kind == "query" and not any(isinstance(value, dict | list) for value in call.values()):
        address = path_of(operation) + (f"?{urlencode(call)}" if call else "")
        parts.append(f"<p>{link(address, address)}</p>")
    return "".join(parts)
