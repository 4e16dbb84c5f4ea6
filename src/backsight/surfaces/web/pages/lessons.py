"""Lessons: what did it learn, and does it help?"""

from typing import Any

from starlette.responses import Response

from backsight.core.reflection.notes import NoteView
from backsight.core.trades.trade import unit_suffix
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.charts.ranges import Group, range_chart
from backsight.surfaces.web.differences import differences
from backsight.surfaces.web.numbers import OUTCOME_SCALES
from backsight.surfaces.web.page import PageRequest

LIMIT = 50


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    own = page.own_deployment()
    if own is None:
        return page.render("empty.html", title="Lessons")
    strategy: dict[str, Any] = {"strategy_name": own.strategy_name, "mode": own.mode, **page.when}
    listed = page.memory.list_lessons(strategy_name=own.strategy_name, limit=LIMIT, **page.when)
    notes = tuple(note for note in listed.notes if note.deployment_id in (None, own.id))
    compared = page.memory.compare_lessons(**strategy)
    first, second = _pair(page, notes)
    return page.render(
        "lessons.html",
        title="Lessons",
        own=own,
        active=next((note for note in notes if note.status == "active" and note.deployment_id), None),
        watched=[each for each in listed.watched if each.mode == own.mode],
        notes=notes,
        attempts=[each for each in listed.attempts if each.deployment_id == own.id],
        compared=compared,
        chart=comparison_chart(compared.comparison),
        help=page.memory.does_memory_help(**strategy),
        proposals=page.memory.list_proposals(deployment=own.id, **page.when).proposals[::-1],
        first=first,
        second=second,
        difference=differences(first.lessons_text, second.lessons_text) if first and second else [],
    )


def _pair(page: PageRequest, notes: tuple[NoteView, ...]) -> tuple[NoteView | None, NoteView | None]:
    """The two revisions that the address names, else the last two."""
    by_id = {note.id: note for note in notes}
    chosen = [by_id.get(page.query.get(name, "")) for name in ("first", "second")]
    if all(chosen):
        return chosen[0], chosen[1]
    return (notes[1], notes[0]) if len(notes) > 1 else (None, None)


def comparison_chart(comparison: Any) -> SvgChart | None:
    """The difference of each revision to no lessons, with its interval."""
    scale = OUTCOME_SCALES.get(comparison.unit, 1.0)
    groups = [
        Group(
            label=each.lessons_hash[:8],
            n=each.trades,
            mean=scale * each.difference,
            bounds=None if each.interval is None else (scale * each.interval[0], scale * each.interval[1]),
        )
        for each in comparison.revisions
        if each.lessons_hash is not None and each.difference is not None
    ]
    if not groups:
        return None
    name = "Mean outcome under each revision, minus that without lessons."
    return range_chart(name, groups, suffix=unit_suffix(comparison.unit))
