"""The library: where an owner's documents are, and how they are searched."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from backsight.core.documents.citation import SOURCES, Source
from backsight.core.documents.merge import Fusion, RankingSettings
from backsight.core.errors import Invalid, did_you_mean
from backsight.ports import Embedder
from backsight.services.background import BackgroundWorker
from backsight.services.query_vectors import QueryVectors
from backsight.store.search.slot import Slot

if TYPE_CHECKING:
    from backsight.importers.workspace import Workspace
    from backsight.store.search.vectors import VectorCache

FUSIONS: tuple[Fusion, ...] = get_args(Fusion)


@dataclass(frozen=True)
class Library:
    """The workspace, the search slot, the embedder and the ranking settings of an owner's documents."""

    folder: str | None = None
    shared: tuple[str, ...] = ()
    """Folders shared with others; they are searched and never written."""
    slot: Slot = "sqlite_fts"
    embedder: Embedder | None = None
    """None unless the slot is `hybrid_embeddings`."""
    ranking: RankingSettings = field(default_factory=RankingSettings)

    @property
    def workspace(self) -> "Workspace":
        """The workspace; Invalid if none is set."""
        from backsight.importers.workspace import workspace_at  # imports the types of documents

        return workspace_at(self.folder, shared=self.shared)

    @cached_property
    def background(self) -> BackgroundWorker:
        """The thread that embeds in the background."""
        return BackgroundWorker()

    @cached_property
    def query_vectors(self) -> QueryVectors:
        """The vectors of the latest queries."""
        return QueryVectors()

    @cached_property
    def vectors(self) -> "VectorCache":
        """The vectors in memory."""
        from backsight.store.search.vectors import (
            VectorCache,  # NumPy is slow to import, and a keyword search does not need it
        )

        return VectorCache()


def ranking_settings_from(
    *, fusion: str, keyword_weight: str, vector_weight: str, minimum_score: str, source_caps: str, half_life: str | None
) -> RankingSettings:
    """Ranking settings from the text of the environment's settings.

    >>> ranking_settings_from(fusion="weighted_sum", keyword_weight=".5", vector_weight=".5", minimum_score="0",
    ...            source_caps="journal=3", half_life=None).per_source
    {'journal': 3}
    """
    method = next((name for name in FUSIONS if name == fusion), None)
    if method is None:
        raise Invalid(f"{fusion[:40]!r} is not a fusion method; {did_you_mean(fusion, FUSIONS)}", field="fusion")
    ranking = RankingSettings(
        fusion=method,
        keyword_weight=_number(keyword_weight, "keyword_weight"),
        vector_weight=_number(vector_weight, "vector_weight"),
        minimum_score=_number(minimum_score, "minimum_score"),
        per_source=_caps(source_caps),
        half_life_days=None if half_life is None else _number(half_life, "half_life_days"),
    )
    ranking.check()
    return ranking


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a number; give a number such as 0.5", field=name) from None


def _caps(text: str) -> Mapping[Source, int]:
    caps: dict[Source, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = part.partition("=")
        source = next((known for known in SOURCES if known == name.strip()), None)
        if source is None or not count.strip().isdecimal():
            raise Invalid(
                f"{part[:40]!r} is not a cap; give a source and a count, as in 'journal=3,run=2'", field="source_caps"
            )
        caps[source] = int(count)
    return caps
