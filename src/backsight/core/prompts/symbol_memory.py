"""The prompt section "What usually happens here": base rates and recommended risk by direction, and similar trades.

The section is about the decision at hand: for each direction that may be taken, how often trades like it won, what they
brought, and which share of equity to risk on it. Single past trades follow, first the most similar whatever came of
them, then losses in similar contexts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.numbers import signed
from backsight.core.portfolio import Direction
from backsight.core.prompts.amounts import span
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.prompts.trades import exit_in_words, minutes_held
from backsight.core.recall.base_rate import (
    TOO_LITTLE,
    BaseRate,
    BaseRateLevel,
    LevelName,
    LevelOutcome,
    breadth,
    coverage_in_words,
    reaches,
    trades_in_words,
    with_joined,
)
from backsight.core.recall.rank import RecalledMemory, outcome_in_words
from backsight.core.recommended_size import PositionSize
from backsight.core.text.untrusted_text import name, quote, shorten
from backsight.core.trades.trade import Trade, unit_suffix

HEADING = "## What usually happens here"
NOTHING = "nothing remembered"
NEAREST, WARNINGS = 3, 3
UNLIKE = 0.2
"""Episodes of at most this similarity are left out."""
SETUP = 48
"""Characters of a trade's setup."""
SYMBOL_TOKENS = 12
HEADLINE, REASON = 260, 230
"""Characters of a base rate, and of the reason for a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionOutlook:
    """What trades in one direction brought, and the share of equity to risk on the next one."""

    direction: Direction
    base_rate: BaseRate | None
    """None if the strategy has no trades."""
    size: PositionSize | None
    """None if no size was computed."""

    @property
    def text(self) -> str:
        """The base rate and the recommended risk in words."""
        rate = NOTHING if self.base_rate is None else rate_in_words(self.base_rate)
        risk = "" if self.size is None else f" {self.size.answer}. "
        reason = "" if self.size is None else shorten(self.size.reason, most=REASON, tokens=75)
        return f"{self.direction}: {shorten(rate, most=HEADLINE, tokens=80)}.{risk}{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledLine:
    """One recalled episode: when, which way, what came of it and how it ended, and its setup."""

    id: str
    at: datetime
    """When the trade was entered; the instant of a call, or of a trade whose entry is not known, is its end."""
    symbol: str
    direction: Direction | None
    result: str
    """The outcome with its unit."""
    ending: str = ""
    """How the trade ended, after how long, and how far it went the other way."""
    setup: str | None = None
    row: int | None = None
    """The number of its row among the recent trades; None if it has none."""

    @property
    def text(self) -> str:
        setup = f": {quote(self.setup, most=SETUP, tokens=20)}" if self.setup and self.setup.strip() else ""
        row = "" if self.row is None else f" (#{self.row})"
        parts = (f"{self.at:%Y-%m-%d}", name(self.symbol, tokens=SYMBOL_TOKENS), self.direction, self.result)
        return f"{' '.join(part for part in parts if part)}{row}{self.ending}{setup}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolMemory:
    """What is remembered of one symbol in the present context."""

    symbol: str
    joined: tuple[str, ...] = ()
    """Other symbols with the same underlying, whose trades count, too."""
    outlooks: tuple[DirectionOutlook, ...] = ()
    nearest: tuple[RecalledLine, ...] = ()
    """Ranked by similarity and recency; the outcome does not count."""
    warnings: tuple[RecalledLine, ...] = ()

    @property
    def is_known(self) -> bool:
        """True if there is anything to show."""
        rated = any(outlook.base_rate is not None for outlook in self.outlooks)
        return rated or bool(self.nearest or self.warnings)


def chosen_episodes(
    nearest: Sequence[RecalledMemory], warnings: Sequence[RecalledMemory]
) -> tuple[list[RecalledMemory], list[RecalledMemory]]:
    """The similar episodes to show; a warning that is also among the nearest is shown once."""
    similar = [memory for memory in nearest if memory.factors.Sim > UNLIKE][:NEAREST]
    similar_ids = {memory.id for memory in similar}
    others = [memory for memory in warnings if memory.factors.Sim > UNLIKE and memory.id not in similar_ids]
    return similar, others[:WARNINGS]


def recalled_line(memory: RecalledMemory, trade: Trade | None, *, row: int | None = None) -> RecalledLine:
    """The line of a recalled episode; `trade` is its trade, None for a call."""
    episode = memory.episode
    entry_reason = None if trade is None else trade.entry.reason
    result = "no outcome" if episode.outcome is None else outcome_in_words(episode.outcome)
    return RecalledLine(
        id=memory.id,
        at=episode.opened_at or episode.ended_at,
        symbol=episode.symbol,
        direction=episode.direction,
        result=result,
        ending="" if trade is None else _ending(trade),
        setup=entry_reason or episode.reflection or episode.reason or episode.market_context,
        row=row,
    )


def _ending(trade: Trade) -> str:
    """The exit, the holding time, and the best result of a loser or the worst of a winner, in R."""
    minutes = minutes_held(trade)
    hold = "" if minutes is None else f" after {span(minutes)}"
    best, worst = trade.mfe_r, trade.mae_r
    if trade.won:
        reach = "" if worst is None else f", never below {signed(worst)}R"
    else:
        reach = "" if best is None else f", never above {signed(best)}R"
    return f"{exit_in_words(trade.exit_reason) or ','}{hold}{reach}"


def rate_in_words(rate: BaseRate) -> str:
    """The headline of a base rate in a sentence: how often such trades won, what they brought, how sure that is."""
    level = rate.headline
    categories = {each.name: each.value for each in rate.levels[: rate.levels.index(level) + 1]}
    trades = f"{breadth(rate, is_named=False)}{_counted(level, categories)}"
    if level.win_rate is None or level.win_rate_interval is None or not reaches(level.effective_n, TOO_LITTLE):
        return f"{trades}, too little to say"
    low, high = (f"{100.0 * end:.0f}" for end in level.win_rate_interval)
    parts = [f"{trades}: {100.0 * level.win_rate:.0f}% won (likely {low} to {high}%)"]
    parts += [_mean(mean, level.n) for mean in level.outcomes[:1]]
    if level.withheld is not None:
        parts.append(f"no mean, since {level.withheld}")
    parts.append(f"worth about {level.effective_n:.0f} independent trades")
    if level.open:
        parts.append(f"with {level.open} open at the last mark")
    return ", ".join(parts)


def _counted(level: BaseRateLevel, categories: Mapping[LevelName, str | None]) -> str:
    """The number of trades and what they have in common, direction and symbol aside, which the row begins with."""
    words = trades_in_words({name: value for name, value in categories.items() if name not in ("direction", "symbol")})
    counted = f"{level.n} {words if level.n != 1 else words.replace('trades', 'trade', 1)}"
    if "symbol" in categories:
        return counted
    return f"{counted} in any symbol" if "direction" in categories else f"{counted} in any symbol and direction"


def _mean(mean: LevelOutcome, trades: int) -> str:
    """A mean outcome with its interval, and over how many of the trades it is.

    >>> _mean(LevelOutcome(unit="R", n=63, open=0, mean=0.21, interval=(0.03, 0.39)), 63)
    'mean +0.21R (likely +0.03 to +0.39R)'
    """
    scale, unit = (100.0 if mean.unit == "pct" else 1.0), unit_suffix(mean.unit)
    text, coverage = f"mean {signed(scale * mean.mean, 2)}{unit}", coverage_in_words(mean, trades)
    if mean.interval is None:
        return f"{text}{coverage}"
    low, high = (signed(scale * end, 2) for end in mean.interval)
    margin = "margin unknown" if low == high else f"likely {low} to {high}{unit}"
    return f"{text} ({margin}){coverage}"


def what_usually_happens(memories: Sequence[SymbolMemory]) -> Section:
    """Outlook, nearest episodes and warnings of each symbol; outlooks are dropped last."""
    return section_of("what_usually_happens", HEADING, (row for memory in memories for row in _rows(memory)))


def _rows(memory: SymbolMemory) -> Iterator[Row]:
    symbol = name(memory.symbol, tokens=SYMBOL_TOKENS)
    if not memory.is_known:
        yield Row(f"- {symbol}: {NOTHING}", 0)
        return
    symbol = with_joined(symbol, tuple(name(other, tokens=SYMBOL_TOKENS) for other in memory.joined))
    for outlook in memory.outlooks:
        yield Row(f"- {symbol} {outlook.text}", 0)
    yield from _numbered("nearest", memory.nearest)
    yield from _numbered("warning", memory.warnings)


def _numbered(label: str, lines: Iterable[RecalledLine]) -> Iterator[Row]:
    for rank, line in enumerate(lines, start=1):
        yield Row(f"- {label}: {line.text}", rank)
