"""The five kinds of memory."""

from typing import Literal

MemoryKind = Literal["episodic", "semantic", "procedural", "affective", "prospective"]
