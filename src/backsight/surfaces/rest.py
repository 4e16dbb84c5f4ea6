"""REST: every operation is a POST under /api/v1, described by OpenAPI."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from backsight import __version__
from backsight.core.errors import KINDS, BacksightError, Invalid
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation
from backsight.ops import NOUNS
from backsight.surfaces.detail import Detail, ceiling_of, split_detail
from backsight.surfaces.layouts import brief_of

PREFIX = "/api/v1"
PROBLEM = "application/problem+json"
BRIEF_RESPONSE: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
"""The answer to `?detail=brief`, beside that in JSON."""

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


class Problem(BaseModel):
    """An error as a problem document (RFC 9457); `title` is the kind of the error on every surface."""

    model_config = ConfigDict(extra="allow")
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None


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

    def endpoint(body: BaseModel, detail: Detail | None) -> Response:
        arguments = operation.values(body)
        answer = memory.carry_out(operation, arguments)
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
    endpoint.__signature__ = inspect.Signature([parameter, detail_parameter])  # type: ignore[attr-defined]
    endpoint.__name__ = operation.name
    return endpoint


def _error_response(kind: type[BacksightError]) -> dict[str, Any]:
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": kind.__doc__ or "", "model": Problem, "content": content}


def _problem(title: str, status: int, detail: str, field: str | None = None) -> JSONResponse:
    body = Problem(title=title, status=status, detail=detail, field=field)
    return JSONResponse(body.model_dump(), status_code=status, media_type=PROBLEM)


async def _on_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BacksightError)  # noqa: S101 (registered for it)
    return _problem(error.kind, error.status, error.message, error.field)


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
    return _problem(titles.get(error.status_code, "Refused"), error.status_code, str(error.detail))
