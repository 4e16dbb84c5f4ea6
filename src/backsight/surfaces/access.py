"""Who calls the server: every request gets a memory that does no more than its key allows."""

from hmac import compare_digest
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from backsight.core.errors import BacksightError, Refused
from backsight.core.keys import Audience, Authority
from backsight.services.keys import Unauthenticated, key_of_token
from backsight.surfaces.problems import problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from backsight.memory import Memory

CALLER = "backsight.memory"
"""The name, in the scope of a request, of the memory that its caller may use."""
MCP_PATH = "/mcp"
PREFIX = "/api/v1"
OPEN_PATHS = frozenset({"/health", f"{PREFIX}/openapi.json", f"{PREFIX}/docs"})
"""What anyone may read who reaches the server: no row of the store is in it."""
PAGES_COOKIE = "backsight_pages"
"""The cookie of a browser that signed in to the pages; no other path reads it."""
SIGN_IN = "/sign-in"
OPEN_PAGES = ("/assets/", SIGN_IN)
NO_KEY = "send a key as `Authorization: Bearer TOKEN`; the owner makes one with `backsight keys create`"


class Door:
    """Gives each request the memory of its caller.

    Without a key a caller is the trader, who proposes and never approves; over REST it may use every query too. With
    `keys_required`, or on an MCP endpoint of another audience, nobody comes in without a key.
    """

    def __init__(
        self,
        memory: "Memory",
        *,
        mcp_audience: Audience = "trader",
        keys_required: bool = False,
        pages_token: str | None = None,
    ) -> None:
        self._memory = memory
        self._pages_token = pages_token
        self._mcp_audience = mcp_audience
        self._keys_required = keys_required

    def caller(self, authorization: str | None, *, mcp: bool) -> "Memory":
        """The memory for a request with this `Authorization` header; `Refused` if it has no key and needs one."""
        if authorization is None:
            if self._keys_required or (mcp and self._mcp_audience != "trader"):
                raise Unauthenticated(NO_KEY, field="authorization")
            return self._memory.for_caller(
                Authority(audience="trader", may_write=True, may_read_all=not mcp), actor="mcp" if mcp else "http"
            )
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(NO_KEY, field="authorization")
        key = key_of_token(self._memory, token.strip())
        if mcp and self._mcp_audience != "trader" and key.audience not in (self._mcp_audience, "owner"):
            raise Refused(f"this endpoint is the {self._mcp_audience}'s; use a key of the {self._mcp_audience}")
        authority = Authority(audience=key.audience, may_write=key.scope == "write")
        return self._memory.for_caller(authority, actor=key.actor, owner=key.owner_id)

    def page_caller(self, token: str | None) -> "Memory":
        """The memory for a page: the owner's with the token that the server printed, else that of a key, or of nobody.

        Nobody reads everything on this machine, as over REST, and writes nothing.
        """
        if token and self._pages_token and compare_digest(token.encode(), self._pages_token.encode()):
            return self._memory.for_caller(Authority(audience="owner", may_write=True), actor="pages")
        if token:
            return self.caller(f"Bearer {token}", mcp=False)
        if self._keys_required:
            raise Unauthenticated("sign in with a key of the owner", field="authorization")
        return self._memory.for_caller(Authority(audience="trader", may_write=False, may_read_all=True), actor="pages")


def is_page_path(path: str) -> bool:
    """Whether a path is one of the pages'.

    >>> is_page_path("/trades"), is_page_path("/api/v1/trades"), is_page_path("/mcp")
    (True, False, False)
    """
    return not (path.startswith(("/api/", MCP_PATH)) or path in ("/health", "/metrics", "/api"))


class AccessMiddleware:
    """Finds the caller of each request before anything of the request's body is read."""

    def __init__(self, app: "ASGIApp", door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            path, headers = scope["path"], Headers(scope=scope)
            mcp = path.startswith(MCP_PATH)
            is_for_page = is_page_path(path) and "authorization" not in headers
            try:
                if is_for_page and not path.startswith(OPEN_PAGES):
                    token = cookie_parser(headers.get("cookie", "")).get(PAGES_COOKIE)
                    scope[CALLER] = await run_sync(self._door.page_caller, token)
                elif not is_for_page:
                    scope[CALLER] = await run_sync(self._caller, headers.get("authorization"), mcp)
            except BacksightError as error:
                response: Response = problem_of(error)
                if is_for_page and error.status == 401 and "text/html" in headers.get("accept", ""):
                    response = RedirectResponse(SIGN_IN, status_code=303)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _caller(self, authorization: str | None, mcp: bool) -> "Memory":
        return self._door.caller(authorization, mcp=mcp)
