"""A fake language model: a local server that speaks OpenAI's protocol.

>>> with ModelServer(chat_reply("hello")) as server:
...     server.base_url.startswith("http://127.0.0.1:"), server.requests
(True, [])
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from backsight.core.errors import Unavailable
from backsight.core.reflection.citation_check import ProposedBullet

__all__ = ["SILENCE", "ModelServer", "Reply", "bullets_reply", "chat_reply", "error_reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of the server to one request."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    """Whether the server sends nothing for as long as it runs."""
    pause: float = 0.0
    """Seconds between the bytes of the body."""


SILENCE = Reply(silent=True)


def chat_reply(content: str | None, *, tokens: tuple[int, int] | None = (700, 50), **message: Any) -> Reply:
    """A chat completion with a text; `tokens` are the counts of the question and of the answer."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
    completion = {"id": "1", "object": "chat.completion", "created": 1, "model": "stand-in", "choices": [choice]}
    usage = {} if tokens is None else {"usage": _usage(*tokens)}
    return Reply(body=json.dumps({**completion, **usage}))


def bullets_reply(*bullets: ProposedBullet) -> Reply:
    """A chat completion with bullets, in the JSON shape that the model reflector asks for."""
    rows = [{"slot": each.slot, "text": each.text, "cites": list(each.cites)} for each in bullets]
    return chat_reply(json.dumps({"bullets": rows}))


def error_reply(status: int, message: str = "no", **headers: str) -> Reply:
    """An error in OpenAI's format."""
    http_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps({"error": {"message": message}}), headers=http_headers)


class ModelServer:
    """A context manager that serves replies on the loopback address, in turn; the last reply is repeated."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests received."""
        self.headers: list[Mapping[str, str]] = []
        self._stopped = Event()
        self._server: ThreadingHTTPServer | None = None

    @property
    def base_url(self) -> str:
        if self._server is None:
            raise Unavailable("the server is not running; enter it with `with`")
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                fake.headers.append(dict(self.headers))
                fake.requests.append(json.loads(self.rfile.read(length)))
                reply = fake.replies[min(len(fake.requests), len(fake.replies)) - 1]
                if reply.silent:
                    fake._stopped.wait()
                else:
                    self._begin(reply)
                    self._send(reply)

            def _begin(self, reply: Reply) -> None:
                self.send_response(reply.status)
                length = str(len(reply.body.encode()))
                for name, value in {
                    "content-type": "application/json",
                    "content-length": length,
                    **reply.headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()

            def _send(self, reply: Reply) -> None:
                """Send the body until the client hangs up or the server stops."""
                body, step = reply.body.encode(), 1 if reply.pause else 1 << 20
                with suppress(ConnectionError):
                    for start in range(0, len(body), step):
                        if reply.pause and fake._stopped.wait(reply.pause):
                            return
                        self.wfile.write(body[start : start + step])

            def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
                """Log nothing."""

        return Handler


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
