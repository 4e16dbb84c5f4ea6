"""Why a memory ranked where it did: what an explanation says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from backsight.core.recall.score import ScoreFactors

FactorName = Literal["Q", "Sim", "Rec", "Conf", "Aff", "Period"]
Value = str | float | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedField:
    """One field of Sim."""

    name: str
    weight: float
    asked: Value
    held: Value
    """None is not known; of a text, those of the words asked with that it has."""
    closeness: float
    contribution: float
    """What it adds to Sim; all of them together are Sim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A memory at its rank by score."""

    rank: int
    id: str
    score: float
    factors: ScoreFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class Higher:
    """Where a memory would rank if one factor, or one field of Sim, were at its best and all else as it is."""

    factor: FactorName
    field: str | None = None
    value: float
    """The factor's best."""
    score: float
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a memory ranks for a query, and why."""

    id: str
    sentence: str
    candidates: int
    excluded: str | None = None
    """Why it is no candidate; then nothing below is known."""
    factors: ScoreFactors | None = None
    score: float | None = None
    rank: int | None = None
    """By score; 1 is the best, ties by id."""
    nearest_rank: int | None = None
    warning_rank: int | None = None
    """Among the losses; None if it is none."""
    fields: tuple[ComparedField, ...] = ()
    """Sim field by field; none where the query gives no context, and Sim is .5."""
    ahead: tuple[Placed, ...] = ()
    """The last one shown, if this is not shown, and the one just above it."""
    higher: tuple[Higher, ...] = ()
    """What would lift it, the most first: factors below their best, and fields of Sim that do not match entirely."""


def not_a_candidate(memory_id: str, reasons: Iterable[str], candidates: int) -> Explanation:
    """The explanation of a memory that was excluded for these reasons."""
    excluded = "; ".join(reasons)
    return Explanation(id=memory_id, sentence=f"Not a candidate: {excluded}", candidates=candidates, excluded=excluded)
