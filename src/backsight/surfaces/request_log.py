"""What the server reports of its requests: one JSON line each, and counters for Prometheus.

Neither has a key, an argument or an answer in it: a line names the operation, the status, the caller and the duration.
"""

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from backsight.core.instants import format_instant
from backsight.ports import Clock
from backsight.surfaces.access import CALLER
from backsight.surfaces.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

WriteLine = Callable[[str], None]


def write_to_stderr(line: str) -> None:
    """Write a line of the log."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def no_log(_line: str) -> None:
    """Write no log."""


class RequestMetrics:
    """Counts of requests by route and status, and the seconds they took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self.in_progress = 0

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[route, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """The counters in the text format of Prometheus.

        >>> metrics = RequestMetrics()
        >>> metrics.add("list_trades", 200, 0.5)
        >>> print(metrics.text(), end="")
        # HELP backsight_requests_total Requests that were answered.
        # TYPE backsight_requests_total counter
        backsight_requests_total{route="list_trades",status="200"} 1
        # HELP backsight_request_seconds_total Seconds that requests took.
        # TYPE backsight_request_seconds_total counter
        backsight_request_seconds_total{route="list_trades"} 0.500000
        # HELP backsight_requests_in_progress Requests in progress.
        # TYPE backsight_requests_in_progress gauge
        backsight_requests_in_progress 0
        """
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP backsight_requests_total Requests that were answered."
        yield "# TYPE backsight_requests_total counter"
        for (route, status), count in sorted(self._requests.items()):
            yield f'backsight_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# HELP backsight_request_seconds_total Seconds that requests took."
        yield "# TYPE backsight_request_seconds_total counter"
        for route, seconds in sorted(self._seconds.items()):
            yield f'backsight_request_seconds_total{{route="{route}"}} {seconds:.6f}'
        yield "# HELP backsight_requests_in_progress Requests in progress."
        yield "# TYPE backsight_requests_in_progress gauge"
        yield f"backsight_requests_in_progress {self.in_progress}"


class RequestLogMiddleware:
    """Counts and logs every request, and answers with a problem where the server itself failed."""

    def __init__(self, app: "ASGIApp", metrics: RequestMetrics, clock: Clock, write: WriteLine) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock
        self._write = write

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, started, failure = 0, perf_counter(), ""

        async def send_and_note(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_progress += 1
        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:  # noqa: BLE001 (the outermost place of a request)
            failure = _place_of(error)
            if not status:
                reason = "the server failed, and its log says where; nothing was written"
                await problem("Unavailable", 500, reason)(scope, receive, send_and_note)
        finally:
            self._metrics.in_progress -= 1
            self._note(scope, status, perf_counter() - started, failure)

    def _note(self, scope: "Scope", status: int, seconds: float, failure: str) -> None:
        route = _route_of(scope)
        self._metrics.add(route, status, seconds)
        line: dict[str, object] = {
            "at": format_instant(self._clock.now()),
            "method": scope["method"],
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
        }
        if CALLER in scope:
            line |= {"owner": scope[CALLER].owner, "actor": scope[CALLER].actor}
        if failure:
            line["failure"] = failure
        self._write(json.dumps(line, ensure_ascii=False))


def _route_of(scope: "Scope") -> str:
    """The name of the route; paths that do not exist share one name, so that the counters are bounded."""
    route = scope.get("route")
    name = getattr(route, "name", None)
    path = scope["path"]
    return str(name) if name else path if path in ("/mcp", "/health", "/metrics") else "other"


def _place_of(error: BaseException) -> str:
    """The kind of a failure and where it happened, without its message, which may quote arguments."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].name} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
