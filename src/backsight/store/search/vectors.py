"""Vectors: the meaning of every chunk that stands, in one matrix, compared with a query exactly.

The matrix is of one generation of the index and brought to the next by reading only the vectors that are new. Two
models never share a matrix. Where the database compares vectors itself, there is none.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection

from backsight.core.documents.document import Index
from backsight.store import documents as stored
from backsight.store.documents import Scope
from backsight.store.search.postgres_vectors import meanings, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

STORED = np.dtype("<f2")
MOST_MATRICES = 8
"""Of owners and models that are kept at hand."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The vectors of the chunks that stood at a generation, as far as they were there."""

    generation: int
    embeddings: int
    numbers: "NDArray[np.int64]"
    hashes: tuple[str, ...]
    rows: "NDArray[np.float32]"

    def only(self, numbers: Sequence[int]) -> "Matrix":
        """The part of it that is of these chunks."""
        places = np.flatnonzero(np.isin(self.numbers, np.array(numbers, dtype=np.int64), assume_unique=True))
        hashes = tuple(self.hashes[place] for place in places.tolist())
        return replace(self, numbers=self.numbers[places], hashes=hashes, rows=self.rows[places])


class Matrices:
    """The matrices of the owners of a store, the latest used at hand."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        self._lock = Lock()

    def nearest(
        self,
        connection: Connection,
        stands: Index,
        model: str,
        asked: "NDArray[np.float32]",
        scope: Scope,
        *,
        most: int,
        also: Collection[int] = (),
    ) -> dict[int, float]:
        """The cosines of the nearest chunks of a scope that have a vector of this model, and of others by number."""
        owner = stands.owner_id
        if (there := meanings(connection, owner, model)) is not None:
            return nearest(connection, there, owner, asked, scope, most=most, also=also)
        matrix = self._standing(connection, stands, model)
        if scope.at is not None:
            matrix = _read(connection, stands, model, scope, matrix)
        elif not scope.is_all:
            matrix = matrix.only(stored.numbers_in(connection, owner, scope))
        return _cosines(matrix, asked, most, also)

    def _standing(self, connection: Connection, stands: Index, model: str) -> Matrix:
        key = (stands.owner_id, model)
        with self._lock:
            held = self._held.get(key)
        if held is None or (held.generation, held.embeddings) != (stands.generation, stands.embeddings):
            held = _read(connection, stands, model, Scope(), held)
        with self._lock:
            self._held[key] = held
            self._held.move_to_end(key)
            while len(self._held) > MOST_MATRICES:
                self._held.popitem(last=False)
        return held


def packed(vector: Sequence[float]) -> bytes:
    """A vector as it is stored."""
    return np.asarray(vector, dtype=STORED).tobytes()


def _cosines(matrix: Matrix, asked: "NDArray[np.float32]", most: int, also: Collection[int]) -> dict[int, float]:
    numbers = matrix.numbers
    if not len(numbers) or matrix.rows.shape[1] != len(asked):
        return {}
    cosines = np.clip(matrix.rows @ asked, -1.0, 1.0)
    nearest = np.argpartition(-cosines, most - 1)[:most] if len(cosines) > most else np.arange(len(cosines))
    named = np.array(sorted(also), dtype=np.int64)
    places = np.searchsorted(numbers, named)
    there = numbers[np.minimum(places, len(numbers) - 1)] == named
    chosen = np.union1d(nearest, places[there])
    return dict(zip(numbers[chosen].tolist(), cosines[chosen].tolist(), strict=True))


def _read(connection: Connection, stands: Index, model: str, scope: Scope, held: Matrix | None) -> Matrix:
    owner = stands.owner_id
    wanted = list(stored.texts_in(connection, owner, scope))
    at_hand = {} if held is None else {text_hash: place for place, text_hash in enumerate(held.hashes)}
    missing = {text_hash for _, text_hash in wanted} - at_hand.keys()
    read = {name: unpacked(cells) for name, cells in stored.vectors(connection, owner, model, missing).items()}
    having = [(number, name) for number, name in wanted if name in at_hand or name in read]
    rows = [read[name] if name in read or held is None else held.rows[at_hand[name]] for _, name in having]
    return Matrix(
        stands.generation,
        stands.embeddings,
        np.array([number for number, _ in having], dtype=np.int64),
        tuple(name for _, name in having),
        np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32),
    )


def unpacked(cells: bytes) -> "NDArray[np.float32]":
    """A vector as it is compared: of length 1."""
    row = np.frombuffer(cells, dtype=STORED).astype(np.float32)
    length = float(np.linalg.norm(row))
    return row / length if length else row
