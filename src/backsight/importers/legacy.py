"""Databases of the older three-layer scheme: its trades and patterns, and why the rest of it cannot be converted.

    trade_records  id, timestamp, symbol, direction, strategy; confidence, reasoning, market_context (JSON or text),
                   exit_timestamp, exit_price, pnl, pnl_r, hold_duration (minutes), exit_reasoning, lessons, tags, grade
    patterns       pattern_id, description, confidence, sample_size; strategy, symbol, metrics (JSON), source,
                   discovered_at

Before the semicolon is what a table must have. Times without an offset are in the zone given; the scheme wrote UTC. The
file is opened read-only. Nothing is guessed: what a trade or a belief needs and a row lacks is the reason why the row
is left out; what a row says that is of no use (a regime nobody knows) is left away, and noted.

The third layer, adjustments of parameters, has no condition under which it holds, so that none of it can be converted.
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
from backsight.core.memory.conditions import condition_text, parse_condition
from backsight.core.portfolio import Direction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.importers.bars import instant_of, number_of, zone_named

TRADES, PATTERNS = "trade_records", "patterns"
NEEDED: Mapping[str, tuple[str, ...]] = {
    TRADES: ("id", "timestamp", "symbol", "direction", "strategy"),
    PATTERNS: ("pattern_id", "description", "confidence", "sample_size"),
}
ADJUSTMENT = "an adjustment changes a parameter without saying when; make a plan with a condition instead"
DIRECTIONS: Mapping[str, Direction] = {"long": "long", "buy": "long", "short": "short", "sell": "short"}
LABELS: Mapping[str, tuple[str, ...]] = {
    "regime": REGIMES,
    "volatility_regime": VOLATILITY_REGIMES,
    "session": SESSIONS,
}
OTHER_WORDS = {"asian": "asia", "european": "london", "ny": "newyork", "new_york": "newyork", "us": "newyork"}
"""Other words for a session."""
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "atr_d1": ("atr_d1", "atr_daily"),
    "atr_h1": ("atr_h1", "atr_hourly"),
    "atr_m5": ("atr_m5",),
    "spread_points": ("spread_points",),
}
"""Numbers of a context, and what the scheme called them. A plain `atr` does not say of which bars: it stays text."""
ENTRY_PRICES = ("entry_price", "price")
LONGEST_SYMBOL, LONGEST_NAME, LONGEST_ID, LONGEST_PROSE = 64, 100, 200, 10_000
MOST_TAGS, LONGEST_TAG = 32, 64

Row = Mapping[str, Any]
Claim = Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyTrade:
    """A closed trade as the older scheme tells it."""

    id: str
    symbol: str
    direction: Direction
    strategy_name: str
    entry_price: float
    exit_price: float
    pnl: float
    pnl_r: float | None
    """As it is stated; never computed, since a lot does not say what a point was worth."""
    opened_at: datetime | None
    """None where no exit time is known: the time of the decision then is all there is, and stands for the close."""
    closed_at: datetime
    context: ContextVector
    market_context: str | None
    confidence: float | None
    reflection: str | None
    tags: tuple[str, ...]

    @property
    def idempotency_key(self) -> str:
        """What names it, however often the file is read."""
        return f"legacy:{self.id}"

    def arguments(self) -> dict[str, Any]:
        """What `remember_trade` takes for it; told again, it is the same trade."""
        return {
            "symbol": self.symbol,
            "direction": self.direction,
            "strategy_name": self.strategy_name,
            "entry_price": self.entry_price,
            "exit_price": self.exit_price,
            "pnl": self.pnl,
            "pnl_r": self.pnl_r,
            "opened_at": self.opened_at,
            "closed_at": self.closed_at,
            "context": self.context,
            "market_context": self.market_context,
            "confidence": self.confidence,
            "reflection": self.reflection,
            "tags": list(self.tags),
            "idempotency_key": self.idempotency_key,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyBelief:
    """A pattern with a domain, as what a belief is made of."""

    id: str
    proposition: str
    domain: Mapping[str, str]
    """Of strategy, symbol, direction, regime, volatility_regime, session: those it names."""
    conditions: str | None
    """Canonical JSON, where it has validity conditions in the grammar of plans."""
    claims: Claim
    """By the win rate of its metrics against one half; `above` where they have none."""
    alpha: float
    """1 + confidence · sample size."""
    beta: float
    """1 + (1 − confidence) · sample size."""
    sample_size: int
    stated_source: str | None
    discovered_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something about one row that its reader should know."""

    table: str
    row: str
    """The row's id; its number where it has none."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyReport:
    """What was in the file, and what could not be converted."""

    rows: Mapping[str, int]
    """By table, all of those that were looked at."""
    left_out: tuple[Remark, ...]
    """Rows that could not be converted, with the reason."""
    notes: tuple[Remark, ...]
    """What was left away of rows that could."""
    tables_ignored: tuple[str, ...]
    """Tables of the file that hold nothing to convert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyRead:
    """The file: trades in the order in which they closed, beliefs by id, and the report."""

    path: Path
    trades: tuple[LegacyTrade, ...]
    beliefs: tuple[LegacyBelief, ...]
    report: LegacyReport


class _Unfit(Exception):
    """A row that cannot be converted; its text is the reason."""


_Item = TypeVar("_Item", LegacyTrade, LegacyBelief)


def read_legacy(path: str | Path, *, timezone: str = "UTC") -> LegacyRead:
    """What a database of the older scheme holds; the same file always gives the same answer."""
    file, zone = Path(path), zone_named(timezone)
    tables = _tables(file)
    looked_at = {name: rows for name, rows in tables.items() if rows is not None}
    trades, left_trades, trade_notes = _converted(looked_at, TRADES, _trade, zone=zone)
    beliefs, left_patterns, pattern_notes = _converted(looked_at, PATTERNS, _belief, zone=zone)
    return LegacyRead(
        path=file,
        trades=tuple(sorted(trades, key=lambda trade: (trade.closed_at, trade.id))),
        beliefs=tuple(sorted(beliefs, key=lambda belief: belief.id)),
        report=LegacyReport(
            rows={name: len(rows) for name, rows in looked_at.items()},
            left_out=(*left_trades, *left_patterns, *_adjustments(looked_at)),
            notes=(*trade_notes, *pattern_notes),
            tables_ignored=tuple(name for name, rows in tables.items() if rows is None),
        ),
    )


def _tables(file: Path) -> dict[str, list[Row] | None]:
    """The rows of every table that is looked at, and None for the others, by name."""
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
            raise Unavailable(f"{file} is being written; try again when that has ended", field="path") from None
        raise Invalid(f"{file} cannot be read ({error}); give an SQLite database", field="path") from None


def _check_tables(file: Path, names: Sequence[str]) -> None:
    if TRADES not in names and PATTERNS not in names:
        held = ", ".join(sorted(names)) or "none"
        message = f"{file} has neither {TRADES} nor {PATTERNS}; its tables: {held}"
        raise Invalid(f"{message}. Give a database of the older scheme", field="path")


def _rows(connection: sqlite3.Connection, table: str, *, file: Path) -> list[Row] | None:
    if table not in NEEDED and not _is_adjustments(table):
        return None
    quoted = table.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - a name of the file itself, quoted
    columns = [column[0] for column in cursor.description]
    lacking = [name for name in NEEDED.get(table, ()) if name not in columns]
    if lacking:
        raise Invalid(f"{file}: {table} has no column {', '.join(lacking)}; it has {', '.join(columns)}", field="path")
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def _is_adjustments(table: str) -> bool:
    return "adjustment" in table.lower()


def _converted(
    tables: Mapping[str, Sequence[Row]], table: str, convert: Callable[[Row, tzinfo, list[str]], _Item], *, zone: tzinfo
) -> tuple[list[_Item], list[Remark], list[Remark]]:
    """What the rows of a table become; the remarks on rows left out, and on what was left away of the others."""
    made: dict[str, _Item] = {}
    left_out: list[Remark] = []
    notes: list[Remark] = []
    key = NEEDED[table][0]
    for number, row in enumerate(tables.get(table, ()), start=1):
        named, told = _row_id(row, key, number), list[str]()
        try:
            item = convert(row, zone, told)
            if item.id in made:
                raise _Unfit("its id occurs twice; the first row counts")
        except _Unfit as reason:
            left_out.append(Remark(table=table, row=named, reason=str(reason)))
            continue
        made[item.id] = item
        notes += [Remark(table=table, row=named, reason=each) for each in told]
    return list(made.values()), left_out, notes


def _adjustments(tables: Mapping[str, Sequence[Row]]) -> Iterator[Remark]:
    for table, rows in tables.items():
        if _is_adjustments(table):
            for number, row in enumerate(rows, start=1):
                yield Remark(table=table, row=_row_id(row, next(iter(row)), number), reason=ADJUSTMENT)


def _row_id(row: Row, key: str, number: int) -> str:
    value = row.get(key)
    return f"{value!s:.200}" if value not in (None, "") else f"number {number}"


def _trade(row: Row, zone: tzinfo, notes: list[str]) -> LegacyTrade:
    context, words = _market(row.get("market_context"))
    symbol = _line(row["symbol"], what="symbol", longest=LONGEST_SYMBOL)
    pnl = _number(row.get("pnl"))
    if pnl is None:
        raise _Unfit("it has no pnl: it is still open, or its result is not known")
    entry, exit_price = _entry_price(row, context), _number(row.get("exit_price"))
    if entry is None or exit_price is None:
        raise _Unfit(f"it has no {'entry' if entry is None else 'exit'} price")
    decided = _instant(row["timestamp"], zone=zone, what="timestamp")
    opened_at, closed_at = _times(row, decided, zone=zone, notes=notes)
    used = _context(context, notes)
    return LegacyTrade(
        id=_line(row["id"], what="id", longest=LONGEST_ID),
        symbol=symbol,
        direction=_direction(row["direction"]),
        strategy_name=_line(row["strategy"], what="strategy", longest=LONGEST_NAME),
        entry_price=entry,
        exit_price=exit_price,
        pnl=pnl,
        pnl_r=_number(row.get("pnl_r")),
        opened_at=opened_at,
        closed_at=closed_at,
        context=used.completed(symbol=symbol, price=entry, at=decided),
        market_context=_prose(notes, words, row.get("reasoning"), _unplaced(context)),
        confidence=_share(row.get("confidence"), notes),
        reflection=_prose(notes, row.get("lessons"), row.get("exit_reasoning")),
        tags=_tags(row, notes),
    )


def _belief(row: Row, zone: tzinfo, notes: list[str]) -> LegacyBelief:
    metrics, _ = _market(row.get("metrics"))
    domain, conditions = _domain(row, metrics, notes), _conditions(row.get("validity_conditions"), notes)
    if not domain and conditions is None:
        raise _Unfit("it has no domain: no strategy, symbol, direction, regime, volatility regime or session")
    confidence, size = _number(row["confidence"]), _number(row["sample_size"])
    if confidence is None or not 0 <= confidence <= 1:
        raise _Unfit(f"its confidence {_shown(row['confidence'])} is not a share from 0 to 1")
    if size is None or size < 0 or size != int(size):
        raise _Unfit(f"its sample size {_shown(row['sample_size'])} is not a whole number")
    proposition = _prose(notes, row["description"])
    if proposition is None:
        raise _Unfit("it has no description")
    return LegacyBelief(
        id=_line(row["pattern_id"], what="pattern_id", longest=LONGEST_ID),
        proposition=proposition,
        domain=domain,
        conditions=conditions,
        claims=_claims(metrics, notes),
        alpha=1.0 + confidence * size,
        beta=1.0 + (1.0 - confidence) * size,
        sample_size=int(size),
        stated_source=_prose(notes, row.get("source")),
        discovered_at=_discovered(row.get("discovered_at"), zone=zone, notes=notes),
    )


def _discovered(value: object, *, zone: tzinfo, notes: list[str]) -> datetime | None:
    try:
        return _instant(value, zone=zone, what="discovered_at")
    except _Unfit as reason:
        notes.append(f"{reason}; when it was found is not known")
        return None


def _market(value: object) -> tuple[dict[str, Any], str | None]:
    """A column that holds a JSON object or plain words: the object, or else the words."""
    if not isinstance(value, str):
        return {}, None
    try:
        found = json.loads(value, parse_constant=lambda _: None, parse_float=_number)
    except (ValueError, RecursionError):
        return {}, value
    if isinstance(found, dict):
        return found, None
    return {}, found if isinstance(found, str) else None


def _entry_price(row: Row, context: Mapping[str, Any]) -> float | None:
    """The price of the entry; 0 stood for one that was not known."""
    stated = [row.get("entry_price"), *(context.get(name) for name in ENTRY_PRICES)]
    return next((price for price in map(_number, stated) if price), None)


def _times(row: Row, decided: datetime, *, zone: tzinfo, notes: list[str]) -> tuple[datetime | None, datetime]:
    """When a trade was opened and closed."""
    minutes = _number(row.get("hold_duration"))
    if row.get("exit_timestamp") not in (None, ""):
        closed = _instant(row["exit_timestamp"], zone=zone, what="exit_timestamp")
    elif minutes is not None:
        try:
            closed = decided + timedelta(minutes=minutes)
        except OverflowError:
            raise _Unfit(f"its hold of {minutes:g} minutes leads out of the calendar") from None
    else:
        notes.append("it has no exit time: its decision stands for its close, and its hold is not known")
        return None, decided
    if closed < decided:
        raise _Unfit(f"it was closed at {closed.isoformat()}, before it was opened at {decided.isoformat()}")
    return decided, closed


def _context(stated: Mapping[str, Any], notes: list[str]) -> ContextVector:
    found: dict[str, Any] = {name: _label(stated.get(name), name, notes) for name in LABELS}
    for name, words in NUMBERS.items():
        numbers = [number for number in (_number(stated.get(word)) for word in words) if number is not None]
        found[name] = next((number for number in numbers if number >= 0), None)
    return ContextVector(**found)


def _label(value: object, name: str, notes: list[str]) -> str | None:
    """One of the labels of a field; another word is noted and left away."""
    if value in (None, ""):
        return None
    word = str(value).strip().lower()
    if name == "session":
        word = OTHER_WORDS.get(word, word)
    if word in LABELS[name]:
        return word
    notes.append(f"its {name} {_shown(value)} is not known and left away")
    return None


def _unplaced(context: Mapping[str, Any]) -> str | None:
    """What a market context says beyond the fields of a context vector, as JSON."""
    placed = {*LABELS, *ENTRY_PRICES, *(word for words in NUMBERS.values() for word in words)}
    rest = {name: value for name, value in context.items() if name not in placed and value not in (None, "", {}, [])}
    return canonical_json(rest) if rest else None


def _domain(row: Row, metrics: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    """The parts of a domain that a pattern names, in its columns or else in its metrics."""
    found: dict[str, str] = {}
    for name in ("strategy", "symbol", "direction", *LABELS):
        value = row.get(name) or metrics.get(name)
        if value in (None, ""):
            continue
        if name in LABELS:
            label = _label(value, name, notes)
            found |= {name: label} if label else {}
        elif name == "direction":
            found[name] = _direction(value)
        else:
            found[name] = _line(value, what=name, longest=LONGEST_SYMBOL if name == "symbol" else LONGEST_NAME)
    return found


def _conditions(value: object, notes: list[str]) -> str | None:
    stated, words = _market(value)
    if not stated and not words:
        return None
    try:
        return condition_text(parse_condition(stated or words))
    except Invalid as error:
        notes.append(f"its validity conditions are left away: {error.message}")
        return None


def _claims(metrics: Mapping[str, Any], notes: list[str]) -> Claim:
    rate = _number(metrics.get("win_rate"))
    if rate is None:
        notes.append("its metrics have no win rate: taken as a claim of a better one")
        return "above"
    return "below" if rate < (0.5 if rate <= 1 else 50) else "above"


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
        notes.append("some of its tags are repeated, empty, too long or too many, and left away")
    return tuple(fit[:MOST_TAGS])


def _share(value: object, notes: list[str]) -> float | None:
    number = _number(value)
    if number is not None and not 0 <= number <= 1:
        notes.append(f"its confidence {_shown(value)} is not a share from 0 to 1 and left away")
        return None
    return number


def _direction(value: object) -> Direction:
    found = DIRECTIONS.get(str(value).strip().lower())
    if found is None:
        raise _Unfit(f"its direction {_shown(value)} is neither long nor short")
    return found


def _line(value: object, *, what: str, longest: int) -> str:
    text = str(value).strip() if isinstance(value, str | int) else ""
    if not 0 < len(text) <= longest or not text.isprintable():
        raise _Unfit(f"its {what} {_shown(value)} is not one line of 1 to {longest} characters")
    return text


def _prose(notes: list[str], *parts: object) -> str | None:
    """The parts that are text, one under the other; cut where that is too long."""
    text = "\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    if len(text) > LONGEST_PROSE:
        notes.append(f"a text of {len(text)} characters is cut to {LONGEST_PROSE}")
    return text[:LONGEST_PROSE] or None


def _instant(value: object, *, zone: tzinfo, what: str) -> datetime:
    try:
        return instant_of(value, zone=zone)
    except ValueError as error:
        raise _Unfit(f"its {what}: {error}") from None


def _number(value: object) -> float | None:
    number = number_of(value)
    return number if number is not None and isfinite(number) else None


def _shown(value: object) -> str:
    return f"{value!r:.40}"
