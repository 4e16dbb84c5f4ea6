"""What usually happens here: the base rate first, then what lies nearest whatever became of it, then warnings."""

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
"""A likeness up to which a memory says nothing of this."""
SAID = 60
"""Characters of what was said of a memory."""
HEADLINE = 240
"""Characters of the base rate's sentence; ours, but for the symbol in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledLine:
    """One recalled episode: what it was, why it comes to mind, and what was said of it."""

    id: str
    symbol: str
    direction: Direction | None
    sentence: str
    said: str | None

    @property
    def text(self) -> str:
        said = quote(self.said, most=SAID) if self.said and self.said.strip() else ""
        sentence = shorten(self.sentence, most=HEADLINE)
        return " ".join(part for part in (name(self.symbol), self.direction, sentence, said) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What memory says of one symbol now."""

    symbol: str
    base_rate: str | None
    """The headline's sentence; None where nothing is remembered."""
    nearest: tuple[RecalledLine, ...] = ()
    """By likeness and freshness, blind to the outcome."""
    warnings: tuple[RecalledLine, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say."""
        return self.base_rate is not None or bool(self.nearest or self.warnings)


def here_of(
    symbol: str,
    base_rate: BaseRate | None,
    nearest: Sequence[RecalledMemory] = (),
    warnings: Sequence[RecalledMemory] = (),
) -> Here:
    """What a recall has to say of a symbol; warnings that are among the nearest are not said twice."""
    alike = [memory for memory in nearest if memory.factors.Sim > UNLIKE][:NEAREST]
    near = {memory.id for memory in alike}
    others = [memory for memory in warnings if memory.factors.Sim > UNLIKE and memory.id not in near]
    return Here(
        symbol=symbol,
        base_rate=base_rate.sentence if base_rate and base_rate.headline.n + base_rate.headline.open else None,
        nearest=tuple(map(recalled_line, alike)),
        warnings=tuple(map(recalled_line, others[:WARNINGS])),
    )


def recalled_line(memory: RecalledMemory) -> RecalledLine:
    """The line of a recalled episode; what it taught goes before why it was made."""
    episode = memory.episode
    return RecalledLine(
        id=memory.id,
        symbol=episode.symbol,
        direction=episode.direction,
        sentence=memory.sentence,
        said=episode.reflection or episode.reason or episode.market_context,
    )


def what_usually_happens(places: Sequence[Here]) -> Section:
    """Base rate, nearest and warnings of each symbol; where there is no place for all, base rates go first."""
    return section_of("what_usually_happens", HEADING, (row for here in places for row in _rows(here)))


def _rows(here: Here) -> Iterable[Row]:
    rate = NOTHING if here.base_rate is None else shorten(here.base_rate, most=HEADLINE, tokens=120)
    yield Row(f"- {name(here.symbol)}: {rate}", 0)
    for rank, line in enumerate(here.nearest, start=1):
        yield Row(f"- nearest: {line.text}", rank)
    for rank, line in enumerate(here.warnings, start=1):
        yield Row(f"- warning: {line.text}", rank)
