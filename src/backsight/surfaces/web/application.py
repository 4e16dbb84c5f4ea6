"""The routes of the pages, and what each response carries: no script or style but ours, nothing from elsewhere."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from backsight.core.errors import BacksightError, Invalid, NotFound, Refused
from backsight.core.ids import digest
from backsight.surfaces.access import CALLER, PAGES_COOKIE, Door, is_page_path
from backsight.surfaces.web import actions, session
from backsight.surfaces.web.page import PageRequest, error_page
from backsight.surfaces.web.pages import (
    decisions,
    documents,
    facts,
    health,
    instants,
    lessons,
    mind,
    overview,
    prompt,
    recall,
    trade,
    trades,
)
from backsight.surfaces.web.state import BarState, read_state

if TYPE_CHECKING:
    from starlette.requests import Request

    from backsight.memory import Memory

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
ASSETS = {
    "pages.css": "text/css",
    "pages.js": "text/javascript",
    "chart.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
Handler = Callable[[PageRequest], Response]
PAGE_HANDLERS: Mapping[str, Handler] = {
    "/": overview.show,
    "/trades": trades.show,
    "/trades.csv": trades.download,
    "/trades/{id}": trade.show,
    "/prompt": prompt.show,
    "/recall": recall.show,
    "/recall/why": recall.explain,
    "/decisions": decisions.show,
    "/decisions/{id}": decisions.show_one,
    "/lessons": lessons.show,
    "/mind": mind.show,
    "/documents": documents.show,
    "/facts": facts.show,
    "/facts/{id}/erase": facts.ask_to_erase,
    "/decisions/run/{id}": decisions.show_run,
    "/status": health.show,
    "/instants": instants.show,
    "/step": instants.step,
}


def page_routes(memory: "Memory", door: Door) -> list[Route]:
    """The routes of every page, form and asset."""
    routes = [
        Route(path, partial(_serve, memory=memory, handler=handler), name=f"page {path}")
        for path, handler in PAGE_HANDLERS.items()
    ]
    routes += [
        Route(f"/do/{name}", partial(_serve, memory=memory, handler=handler), methods=["POST"], name=f"form {name}")
        for name, handler in actions.FORMS.items()
    ]
    routes.append(
        Route("/sign-in", partial(_sign_in, memory=memory, door=door), methods=["GET", "POST"], name="page sign in")
    )
    routes.append(Route("/sign-out", _sign_out, methods=["POST"], name="form sign out"))
    routes.append(Route("/assets/{name}", _asset, name="assets"))
    return routes


async def _serve(request: "Request", *, memory: "Memory", handler: Handler) -> Response:
    """Run a handler in a worker thread; an error becomes a page that says what to do."""
    form = await _form(request)
    return _with_headers(await run_sync(_answer, request, memory, handler, form))


def _answer(request: "Request", memory: "Memory", handler: Handler, form: Mapping[str, str]) -> Response:
    page = _request_of(request, memory, form)
    try:
        return handler(_with_state(page))
    except BacksightError as error:
        return error_page(page, error)


def _request_of(request: "Request", memory: "Memory", form: Mapping[str, str]) -> PageRequest:
    caller = request.scope.get(CALLER, memory)
    query = dict(request.query_params)
    authority = caller.authority
    return PageRequest(
        memory=caller,
        path=request.url.path,
        state=BarState(),
        query={**query, **request.path_params},
        form=form,
        is_public=CALLER not in request.scope,
        is_owner=authority is None or (authority.audience == "owner" and authority.may_write),
        fragment=query.get("fragment"),
    )


def _with_state(page: PageRequest) -> PageRequest:
    return replace(page, state=read_state(page.form or page.query))


async def _form(request: "Request") -> dict[str, str]:
    """The fields of a form; of several fields with one name the last counts."""
    if request.method != "POST":
        return {}
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise HTTPException(400, "the form cannot be read; send it from a page") from None


async def _sign_in(request: "Request", *, memory: "Memory", door: Door) -> Response:
    form = await _form(request)
    return _with_headers(await run_sync(session.sign_in, _request_of(request, memory, form), door, request))


async def _sign_out(request: "Request") -> Response:
    response = RedirectResponse("/", status_code=303)
    response.delete_cookie(PAGES_COOKIE, path="/")
    return _with_headers(response)


async def _asset(request: "Request") -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise HTTPException(404, f"no asset {name[:40]!r}")
    content, tag = _asset_content(name)
    if request.headers.get("if-none-match") == tag:
        return _with_headers(Response(status_code=304, headers={"ETag": tag}))
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    return _with_headers(Response(content, media_type=ASSETS[name], headers=headers))


@cache
def _asset_content(name: str) -> tuple[bytes, str]:
    content = (files("backsight.surfaces.web") / "assets" / name).read_bytes()
    return content, f'"{digest(content.decode())[:16]}"'


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


OtherHandler = Callable[["Request", Any], Response | Awaitable[Response]]
PageErrorHandler = Callable[["Request", Exception], Awaitable[Response]]


def pages_for_errors(memory: "Memory", others: OtherHandler) -> "PageErrorHandler":
    """A handler that answers a browser at a path of no page with a page; `others` answers everyone else."""

    async def handle(request: "Request", error: Exception) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "")
        if not isinstance(error, HTTPException) or not is_page_path(request.url.path) or not wants_page:
            answer = others(request, error)
            return answer if isinstance(answer, Response) else await answer
        page = _request_of(request, memory, {})
        kinds: dict[int, type[BacksightError]] = {404: NotFound, 405: Invalid, 400: Invalid}
        problem = kinds.get(error.status_code, Refused)(_remedy(error))
        return _with_headers(await run_sync(error_page, page, problem))

    return handle


def _remedy(error: HTTPException) -> str:
    if error.status_code == 404:
        return "there is no such page; choose one from the menu"
    return str(error.detail)
