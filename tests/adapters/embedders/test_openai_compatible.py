"""Vectors of length 1 from an embedding server over HTTP, and clear errors where it has none."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from backsight.adapters.embedders.openai_compatible import BATCH, OpenAICompatible
from backsight.core.errors import Invalid, Unavailable

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


@contextmanager
def a_server(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on loopback with these answers: its address, and the requests it received."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            status, body_sent = answer(body)
            content = body_sent if isinstance(body_sent, bytes) else json.dumps(body_sent).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def by_length(body: dict[str, Any]) -> tuple[int, Any]:
    """A vector that encodes the length of each text; the rows come in reverse order, as the protocol allows."""
    rows = [{"index": place, "embedding": [float(len(text)), 1.0]} for place, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1]}


def test_texts_are_sent_in_batches_and_vectors_come_back_in_order() -> None:
    texts = ["x" * (number % 7 + 1) for number in range(BATCH + 3)]
    with a_server(by_length) as (base, requests):
        vectors = OpenAICompatible(base=base, name="m", key="k").embed(texts)
    assert [len(each["input"]) for each in requests] == [BATCH, 3]
    assert requests[0]["path"] == "/v1/embeddings"
    assert requests[0]["key"] == "Bearer k"
    assert vectors.shape == (BATCH + 3, 2)
    assert vectors[:, 0] / vectors[:, 1] == pytest.approx([len(text) for text in texts])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)


def test_an_empty_text_and_half_a_surrogate_can_be_embedded() -> None:
    with a_server(by_length) as (base, requests):
        assert OpenAICompatible(base=base, name="m").embed(["", "\ud800"]).shape == (2, 2)
    assert requests[0]["input"] == [" ", "?"]


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (401, {"error": "no"}, "status 401"),
        (500, b"", "status 500"),
        (302, b"", "status 302"),
        (200, b"<html>", "not JSON"),
        (200, {"data": []}, "something other"),
        (200, [], "something other"),
        (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, "something other"),
        (200, b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}', "something other"),
    ],
)
def test_a_bad_answer_of_a_server_is_a_clear_error(status: int, content: Any, message: str) -> None:
    with a_server(lambda _body: (status, content)) as (base, _), pytest.raises(Unavailable, match=message):
        OpenAICompatible(base=base, name="m").embed(["a"])


def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(Unavailable, match="cannot embed with m@127"):
        OpenAICompatible(base="http://127.0.0.1:1/v1", name="m", timeout_seconds=1.0).embed(["a"])


@pytest.mark.parametrize("base", ["ftp://host/v1", "host", "file:///etc/passwd", "http://me:key@host/v1"])
def test_a_text_that_is_not_an_address_is_refused(base: str) -> None:
    with pytest.raises(Invalid):
        OpenAICompatible(base=base, name="m")


def test_a_key_is_not_sent_over_plain_http() -> None:
    with pytest.raises(Invalid, match="https"):
        OpenAICompatible(base="http://example.com/v1", name="m", key="k")
