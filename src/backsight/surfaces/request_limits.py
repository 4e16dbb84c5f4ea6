"""Limits of requests: who sends them from where, how large they are, how many there are, and how long they take."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import Headers

from backsight.surfaces.access import OPEN_PATHS, PREFIX, is_page_path
from backsight.surfaces.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 16_000_000
"""The largest body: some 100,000 bars."""
SMALL_BODY_BYTES = 64_000
"""A body that is read as JSON in less than a millisecond, so that it need not wait for a thread."""
MAX_BUFFERED_BYTES = 256_000_000
"""Bodies that are being received, of all requests together."""
MAX_DEPTH = 32
"""Objects and lists inside each other."""
MAX_NAMES = 1_000
"""Names in one object."""
MAX_REQUESTS = 64
"""Requests in progress in one process; the next is told to come again."""
MAX_REQUESTS_OF_ONE = 32
"""Requests in progress of one key, or of one address without a key."""
BODY_SECONDS = 30.0
"""How long a client may take to send its body."""
ANSWER_SECONDS = 300.0
"""How long an operation may take before the client is told that it still runs."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SAME_SITE = frozenset({"same-origin", "none"})


class OriginMiddleware:
    """Refuses requests that a web page of another site makes a browser send; it may link to an answer."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http" and is_embedded(scope):
            embedded = (
                "origin: a page of another site cannot embed this; follow a link to it, or call it from a program"
            )
            await problem("Refused", 403, embedded, "origin")(scope, receive, send)
            return
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS:
            headers = Headers(scope=scope)
            if reason := foreign_origin(headers):
                await problem("Refused", 403, reason, "origin")(scope, receive, send)
                return
            if is_form(headers.get("content-type", "")) and is_page_path(scope["path"]):
                if not {"origin", "sec-fetch-site"} & set(headers):
                    reason = "origin: a form comes from a page of this server; a program calls /api/v1"
                    await problem("Refused", 403, reason, "origin")(scope, receive, send)
                    return
            elif scope["method"] == "POST" and not is_json(headers.get("content-type", "")):
                reason = "content-type: send `Content-Type: application/json`, also without a body"
                await problem("Invalid", 415, reason, "content-type")(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_embedded(scope: "Scope") -> bool:
    """Whether a page of another site loads an answer of an operation as one of its parts."""
    headers = Headers(scope=scope)
    foreign = headers.get("sec-fetch-site", "none") not in SAME_SITE
    return foreign and calls_operation(scope) and headers.get("sec-fetch-mode") != "navigate"


def calls_operation(scope: "Scope") -> bool:
    """Whether a safe request runs a query: its path is below that of the API and is no page of documentation."""
    path: str = scope["path"]
    return scope["method"] in SAFE_METHODS and path.startswith(f"{PREFIX}/") and path not in OPEN_PATHS


def foreign_origin(headers: Headers) -> str | None:
    """Why a request comes from a page of another site; None if it does not.

    >>> foreign_origin(Headers({"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:8765"}))
    >>> foreign_origin(Headers({"host": "127.0.0.1:8765", "origin": "https://evil.example"}))
    "origin: 'https://evil.example' is another site; call the server from a program or from its own pages"
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    remedy = "call the server from a program or from its own pages"
    if site is not None and site not in SAME_SITE:
        return f"origin: the browser says {site[:20]!r}; {remedy}"
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        return f"origin: {origin[:80]!r} is another site; {remedy}"
    return None


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON; a form of a web page cannot send it."""
    return content_type.partition(";")[0].strip().lower() == "application/json"


def is_form(content_type: str) -> bool:
    """Whether a content type is that of a form of a web page."""
    return content_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


class BodyMiddleware:
    """Reads the body within its limits before the application sees it; a slow client holds nothing meanwhile."""

    def __init__(self, app: "ASGIApp", *, max_bytes: int = MAX_BODY_BYTES, seconds: float = BODY_SECONDS) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._buffered = 0

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        if self._buffered > MAX_BUFFERED_BYTES:
            reason = "the server receives too many bodies; try again in a second"
            await problem("Unavailable", 503, reason, headers={"Retry-After": "1"})(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        body: bytes | None = None
        if not (length.isdecimal() and int(length) > self._max_bytes):
            with anyio.move_on_after(self._seconds) as deadline:
                body = await self._read(receive)
            if deadline.cancelled_caught:
                reason = f"arguments: the body did not arrive within {self._seconds:g} s; send it at once"
                await problem("Invalid", 408, reason, "arguments")(scope, receive, send)
                return
        if body is None:
            reason = f"arguments: the body has more than {self._max_bytes:,} bytes; send it in parts"
            await problem("Invalid", 413, reason, "arguments")(scope, receive, send)
            return
        fault = shape_fault(body) if len(body) <= SMALL_BODY_BYTES else await run_sync(shape_fault, body)
        if fault is not None:
            await problem("Invalid", 422, fault, "arguments")(scope, receive, send)
            return
        await self._app(scope, _once(body, receive), send)

    async def _read(self, receive: "Receive") -> bytes | None:
        """The body; None if it is too large."""
        body = bytearray()
        try:
            while True:
                message = await receive()
                part = message.get("body", b"")
                body += part
                self._buffered += len(part)
                if len(body) > self._max_bytes:
                    return None
                if not message.get("more_body", False):
                    return bytes(body)
        finally:
            self._buffered -= len(body)


def _once(body: bytes, receive: "Receive") -> "Receive":
    """A receive function that gives the body, and then what the client does."""
    waiting = [body]

    async def receive_again() -> "Message":
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again


def shape_fault(body: bytes) -> str | None:
    """What makes a JSON body too deep or too wide to be checked; None if nothing does, or if it is not JSON.

    >>> shape_fault(b'{"a": [{}]}')
    >>> shape_fault(b"[" * 50 + b"]" * 50)
    'arguments: the body nests more than 32 levels; give a flatter object'
    """
    try:
        value = json.loads(body) if body else None
    except ValueError:
        return None  # the operation refuses it
    except RecursionError:
        return _TOO_DEEP
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        if any(isinstance(item, dict) and len(item) > MAX_NAMES for item in level):
            return f"arguments: an object in the body has more than {MAX_NAMES:,} names; see the operation's arguments"
        level = list(_inner(level))
        if not level:
            return None
    return _TOO_DEEP


_TOO_DEEP = f"arguments: the body nests more than {MAX_DEPTH} levels; give a flatter object"


def _inner(level: list[Any]) -> Iterator[Any]:
    """The objects and lists inside those of one level."""
    for item in level:
        values = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        yield from (value for value in values if isinstance(value, dict | list))


class LoadMiddleware:
    """Bounds the requests in progress, of everyone and of one caller, and how long a client waits for an answer."""

    def __init__(
        self,
        app: "ASGIApp",
        *,
        most: int = MAX_REQUESTS,
        most_of_one: int = MAX_REQUESTS_OF_ONE,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._app = app
        self._most = most
        self._most_of_one = most_of_one
        self._seconds = seconds
        self._callers: Counter[str] = Counter()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or (scope["method"] in SAFE_METHODS and not calls_operation(scope)):
            await self._app(scope, receive, send)
            return
        caller = Headers(scope=scope).get("authorization") or str((scope.get("client") or [""])[0])
        if self._callers[caller] >= self._most_of_one:
            reason = f"{self._most_of_one} requests of yours are in progress; wait for one of them"
            await problem("Unavailable", 429, reason, headers={"Retry-After": "1"})(scope, receive, send)
        elif self._callers.total() >= self._most:
            reason = "the server is busy; try again in a second"
            await problem("Unavailable", 503, reason, headers={"Retry-After": "1"})(scope, receive, send)
        else:
            await self._counted(caller, scope, receive, send)

    async def _counted(self, caller: str, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Run a request; it counts until its answer begins, so that a client that reads slowly holds up nobody."""
        started = False
        self._callers[caller] += 1

        def release() -> None:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]

        async def send_and_release(message: "Message") -> None:
            nonlocal started
            if not started:
                started, deadline.deadline = True, float("inf")
                release()
            await send(message)

        try:
            with anyio.move_on_after(self._seconds) as deadline:
                await self._app(scope, receive, send_and_release)
        finally:
            if not started:
                release()
        if deadline.cancelled_caught:
            reason = f"no answer within {self._seconds:g} s; the operation may still finish: read, then try again"
            await problem("Unavailable", 503, reason, headers={"Retry-After": "10"})(scope, receive, send)
