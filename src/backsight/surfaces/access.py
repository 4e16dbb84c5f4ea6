"""Who calls the server: every request gets a memory that does no more than its key allows."""

from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from starlette.datastructures import Headers

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
OPEN_PATHS = frozenset({"/", "/health", f"{PREFIX}/openapi.json", f"{PREFIX}/docs"})
"""What anyone may read who reaches the server: no row of the store is in it."""
NO_KEY = "send a key as `Authorization: Bearer TOKEN`; the owner makes one with `backsight keys create`"


class Door:
    """Gives each request the memory of its caller.

    Without a key a caller is the trader, who proposes and never approves; over REST it may use every query too. With
    `keys_required`, or on an MCP endpoint of another audience, nobody comes in without a key.
    """

    def __init__(self, memory: "Memory", *, mcp_audience: Audience = "trader", keys_required: bool = False) -> None:
        self._memory = memory
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


class AccessMiddleware:
    """Finds the caller of each request before anything of the request's body is read."""

    def __init__(self, app: "ASGIApp", door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            mcp = scope["path"].startswith(MCP_PATH)
            try:
                scope[CALLER] = await run_sync(self._caller, Headers(scope=scope).get("authorization"), mcp)
            except BacksightError as error:
                await problem_of(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _caller(self, authorization: str | None, mcp: bool) -> "Memory":
        return self._door.caller(authorization, mcp=mcp)
