"""Vector search in PostgreSQL with the extension `vector` (pgvector), if the extension exists or can be created.

Each owner and model has a separate table, filled from the stored vectors. A chunk has a vector for each of its
passages, and is as near as its nearest passage, less what is due to their number. A search compares the query with
every vector while there are few. With many vectors, an HNSW index finds the nearest of all chunks, nearly always the
same ones. A search with filters still compares every vector in its scope: an HNSW scan can stop before it reaches
enough of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, column, select, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import NullType

from backsight.core.documents.document import Vector
from backsight.core.documents.passages import COSINE_PER_DOUBLING
from backsight.core.ids import digest
from backsight.store.documents import CHUNKS, Scope, stored_vectors
from backsight.store.row_security import VECTOR_TABLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HNSW_MIN_VECTORS = 20_000
"""From this many vectors on, an HNSW index is built."""
HNSW_MAX_DIMENSIONS = 4_000
"""pgvector's limit for an HNSW index on half-precision vectors."""
EF_SEARCH = 400
"""Size of the candidate list of an HNSW scan (`hnsw.ef_search`)."""

_SEARCH_SETTINGS = (
    f"SET LOCAL hnsw.ef_search = {EF_SEARCH}; SET LOCAL hnsw.iterative_scan = strict_order; "
    "SET LOCAL plan_cache_mode = force_custom_plan"  # a generic plan would parse the query's vector again for each row
)
_EXTENSION = (
    "pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
    "WHERE extname = 'vector' AND (CAST(split_part(extversion, '.', 1) AS int), "
    "CAST(split_part(extversion, '.', 2) AS int)) >= (0, 8)"
)
"""Releases before 0.8 have no iterative scans, or no half-precision vectors."""
_EXTENSION_SCHEMA = text(f"SELECT quote_ident(nspname) FROM {_EXTENSION}")  # noqa: S608
_TABLE = text(
    f"SELECT atttypmod, quote_ident(nspname) FROM pg_attribute, {_EXTENSION} "  # noqa: S608
    "AND attrelid = to_regclass(:name) AND attname = 'embedding' AND NOT attisdropped"
)
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('backsight:document_meanings', 0))")


class VectorTable(NamedTuple):
    """The table of an owner's vectors of one model."""

    name: str
    dimensions: int
    schema: str
    """The schema of the extension, which another store of the same database may have created."""


def vector_table(connection: Connection, owner: str, model: str) -> VectorTable | None:
    """The table of an owner's vectors of a model; None if there is none, as on every other database."""
    if connection.dialect.name != "postgresql":
        return None
    name = _table_name(owner, model)
    row = connection.execute(_TABLE, {"name": name}).first()
    return None if row is None else VectorTable(name, *row)


def write_vectors(connection: Connection, owner: str, model: str, vectors: Sequence[Vector]) -> None:
    """Copy newly stored vectors into the table; without the extension, vectors are compared in memory instead."""
    target = vector_table(connection, owner, model)
    if target is not None:
        _insert(connection, target, vectors)
    elif vectors and connection.dialect.name == "postgresql":
        _create_table(connection, owner, model, dimensions=vectors[0].dimensions)


def erase_vectors(connection: Connection, owner: str, models: Iterable[str]) -> None:
    """Delete an owner's vectors of some models from the tables of vectors."""
    for target in (vector_table(connection, owner, model) for model in models):
        if target is not None:
            connection.execute(text(f"DELETE FROM {target.name} WHERE owner_id = :owner"), {"owner": owner})  # noqa: S608


def build_hnsw_index(connection: Connection, owner: str, model: str, *, minimum: int = HNSW_MIN_VECTORS) -> None:
    """Build the HNSW index of an owner's vectors, if there are at least `minimum` vectors."""
    target = vector_table(connection, owner, model)
    if target is None or target.dimensions > HNSW_MAX_DIMENSIONS:
        return
    count = connection.execute(text(f"SELECT count(*) FROM {target.name}")).scalar_one()  # noqa: S608
    if count >= minimum:
        connection.execute(text("SELECT backsight_index_vectors(:name)"), {"name": target.name})


def nearest(
    connection: Connection,
    target: VectorTable,
    owner: str,
    vector: "NDArray[np.float32]",
    scope: Scope,
    *,
    limit: int,
    also: Collection[int],
) -> dict[int, float]:
    """Cosines by chunk number: of the nearest chunks of a scope, and of the chunks `also` of the scope."""
    if len(vector) != target.dimensions:
        return {}
    c = CHUNKS.table.c
    query = _VectorQuery(connection, target, vector)
    chunks = select(c.number, c.text_hash).where(c.owner_id == owner, *scope.conditions(c))
    candidates = chunks.where(c.number.in_(query.nearest_of_all(chunks, limit))) if scope.is_all else chunks
    near = query.nearest_among(candidates, limit)
    requested = query.nearest_among(chunks.where(c.number.in_(sorted(also))), len(also)) if also else {}
    return near | requested


class _VectorQuery:
    """The comparison of one vector with the vectors of a table."""

    def __init__(self, connection: Connection, target: VectorTable, vector: "NDArray[np.float32]") -> None:
        self._connection = connection
        connection.execute(text(_SEARCH_SETTINGS))
        self._vectors = table(target.name, column("text_hash"), column("embedding")).alias("m")
        schema = target.schema
        distance = f"m.embedding OPERATOR({schema}.<=>) CAST(:asked AS {schema}.halfvec({len(vector)}))"
        value = bindparam("asked", _literal(vector.tolist()), NullType())  # as text it would be parsed for every row
        self._distance = text(distance).bindparams(value)
        by_chance = f"{COSINE_PER_DOUBLING} * ln(count(*)) / ln(2)"
        self._distance_of_chunk = text(f"min({distance}) + {by_chance}").bindparams(value)
        """The HNSW index does not match this expression, so that sorting by it is exact."""

    def nearest_of_all(self, chunks: Select[Any], limit: int) -> list[int]:
        """At least `limit` current chunks with the nearest passages, by the HNSW index if there is one."""
        # The nearest vectors may be of superseded texts or of the same text: widen the search until there are enough.
        width = 2 * limit
        while True:
            by_distance = select(self._vectors.c.text_hash).order_by(self._distance).limit(width)
            passages = self._connection.execute(by_distance).scalars().all()
            with_text = chunks.where(CHUNKS.table.c.text_hash.in_(set(passages)))
            near = list(self._connection.execute(with_text).scalars())
            if len(near) >= limit or len(passages) < width:
                return near
            width *= 4

    def nearest_among(self, chunks: Select[Any], limit: int) -> dict[int, float]:
        """Cosines of the nearest of the given chunks; every chunk is compared."""
        in_scope = chunks.cte("chunks").prefix_with("MATERIALIZED", dialect="postgresql")
        joined = in_scope.join(self._vectors, in_scope.c.text_hash == self._vectors.c.text_hash)
        compared = select(in_scope.c.number, self._distance_of_chunk).select_from(joined).group_by(in_scope.c.number)
        rows = self._connection.execute(compared.order_by(self._distance_of_chunk).limit(limit))
        return _cosines({row[0]: row[1] for row in rows})


def _cosines(distances: Mapping[int, float]) -> dict[int, float]:
    return {number: max(-1.0, min(1.0, 1.0 - distance)) for number, distance in distances.items()}


def _table_name(owner: str, model: str) -> str:
    return f"{VECTOR_TABLES}{digest([owner, model])[:16]}"


def create_extension(connection: Connection) -> None:
    """Create the extension, if it is installed and the role of the connection may create it."""
    with suppress(DBAPIError), connection.begin_nested():
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"))


def _create_table(connection: Connection, owner: str, model: str, *, dimensions: int) -> None:
    """Create the table and copy all stored vectors into it, if the extension exists or can be created."""
    connection.execute(_LOCK)
    create_extension(connection)
    schema = connection.execute(_EXTENSION_SCHEMA).scalar()
    if schema is None:
        return
    target = VectorTable(_table_name(owner, model), dimensions, schema)
    make = text("SELECT backsight_make_vectors(:name, :dimensions)")
    connection.execute(make, {"name": target.name, "dimensions": dimensions})
    for batch in stored_vectors(connection, owner, model):
        _insert(connection, target, batch)


def _insert(connection: Connection, target: VectorTable, vectors: Sequence[Vector]) -> None:
    from backsight.store.search.vectors import unpack_vector

    insert = text(
        f"INSERT INTO {target.name} (owner_id, text_hash, passage, embedding) "  # noqa: S608 - the name is a hash
        f"VALUES (:owner_id, :text_hash, :passage, CAST(:embedding AS {target.schema}.halfvec)) "
        "ON CONFLICT (owner_id, text_hash, passage) DO UPDATE SET embedding = excluded.embedding"
    )
    rows = [
        {
            "owner_id": vector.owner_id,
            "text_hash": vector.text_hash,
            "passage": vector.passage,
            "embedding": _literal(unpack_vector(vector.values).tolist()),
        }
        for vector in vectors
    ]
    if rows:
        connection.execute(insert, rows)


def _literal(vector: Sequence[float]) -> str:
    """A vector in pgvector's text form."""
    return f"[{','.join(map(repr, vector))}]"
