"""The explanation of a memory's rank in a recall."""

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
    query_value: Value
    """The value in the query."""
    memory_value: Value
    """The value in the memory; None if unknown. For the text, the words of the query that the memory has."""
    closeness: float
    contribution: float
    """The part of Sim that comes from this field; the contributions of all fields add up to Sim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMemory:
    """A memory and its rank by score."""

    rank: int
    id: str
    score: float
    factors: ScoreFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """The rank of a memory if one factor, or one field of Sim, had its best value and nothing else changed."""

    factor: FactorName
    field: str | None = None
    value: float
    """The value of the factor then."""
    score: float
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The rank of a memory in a recall, and the reasons for it."""

    id: str
    sentence: str
    candidates: int
    excluded: str | None = None
    """Why the memory is not a candidate; the fields below are then empty."""
    factors: ScoreFactors | None = None
    score: float | None = None
    rank: int | None = None
    """The rank by score; 1 is the best, ties are ranked by id."""
    nearest_rank: int | None = None
    warning_rank: int | None = None
    """The rank among the losses; None for a win."""
    fields: tuple[ComparedField, ...] = ()
    """The fields of Sim; empty if the query gives no context, and Sim is .5."""
    ahead: tuple[RankedMemory, ...] = ()
    """The memory just above, and the last memory of the answer if this one is not in it."""
    higher: tuple[Improvement, ...] = ()
    """What would rank the memory higher: factors below their best and fields of Sim below 1, the largest gain first."""


def not_a_candidate(memory_id: str, reasons: Iterable[str], candidates: int) -> Explanation:
    """The explanation for a memory that was excluded for these reasons."""
    excluded = "; ".join(reasons)
    return Explanation(id=memory_id, sentence=f"Not a candidate: {excluded}", candidates=candidates, excluded=excluded)
