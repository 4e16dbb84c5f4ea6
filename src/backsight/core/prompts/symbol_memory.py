"""The prompt section "What usually happens here": for each symbol its base rate, nearest episodes and warnings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backsight.core.portfolio import Direction
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.recall.base_rate import BaseRate
from backsight.core.recall.rank import RecalledMemory
from backsight.core.text.untrusted_text import name, quote, shorten

HEADING = "## What usually happens here"
NOTHING = "nothing remembered"
NEAREST, WARNINGS = 3, 3
UNLIKE = 0.2
"""Episodes of at most this similarity are left out."""
COMMENT = 60
"""Characters of an episode's comment."""
HEADLINE = 240
"""Characters of the base rate's sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledLine:
    """One recalled episode: the trade, why it was recalled, and the comment stored with it."""

    id: str
    symbol: str
    direction: Direction | None
    sentence: str
    comment: str | None

    @property
    def text(self) -> str:
        comment = quote(self.comment, most=COMMENT) if self.comment and self.comment.strip() else ""
        sentence = shorten(self.sentence, most=HEADLINE)
        return " ".join(part for part in (name(self.symbol), self.direction, sentence, comment) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolMemory:
    """What is remembered of one symbol in the present context."""

    symbol: str
    base_rate: str | None
    """The base rate in one sentence; None if nothing is remembered."""
    nearest: tuple[RecalledLine, ...] = ()
    """Ranked by similarity and recency; the outcome does not count."""
    warnings: tuple[RecalledLine, ...] = ()

    @property
    def is_known(self) -> bool:
        """True if there is anything to show."""
        return self.base_rate is not None or bool(self.nearest or self.warnings)


def symbol_memory_of(
    symbol: str,
    base_rate: BaseRate | None,
    nearest: Sequence[RecalledMemory] = (),
    warnings: Sequence[RecalledMemory] = (),
) -> SymbolMemory:
    """The memory of a symbol from a recall; a warning that is also among the nearest is shown once."""
    similar = [memory for memory in nearest if memory.factors.Sim > UNLIKE][:NEAREST]
    similar_ids = {memory.id for memory in similar}
    others = [memory for memory in warnings if memory.factors.Sim > UNLIKE and memory.id not in similar_ids]
    return SymbolMemory(
        symbol=symbol,
        base_rate=base_rate.sentence if base_rate and base_rate.headline.n + base_rate.headline.open else None,
        nearest=tuple(map(recalled_line, similar)),
        warnings=tuple(map(recalled_line, others[:WARNINGS])),
    )


def recalled_line(memory: RecalledMemory) -> RecalledLine:
    """The line of a recalled episode; its reflection is preferred to its entry reason."""
    episode = memory.episode
    return RecalledLine(
        id=memory.id,
        symbol=episode.symbol,
        direction=episode.direction,
        sentence=memory.sentence,
        comment=episode.reflection or episode.reason or episode.market_context,
    )


def what_usually_happens(memories: Sequence[SymbolMemory]) -> Section:
    """Base rate, nearest episodes and warnings of each symbol; base rates are dropped last."""
    return section_of("what_usually_happens", HEADING, (row for memory in memories for row in _rows(memory)))


def _rows(memory: SymbolMemory) -> Iterable[Row]:
    rate = NOTHING if memory.base_rate is None else shorten(memory.base_rate, most=HEADLINE, tokens=120)
    yield Row(f"- {name(memory.symbol)}: {rate}", 0)
    for rank, line in enumerate(memory.nearest, start=1):
        yield Row(f"- nearest: {line.text}", rank)
    for rank, line in enumerate(memory.warnings, start=1):
        yield Row(f"- warning: {line.text}", rank)
