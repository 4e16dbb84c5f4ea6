"""The five kinds of memory."""

from typing import Literal, get_args

MemoryKind = Literal["episodic", "semantic", "procedural", "affective", "prospective"]

MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
