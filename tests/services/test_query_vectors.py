"""The vectors of the latest queries are kept, and not those of all queries."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsight.services.query_vectors import MOST_QUERIES, QueryVectors


class Counting:
    """Counts the texts that it embeds."""

    language: str | None = None

    def __init__(self, model: str) -> None:
        self.model, self.count = model, 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.count += len(texts)
        return np.ones((len(texts), 2), dtype=np.float32)


def test_the_latest_queries_are_embedded_once_by_each_model() -> None:
    vectors, small, large = QueryVectors(), Counting("small"), Counting("large")
    for _ in range(2):
        vectors.embed(small, "stops")
        vectors.embed(large, "stops")
    assert (small.count, large.count) == (1, 1)
    for number in range(MOST_QUERIES):
        vectors.embed(small, str(number))
    vectors.embed(small, "stops")
    assert small.count == MOST_QUERIES + 2
