"""The reference: every operation as it is called everywhere, written from its signature."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backsight.core.errors import KINDS
from backsight.memory import OPERATIONS
from backsight.operation import Operation
from backsight.ops import NOUNS
from backsight.surfaces.cli import command_name
from backsight.surfaces.rest import path_of

PATH = Path("docs/reference/operations.md")
MARK = "<!-- Written by `make reference`; a test holds it to the operations. -->"


def reference() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield MARK
    yield "# Operations"
    yield ""
    yield "One definition each; Python, the command line, MCP and REST are made from it. Arguments go by name."
    yield "Times are ISO 8601 with a zone. The owner may call everything; the other audiences are named."
    for noun, told in NOUNS.items():
        operations = [operation for operation in OPERATIONS.values() if operation.noun == noun]
        yield from ["", f"## {noun}", "", told]
        for operation in operations:
            yield from _operation(operation)
    yield from [
        "",
        "## ContextVector",
        "",
        "The market and the agent's state at one instant; every field may be left out.",
    ]
    yield from ["", "| field | type |", "|---|---|"]
    vector = OPERATIONS["recall_memories"].input_schema()["$defs"]["ContextVector"]
    for name, each in vector["properties"].items():
        yield f"| `{name}` | {_type(each)} |"
    yield from ["", "## Errors", "", "| kind | HTTP | command line | MCP | what to do |", "|---|---|---|---|---|"]
    for kind in KINDS:
        yield f"| `{kind.__name__}` | {kind.status} | exit 1 | `isError` | {kind.__doc__} |"


def _operation(operation: Operation) -> Iterator[str]:
    others = sorted(operation.audience - {"owner"}, reverse=True)
    yield from ["", f"### {operation.name}", "", operation.description, ""]
    yield f"- {operation.kind}{', also for ' + ' and '.join(others) if others else ', for the owner only'}"
    yield f"- Python `memory.{operation.name}(…)`"
    yield f"- command line `backsight {operation.noun} {command_name(operation)}`"
    yield f"- REST `POST {path_of(operation)}`, MCP tool `{operation.name}`"
    schema = operation.input_schema()
    yield from ["", "| argument | type | default | meaning |", "|---|---|---|---|"]
    for name, each in schema["properties"].items():
        default = "required" if name in schema.get("required", []) else _default(each.get("default"))
        yield f"| `{name}` | {_type(each)} | {default} | {each.get('description', '')} |"
    result = operation.output_schema()
    yield from ["", f"Answers with `{result['title']}`: {', '.join(f'`{name}`' for name in result['properties'])}."]


def _default(value: Any) -> str:
    return "" if value in (None, []) else f"`{value}`"


def _type(each: dict[str, Any]) -> str:
    if "$ref" in each:
        return f"{each['$ref'].rpartition('/')[2]}"
    if "anyOf" in each:
        return " or ".join(_type(one) for one in each["anyOf"] if one.get("type") != "null")
    if "enum" in each:
        return ", ".join(f"`{label}`" for label in each["enum"])
    if each.get("format") == "date-time":
        return "instant"
    if each.get("type") == "array":
        return f"list of {_type(each['items'])}"
    return {"string": "text", "integer": "whole number"}.get(each["type"], str(each["type"]))


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(reference(), encoding="utf-8")
