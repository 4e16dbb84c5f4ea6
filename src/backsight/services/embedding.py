"""Embedding: compute and store the vectors of every indexed text that has none."""

from itertools import islice
from threading import Event

from backsight.core.documents.document import embedded_text
from backsight.core.documents.passages import passages_of
from backsight.ports import Embedder
from backsight.services.context import Context
from backsight.store import documents as stored
from backsight.store.publishing import finish_vectors, put_vectors

BATCH = 64
"""Texts per call of the embedder; it gets all passages of a text."""


def embed_missing(ctx: Context, embedder: Embedder, *, stop: Event | None = None) -> int:
    """Embed all texts without a vector, until `stop` is set; returns how many. Each batch is stored at once."""
    with ctx.reading() as connection:
        total = stored.count_texts_to_embed(connection, ctx.owner, embedder.model)
    count = 0
    while count < total and not (stop is not None and stop.is_set()):
        with ctx.reading() as connection:
            chunks = stored.chunks_to_embed(connection, ctx.owner, embedder.model, limit=BATCH)
        if not chunks:
            break
        passages = {
            text_hash: [embedded_text(chunk.heading, passage) for passage in passages_of(chunk.text)]
            for text_hash, chunk in chunks.items()
        }
        rows = iter(embedder.embed([passage for each in passages.values() for passage in each]).tolist())
        vectors = {text_hash: list(islice(rows, len(each))) for text_hash, each in passages.items()}
        with ctx.writing() as transaction:
            index = stored.index_or_empty(transaction.connection, ctx.owner, now=ctx.now)
            put_vectors(transaction.connection, index, embedder.model, vectors)
        count += len(chunks)
        ctx.progress("Embedding", min(count, total), total)
    if count:
        finish_vectors(ctx.database, ctx.owner, embedder.model)
    return count
