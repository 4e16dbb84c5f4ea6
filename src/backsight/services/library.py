"""How an owner's documents are kept and found: the folder, the slot, the embedder and the rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from backsight.core.documents.citation import SOURCES, Source
from backsight.core.documents.merge import Fusion, Rules
from backsight.core.errors import Invalid, did_you_mean
from backsight.importers.workspace import Workspace, workspace_at
from backsight.ports import Embedder
from backsight.services.background import BackgroundWorker
from backsight.store.search.slot import Slot

if TYPE_CHECKING:
    from backsight.store.search.vectors import Matrices

FUSIONS: tuple[Fusion, ...] = get_args(Fusion)


@dataclass(frozen=True)
class Library:
    """What operations on documents need beside the store."""

    folder: str | None = None
    shared: tuple[str, ...] = ()
    """Folders of others that are searched, too."""
    slot: Slot = "sqlite_fts"
    embedder: Embedder | None = None
    """There is one where the slot needs one."""
    rules: Rules = field(default_factory=Rules)

    @property
    def workspace(self) -> Workspace:
        """The workspace; an error where none is set."""
        return workspace_at(self.folder, shared=self.shared)

    @cached_property
    def background(self) -> BackgroundWorker:
        """The thread that embeds while searches go on."""
        return BackgroundWorker()

    @cached_property
    def matrices(self) -> "Matrices":
        """The vectors at hand."""
        from backsight.store.search.vectors import Matrices  # takes a while, and not everybody searches by meaning

        return Matrices()


def rules_from(
    *, fusion: str, keyword_weight: str, vector_weight: str, minimum_score: str, source_caps: str, half_life: str | None
) -> Rules:
    """Rules from settings, which are text.

    >>> rules_from(fusion="weighted_sum", keyword_weight=".5", vector_weight=".5", minimum_score="0",
    ...            source_caps="journal=3", half_life=None).per_source
    {'journal': 3}
    """
    named = next((each for each in FUSIONS if each == fusion), None)
    if named is None:
        raise Invalid(f"{fusion[:40]!r} is no fusion; {did_you_mean(fusion, FUSIONS)}", field="fusion")
    rules = Rules(
        fusion=named,
        keyword_weight=_number(keyword_weight, "keyword_weight"),
        vector_weight=_number(vector_weight, "vector_weight"),
        minimum_score=_number(minimum_score, "minimum_score"),
        per_source=_caps(source_caps),
        half_life_days=None if half_life is None else _number(half_life, "half_life_days"),
    )
    rules.check()
    return rules


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is no number; give one", field=name) from None


def _caps(text: str) -> Mapping[Source, int]:
    caps: dict[Source, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = part.partition("=")
        source = next((each for each in SOURCES if each == name.strip()), None)
        if source is None or not count.strip().isdecimal():
            raise Invalid(f"{part[:40]!r} is no cap; give some like 'journal=3,run=2'", field="source_caps")
        caps[source] = int(count)
    return caps
