"""The MCP tools of an audience: which operations are offered, and their schemas, short enough for a model's context."""

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_types import Tool, ToolAnnotations

from backsight.answers.detail import DETAILS
from backsight.answers.layouts import brief_schema
from backsight.audience import DOCUMENT_TOOLS, OFFERED, Audience
from backsight.core.errors import Invalid, Refused, did_you_mean
from backsight.json_schemas import Schema, refer, slim_input
from backsight.memory import OPERATIONS
from backsight.operation import Operation
from backsight.operation_list import Operations

DETAIL = {"enum": list(DETAILS), "type": "string", "description": "full: every field."}
UNLISTED = frozenset({"seen_at", "by", "label", "between", "belief", "count", "result", "with_calls"})
"""Arguments that are accepted from every audience but listed for the owner only: an agent asks what was known, not when
this store was told, and the filters of the pages would cost it tokens in every session."""


def tools_for(audience: Audience, *, workspace: bool = True, chosen: Iterable[str] | None = None) -> Operations:
    """The operations that an audience is offered, or of those that it may call, the ones that are chosen by name."""
    if chosen is not None:
        return OPERATIONS.only(_checked(name, audience) for name in chosen)
    offered = OFFERED[audience]
    names = (
        list(OPERATIONS) if offered is None else [name for name in offered if workspace or name not in DOCUMENT_TOOLS]
    )
    return OPERATIONS.only(names)


def _checked(name: str, audience: Audience) -> str:
    """The name of an operation that an audience may call."""
    allowed = [known for known, operation in OPERATIONS.items() if audience in operation.audience]
    if name not in OPERATIONS:
        raise Invalid(f"no operation {name[:40]!r}; {did_you_mean(name, allowed)}", field="tools")
    if name not in allowed:
        raise Refused(f"{name} is not for the {audience}; choose from: {', '.join(allowed)}", field="tools")
    return name


def tool_list(operations: Mapping[str, Operation], audience: Audience) -> list[Tool]:
    """The tools of operations; a definition that several share is given with the first of them only."""
    known: dict[str, str] = {}
    tools = []
    for operation in operations.values():
        schema = slim_input(operation.input_schema, without=() if audience == "owner" else UNLISTED)
        definitions = schema.get("$defs", {})
        schema = refer(schema, known, [name for name in definitions if name in known])
        known |= {name: f"Fields as in {operation.name}." for name in definitions if name not in known}
        if audience == "owner" or operation.kind == "query":  # a command's brief answer is all that an agent needs
            schema = _with_detail(operation, schema)
        tools.append(_tool(operation, schema))
    return tools


def _with_detail(operation: Operation, schema: Schema) -> Schema:
    """The schema with the argument `detail`, unless the operation has one of its own with other values."""
    own = schema["properties"].get("detail", {}).get("enum", DETAILS)
    if not set(DETAILS) <= set(own):
        return schema
    return {**schema, "properties": {**schema["properties"], "detail": DETAIL}}


def _tool(operation: Operation, schema: Schema) -> Tool:
    return Tool(
        name=operation.name,
        description=operation.description,
        input_schema=schema,
        output_schema=output_schema(operation),
        annotations=ToolAnnotations(
            read_only_hint=operation.kind == "query",
            destructive_hint=False,
            idempotent_hint=operation.idempotent,
            open_world_hint=False,
        ),
    )


def output_schema(operation: Operation) -> Schema:
    """The schema of an answer: of its brief form, and of the fields of its full form.

    The types inside the fields of the full form are in the OpenAPI document of the REST API.
    """
    full = operation.output_schema
    fields = {name: _kind(schema) for name, schema in full["properties"].items()}
    return {
        "type": "object",
        "anyOf": [
            {"description": "brief", "properties": brief_schema(operation.returns.__name__), "required": ["message"]},
            {"description": "full", "properties": fields, "required": full.get("required", [])},
        ],
    }


def _kind(schema: Mapping[str, Any]) -> Schema:
    """The JSON type of a field, without its inner types."""
    kinds = [_kind(kind).get("type") for kind in schema.get("anyOf", ())]
    if kinds:
        return {"type": kinds} if all(isinstance(kind, str) for kind in kinds) else {}
    if "$ref" in schema:
        return {"type": "object"}
    return {"type": schema["type"]} if "type" in schema else {}
