"""Vectors in PostgreSQL, where its extension `vector` is there or can be made: compared in the database.

Each owner and model has a table of its own, made of the stored vectors, so that nobody's vectors stand in another's
way. All are compared, until there are many: then a graph (HNSW) finds the nearest of everything, nearly always those
that comparing all would find. Within filters all are still compared: a graph may give up before it meets what fits.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, column, select, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import NullType

from backsight.core.documents.document import Vector
from backsight.core.ids import digest
from backsight.store.documents import CHUNKS, Scope, stored_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MANY = 20_000
"""Vectors from which on a graph finds the nearest."""
WIDEST = 4_000
"""Numbers of a vector that a graph can hold."""
LOOKED_AT = 200
"""Of the graph at least, before the nearest are taken."""


class Meanings(NamedTuple):
    """A table of vectors, how many numbers each has, and the schema of the extension, which may be another store's."""

    name: str
    numbers: int
    home: str


def meanings(connection: Connection, owner: str, model: str) -> Meanings | None:
    """The table of an owner's vectors of a model; None where there is none, as on every other database."""
    if connection.dialect.name != "postgresql":
        return None
    name = _name(owner, model)
    row = connection.execute(_THERE, {"name": name}).first()
    return None if row is None else Meanings(name, *row)


def keep(connection: Connection, owner: str, model: str, vectors: Sequence[Vector]) -> None:
    """Put vectors that were just stored into the table; where there can be none, they are compared elsewhere."""
    found = meanings(connection, owner, model)
    if found is not None:
        _put(connection, found, vectors)
    elif vectors and connection.dialect.name == "postgresql":
        _make(connection, owner, model, numbers=vectors[0].numbers)


def connect(connection: Connection, owner: str, model: str, *, many: int = MANY) -> None:
    """Make the graph, once there are so many vectors that it is worth its while."""
    found = meanings(connection, owner, model)
    if found is None:
        return
    count = connection.execute(text(f"SELECT count(*) FROM {found.name}")).scalar_one()  # noqa: S608
    if count >= many and found.numbers <= WIDEST:
        by = f"embedding {found.home}.halfvec_cosine_ops"
        made = f"CREATE INDEX IF NOT EXISTS {found.name}_near ON {found.name} USING hnsw ({by})"
        connection.execute(text(f"{made}; ANALYZE {found.name}; ANALYZE document_chunks"))


def nearest(
    connection: Connection,
    found: Meanings,
    owner: str,
    asked: "NDArray[np.float32]",
    scope: Scope,
    *,
    most: int,
    also: Collection[int],
) -> dict[int, float]:
    """The cosines of the nearest chunks of a scope, and of others of it by number."""
    if len(asked) != found.numbers:
        return {}
    c = CHUNKS.table.c
    asking = _Asking(connection, found, asked)
    chunks = select(c.number, c.text_hash).where(c.owner_id == owner, *scope.conditions(c))
    near = asking.everywhere(chunks, most) if scope.is_all else asking.among(chunks, most)
    named = asking.among(chunks.where(c.number.in_(sorted(also))), len(also)) if also else {}
    return near | named


class _Asking:
    """One vector that is compared with those of a table."""

    def __init__(self, connection: Connection, found: Meanings, asked: "NDArray[np.float32]") -> None:
        self._connection = connection
        connection.execute(text(_SET))
        self._vectors = table(found.name, column("text_hash"), column("embedding")).alias("m")
        home = found.home
        spelt = f"m.embedding OPERATOR({home}.<=>) CAST(:asked AS {home}.halfvec({len(asked)}))"
        value = bindparam("asked", _spelt(asked.tolist()), NullType())  # as a text it would be read for every row
        self._distance = text(spelt).bindparams(value)
        self._sum = text(f"({spelt}) + 0").bindparams(value)
        """The same to sort by where no graph is to be used: it knows no sums."""

    def everywhere(self, chunks: Select[Any], most: int) -> dict[int, float]:
        """The nearest of all; vectors of texts that no longer stand are stepped over."""
        limit = 2 * most
        while True:
            by_distance = select(self._vectors.c.text_hash, self._distance).order_by(self._distance).limit(limit)
            distances = {row[0]: row[1] for row in self._connection.execute(by_distance)}
            of_them = chunks.where(CHUNKS.table.c.text_hash.in_(list(distances)))
            near = {number: distances[name] for number, name in self._connection.execute(of_them)}
            if len(near) >= most or len(distances) < limit:
                return _cosines({number: near[number] for number in sorted(near, key=lambda each: near[each])[:most]})
            limit *= 4

    def among(self, chunks: Select[Any], most: int) -> dict[int, float]:
        """The nearest of some, each of which is compared."""
        some = chunks.cte("chunks").prefix_with("MATERIALIZED", dialect="postgresql")
        joined = some.join(self._vectors, some.c.text_hash == self._vectors.c.text_hash)
        compared = select(some.c.number, self._distance).select_from(joined)
        rows = self._connection.execute(compared.order_by(self._sum).limit(most))
        return _cosines({row[0]: row[1] for row in rows})


def _cosines(distances: Mapping[int, float]) -> dict[int, float]:
    return {number: max(-1.0, min(1.0, 1.0 - far)) for number, far in distances.items()}


_SET = (
    f"SET LOCAL hnsw.ef_search = {LOOKED_AT}; SET LOCAL hnsw.iterative_scan = strict_order; "
    "SET LOCAL plan_cache_mode = force_custom_plan"
)
"""A plan for any vector would read the one that is asked about again for every row."""
_EXTENSION = (
    "pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
    "WHERE extname = 'vector' AND (CAST(split_part(extversion, '.', 1) AS int), "
    "CAST(split_part(extversion, '.', 2) AS int)) >= (0, 8)"
)
"""Older ones have no half-precision vectors, or give up early."""
_HOME = text(f"SELECT quote_ident(nspname) FROM {_EXTENSION}")  # noqa: S608
_THERE = text(
    f"SELECT atttypmod, quote_ident(nspname) FROM pg_attribute, {_EXTENSION} "  # noqa: S608
    "AND attrelid = to_regclass(:name) AND attname = 'embedding' AND NOT attisdropped"
)
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('backsight:document_meanings', 0))")


def _name(owner: str, model: str) -> str:
    return f"document_meanings_{digest([owner, model])[:16]}"


def _make(connection: Connection, owner: str, model: str, *, numbers: int) -> None:
    connection.execute(_LOCK)
    try:
        with connection.begin_nested():
            connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"))
    except DBAPIError:  # the extension is not there, or its making is not for us
        return
    home = connection.execute(_HOME).scalar()
    if home is None:
        return
    made = Meanings(_name(owner, model), numbers, home)
    columns = f'text_hash text COLLATE "C" PRIMARY KEY, embedding {home}.halfvec({numbers}) NOT NULL'
    connection.execute(text(f"DROP TABLE IF EXISTS {made.name}; CREATE TABLE {made.name} ({columns})"))
    for some in stored_vectors(connection, owner, model):
        _put(connection, made, some)


def _put(connection: Connection, found: Meanings, vectors: Sequence[Vector]) -> None:
    from backsight.store.search.vectors import unpacked

    put = text(
        f"INSERT INTO {found.name} (text_hash, embedding) "  # noqa: S608 - the name is a hash
        f"VALUES (:text_hash, CAST(:embedding AS {found.home}.halfvec)) "
        "ON CONFLICT (text_hash) DO UPDATE SET embedding = excluded.embedding"
    )
    rows = [{"text_hash": each.text_hash, "embedding": _spelt(unpacked(each.values).tolist())} for each in vectors]
    if rows:
        connection.execute(put, rows)


def _spelt(vector: Sequence[float]) -> str:
    return f"[{','.join(map(repr, vector))}]"
