"""REST: every operation is a POST under /api/v1, and every query a GET too, described by OpenAPI."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

from backsight import __version__
from backsight.answers.detail import Detail, brief_answer, split_detail
from backsight.core.errors import KINDS, BacksightError, Invalid
from backsight.json_schemas import Schema
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Arguments, Operation
from backsight.ops import NOUNS
from backsight.surfaces.access import CALLER, PREFIX
from backsight.surfaces.api_page import api_page
from backsight.surfaces.html_page import page_response
from backsight.surfaces.openapi import path_of as path_of
from backsight.surfaces.openapi import plain_document
from backsight.surfaces.problems import PROBLEM, Problem, problem, problem_of
from backsight.surfaces.typed_text import typed, types_of

BRIEF_RESPONSE: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
"""The answer to `?detail=brief`, beside that in JSON."""

MOST_OF_A_PATH = 200
"""Characters of an unknown path that an error repeats."""

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def application(memory: Memory, *, lifespan: Lifespan | None = None) -> FastAPI:
    """The REST application over an open memory."""
    app = FastAPI(
        title="Backsight",
        version=__version__,
        summary="The memory of AI trading agents.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        openapi_tags=[{"name": noun, "description": text} for noun, text in NOUNS.items()],
        lifespan=lifespan,
    )
    for operation in OPERATIONS.values():
        app.add_api_route(
            path_of(operation),
            endpoint_of(memory, operation),
            methods=["POST"],
            name=operation.name,
            operation_id=operation.name,
            summary=operation.summary,
            description=operation.description,
            tags=[operation.noun],
            response_model=operation.returns,
            responses={200: BRIEF_RESPONSE, **{kind.status: _error_response(kind) for kind in KINDS}},
        )
        if operation.kind == "query":
            app.add_route(path_of(operation), link_of(memory, operation), ["GET"], operation.name)
    app.openapi = cached_document(app)  # type: ignore[method-assign]
    app.add_api_route(f"{PREFIX}/docs", lambda: page_response(api_page()), name="docs", include_in_schema=False)
    app.add_exception_handler(BacksightError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_bad_arguments)
    app.add_exception_handler(HTTPException, _on_http_error)
    return app


def endpoint_of(memory: Memory, operation: Operation) -> Callable[..., Response]:
    """A request handler whose body is the operation's input model; it runs in a worker thread.

    `?detail=brief` answers with the brief form as text.
    """

    def endpoint(request: Request, body: Arguments, detail: Detail | None) -> Response:
        arguments = operation.values(body)
        wanted = detail or split_detail(operation, arguments, default="full")[0]
        return respond(request.scope.get(CALLER, memory), operation, arguments, wanted)

    model = operation.arguments
    optional = not any(field.is_required() for field in model.model_fields.values())
    parameter = inspect.Parameter(
        "body",
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[model, Body()],
        default=model() if optional else inspect.Parameter.empty,
    )
    description = "`brief` answers with plain text: a sentence, then slim rows."
    detail_parameter = inspect.Parameter(
        "detail",
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[Detail | None, Query(description=description)],
        default=None,
    )
    request_parameter = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    endpoint.__signature__ = inspect.Signature([request_parameter, parameter, detail_parameter])  # type: ignore[attr-defined]
    endpoint.__name__ = operation.name
    return endpoint


def link_of(memory: Memory, operation: Operation) -> Callable[[Request], Response]:
    """A request handler that takes the arguments of a query from the URL, so that an answer can be linked."""

    def link(request: Request) -> Response:
        schema = operation.input_schema
        texts: dict[str, Any] = {}
        for name, text in request.query_params.multi_items():
            texts.setdefault(name, []).append(text)
        arguments = {
            name: _argument(values, schema["properties"].get(name, {}), schema) for name, values in texts.items()
        }
        detail, own_arguments = split_detail(operation, arguments, default="full")
        response = respond(request.scope.get(CALLER, memory), operation, operation.check(own_arguments), detail)
        response.headers["Cache-Control"] = "no-store"
        return response

    return link


def _argument(texts: list[str], argument: Schema, schema: Schema) -> Any:
    """The value of an argument in a URL: a list if the argument is one, or if it is repeated."""
    if len(texts) > 1 or "array" in types_of(argument, schema):
        return typed(tuple(texts), argument, schema)
    return typed(texts[0], argument, schema)


def respond(memory: Memory, operation: Operation, arguments: dict[str, Any], detail: Detail) -> Response:
    """Carry an operation out, and send every field as JSON or the brief form as text."""
    answer = memory.carry_out(operation, arguments)
    if detail == "full":
        return JSONResponse(operation.as_json(answer))
    return PlainTextResponse(brief_answer(operation, arguments, answer).text())


def cached_document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """A function that makes the OpenAPI document of an application once."""
    make = app.openapi

    @cache
    def document() -> dict[str, Any]:
        return plain_document(make())

    return document


def allowed_methods(request: Request) -> str:
    """The methods that a path takes, as the header `Allow` lists them."""
    routes = [route for route in request.app.routes if getattr(route, "path", None) == request.url.path]
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


def _error_response(kind: type[BacksightError]) -> dict[str, Any]:
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": kind.__doc__ or "", "model": Problem, "content": content}


async def _on_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BacksightError)  # noqa: S101 (registered for it)
    return problem_of(error)


async def _on_bad_arguments(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 (registered for it)
    details = [{**detail, "loc": detail["loc"][1:]} for detail in error.errors()]
    if details[0]["type"] == "json_invalid":
        return await _on_error(request, Invalid("the body is not JSON; send a JSON object", field="arguments"))
    operation = OPERATIONS[request.scope["route"].name]
    return await _on_error(request, operation.invalid(details))  # type: ignore[arg-type]


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    if error.status_code == 400:
        return await _on_error(request, Invalid("the body cannot be read; send a JSON object", field="arguments"))
    if error.status_code == 404 and error.detail == "Not Found":
        return problem("NotFound", 404, f"no path {request.url.path[:MOST_OF_A_PATH]!r}; {PREFIX}/docs lists all")
    titles = {404: "NotFound", 405: "Invalid"}
    title = titles.get(error.status_code, "Refused")
    if error.status_code == 405:
        methods = allowed_methods(request)
        return problem(title, 405, f"{request.method} is not for this path; use {methods}", headers={"Allow": methods})
    return problem(title, error.status_code, str(error.detail), headers=error.headers)
