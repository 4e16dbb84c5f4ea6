"""What waits for the owner: proposals, edits, inferred facts, and warnings."""

from dataclasses import dataclass

from backsight.core.text.counts import count_of
from backsight.surfaces.web.page import PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Something to decide or to look at, and the page where that is done."""

    text: str
    path: str


def waiting(page: PageRequest) -> list[Waiting]:
    """Everything that waits, most urgent first."""
    memory, when = page.memory, page.when
    items: list[Waiting] = []
    verification = memory.last_verification(**when)
    if verification.last is None or not verification.last.intact:
        text = (
            "The store was never verified." if verification.last is None else "The last verification found differences."
        )
        items.append(Waiting(text=text, path="/status"))
    proposals = [each for each in memory.list_proposals(status="proposed", **when).proposals if each.still_holds]
    if proposals:
        items.append(Waiting(text=f"{count_of(len(proposals), 'proposal')} to accept or reject.", path="/lessons"))
    if memory.library is not None and memory.library.folder is not None:
        edits = memory.list_edits(status="proposed", **when).total
        if edits:
            items.append(
                Waiting(text=f"{count_of(edits, 'edit')} of documents to approve or reject.", path="/documents")
            )
        at = page.state.as_of or memory.clock.now()  # as of an instant, the text of every chunk is not checked
        items += (Waiting(text=each, path="/documents") for each in memory.index_health(as_of=at).warnings)
    inferred = [each for each in memory.list_facts(**when).facts if each.confidence == "inferred"]
    if inferred:
        items.append(Waiting(text=f"{count_of(len(inferred), 'inferred fact')} about you to check.", path="/facts"))
    return items
