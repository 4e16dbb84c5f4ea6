"""Databases of the older three-layer scheme: its trades, its patterns, and the reasons why other rows are left out.

    trade_records  id, timestamp, symbol, direction, strategy; confidence, reasoning, market_context (JSON or text),
                   exit_timestamp, exit_price, pnl, pnl_r, hold_duration (minutes), exit_reasoning, lessons, tags, grade
    patterns       pattern_id, description, confidence, sample_size; strategy, symbol, metrics (JSON), source,
                   discovered_at

A table must have the columns before the semicolon. Times without an offset are in the given time zone; the scheme wrote
UTC. The file is opened read-only. Nothing is guessed. A row that lacks something a trade or a belief needs is left out,
and the report has the reason. A value that cannot be used, like an unknown regime, is dropped with a note.

The third layer, adjustments of parameters, cannot be converted: an adjustment has no condition under which it holds.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeVar

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid, NotFound, Unavailable
from backsight.core.ids import canonical_json
from backsight.core.memory.conditions import Condition, parse_condition
from backsight.core.portfolio import Direction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.trades.report import TradeReport
from backsight.importers.files import instant_of, number_of, zone_named

TRADES, PATTERNS = "trade_records", "patterns"
NEEDED: Mapping[str, tuple[str, ...]] = {
    TRADES: ("id", "timestamp", "symbol", "direction", "strategy"),
    PATTERNS: ("pattern_id", "description", "confidence", "sample_size"),
}
ADJUSTMENT = "an adjustment has no condition under which it holds; make a plan with a condition instead"
DIRECTIONS: Mapping[str, Direction] = {"long": "long", "buy": "long", "short": "short", "sell": "short"}
LABELS: Mapping[str, tuple[str, ...]] = {
    "regime": REGIMES,
    "volatility_regime": VOLATILITY_REGIMES,
    "session": SESSIONS,
}
SESSION_SYNONYMS = {"asian": "asia", "european": "london", "ny": "newyork", "new_york": "newyork", "us": "newyork"}
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "atr_d1": ("atr_d1", "atr_daily"),
    "atr_h1": ("atr_h1", "atr_hourly"),
    "atr_m5": ("atr_m5",),
    "spread_points": ("spread_points",),
}
"""Number fields of a context vector, and their names in the scheme. A plain `atr` names no interval and stays text."""
ENTRY_PRICES = ("entry_price", "price")
MONEY_METRICS: Mapping[str, float] = {
    "avg_pnl_r": 0.0,
    "avg_r": 0.0,
    "expectancy": 0.0,
    "avg_pnl": 0.0,
    "total_pnl": 0.0,
    "profit_factor": 1.0,
}
"""Metrics of a pattern that say whether its trades earn money, each with the value at which they break even."""
LONGEST_SYMBOL, LONGEST_NAME, LONGEST_ID, LONGEST_PROSE = 64, 100, 200, 10_000
MOST_TAGS, LONGEST_TAG = 32, 64

Row = Mapping[str, Any]
About = Literal["mean_outcome", "win_rate"]
Claim = Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyTrade:
    """A closed trade of the older scheme."""

    id: str
    strategy_name: str
    closed_at: datetime
    report: TradeReport
    """R is never computed: the size of a lot does not say what a point was worth. If no exit time is known, the time of
    the decision is the close, and the time of the entry is None."""

    @property
    def idempotency_key(self) -> str:
        """The key under which the trade is stored, the same at every read of the file."""
        return f"legacy:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyBelief:
    """A pattern of the older scheme that can become a belief."""

    id: str
    proposition: str
    domain: Mapping[str, str]
    """The parts that the pattern names, of strategy, symbol, direction, regime, volatility_regime and session."""
    conditions: Condition | None
    """Validity conditions in the grammar of plans; None if the pattern has none."""
    about: About
    """The mean outcome, unless the metrics have a win rate and no amount of money."""
    claims: Claim
    """Whether the metrics are above or below 0, or one half for a win rate; `above` if they have neither."""
    alpha: float
    """1 + confidence · sample size."""
    beta: float
    """1 + (1 − confidence) · sample size."""
    sample_size: int
    stated_source: str | None
    discovered_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A remark on one row of the file."""

    table: str
    row: str
    """The row's id, or its number if it has no id."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyReport:
    """The number of rows in the file, and the rows and values that could not be converted."""

    rows: Mapping[str, int]
    """The number of rows of each table that was read."""
    left_out: tuple[Remark, ...]
    """Rows that could not be converted, with the reason."""
    notes: tuple[Remark, ...]
    """Values that were dropped from converted rows, with the reason."""
    tables_ignored: tuple[str, ...]
    """Tables that hold nothing to convert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyRead:
    """The content of a file: trades in the order of their closes, beliefs by id, and the report."""

    path: Path
    trades: tuple[LegacyTrade, ...]
    beliefs: tuple[LegacyBelief, ...]
    report: LegacyReport


class _Unconvertible(Exception):
    """A row cannot be converted; the text is the reason."""


_Item = TypeVar("_Item", LegacyTrade, LegacyBelief)


def read_legacy(path: str | Path, *, timezone: str = "UTC") -> LegacyRead:
    """Read a database of the older scheme; the same file always gives the same result."""
    file, zone = Path(path), zone_named(timezone)
    tables = _tables(file)
    tables_read = {name: rows for name, rows in tables.items() if rows is not None}
    trades, left_trades, trade_notes = _converted(tables_read, TRADES, _trade, zone=zone)
    beliefs, left_patterns, pattern_notes = _converted(tables_read, PATTERNS, _belief, zone=zone)
    return LegacyRead(
        path=file,
        trades=tuple(sorted(trades, key=lambda trade: (trade.closed_at, trade.id))),
        beliefs=tuple(sorted(beliefs, key=lambda belief: belief.id)),
        report=LegacyReport(
            rows={name: len(rows) for name, rows in tables_read.items()},
            left_out=(*left_trades, *left_patterns, *_adjustments(tables_read)),
            notes=(*trade_notes, *pattern_notes),
            tables_ignored=tuple(name for name, rows in tables.items() if rows is None),
        ),
    )


def _tables(file: Path) -> dict[str, list[Row] | None]:
    """The rows of each table by its name; None for a table with nothing to convert."""
    if not file.exists():
        raise NotFound(f"there is no file {file}; check its name and folder", field="path")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            _check_tables(file, names)
            return {name: _rows(connection, name, file=file) for name in sorted(names)}
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise Unavailable(f"{file} is being written; try again when the writer is done", field="path") from None
        raise Invalid(f"{file} cannot be read ({error}); give an SQLite database", field="path") from None


def _check_tables(file: Path, names: Sequence[str]) -> None:
    if TRADES not in names and PATTERNS not in names:
        tables = ", ".join(sorted(names)) or "none"
        message = f"{file} has neither {TRADES} nor {PATTERNS}; its tables: {tables}"
        raise Invalid(f"{message}. Give a database of the older scheme", field="path")


def _rows(connection: sqlite3.Connection, table: str, *, file: Path) -> list[Row] | None:
    if table not in NEEDED and not _is_adjustments(table):
        return None
    quoted = table.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - a name of the file itself, quoted
    columns = [column[0] for column in cursor.description]
    missing = [name for name in NEEDED.get(table, ()) if name not in columns]
    if missing:
        message = f"{file}: {table} has no column {', '.join(missing)}; it has {', '.join(columns)}"
        raise Invalid(f"{message}. Give a database of the older scheme", field="path")
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def _is_adjustments(table: str) -> bool:
    return "adjustment" in table.lower()


def _converted(
    tables: Mapping[str, Sequence[Row]], table: str, convert: Callable[[Row, tzinfo, list[str]], _Item], *, zone: tzinfo
) -> tuple[list[_Item], list[Remark], list[Remark]]:
    """The converted rows of a table, the remarks on rows left out, and the remarks on dropped values."""
    items: dict[str, _Item] = {}
    left_out: list[Remark] = []
    notes: list[Remark] = []
    key = NEEDED[table][0]
    for number, row in enumerate(tables.get(table, ()), start=1):
        row_id, dropped = _row_id(row, key, number), list[str]()
        try:
            item = convert(row, zone, dropped)
            if item.id in items:
                raise _Unconvertible("an earlier row has the same id; only the first is converted")
        except _Unconvertible as reason:
            left_out.append(Remark(table=table, row=row_id, reason=str(reason)))
            continue
        items[item.id] = item
        notes += [Remark(table=table, row=row_id, reason=reason) for reason in dropped]
    return list(items.values()), left_out, notes


def _adjustments(tables: Mapping[str, Sequence[Row]]) -> Iterator[Remark]:
    for table, rows in tables.items():
        if _is_adjustments(table):
            for number, row in enumerate(rows, start=1):
                yield Remark(table=table, row=_row_id(row, next(iter(row)), number), reason=ADJUSTMENT)


def _row_id(row: Row, key: str, number: int) -> str:
    value = row.get(key)
    return f"{value!s:.200}" if value not in (None, "") else f"number {number}"


def _trade(row: Row, zone: tzinfo, notes: list[str]) -> LegacyTrade:
    context, words = _json_or_text(row.get("market_context"))
    symbol = _line(row["symbol"], name="symbol", longest=LONGEST_SYMBOL)
    pnl = _number(row.get("pnl"))
    if pnl is None:
        raise _Unconvertible("no pnl: the trade is still open, or its result is not known")
    entry, exit_price = _entry_price(row, context), _number(row.get("exit_price"))
    if entry is None or exit_price is None:
        raise _Unconvertible(f"no {'entry' if entry is None else 'exit'} price")
    decided = _instant(row["timestamp"], zone=zone, name="timestamp")
    opened_at, closed_at = _times(row, decided, zone=zone, notes=notes)
    return LegacyTrade(
        id=_line(row["id"], name="id", longest=LONGEST_ID),
        strategy_name=_line(row["strategy"], name="strategy", longest=LONGEST_NAME),
        closed_at=closed_at,
        report=TradeReport(
            symbol=symbol,
            direction=_direction(row["direction"]),
            entry_price=entry,
            exit_price=exit_price,
            pnl=pnl,
            pnl_r=_number(row.get("pnl_r")),
            opened_at=opened_at,
            closed_at=closed_at,
            context=_context(context, notes).completed(symbol=symbol, price=entry, at=decided),
            market_context=_prose(notes, words, row.get("reasoning"), _unplaced(context)),
            confidence=_share(row.get("confidence"), notes),
            reflection=_prose(notes, row.get("lessons"), row.get("exit_reasoning")),
            tags=_tags(row, notes),
        ),
    )


def _belief(row: Row, zone: tzinfo, notes: list[str]) -> LegacyBelief:
    metrics, _ = _json_or_text(row.get("metrics"))
    domain, conditions = _domain(row, metrics, notes), _conditions(row.get("validity_conditions"), notes)
    if not domain and conditions is None:
        raise _Unconvertible("no domain: no strategy, symbol, direction, regime, volatility regime or session")
    confidence, size = _number(row["confidence"]), _number(row["sample_size"])
    if confidence is None or not 0 <= confidence <= 1:
        raise _Unconvertible(f"confidence {_short(row['confidence'])} is not a share from 0 to 1")
    if size is None or size < 0 or size != int(size):
        raise _Unconvertible(f"sample size {_short(row['sample_size'])} is not a whole number")
    proposition = _prose(notes, row["description"])
    if proposition is None:
        raise _Unconvertible("no description")
    about, claims = _claim(metrics, notes)
    return LegacyBelief(
        id=_line(row["pattern_id"], name="pattern_id", longest=LONGEST_ID),
        proposition=proposition,
        domain=domain,
        conditions=conditions,
        about=about,
        claims=claims,
        alpha=1.0 + confidence * size,
        beta=1.0 + (1.0 - confidence) * size,
        sample_size=int(size),
        stated_source=_prose(notes, row.get("source")),
        discovered_at=_discovered(row.get("discovered_at"), zone=zone, notes=notes),
    )


def _discovered(value: object, *, zone: tzinfo, notes: list[str]) -> datetime | None:
    try:
        return _instant(value, zone=zone, name="discovered_at")
    except _Unconvertible as reason:
        notes.append(f"{reason}; the belief counts as known from now on")
        return None


def _json_or_text(value: object) -> tuple[dict[str, Any], str | None]:
    """The content of a column that holds a JSON object or plain text: the object, or else the text."""
    if not isinstance(value, str):
        return {}, None
    try:
        content = json.loads(value, parse_constant=lambda _: None, parse_float=_number)
    except (ValueError, RecursionError):
        return {}, value
    if isinstance(content, dict):
        return content, None
    return {}, content if isinstance(content, str) else None


def _entry_price(row: Row, context: Mapping[str, Any]) -> float | None:
    """The price of the entry; the scheme wrote 0 for an unknown price."""
    stated = [row.get("entry_price"), *(context.get(name) for name in ENTRY_PRICES)]
    return next((price for price in map(_number, stated) if price), None)


def _times(row: Row, decided: datetime, *, zone: tzinfo, notes: list[str]) -> tuple[datetime | None, datetime]:
    """The times of the entry and the close."""
    minutes = _number(row.get("hold_duration"))
    if row.get("exit_timestamp") not in (None, ""):
        closed = _instant(row["exit_timestamp"], zone=zone, name="exit_timestamp")
    elif minutes is not None:
        try:
            closed = decided + timedelta(minutes=minutes)
        except OverflowError:
            raise _Unconvertible(f"a hold_duration of {minutes:g} minutes leads out of the calendar") from None
    else:
        notes.append("no exit time: the time of the decision is taken as the close, and the holding time is not known")
        return None, decided
    if closed < decided:
        raise _Unconvertible(f"closed at {closed.isoformat()}, before it was opened at {decided.isoformat()}")
    return decided, closed


def _context(stated: Mapping[str, Any], notes: list[str]) -> ContextVector:
    values: dict[str, Any] = {name: _label(stated.get(name), name, notes) for name in LABELS}
    for name, words in NUMBERS.items():
        numbers = [number for number in (_number(stated.get(word)) for word in words) if number is not None]
        values[name] = next((number for number in numbers if number >= 0), None)
    return ContextVector(**values)


def _label(value: object, name: str, notes: list[str]) -> str | None:
    """The label of a field; an unknown word is dropped with a note."""
    if value in (None, ""):
        return None
    word = str(value).strip().lower()
    if name == "session":
        word = SESSION_SYNONYMS.get(word, word)
    if word in LABELS[name]:
        return word
    notes.append(f"unknown {name} {_short(value)} is dropped")
    return None


def _unplaced(context: Mapping[str, Any]) -> str | None:
    """The values of a market context that have no field in the context vector, as JSON."""
    placed = {*LABELS, *ENTRY_PRICES, *(word for words in NUMBERS.values() for word in words)}
    rest = {name: value for name, value in context.items() if name not in placed and value not in (None, "", {}, [])}
    return canonical_json(rest) if rest else None


def _domain(row: Row, metrics: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    """The parts of a domain that a pattern names, in its columns or else in its metrics."""
    domain: dict[str, str] = {}
    for name in ("strategy", "symbol", "direction", *LABELS):
        value = row.get(name) or metrics.get(name)
        if value in (None, ""):
            continue
        if name in LABELS:
            label = _label(value, name, notes)
            domain |= {name: label} if label else {}
        elif name == "direction":
            domain[name] = _direction(value)
        else:
            domain[name] = _line(value, name=name, longest=LONGEST_SYMBOL if name == "symbol" else LONGEST_NAME)
    return domain


def _conditions(value: object, notes: list[str]) -> Condition | None:
    stated, words = _json_or_text(value)
    if not stated and not words:
        return None
    try:
        return parse_condition(stated or words)
    except Invalid as error:
        notes.append(f"validity conditions are dropped: {error.message}")
        return None


def _claim(metrics: Mapping[str, Any], notes: list[str]) -> tuple[About, Claim]:
    """What a pattern claims: that money is earned or lost, or else how often trades win."""
    for name, even in MONEY_METRICS.items():
        if (figure := _number(metrics.get(name))) is not None:
            return "mean_outcome", "below" if figure < even else "above"
    rate = _number(metrics.get("win_rate"))
    if rate is None:
        notes.append("the metrics have no mean outcome: the pattern is taken as a claim that trades there earn money")
        return "mean_outcome", "above"
    return "win_rate", "below" if rate < (0.5 if rate <= 1 else 50) else "above"


def _tags(row: Row, notes: list[str]) -> tuple[str, ...]:
    stated = row.get("tags")
    try:
        listed = json.loads(stated) if isinstance(stated, str) and stated else []
    except (ValueError, RecursionError):
        listed = str(stated).split(",")
    words = [str(tag).strip() for tag in listed] if isinstance(listed, list) else [str(listed)]
    if row.get("grade"):
        words.append(f"grade:{row['grade']}")
    fit = [word for word in dict.fromkeys(words) if 0 < len(word) <= LONGEST_TAG and word.isprintable()]
    if len(fit) < len(words) or len(fit) > MOST_TAGS:
        notes.append("tags that are repeated, empty, too long or too many are dropped")
    return tuple(fit[:MOST_TAGS])


def _share(value: object, notes: list[str]) -> float | None:
    number = _number(value)
    if number is not None and not 0 <= number <= 1:
        notes.append(f"confidence {_short(value)} is not a share from 0 to 1 and is dropped")
        return None
    return number


def _direction(value: object) -> Direction:
    direction = DIRECTIONS.get(str(value).strip().lower())
    if direction is None:
        raise _Unconvertible(f"direction {_short(value)} is neither long nor short")
    return direction


def _line(value: object, *, name: str, longest: int) -> str:
    text = str(value).strip() if isinstance(value, str | int) else ""
    if not 0 < len(text) <= longest or not text.isprintable():
        raise _Unconvertible(f"{name} {_short(value)} is not one line of 1 to {longest} characters")
    return text


def _prose(notes: list[str], *parts: object) -> str | None:
    """The parts that are text, one per line, cut to the longest text that can be stored."""
    text = "\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    if len(text) > LONGEST_PROSE:
        notes.append(f"a text of {len(text)} characters is cut to {LONGEST_PROSE}")
    return text[:LONGEST_PROSE] or None


def _instant(value: object, *, zone: tzinfo, name: str) -> datetime:
    try:
        return instant_of(value, zone=zone)
    except ValueError as error:
        raise _Unconvertible(f"{name}: {error}") from None


def _number(value: object) -> float | None:
    number = number_of(value)
    return number if number is not None and isfinite(number) else None


def _short(value: object) -> str:
    return f"{value!r:.40}"
