"""Errors over HTTP: problem documents (RFC 9457), the same for every path."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse

from backsight.core.errors import BacksightError

PROBLEM = "application/problem+json"


class Problem(BaseModel):
    """An error as a problem document (RFC 9457); `title` is the kind of the error on every surface."""

    model_config = ConfigDict(extra="allow")
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None


def problem(
    title: str, status: int, detail: str, field: str | None = None, *, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The response to a request that failed."""
    body = Problem(title=title, status=status, detail=detail, field=field)
    return JSONResponse(body.model_dump(), status_code=status, media_type=PROBLEM, headers=dict(headers or {}))


def problem_of(error: BacksightError) -> JSONResponse:
    """The response to a request that an operation, or the check of its key, refused."""
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(error.status)
    return problem(error.kind, error.status, error.message, error.field, headers=headers)
