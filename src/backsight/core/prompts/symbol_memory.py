"""The prompt section "What usually happens here": what to expect of each direction in a symbol, and similar trades.

The section is about the decision at hand. A block for each symbol says what the market is like now, then for each
direction what a trade is expected to bring, how many such trades won, and which share of equity to risk. Single past
trades follow, first the most similar whatever came of them, then losses in similar contexts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from backsight.core.context import ContextVector
from backsight.core.instants import nearest_minute
from backsight.core.numbers import signed
from backsight.core.portfolio import Direction
from backsight.core.prompts.amounts import figure, in_r, share, span
from backsight.core.prompts.sections import MOST_SYMBOLS, Row, Section, section_of, symbols_ceiling
from backsight.core.prompts.trades import EXIT_TOKENS, EXITS, exit_in_words, minutes_held
from backsight.core.recall.base_rate import with_joined
from backsight.core.recall.rank import RecalledMemory, outcome_in_words
from backsight.core.recall.won_counts import AllTrades, WonCount
from backsight.core.recommended_size import FEWEST_TRADES, PositionSize
from backsight.core.regime import Regime, Session
from backsight.core.text.counts import count_of
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import name, quote, shorten
from backsight.core.trades.trade import Trade

HEADING = "## What usually happens here"
OWN_RISK = "your strategy's own risk applies"
BRIEF_FROM = 3
"""Symbols from which on the lines of the directions do not repeat what applies without a recommendation."""
NEAREST, WARNINGS = 3, 3
UNLIKE = 0.2
"""Episodes of at most this similarity are left out, but for the most similar one."""
SYMBOL_TOKENS = 12
FIRST_RANK, LATER_RANK = 1, 2
"""Ranks of rows: directions give way last, then the first similar trade and the first warning of each symbol."""
RECALLED_TOKENS = 60
"""The most tokens of a similar trade, with its newline; fewer where that would cost another symbol its first one."""
FEWEST_RECALLED_TOKENS = 34
FEWEST_SETUP_TOKENS = 6
"""The fewest tokens of a setup, for which the reach of a trade and the words of its exit give way."""
SHORT_EXIT_TOKENS = 5
LEAST_SCALED = 0.995
"""The risk appetite from which on the drawdown is not named."""
FEWEST_SITUATION = 5
"""Trades from which on a narrower situation is counted instead of a broader one."""
SESSIONS: Mapping[Session, str] = {
    "asia": "Asian session",
    "london": "London session",
    "overlap": "London and New York overlap",
    "newyork": "New York session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionOutlook:
    """What trades in one direction brought, and the share of equity to risk on the next one."""

    direction: Direction
    counts: tuple[WonCount, ...]
    """From the direction in the symbol to narrower situations."""
    size: PositionSize

    def text(self, *, is_brief: bool = False) -> str:
        """What is expected, how many such trades won, and the recommendation, whose figures cannot disagree."""
        known = ", ".join([*self._expected, *self._counted])
        return f"{self.direction}: {known}: {recommendation(self.size, is_brief=is_brief)}"

    @property
    def _expected(self) -> Iterator[str]:
        interval = self.size.interval
        if self.size.mean is not None and interval is not None and self.size.n >= FEWEST_TRADES:
            low, high = (in_r(end) for end in interval)
            yield f"{in_r(self.size.mean)} expected ({low.removesuffix('R')} to {high})"

    @property
    def _counted(self) -> Iterator[str]:
        """The count of the direction, and that of the narrowest situation with enough trades, else of the next one."""
        whole, *narrower = self.counts
        yield whole.text
        enough = [count for count in narrower if count.n >= FEWEST_SITUATION]
        chosen = enough[-1] if enough else narrower[0] if narrower else whole
        if chosen.n < whole.n:
            yield chosen.text


def recommendation(size: PositionSize, *, is_brief: bool = False) -> str:
    """The recommendation in words, never a bare 0%; where space is short, what applies without one is said elsewhere.

    >>> from backsight.core.sizing import position_size
    >>> recommendation(position_size([]))
    "no recommendation (no trades; 10 are needed): your strategy's own risk applies"
    """
    risk = share(size.open_risk.share)
    match size.kind:
        case "sized":
            less = f" ({risk} is already at risk on this signal)" if size.open_risk.share else ""
            return f"risk {share(size.recommended)} of equity{less}"
        case "no_recommendation":
            return f"no recommendation ({_why_none(size)}){'' if is_brief else f': {OWN_RISK}'}"
        case "no_edge":
            sure = min(99.0, 100.0 * (1.0 - (size.p_above_zero or 0.0)))
            return f"no edge seen here: the expected result is below 0 ({sure:.0f}% sure)"
        case "not_now":
            if size.risk_appetite == 0.0:
                return "not now: the risk appetite is 0"
            return f"not now: {risk} is already at risk on this signal"
    assert_never(size.kind)


def _why_none(size: PositionSize) -> str:
    if size.mean is None:
        return "results of losing trades are missing"
    if size.n >= FEWEST_TRADES:
        return "too unsure"
    trades = count_of(size.n, "trade") if size.n else "no trades"
    return f"{trades}{' with a result in R' if size.unknown else ''}; {FEWEST_TRADES} are needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledLine:
    """One recalled episode: when, which way, what came of it and how it ended, and its setup."""

    id: str
    at: datetime
    """When the trade ended, as in its row among the recent trades; the instant at which a call was judged."""
    symbol: str
    direction: Direction | None
    result: str
    """The outcome with its unit."""
    exit_reason: str | None = None
    hold: str = ""
    reach: str = ""
    """How far the trade went the other way."""
    setup: str | None = None
    row: int | None = None
    """The number of its row among the recent trades; None if it has none."""

    def text(self, label: str, *, block: str, tokens: int) -> str:
        """The row below the block of a symbol, in at most so many tokens: the setup is cut, then the reach left out."""
        row = "" if self.row is None else f" (#{self.row})"
        other = None if self.symbol == block else name(self.symbol, tokens=SYMBOL_TOKENS)
        parts = (f"{self.at:%Y-%m-%d}", other, self.direction, self.result)
        head = f"- {label}: {' '.join(part for part in parts if part)}{row}"
        setup = self.setup.strip() if self.setup else ""
        for ending in (
            f"{self._ending(EXIT_TOKENS)}{self.reach}",
            *map(self._ending, (EXIT_TOKENS, SHORT_EXIT_TOKENS)),
        ):
            left = tokens - estimate(f"{head}{ending}: \n")
            if left >= (FEWEST_SETUP_TOKENS if setup else 0):
                return f"{head}{ending}: {quote(setup, tokens=left)}" if setup else f"{head}{ending}"
        return f"{head}{self._ending(SHORT_EXIT_TOKENS)}"

    def _ending(self, tokens: int) -> str:
        """The exit and the holding time."""
        exit_words = exit_in_words(self.exit_reason, tokens=tokens) or ("," if self.hold else "")
        return f"{exit_words}{f' after {self.hold}' if self.hold else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolMemory:
    """What is remembered of one symbol in the present context."""

    symbol: str
    joined: tuple[str, ...] = ()
    """Other symbols with the same underlying, whose trades count, too."""
    context: ContextVector = field(default_factory=ContextVector)
    """The market now."""
    trades: AllTrades = field(default_factory=AllTrades)
    """The trades that the outlooks rest on; fewer than those of other symbols where results in this one fell."""
    outlooks: tuple[DirectionOutlook, ...] = ()
    nearest: tuple[RecalledLine, ...] = ()
    """Ranked by similarity and recency; the outcome does not count."""
    warnings: tuple[RecalledLine, ...] = ()


REGIMES: Mapping[Regime, str] = {"volatile": "wide swings without a trend"}
"""Regimes whose names would contradict the volatility beside them."""


def now_in_words(context: ContextVector) -> str:
    """The market as memory classifies it; what is not known is left out.

    >>> now_in_words(ContextVector(regime="volatile", volatility_regime="normal"))
    'wide swings without a trend, normal volatility'

    >>> now_in_words(ContextVector(regime="ranging", volatility_regime="normal", atr_d1=31.2, price=2840.0))
    'ranging, normal volatility, daily ATR 31.2 = 1.1% of price'
    """
    regime, volatility = context.regime, context.volatility_regime
    parts = [
        None if regime is None else REGIMES.get(regime, regime.replace("_", " ")),
        None if volatility is None else f"{volatility} volatility",
        None if context.session is None else SESSIONS[context.session],
        _atr("daily", context.atr_d1, context.price) or _atr("hourly", context.atr_h1, context.price),
    ]
    return ", ".join(part for part in parts if part)


def _atr(bars: str, atr: float | None, price: float | None) -> str | None:
    if atr is None:
        return None
    return f"{bars} ATR {figure(atr)}{f' = {share(atr / price)} of price' if price else ''}"


def chosen_episodes(
    nearest: Sequence[RecalledMemory], warnings: Sequence[RecalledMemory]
) -> tuple[list[RecalledMemory], list[RecalledMemory]]:
    """The similar episodes to show, at least one of each kind where there is one; none is shown twice.

    A warning that is also the nearest trade is a warning only if there is no other.
    """
    similar, losses = _similar(nearest)[:NEAREST], _similar(warnings)[:WARNINGS]
    first = similar[0].id if similar else None
    others = [memory for memory in losses if memory.id != first]
    warned = {memory.id for memory in others[:1]}
    near = [memory for memory in similar if memory.id not in warned]
    near_ids = {memory.id for memory in near}
    return near, [memory for memory in others if memory.id not in near_ids]


def _similar(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    return [memory for rank, memory in enumerate(memories) if rank == 0 or memory.factors.Sim > UNLIKE]


def recalled_line(memory: RecalledMemory, trade: Trade | None, *, row: int | None = None) -> RecalledLine:
    """The line of a recalled episode; `trade` is its trade, None for a call."""
    episode = memory.episode
    entry_reason = None if trade is None else trade.entry.reason
    return RecalledLine(
        id=memory.id,
        at=episode.ended_at,
        symbol=episode.symbol,
        direction=episode.direction,
        result="no outcome" if episode.outcome is None else shorten(outcome_in_words(episode.outcome), tokens=10),
        exit_reason=None if trade is None else trade.exit_reason,
        hold="" if trade is None or minutes_held(trade) is None else span(minutes_held(trade)),
        reach="" if trade is None else _reach(trade),
        setup=entry_reason or episode.reflection or episode.reason or episode.market_context,
        row=row,
    )


def _reach(trade: Trade) -> str:
    """The best result of a loser, or the worst of a winner, in R."""
    if trade.won:
        return "" if trade.mae_r is None else f", never below {signed(trade.mae_r)}R"
    return "" if trade.mfe_r is None else f", never above {signed(trade.mfe_r)}R"


def what_usually_happens(
    memories: Sequence[SymbolMemory], *, others: Sequence[str] = (), uncounted: str = ""
) -> Section:
    """A block for each symbol: the market now, each direction, similar trades.

    `others` are symbols without a block; `uncounted` is the line of the trades that none of the figures counts yet.
    Directions are dropped last, then the first similar trade and the first warning of each symbol.
    """
    ceiling = symbols_ceiling(len(memories))
    fixed = [[Row(line) for line in _block(memory, memories)] for memory in memories]
    shared, named = [Row(line) for line in _shared(memories, uncounted)], [Row(line) for line in _named(others)]
    used = sum(estimate(f"{row.text}\n") for rows in (*fixed, shared, named) for row in rows) + estimate(f"{HEADING}\n")
    first = sum(bool(memory.nearest) + bool(memory.warnings) for memory in memories)
    tokens = min(RECALLED_TOKENS, max(FEWEST_RECALLED_TOKENS, (ceiling - used - 8) // max(1, first)))
    rows = [row for memory, rows in zip(memories, fixed, strict=True) for row in (*rows, *_recalled(memory, tokens))]
    return section_of("what_usually_happens", HEADING, [*shared, *rows, *named], ceiling=ceiling)


MOST_UNCOUNTED = 3
"""Trades named as not counted yet; more are counted."""


def uncounted_trades(trades: Sequence[Trade]) -> str:
    """A line that names trades that closed right before the prompt, which the figures of the section do not count.

    >>> uncounted_trades([])
    ''
    """
    named = [_uncounted(trade) for trade in trades[:MOST_UNCOUNTED]]
    more = [f"{len(trades) - MOST_UNCOUNTED} more"] if len(trades) > MOST_UNCOUNTED else []
    return f"- not counted yet: {'; '.join([*named, *more])}" if named else ""


def _uncounted(trade: Trade) -> str:
    """Symbol, direction, result and ending of a trade with the time of its exit."""
    result = "no outcome" if trade.outcome is None else outcome_in_words(trade.outcome)
    ending = EXITS.get(trade.exit_reason or "", "closed")
    time = "" if trade.closed_at is None else f" {nearest_minute(trade.closed_at):%H:%M}"
    return f"{name(trade.symbol, tokens=SYMBOL_TOKENS)} {trade.direction} {result}, {ending}{time}"


def _shared(memories: Sequence[SymbolMemory], uncounted: str) -> Iterator[str]:
    """What holds for all symbols."""
    if memories:
        yield _all_trades(memories, uncounted)
        yield from [uncounted] if uncounted else []


def _all_trades(memories: Sequence[SymbolMemory], uncounted: str) -> str:
    trades = max((memory.trades for memory in memories), key=lambda trades: trades.n, default=AllTrades())
    if not trades.n and not trades.unknown:
        return f"- no closed trades{' counted' if uncounted else ''} yet: no recommendation, {OWN_RISK}"
    unknown = f"; R is unknown for {trades.unknown}{' more' if trades.n else ''}" if trades.unknown else ""
    fallen = f"; {trades.left_out} before results fell are left out" if trades.left_out else ""
    appetites = {outlook.size.risk_appetite for memory in memories for outlook in memory.outlooks}
    appetite = min(appetites, default=1.0)
    scaled = f"; recommended risk already × {appetite:.2f} for the drawdown" if appetite < LEAST_SCALED else ""
    own_risk = f"; without a recommendation {OWN_RISK}" if len(memories) >= BRIEF_FROM else ""
    session = _shared_session(memories)
    now = "" if session is None else f"; now: {SESSIONS[session]}"
    return f"- all trades: {trades.won} of {trades.n} won{unknown}{fallen}{scaled}{own_risk}{now}"


def _shared_session(memories: Sequence[SymbolMemory]) -> Session | None:
    """The session now where several symbols would repeat it."""
    sessions = {memory.context.session for memory in memories}
    return sessions.pop() if len(memories) >= BRIEF_FROM and len(sessions) == 1 else None


def _block(memory: SymbolMemory, memories: Sequence[SymbolMemory]) -> Iterator[str]:
    """The market now, and each direction if there are trades."""
    symbol = name(memory.symbol, tokens=SYMBOL_TOKENS)
    joined = with_joined(symbol, tuple(name(other, tokens=SYMBOL_TOKENS) for other in memory.joined))
    context = memory.context if _shared_session(memories) is None else replace(memory.context, session=None)
    whole, now = max(each.trades.n for each in memories), now_in_words(context)
    fallen = f" (last {memory.trades.n} trades, since results fell)" if memory.trades.n < whole else ""
    has_directions = bool(memory.trades.n or memory.trades.unknown)
    if now or fallen or memory.joined or (memory.nearest and not has_directions):
        yield f"- {shorten(joined, tokens=3 * SYMBOL_TOKENS)}{fallen} now: {now or 'nothing known'}"
    if has_directions:
        is_brief = len(memories) >= BRIEF_FROM
        yield from (f"- {symbol} {outlook.text(is_brief=is_brief)}" for outlook in memory.outlooks)


def _recalled(memory: SymbolMemory, tokens: int) -> Iterator[Row]:
    is_both = memory.nearest and not memory.warnings and memory.nearest[0].result.startswith("-")
    labels = ("nearest", memory.nearest), ("warning", memory.warnings)
    for label, lines in labels:
        for rank, line in enumerate(lines):
            both = f"{label} and warning" if is_both and rank == 0 else label
            text = line.text(both, block=memory.symbol, tokens=tokens)
            yield Row(text, FIRST_RANK if rank == 0 else LATER_RANK + rank, id=line.id)


def _named(symbols: Sequence[str]) -> Iterator[str]:
    """The symbols beyond those with a block."""
    if symbols:
        names = ", ".join(name(symbol, tokens=SYMBOL_TOKENS) for symbol in symbols)
        yield f"- without a block here, since more than {MOST_SYMBOLS} may be traded: {shorten(names, tokens=24)}"
