"""The five kinds of memory."""

from collections.abc import Mapping
from typing import Literal

MemoryKind = Literal["episodic", "semantic", "procedural", "affective", "prospective"]
MEMORY_KIND_WORDS: Mapping[str, MemoryKind] = {
    "episode": "episodic",
    "episodes": "episodic",
    "belief": "semantic",
    "beliefs": "semantic",
    "habit": "procedural",
    "habits": "procedural",
    "mood": "affective",
    "plan": "prospective",
    "plans": "prospective",
}
