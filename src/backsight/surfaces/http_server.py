"""The HTTP server: the pages, REST and MCP in one application, within limits, and how it listens, runs and stops."""

import os
import signal
import socket
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from weakref import WeakKeyDictionary

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from backsight.core.errors import BacksightError, Refused, Unavailable
from backsight.core.keys import Audience
from backsight.services.keys import has_active_key
from backsight.surfaces import rest
from backsight.surfaces.access import MCP_PATH, SIGN_IN, AccessMiddleware, Door
from backsight.surfaces.extras import has_mcp, missing_mcp, require_mcp
from backsight.surfaces.problems import problem_of
from backsight.surfaces.request_limits import (
    BODY_SECONDS,
    MAX_BODY_BYTES,
    BodyMiddleware,
    LoadMiddleware,
    OriginMiddleware,
)
from backsight.surfaces.request_log import RequestLogMiddleware, RequestMetrics, WriteLine, no_log
from backsight.surfaces.web import application as web

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

    from mcp.server.lowlevel import Server as McpServer
    from starlette.routing import BaseRoute

    from backsight.memory import Memory

LOOPBACK = ("127.0.0.1", "::1", "localhost")
THREADS = 12
"""Operations that run at the same time; PostgreSQL's pool has a few connections more."""
REQUEST_SECONDS = 10.0
"""How long a connection may exist without the head of a request."""
READING_SECONDS = 30.0
"""How long a client may take to read what the server has buffered for it, or to send another request."""
MOST_WAITING = 256
"""Connections that wait for their clients; the one that waits longest is closed when there are more."""
SHUTDOWN_SECONDS = 10
SESSION_SECONDS = 600.0
"""How long an MCP session may be silent."""
MAX_SESSIONS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How a server listens, and whom it lets in."""

    host: str = "127.0.0.1"
    mcp_audience: Audience = "trader"
    tools: tuple[str, ...] | None = None
    keys_required: bool = False
    write_log: WriteLine = field(default=no_log)
    pages_token: str | None = None
    """Who signs in to the pages with it is the owner; None: only a key signs in."""

    @property
    def is_local(self) -> bool:
        return self.host in LOOPBACK


def http_application(memory: "Memory", options: HttpOptions | None = None) -> FastAPI:
    """The pages, REST, health and metrics in one application, and MCP if its package is installed."""
    options = options or HttpOptions()
    mcp_server = _mcp_server(memory, options) if has_mcp() else None
    app = rest.application(memory, lifespan=_lifespan(mcp_server))
    if mcp_server is not None:
        app.router.routes.extend(_mcp_routes(mcp_server, options))
    door = _door(memory, options)
    app.router.routes.extend(web.page_routes(memory, door))
    app.add_exception_handler(HTTPException, web.pages_for_errors(memory, app.exception_handlers[HTTPException]))
    return _guarded(app, memory, options, door)


def _door(memory: "Memory", options: HttpOptions) -> Door:
    return Door(
        memory,
        mcp_audience=options.mcp_audience,
        keys_required=options.keys_required or not options.is_local,
        pages_token=options.pages_token,
    )


PAGES_TOKEN_BYTES = 16
"""Short enough for the address to be one line of a terminal."""


def new_pages_token(memory: "Memory") -> str:
    """A secret that signs the owner in to the pages of one process."""
    return memory.randomness.random_bytes(PAGES_TOKEN_BYTES).hex()


def mcp_application(memory: "Memory", options: HttpOptions, *, mcp_server: "McpServer[Any] | None" = None) -> FastAPI:
    """MCP alone, with health and metrics; `mcp_server` answers instead of the server of the audience."""
    require_mcp()
    mcp_server = mcp_server or _mcp_server(memory, options)
    app = FastAPI(openapi_url=None, lifespan=_lifespan(mcp_server))
    app.router.routes.extend(_mcp_routes(mcp_server, options))
    return _guarded(app, memory, options, _door(memory, options))


def _mcp_server(memory: "Memory", options: HttpOptions) -> "McpServer[Any]":
    from backsight.surfaces import mcp

    return mcp.server(memory, options.mcp_audience, tools=options.tools)


def _mcp_routes(server: "McpServer[Any]", options: HttpOptions) -> "list[BaseRoute]":
    """MCP over streamable HTTP; the sessions belong to the server, which the lifespan of the application runs."""
    app = server.streamable_http_app(
        host=options.host,
        streamable_http_path=MCP_PATH,
        max_request_body_size=MAX_BODY_BYTES,
        session_idle_timeout=SESSION_SECONDS,
        max_sessions=MAX_SESSIONS,
    )
    return app.routes


def _lifespan(server: "McpServer[Any] | None") -> rest.Lifespan:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        async with nullcontext() if server is None else server.session_manager.run():
            yield

    return lifespan


def _guarded(app: FastAPI, memory: "Memory", options: HttpOptions, door: Door) -> FastAPI:
    """The application with its limits; the first that a request meets is added last."""
    metrics = RequestMetrics()
    _add_reports(app, memory, metrics)
    app.add_middleware(LoadMiddleware)
    app.add_middleware(BodyMiddleware)
    app.add_middleware(AccessMiddleware, door=door)
    app.add_middleware(OriginMiddleware)
    if options.is_local:  # a page that makes its name point to this machine has another host name
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
    app.add_middleware(RequestLogMiddleware, metrics=metrics, clock=memory.clock, write=options.write_log)
    return app


def _add_reports(app: FastAPI, memory: "Memory", metrics: RequestMetrics) -> None:
    async def health() -> JSONResponse:
        """Whether the server can read its store."""
        try:
            await run_sync(_read_once, memory)
        except BacksightError as error:
            return problem_of(error)
        return JSONResponse({"status": "ok"})

    async def show_metrics() -> PlainTextResponse:
        """Counters of requests, in the text format of Prometheus."""
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    app.add_api_route("/health", health, include_in_schema=False)
    app.add_api_route("/metrics", show_metrics, name="metrics", include_in_schema=False)


def _read_once(memory: "Memory") -> None:
    has_active_key(memory)


def listen(host: str, port: int, *, memory: "Memory | None" = None) -> socket.socket:
    """A listening socket; beyond this machine only if the owner of the memory has a key that callers can send."""
    if host not in LOOPBACK and (memory is None or not has_active_key(memory)):
        raise Refused(
            f"{host!r} is not this machine, and no key exists; use 127.0.0.1, or create one with `backsight keys"
            " create`",
            field="host",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns TCP_NODELAY on: small answers are sent at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # on Windows the option would let two servers share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        raise Unavailable(f"cannot listen on {host} port {port}: {error}; try --port 0", field="port") from None
    return listener


def base_url(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def addresses(listener: socket.socket, pages_token: str | None = None) -> list[str]:
    """The URLs of the pages, of REST and of MCP, one a line; the token in the first signs the owner in."""
    url = base_url(listener)
    pages = f"Pages {url}/" if pages_token is None else f"Pages {url}{SIGN_IN}?token={pages_token}"
    return [
        pages,
        f"REST  {url}/api/v1/docs",
        f"MCP   {url}{MCP_PATH}" if has_mcp() else f"MCP   not served: {missing_mcp()}",
    ]


Awaited = Literal["request", "body", "reading"]
"""What a connection waits for its client to do: send a request, send its body, or read the answer."""
_WAITING: "WeakKeyDictionary[ServerState, OrderedDict[ImpatientProtocol, TimerHandle]]" = WeakKeyDictionary()


class ImpatientProtocol(H11Protocol):
    """HTTP that closes connections whose client does nothing in time, the longest waiting first if there are many."""

    _awaited: Awaited | None = None

    @property
    def _waiting(self) -> "OrderedDict[ImpatientProtocol, TimerHandle]":
        """The connections of this server that wait for their clients, the longest waiting first."""
        return _WAITING.setdefault(self.server_state, OrderedDict())

    def connection_made(self, transport: "Transport") -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_what_is_missing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_what_is_missing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_what_is_missing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_what_is_missing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect_what_is_missing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect_what_is_missing(self) -> None:
        if self.flow.write_paused:
            self._expect("reading", READING_SECONDS)
        elif self.cycle is None:
            self._expect("request", REQUEST_SECONDS)
        elif self.cycle.response_complete:  # the client may still have to read the end of the answer
            self._expect("request", READING_SECONDS)
        elif self.cycle.more_body:
            self._expect("body", BODY_SECONDS + REQUEST_SECONDS)
        else:
            self._expect_nothing()

    def _expect(self, awaited: Awaited, seconds: float) -> None:
        if self._awaited == awaited:  # a client that sends byte by byte gains no time
            return
        self._expect_nothing()
        self._awaited = awaited
        self._waiting[self] = self.loop.call_later(seconds, self._give_up)
        if len(self._waiting) > MOST_WAITING:
            next(iter(self._waiting))._give_up()

    def _expect_nothing(self) -> None:
        self._awaited = None
        timer = self._waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._expect_nothing()
        self.transport.abort()


def http_server(app: FastAPI) -> Server:
    """The server of an application, with its time-outs."""
    config = Config(
        app,
        http=ImpatientProtocol,
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    return Server(config)


def run_http(app: FastAPI, listener: socket.socket) -> None:
    """Serve until the process is interrupted or terminated; requests in progress have some seconds to finish."""
    end_on_signals()  # the server raises the signal again after it has stopped
    http_server(app).run(sockets=[listener])


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT end the process from now on.

    A program that prints its address can be signalled before its server listens to signals. SIGINT is ignored in a
    program that a shell started in the background, until this is called.
    """
    signal.signal(signal.SIGTERM, _exit_normally)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit_normally(_signal: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)
