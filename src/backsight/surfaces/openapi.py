"""The OpenAPI document: unique plain names, examples, and schemas from which generated clients keep every type."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from backsight.core.call_notes import FIELD
from backsight.json_schemas import Schema, each_schema, without_titles
from backsight.memory import OPERATIONS
from backsight.operation import CALL_NOTES_SCHEMA, Operation
from backsight.surfaces.access import PREFIX
from backsight.surfaces.call_examples import example_call
from backsight.surfaces.typed_text import item_of, types_of

PROBLEM = "Problem"
SCHEMAS = "#/components/schemas/"
INPUT, OUTPUT = "-Input", "-Output"
BY_URL = "_by_url"
"""The end of the operation id of a query that is called by GET."""
DETAIL_PARAMETER = {
    "name": "detail",
    "in": "query",
    "required": False,
    "description": "`brief` answers with plain text: a sentence, then slim rows.",
    "schema": {"enum": ["brief", "full"], "type": "string"},
}


def path_of(operation: Operation) -> str:
    """The path of an operation."""
    return f"{PREFIX}/{operation.noun}/{operation.name}"


def plain_document(document: dict[str, Any]) -> dict[str, Any]:
    """The document that FastAPI makes, with plain names and examples, without titles, and with GET for queries."""
    names = plain_names(document["components"]["schemas"])
    schemas = {
        names.get(name, name): _plain(renamed(schema, names))
        for name, schema in document["components"]["schemas"].items()
    }
    paths = renamed(document["paths"], names)
    for operation in OPERATIONS.values():
        path = paths[path_of(operation)]
        if operation.kind == "query":
            path["get"] = _by_url(path["post"], operation, set(names.values()))
        for route in path.values():
            _add_example(route, operation)
    arguments = set(_reachable(schemas, _arguments(paths)))
    for name, schema in schemas.items():
        if name not in arguments and "properties" in schema and name != PROBLEM:
            schema["required"] = list(schema["properties"])  # an answer has every field, those with defaults too
    for operation in OPERATIONS.values():
        answer = schemas[names.get(operation.returns.__name__, operation.returns.__name__)]
        answer["properties"] = {**answer["properties"], FIELD: CALL_NOTES_SCHEMA}
    return {**document, "paths": paths, "components": {**document["components"], "schemas": schemas}}


def _by_url(route: Mapping[str, Any], operation: Operation, names: Collection[str]) -> dict[str, Any]:
    """The description of a query by GET, like that by POST but for its arguments."""
    described = {key: value for key, value in route.items() if key != "requestBody"}
    parameters = query_parameters(operation, names)
    return {**described, "operationId": operation.name + BY_URL, "parameters": parameters}


def plain_names(schemas: Mapping[str, Any]) -> dict[str, str]:
    """New names of types that are both argument and answer: the answer has the plain name.

    >>> plain_names({"Position-Input": {}, "Position-Output": {}, "Bar": {}})
    {'Position-Input': 'PositionArgument', 'Position-Output': 'Position'}
    """
    ends = {INPUT: "Argument", OUTPUT: ""}
    return {
        name: name.removesuffix(end) + plain for name in schemas for end, plain in ends.items() if name.endswith(end)
    }


def renamed(part: Any, names: Mapping[str, str]) -> Any:
    """A part of the document whose references have the new names."""
    if isinstance(part, list):
        return [renamed(item, names) for item in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.removeprefix(SCHEMAS) in names:
        part = {**part, "$ref": SCHEMAS + names[reference.removeprefix(SCHEMAS)]}
    return {key: renamed(value, names) for key, value in part.items()}


def query_parameters(operation: Operation, names: Collection[str]) -> list[dict[str, Any]]:
    """The arguments of a query as parameters of its URL: a list is repeated, an object is JSON.

    `names` are those of the components to which parameters may refer.
    """
    schema = operation.input_schema
    required = schema.get("required", [])
    parameters = {
        name: _parameter(name, argument, schema, names) | {"required": name in required}
        for name, argument in schema["properties"].items()
    }
    return list({"detail": DETAIL_PARAMETER, **parameters}.values())


def _parameter(name: str, argument: Schema, schema: Schema, names: Collection[str]) -> dict[str, Any]:
    """One parameter; null, which means that it is left out, cannot be written in a URL."""
    kinds = [kind for kind in argument.get("anyOf", [argument]) if kind.get("type") != "null"]
    slim = dict(kinds[0]) if len(kinds) == 1 else {"anyOf": kinds}
    description = slim.pop("description", argument.get("description", ""))
    if argument.get("default") not in (None, []):
        slim["default"] = argument["default"]
    slim = _plain(each_schema(slim, lambda each: _to_component(each, names)))
    parameter = {"name": name, "in": "query", "description": description}
    if types_of(argument, schema) & {"object"} or types_of(item_of(argument, schema), schema) & {"object"}:
        return {**parameter, "content": {"application/json": {"schema": slim}}}
    return {**parameter, "schema": slim}


def _to_component(schema: Schema, names: Collection[str]) -> Schema:
    """The schema with its reference to a definition as one to the component of an argument."""
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    return {**schema, "$ref": SCHEMAS + (f"{name}Argument" if f"{name}Argument" in names else name)}


def _plain(schema: Schema) -> Schema:
    """A schema without what generated clients cannot read: titles, defaults that are objects, types by position."""

    def change(each: Schema) -> Schema:
        slim = {name: value for name, value in each.items() if not (name == "default" and isinstance(value, dict))}
        items = slim.get("prefixItems", [])
        if items and all(item == items[0] for item in items):
            del slim["prefixItems"]
            slim["items"] = items[0]
        return slim

    return each_schema(without_titles(schema), change)


def _arguments(paths: Mapping[str, Any]) -> Iterator[Any]:
    """The parts of the document that describe arguments."""
    for path in paths.values():
        for route in path.values():
            yield route.get("requestBody", {})
            yield route.get("parameters", [])


def _reachable(schemas: Mapping[str, Any], parts: Iterator[Any]) -> Iterator[str]:
    """The names of the schemas that parts of a document refer to, directly or through others."""
    targets: set[str] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, dict):
            waiting.extend(value for key, value in part.items() if key != "$ref")
            name = str(part.get("$ref", "")).removeprefix(SCHEMAS)
            if name in schemas and name not in targets:
                targets.add(name)
                yield name
                waiting.append(schemas[name])


def _add_example(route: dict[str, Any], operation: Operation) -> None:
    """Add the example of an operation to the body of its route, or to the parameters of its URL."""
    example = example_call(operation)
    if example is None:
        return
    for content in route.get("requestBody", {}).get("content", {}).values():
        content["example"] = example
    for parameter in route["parameters"]:
        if parameter["name"] in example and "content" not in parameter:
            parameter["example"] = example[parameter["name"]]
