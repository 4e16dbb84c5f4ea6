"""The vectors of the latest queries: agents repeat their questions, and embedding one takes most of a search."""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from backsight.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_QUERIES = 256


class QueryVectors:
    """A cache of vectors by model and query, least recently used first."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    def embed(self, embedder: Embedder, text: str) -> "NDArray[np.float32]":
        """The vector of a query; computed unless the query is one of the latest."""
        key = (embedder.model, text)
        with self._lock:
            vector = self._vectors.get(key)
        if vector is None:
            vector = embedder.embed([text])[0]
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > MOST_QUERIES:
                self._vectors.popitem(last=False)
        return vector
