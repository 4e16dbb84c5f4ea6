"""Reading trades for the lab: any file that can be imported, through the importers, into a store in memory."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from backsight.core.context import ContextVector
from backsight.core.copies import copy_with
from backsight.core.errors import Invalid, NotFound
from backsight.core.instants import EPOCH
from backsight.core.market import Bar, bars_closed_by
from backsight.core.observation import context_of_closed
from backsight.core.portfolio import Mode
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Trade
from backsight.importers.bars import read_bars, read_trader_bars
from backsight.importers.formats import head_of
from backsight.importers.registry import FORMATS, chosen_format
from backsight.lab.trades import LabTrades, lab_trades
from backsight.memory import Memory, open_simulation
from backsight.runtime.clock import SimulatedClock

LONG_AFTER = EPOCH + timedelta(days=36_500)
"""The clock of the import: after every trade of a file. A trade's own dates decide what was known at its entry."""
JSON_LINES = (".jsonl", ".ndjson")
PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LabFiles:
    """The files of a run as a user names them."""

    trades: tuple[Path, ...]
    """One file, or several that are replayed together."""
    bars: tuple[Path, ...] = ()
    format: str | None = None
    mode: Mode | None = None
    timezone: str | None = None
    currency: str | None = None
    strategy_name: str | None = None
    columns: Mapping[str, str] | None = None
    start_equity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabData:
    """Trades to replay, bars for agents, and what identifies the files."""

    trades: LabTrades
    bars: Mapping[str, Sequence[Bar]]
    digest: str
    """SHA-256 over the content of all files."""
    name: str


def load(files: LabFiles) -> LabData:
    """Import the files into a store in memory, and read their closed trades from it."""
    for path in (*files.trades, *files.bars):
        if not path.is_file():
            raise NotFound(f"no file {str(path)!r}; check the path", field="trades")
    bars = _bars(files)
    notes: list[str] = []
    with open_simulation(SimulatedClock(LONG_AFTER), actor="lab") as memory:
        for path in files.trades:
            notes += _import(memory, path, files)
        closed = [_with_context(trade, bars) for trade in _closed_trades(memory)]
        notes += _open_note(memory)
    made = lab_trades(closed, start_equity=files.start_equity)
    if not made.trades:
        raise Invalid(
            " ".join(["no closed trade with prices in the files; give an export that has the exits.", *notes]),
            field="trades",
        )
    return LabData(
        trades=replace(made, notes=(*notes, *made.notes)),
        bars=bars,
        digest=_digest([*files.trades, *files.bars]),
        name=", ".join(path.name for path in files.trades),
    )


def _import(memory: Memory, path: Path, files: LabFiles) -> list[str]:
    """Import one file of fills, trades or positions; what was assumed or left out, in sentences."""
    mode: Mode = files.mode or "sim"
    columns = dict(files.columns) if files.columns else None
    if is_position_log(path):
        bars = str(files.bars[0]) if files.bars else None
        log = memory.import_positions(
            path=str(path), timezone=files.timezone or "UTC", bars=bars, currency=files.currency or "USD", mode=mode
        )
        return [f"{log.deployment.name}: {count_of(log.closed, 'closed trade')} from {log.added} rows of positions."]
    rows = _rows_of(path, files)
    if rows == "fills":
        filled = memory.import_fills(
            path=str(path),
            format=files.format,
            mode=mode,
            currency=files.currency,
            timezone=files.timezone,
            columns=columns,
            skip_broken=True,
        )
        return [filled.message, *filled.notes]
    imported = memory.import_trades(
        path=str(path),
        format=files.format,
        mode=mode,
        strategy_name=files.strategy_name or path.stem,
        timezone=files.timezone,
        columns=columns,
        skip_broken=True,
    )
    return [f"{count_of(imported.added, 'trade')} imported from {path.name}.", *imported.notes]


def is_position_log(path: Path) -> bool:
    """Whether a file is a log of positions: JSON Lines with a date and positions."""
    if path.suffix.casefold() not in JSON_LINES:
        return False
    with path.open(encoding="utf-8") as lines:
        try:
            first = json.loads(next(lines, "null"))
        except ValueError:
            return False
    return isinstance(first, dict) and {"date", "positions"} <= first.keys()


def _rows_of(path: Path, files: LabFiles) -> str:
    """Whether a file has fills or trades; a table with the arguments of remember_trade has trades."""
    if files.format is None and not files.columns:
        fitting = [each for each in FORMATS if each.recognises(head_of(path))]
        if not fitting:
            return "trades"
        special = [each for each in fitting if not each.generic]
        if not special:
            return "trades" if any(each.rows == "trades" for each in fitting) else "fills"
    return chosen_format(path, files.format, columns=files.columns).rows


def _closed_trades(memory: Memory) -> list[Trade]:
    trades: list[Trade] = []
    cursor: str | None = None
    while True:
        page = memory.list_trades(mode="all", limit=PAGE, cursor=cursor)
        trades += page.trades
        cursor = page.next_cursor
        if cursor is None:
            return trades


def _open_note(memory: Memory) -> list[str]:
    still_open = memory.list_trades(mode="all", status="open", limit=PAGE)
    count = len(still_open.trades)
    if still_open.next_cursor is not None:
        return [f"{count} or more trades are still open at the end of the files, and are left out."]
    verb = "is" if count == 1 else "are"
    return [f"{count_of(count, 'trade')} still open at the end of the files {verb} left out."] if count else []


def _bars(files: LabFiles) -> dict[str, Sequence[Bar]]:
    bars: dict[str, Sequence[Bar]] = {}
    for path in files.bars:
        if path.suffix.casefold() in JSON_LINES:
            bars |= read_trader_bars(path, default_timezone=files.timezone or "UTC").bars
        else:
            bars |= read_bars(path, timezone=files.timezone or "UTC").bars
    return bars


def _with_context(trade: Trade, bars: Mapping[str, Sequence[Bar]]) -> Trade:
    """A trade whose context at entry is completed from the bars that had closed by then."""
    series, at = bars.get(trade.symbol), trade.opened_at
    if not series or at is None or trade.context.regime is not None:
        return trade
    closed = bars_closed_by(series, at=at)
    if not closed:
        return trade
    market = context_of_closed(trade.symbol, at=at, closed={closed[0].interval_seconds: closed})
    return copy_with(trade, context=_completed(trade.context, market))


def _completed(context: ContextVector, market: ContextVector) -> ContextVector:
    missing = {name: getattr(market, name) for name in market.known if getattr(context, name) is None}
    return copy_with(context, **missing) if missing else context


def _digest(paths: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
