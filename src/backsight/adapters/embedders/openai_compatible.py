"""Any server with OpenAI's embeddings endpoint: a provider's server, or one on this machine."""

import json
import math
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from backsight.core.errors import Invalid, Unavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH = 64
"""Texts per request."""
MAX_CHARACTERS = 24_000
"""Characters of a text that are sent: about as much as such models read."""
MAX_ANSWER_BYTES = 64 * 1024 * 1024
FIELD = "embedder"


class OpenAICompatible:
    """A model behind `POST {base}/embeddings`."""

    language = None

    def __init__(self, *, base: str, name: str, key: str | None = None, timeout_seconds: float = 30.0) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"{base[:60]!r} is not an address; give one such as http://127.0.0.1:8080/v1", field=FIELD)
        if parts.username or parts.password:
            raise Invalid(
                "the address contains a user name or password; remove it and set BACKSIGHT_EMBEDDER_KEY", field=FIELD
            )
        if key and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise Invalid(f"the key would be sent unencrypted to {parts.hostname}; use an https address", field=FIELD)
        self._address = f"{base.rstrip('/')}/embeddings"
        self._name = name
        self._key = key
        self._timeout = timeout_seconds
        self._opener = build_opener(_NoRedirects())

    @property
    def model(self) -> str:
        """The model's name and host: the same name at another host may be another model."""
        return f"{self._name}@{urlsplit(self._address).netloc}"

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row per text, each of length 1."""
        batches = (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
        rows = [row for batch in batches for row in self._embed_batch(batch)]
        if not rows:
            return np.zeros((0, 0), dtype=np.float32)
        if len({len(row) for row in rows}) != 1:
            raise self._bad_answer("vectors of different lengths")
        return np.array(rows, dtype=np.float32)

    def _embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        inputs = [_input(text) for text in texts]
        answer = self._post({"model": self._name, "input": inputs, "encoding_format": "float"})
        try:
            by_index = {item["index"]: _unit_vector(item["embedding"]) for item in answer["data"]}
            return [by_index[place] for place in range(len(texts))]
        except (KeyError, TypeError, ValueError, IndexError):
            raise self._bad_answer("something other than one vector per text") from None

    def _post(self, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = Request(self._address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - http(s) only
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return json.loads(answer.read(MAX_ANSWER_BYTES))
        except HTTPError as error:
            with error:
                raise self._unavailable(f"the server answered with status {error.code}") from None
        except (TimeoutError, URLError, HTTPException, OSError) as error:
            raise self._unavailable(str(getattr(error, "reason", None) or error or type(error).__name__)) from None
        except ValueError:
            raise self._bad_answer("text that is not JSON") from None

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(
            f"cannot embed with {self.model}: {reason}; check the address, the key and the model name", field=FIELD
        )

    def _bad_answer(self, content: str) -> Unavailable:
        return Unavailable(
            f"{self.model} answered with {content}; check that the address is an embeddings endpoint", field=FIELD
        )


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects: the key and the texts are meant for one host."""

    def redirect_request(self, *_args: Any) -> None:
        return None


def _input(text: str) -> str:
    """A text as it is sent: shortened, valid UTF-8, and not empty, because servers refuse an empty text."""
    return text[:MAX_CHARACTERS].encode(errors="replace").decode() or " "


def _unit_vector(vector: Any) -> list[float]:
    values = [float(value) for value in vector]
    length = math.sqrt(math.fsum(value * value for value in values))
    if not values or not math.isfinite(length) or length == 0:
        raise ValueError("a vector without a direction")
    return [value / length for value in values]
