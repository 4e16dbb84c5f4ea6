"""Text forms of values whose stored text is not the JSON of their fields."""

import json

from backsight.core.ids import canonical_json
from backsight.core.memory.conditions import condition_from_text, condition_text
from backsight.core.memory.prospective import PlanSource
from backsight.store.mapping import Codec

CONDITION = Codec(condition_text, condition_from_text)


def _sources_text(sources: tuple[PlanSource, ...]) -> str:
    return canonical_json([source.text() for source in sources])


def _sources_from_text(text: str) -> tuple[PlanSource, ...]:
    pairs = (json.loads(source) for source in json.loads(text))
    return tuple(PlanSource(kind=kind, id=memory_id) for kind, memory_id in pairs)


PLAN_SOURCES = Codec(_sources_text, _sources_from_text)
"""A JSON array of texts, each of which is a JSON array of kind and id."""
