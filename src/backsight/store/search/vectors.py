"""Vector search in memory: a matrix of all current chunks' vectors, compared exactly with a query.

A chunk has a vector for each of its passages, and the cosine of a chunk is that of its nearest passage, less what is
due to their number.
A matrix belongs to one owner, one model and one generation of the index; for the next generation, only new vectors are
read. If the database compares vectors itself (`postgres_vectors`), no matrix is kept.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection

from backsight.core.documents.document import IndexState
from backsight.core.documents.passages import COSINE_PER_DOUBLING
from backsight.store import documents as stored
from backsight.store.documents import Scope
from backsight.store.search.postgres_vectors import nearest, vector_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

STORED = np.dtype("<f2")
MAX_MATRICES = 8
"""Matrices kept in memory, one per owner and model."""
MAX_BYTES = 256 * 1024 * 1024
"""The limit for all matrices together; the matrix in use is kept whatever its size."""


@dataclass(frozen=True, slots=True)
class VectorMatrix:
    """The vectors of the current chunks at a generation of the index, as far as they were embedded by then."""

    generation: int
    embeddings: int
    numbers: "NDArray[np.int64]"
    """Chunk numbers in ascending order."""
    hashes: tuple[str, ...]
    """The hash of each chunk's text."""
    starts: "NDArray[np.int64]"
    """The first row of each chunk; its other rows follow. One more than there are chunks: the last is the end."""
    rows: "NDArray[np.float32]"
    """One row per passage."""

    def rows_of(self, place: int) -> "NDArray[np.float32]":
        """The rows of the chunk at a place."""
        return self.rows[self.starts[place] : self.starts[place + 1]]

    def only(self, numbers: Sequence[int]) -> "VectorMatrix":
        """The rows of the chunks with these numbers."""
        is_chosen = np.isin(self.numbers, np.array(numbers, dtype=np.int64), assume_unique=True)
        counts = np.diff(self.starts)
        return replace(
            self,
            numbers=self.numbers[is_chosen],
            hashes=tuple(self.hashes[place] for place in np.flatnonzero(is_chosen).tolist()),
            starts=_starts(counts[is_chosen].tolist()),
            rows=self.rows[np.repeat(is_chosen, counts)],
        )


def _starts(counts: Sequence[int]) -> "NDArray[np.int64]":
    """The first row of each chunk, from the number of rows of each, and the end."""
    return np.cumsum([0, *counts], dtype=np.int64)


class VectorCache:
    """The most recently used vector matrices of a store."""

    def __init__(self) -> None:
        self._matrices: OrderedDict[tuple[str, str], VectorMatrix] = OrderedDict()
        self._lock = Lock()

    def nearest(
        self,
        connection: Connection,
        index: IndexState,
        model: str,
        vector: "NDArray[np.float32]",
        scope: Scope,
        *,
        limit: int,
        also: Collection[int] = (),
    ) -> dict[int, float]:
        """Cosines by chunk number: of the nearest chunks of a scope, and of the chunks `also` of the scope."""
        owner = index.owner_id
        if (in_database := vector_table(connection, owner, model)) is not None:
            return nearest(connection, in_database, owner, vector, scope, limit=limit, also=also)
        if scope.at is not None:  # `index` is of then, and the cache is for the current one
            matrix = _read_matrix(connection, index, model, scope, self._cached(owner, model))
        else:
            matrix = self._current_matrix(connection, index, model)
            if not scope.is_all:
                matrix = matrix.only(stored.numbers_in(connection, owner, scope))
        return _cosines(matrix, vector, limit, also)

    def _cached(self, owner: str, model: str) -> VectorMatrix | None:
        with self._lock:
            return self._matrices.get((owner, model))

    def _current_matrix(self, connection: Connection, index: IndexState, model: str) -> VectorMatrix:
        key = (index.owner_id, model)
        matrix = self._cached(*key)
        if matrix is None or (matrix.generation, matrix.embeddings) != (index.generation, index.embeddings):
            matrix = _read_matrix(connection, index, model, Scope(), matrix)
        with self._lock:
            self._matrices[key] = matrix
            self._matrices.move_to_end(key)
            total = sum(each.rows.nbytes for each in self._matrices.values())
            while len(self._matrices) > 1 and (len(self._matrices) > MAX_MATRICES or total > MAX_BYTES):
                _, evicted = self._matrices.popitem(last=False)
                total -= evicted.rows.nbytes
        return matrix


def pack_vector(vector: Sequence[float]) -> bytes:
    """A vector in its stored form."""
    return np.asarray(vector, dtype=STORED).tobytes()


def unpack_vector(values: bytes) -> "NDArray[np.float32]":
    """A stored vector, scaled to length 1 for comparison."""
    row = np.frombuffer(values, dtype=STORED).astype(np.float32)
    length = float(np.linalg.norm(row))
    return row / length if length else row


def _cosines(
    matrix: VectorMatrix, vector: "NDArray[np.float32]", limit: int, also: Collection[int]
) -> dict[int, float]:
    numbers = matrix.numbers
    if not len(numbers) or matrix.rows.shape[1] != len(vector):
        return {}
    # Rows and query have length 1, so that their product is the cosine.
    nearest_passages = np.maximum.reduceat(matrix.rows @ vector, matrix.starts[:-1])
    cosines = np.clip(nearest_passages - COSINE_PER_DOUBLING * np.log2(np.diff(matrix.starts)), -1.0, 1.0)
    # The `limit` largest cosines, unordered: a partition is faster than a sort.
    nearest_rows = np.argpartition(-cosines, limit - 1)[:limit] if len(cosines) > limit else np.arange(len(cosines))
    # The rows of the requested chunks, found by binary search in the ascending numbers.
    requested = np.array(sorted(also), dtype=np.int64)
    places = np.searchsorted(numbers, requested)
    is_present = numbers[np.minimum(places, len(numbers) - 1)] == requested
    chosen = np.union1d(nearest_rows, places[is_present])
    return dict(zip(numbers[chosen].tolist(), cosines[chosen].tolist(), strict=True))


def _read_matrix(
    connection: Connection, index: IndexState, model: str, scope: Scope, cached: VectorMatrix | None
) -> VectorMatrix:
    """The matrix of a scope; vectors that the cached matrix has are not read again."""
    owner = index.owner_id
    wanted = list(stored.texts_in(connection, owner, scope))
    rows_of = {} if cached is None else {each: cached.rows_of(place) for place, each in enumerate(cached.hashes)}
    missing = {text_hash for _, text_hash in wanted} - rows_of.keys()
    for text_hash, passages in stored.vectors(connection, owner, model, missing).items():
        rows_of[text_hash] = np.stack([unpack_vector(values) for values in passages])
    embedded = [(number, text_hash) for number, text_hash in wanted if text_hash in rows_of]
    rows = [rows_of[text_hash] for _, text_hash in embedded]
    return VectorMatrix(
        index.generation,
        index.embeddings,
        np.array([number for number, _ in embedded], dtype=np.int64),
        tuple(text_hash for _, text_hash in embedded),
        _starts([len(each) for each in rows]),
        np.concatenate(rows) if rows else np.zeros((0, 0), dtype=np.float32),
    )
