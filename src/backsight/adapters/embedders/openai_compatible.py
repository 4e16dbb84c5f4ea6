"""Any server that speaks OpenAI's embeddings endpoint: a provider's, or one on this machine."""

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

AT_A_TIME = 64
LONGEST = 24_000
"""Characters of a text that are sent: about as much as such models read."""
MOST_BYTES = 64 * 1024 * 1024
FIELD = "embedder"


class OpenAICompatible:
    """A model behind `POST {base}/embeddings`."""

    def __init__(self, *, base: str, name: str, key: str | None = None, timeout_seconds: float = 30.0) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"{base[:60]!r} is no address; give one like http://127.0.0.1:8080/v1", field=FIELD)
        if parts.username or parts.password:
            raise Invalid("leave the key out of the address; it has a setting of its own", field=FIELD)
        if key and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise Invalid("a key would go over the network in clear; use https", field=FIELD)
        self._address = f"{base.rstrip('/')}/embeddings"
        self._name = name
        self._key = key
        self._timeout = timeout_seconds
        self._opener = build_opener(_StaysThere())

    @property
    def model(self) -> str:
        """The model's name at its host: the same name elsewhere may be another model."""
        return f"{self._name}@{urlsplit(self._address).netloc}"

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """One row a text, each of length 1."""
        rows = [row for begun in range(0, len(texts), AT_A_TIME) for row in self._ask(texts[begun : begun + AT_A_TIME])]
        if not rows:
            return np.zeros((0, 0), dtype=np.float32)
        if len({len(row) for row in rows}) != 1:
            raise self._wrong("vectors of different lengths")
        return np.array(rows, dtype=np.float32)

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        sent = [_clean(text) for text in texts]
        said = self._post({"model": self._name, "input": sent, "encoding_format": "float"})
        try:
            by_index = {item["index"]: _of_length_one(item["embedding"]) for item in said["data"]}
            return [by_index[place] for place in range(len(texts))]
        except (KeyError, TypeError, ValueError, IndexError):
            raise self._wrong("something else than a vector for each text") from None

    def _post(self, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = Request(self._address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - http(s) only
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return json.loads(answer.read(MOST_BYTES))
        except HTTPError as error:
            with error:
                raise self._away(f"it answered {error.code}") from None
        except (TimeoutError, URLError, HTTPException, OSError) as error:
            raise self._away(str(getattr(error, "reason", None) or error or type(error).__name__)) from None
        except ValueError:
            raise self._wrong("no JSON") from None

    def _away(self, reason: str) -> Unavailable:
        return Unavailable(
            f"cannot embed with {self.model}: {reason}; check the address, the key and the model", field=FIELD
        )

    def _wrong(self, what: str) -> Unavailable:
        return Unavailable(f"{self.model} answered with {what}; is it an embeddings endpoint?", field=FIELD)


class _StaysThere(HTTPRedirectHandler):
    """Follows nobody elsewhere: the key and the notes are for one host."""

    def redirect_request(self, *_args: Any) -> None:
        return None


def _clean(text: str) -> str:
    """What is sent of a text: such servers refuse one that is empty."""
    return text[:LONGEST].encode(errors="replace").decode() or " "


def _of_length_one(vector: Any) -> list[float]:
    values = [float(value) for value in vector]
    length = math.sqrt(math.fsum(value * value for value in values))
    if not values or not math.isfinite(length) or length == 0:
        raise ValueError("not a direction")
    return [value / length for value in values]
