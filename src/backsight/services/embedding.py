"""Embedding: every text without a vector is given one."""

from collections.abc import Sequence
from threading import Event

from backsight.core.documents.document import Vector, embedded_text, no_index
from backsight.ports import Embedder
from backsight.services.context import Context
from backsight.store import documents as stored
from backsight.store.publishing import put_vectors
from backsight.store.search.postgres_vectors import connect

AT_A_TIME = 64


def embed_missing(ctx: Context, embedder: Embedder, *, stop: Event | None = None) -> int:
    """How many texts were given a vector; each batch is kept as it comes, so that nothing is embedded twice."""
    with ctx.reading() as connection:
        total = stored.without_vector(connection, ctx.owner, embedder.model)
    count = 0
    while count < total and not (stop is not None and stop.is_set()):
        with ctx.reading() as connection:
            missing = stored.hashes_without_vector(connection, ctx.owner, embedder.model, limit=AT_A_TIME)
        if not missing:
            break
        rows = embedder.embed([embedded_text(piece.heading, piece.text) for piece in missing.values()])
        _keep(ctx, embedder.model, list(missing), rows.tolist())
        count += len(missing)
        ctx.progress("Embedding", min(count, total), total)
    if count:
        with ctx.database.writing(f"{ctx.owner} vectors") as connection:  # takes a while: the owner's writers go on
            connect(connection, ctx.owner, embedder.model)
    return count


def _keep(ctx: Context, model: str, hashes: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
    from backsight.store.search.vectors import packed

    vectors = [
        Vector(owner_id=ctx.owner, model=model, text_hash=text_hash, values=packed(row))
        for text_hash, row in zip(hashes, rows, strict=True)
    ]
    with ctx.writing() as transaction:
        stands = stored.index(transaction.connection, ctx.owner) or no_index(ctx.owner, now=ctx.now)
        put_vectors(transaction.connection, stands, vectors)
