"""Vectors for what has none: while the caller waits, or in the background while words are searched."""

from collections.abc import Sequence
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING

from backsight.core.documents.document import Vector, embedded_text, no_index
from backsight.core.errors import BacksightError
from backsight.ports import Embedder
from backsight.store import documents as stored
from backsight.store.publishing import put_vectors
from backsight.store.search.postgres_vectors import connect

if TYPE_CHECKING:
    from backsight.ops.context import Context

AT_A_TIME = 64


def embed_missing(ctx: "Context", embedder: Embedder, *, stop: Event | None = None) -> int:
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


def _keep(ctx: "Context", model: str, hashes: Sequence[str], rows: Sequence[Sequence[float]]) -> None:
    from backsight.store.search.vectors import packed

    vectors = [
        Vector(owner_id=ctx.owner, model=model, text_hash=text_hash, values=packed(row))
        for text_hash, row in zip(hashes, rows, strict=True)
    ]
    with ctx.writing() as transaction:
        stands = stored.index(transaction.connection, ctx.owner) or no_index(ctx.owner, now=ctx.now)
        put_vectors(transaction.connection, stands, vectors)


class Background:
    """One thread of this process that gives texts their vectors, when there are such without."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._stop = Event()
        self._again = False
        self._thread: Thread | None = None
        self.trouble: str | None = None
        """Why it ended before all had their vectors."""

    @property
    def works(self) -> bool:
        """Whether it is at work."""
        return self._thread is not None

    def start(self, ctx: "Context", embedder: Embedder) -> None:
        """Embed what is missing, and look again if this is asked for meanwhile."""
        with self._turn:
            self._again = True
            if not self.works and not self._stop.is_set():
                self._thread = Thread(target=self._run, args=(ctx, embedder), name="embedding", daemon=True)
                self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is done."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def stop(self) -> None:
        """End it after what it has in hand; what is missing is embedded another time."""
        self._stop.set()
        self.wait()

    def _run(self, ctx: "Context", embedder: Embedder) -> None:
        try:
            while self._goes_on():
                embed_missing(ctx, embedder, stop=self._stop)
                self.trouble = None
        except BacksightError as error:
            self.trouble = error.message
        finally:
            with self._turn:
                if self._thread is current_thread():  # it was cut short; who starts it again begins another
                    self._thread = None

    def _goes_on(self) -> bool:
        with self._turn:
            again, self._again = self._again and not self._stop.is_set(), False
            if not again:
                self._thread = None
            return again
