"""Documents: what is written?"""

from typing import Any

from starlette.responses import Response

from backsight.core.errors import BacksightError, Unavailable
from backsight.surfaces.web.differences import diff_lines
from backsight.surfaces.web.page import PageRequest

LINES_BEFORE, LINES_AFTER = 20, 60
DECISIONS_READ = 100


def show(page: PageRequest) -> Response:
    try:
        health = page.memory.index_health(**page.when)
    except Unavailable as error:
        return page.render("empty.html", title="Documents", reason=error.message)
    query, path = page.text("q"), page.text("path")
    edits = page.memory.list_edits(limit=50, **page.when).edits
    return page.render(
        "documents.html",
        title="Documents",
        health=health,
        search=None if query is None else page.memory.search_memory(query=query, **page.when),
        passage=None if path is None else _passage(page, path),
        citing=[] if path is None else _citing(page, path),
        edits=[(edit, diff_lines(edit.diff)) for edit in edits if edit.kind == "edit"],
        notes=[edit for edit in edits if edit.kind != "edit"][:10],
    )


def _passage(page: PageRequest, path: str) -> dict[str, Any]:
    """The lines of a document, those of the citation marked."""
    first, _, last = (page.text("lines") or "").partition("-")
    marked = (
        range(int(first), int(last or first) + 1) if first.isdecimal() and (last or first).isdecimal() else range(0)
    )
    start = max(1, marked.start - LINES_BEFORE) if marked else 1
    try:
        passage = page.memory.read_memory(path=path, start_line=start, **page.when)
    except BacksightError as error:
        return {"error": error.message, "path": path}
    numbered = enumerate(passage.text.removesuffix("\n").split("\n"), start=passage.start_line)
    return {
        "path": path,
        "passage": passage,
        "lines": [(number, text, number in marked) for number, text in numbered],
        "marked": marked.start if marked else None,
    }


def _citing(page: PageRequest, path: str) -> list[Any]:
    """The last decisions that cite a document."""
    request = page.with_deployment()
    if not request.deployment:
        return []
    answer = page.memory.list_decisions(**request.deployment, limit=DECISIONS_READ, **page.when)
    return [each for each in answer.decisions if any(cited.partition(":")[0] == path for cited in each.citations)][:10]
