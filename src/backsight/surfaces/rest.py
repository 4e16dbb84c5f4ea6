"""REST: every operation is a POST under /api/v1, described by OpenAPI."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from backsight import __version__
from backsight.core.errors import KINDS, BacksightError, Invalid
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation
from backsight.ops import NOUNS
from backsight.surfaces.access import CALLER
from backsight.surfaces.detail import Detail, ceiling_of, split_detail
from backsight.surfaces.layouts import brief_of
from backsight.surfaces.problems import PROBLEM, Problem, problem, problem_of

PREFIX = "/api/v1"
BRIEF_RESPONSE: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
"""The answer to `?detail=brief`, beside that in JSON."""

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def path_of(operation: Operation) -> str:
    """The path of an operation."""
    return f"{PREFIX}/{operation.noun}/{operation.name}"


def application(memory: Memory, *, lifespan: Lifespan | None = None) -> FastAPI:
    """The REST application over an open memory."""
    app = FastAPI(
        title="Backsight",
        version=__version__,
        summary="The memory of AI trading agents.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=f"{PREFIX}/docs",
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
    app.add_exception_handler(BacksightError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_bad_arguments)
    app.add_exception_handler(HTTPException, _on_http_error)
    return app


def endpoint_of(memory: Memory, operation: Operation) -> Callable[..., Response]:
    """A request handler whose body is the operation's input model; it runs in a worker thread.

    `?detail=brief` answers with the brief form as text.
    """

    def endpoint(request: Request, body: BaseModel, detail: Detail | None) -> Response:
        arguments = operation.values(body)
        caller: Memory = request.scope.get(CALLER, memory)
        answer = caller.carry_out(operation, arguments)
        if (detail or split_detail(operation, arguments, default="full")[0]) == "full":
            return JSONResponse(operation.as_json(answer))
        return PlainTextResponse(brief_of(answer).within(ceiling_of(operation, arguments)).text())

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
    titles = {404: "NotFound", 405: "Invalid"}
    title = titles.get(error.status_code, "Refused")
    return problem(title, error.status_code, str(error.detail), headers=error.headers)
