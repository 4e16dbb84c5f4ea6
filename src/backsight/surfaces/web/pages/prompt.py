"""What it sees: the prompt at an instant, and how it differs from that of another."""

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from starlette.responses import Response

from backsight.core.errors import NotFound
from backsight.core.holdout import MemoryArm
from backsight.ops.ticks import ContextPreview
from backsight.surfaces.web.differences import DifferenceLine, differences
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.state import read_instant

ARMS: tuple[MemoryArm, ...] = get_args(MemoryArm)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """One segment of a prompt with its tokens, and what the other prompt has instead."""

    name: str
    text: str
    tokens: int
    of_system: bool
    difference: tuple[DifferenceLine, ...] = ()


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    if not page.deployment:
        return page.render("empty.html", title="What it sees")
    arm = page.choice("memory", ARMS)
    preview = page.memory.preview_context(**page.deployment, memory_arm=arm, **page.when)
    other_at = read_instant(page.query.get("other", ""), field="other")
    other = None if other_at is None else _other(page, other_at, arm)
    return page.render(
        "prompt.html",
        title="What it sees",
        preview=preview,
        arms=ARMS,
        arm=arm,
        segments=segments_of(preview, other),
        other=other,
        other_at=other_at,
        largest=max((each.tokens for each in preview.tokens), default=1),
    )


def _other(page: PageRequest, at: datetime, arm: MemoryArm | None) -> ContextPreview:
    try:
        return page.memory.preview_context(**page.deployment, memory_arm=arm, as_of=at)
    except NotFound as error:
        raise NotFound(f"there was no such deployment then: {error.message}", field="other") from None


def segments_of(preview: ContextPreview, other: ContextPreview | None) -> list[PromptPart]:
    """The segments in order; with another prompt, each with its difference, and those that only the other has."""
    tokens = {each.name: each.tokens for each in preview.tokens}
    earlier = {} if other is None else {each.name: each.text for each in (*other.system, *other.segments)}
    shown = [
        PromptPart(
            name=segment.name,
            text=segment.text,
            tokens=tokens.get(segment.name, 0),
            of_system=segment in preview.system,
            difference=() if other is None else tuple(differences(earlier.get(segment.name, ""), segment.text)),
        )
        for segment in (*preview.system, *preview.segments)
    ]
    names = {each.name for each in shown}
    gone = [
        PromptPart(name=name, text="", tokens=0, of_system=False, difference=tuple(differences(text, "")))
        for name, text in earlier.items()
        if name not in names
    ]
    return [*shown, *gone]
