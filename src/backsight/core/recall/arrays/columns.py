"""Columns: the episodes of an owner as arrays, in the order in which they became known, so that "as of" is a prefix.

Labels that repeat are held once: what filters ask for is a row's *group*, the three market labels its *setting*. Rows
stand in blocks with figures that say what a block can hold at best. An image never changes: `appended` gives a new one
that shares what it can. It holds the last version of each episode; former versions are the store's.
"""

import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from backsight.core.context import ContextVector
from backsight.core.instants import EPOCH
from backsight.core.memory.episodic import Episode, EpisodeKind
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.score import OUTCOME_CLIP_R, conviction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES, Regime, Session, VolatilityRegime
from backsight.core.text.stems import stems
from backsight.core.trades.trade import Outcome, OutcomeUnit

T = TypeVar("T")
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Truths = NDArray[np.bool_]
Array = NDArray[Any]

BLOCK = 8_192
"""Rows looked at together: a column of them fits the nearest cache."""
UNITS: tuple[OutcomeUnit, ...] = ("R", "vol", "pct")
NUMBERS = ("atr_d1", "atr_h1", "spread_as_atr_pct", "drawdown_pct", "price")
GONE = 0
"""The group of a row that a correction has replaced."""
SPARE = 16
"""Room for one more row is kept for every so many."""
MOST_GONE = 8
"""Replaced rows are cleared away once they are one in so many."""
FEW = 32
FIELDS: dict[str, str] = {
    "known_at": "i8",
    "recorded_at": "i8",
    "ended_at": "i8",
    "outcome": "f8",
    "conviction": "f8",
    **dict.fromkeys(NUMBERS, "f8"),
    "group": "u2",
    "setting": "u1",
    "tagged": "u2",
    "ids": "S1",
    "marks": "u4",
    "word_ends": "u4",
}
"""What a row has, and the least that holds it: codes and ids widen as they need to."""


class Group(NamedTuple):
    """What a row has in common with many others."""

    symbol: str
    strategy_name: str
    deployment_id: str
    mode: Mode
    kind: EpisodeKind
    direction: Direction | None
    unit: OutcomeUnit | None
    won: bool | None
    remembered: bool
    """It ended, and the owner has not put it away."""


class Interned(Generic[T]):
    """Values with small numbers; a number once given never changes."""

    def __init__(self, *values: T) -> None:
        self.values = list(values)
        self.codes = {value: code for code, value in enumerate(values)}

    def code(self, value: T) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.values)
            self.values.append(value)
        return found


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups as arrays, one entry a group."""

    fields: Mapping[str, Array]
    unit: NDArray[np.int8]
    """Place in `UNITS`; −1 without an outcome."""
    remembered: Truths
    closed: Truths
    """Trades with a result, put away or not."""
    won: Truths

    def __len__(self) -> int:
        return len(self.unit)

    def having(self, **wanted: str | None) -> Truths:
        """Which groups are remembered and have these values; None asks for nothing."""
        return self._having(self.remembered, wanted)

    def trades(self, **wanted: str | None) -> Truths:
        """Which groups are closed trades and have these values; None asks for nothing."""
        return self._having(self.closed, wanted)

    def _having(self, among: Truths, wanted: Mapping[str, str | None]) -> Truths:
        found = among.copy()
        for name, value in wanted.items():
            if value is not None:
                found &= self.fields[name] == value
        return found


class Rows(NamedTuple):
    """Episodes column by column, by the names that the store has for them."""

    id: Sequence[str]
    known_at: Sequence[datetime]
    recorded_at: Sequence[datetime]
    ended_at: Sequence[datetime]
    archived_at: Sequence[datetime | None]
    symbol: Sequence[str]
    strategy_name: Sequence[str]
    deployment_id: Sequence[str]
    mode: Sequence[Mode]
    kind: Sequence[EpisodeKind]
    direction: Sequence[Direction | None]
    pnl: Sequence[float | None]
    outcome_value: Sequence[float | None]
    outcome_unit: Sequence[OutcomeUnit | None]
    confidence: Sequence[float | None]
    tags: Sequence[tuple[str, ...]]
    market_context: Sequence[str | None]
    context_regime: Sequence[Regime | None]
    context_volatility_regime: Sequence[VolatilityRegime | None]
    context_session: Sequence[Session | None]
    context_atr_d1: Sequence[float | None]
    context_atr_h1: Sequence[float | None]
    context_spread_as_atr_pct: Sequence[float | None]
    context_drawdown_pct: Sequence[float | None]
    context_price: Sequence[float | None]


NO_ROWS = Rows(*[()] * len(Rows._fields))


def rows_of(episodes: Iterable[Episode]) -> Rows:
    """These episodes column by column.

    >>> from backsight.testing import an_episode
    >>> rows_of([an_episode(1), an_episode(2)]).symbol
    ('XAUUSD', 'XAUUSD')
    """
    told = [
        (
            e.id,
            e.known_at,
            e.recorded_at,
            e.ended_at,
            e.archived_at,
            e.symbol,
            e.strategy_name,
            e.deployment_id,
            e.mode,
            e.kind,
            e.direction,
            e.pnl,
            None if e.outcome is None else e.outcome.value,
            None if e.outcome is None else e.outcome.unit,
            e.confidence,
            e.tags,
            e.market_context,
            e.context.regime,
            e.context.volatility_regime,
            e.context.session,
            e.context.atr_d1,
            e.context.atr_h1,
            e.context.spread_as_atr_pct,
            e.context.drawdown_pct,
            e.context.price,
        )
        for e in episodes
    ]
    return Rows(*zip(*told, strict=True)) if told else NO_ROWS


NOWHERE = Group("", "", "", "live", "trade", None, None, None, remembered=False)


class Vocabulary:
    """The values behind the codes, shared by all images that grew from one another."""

    def __init__(self) -> None:
        self.groups = Interned(NOWHERE)
        self.tags: Interned[tuple[str, ...]] = Interned(())
        self.words: Interned[str] = Interned()
        self.lock = Lock()
        self._table = _table([NOWHERE])

    def table(self) -> GroupTable:
        """The groups met so far."""
        if len(self._table) != len(self.groups.values):
            self._table = _table(self.groups.values)
        return self._table


def _table(groups: Sequence[Group]) -> GroupTable:
    fields = {
        name: np.array([getattr(group, name) or "" for group in groups])
        for name in ("symbol", "strategy_name", "deployment_id", "mode", "kind", "direction")
    }
    unit = np.array([-1 if group.unit is None else UNITS.index(group.unit) for group in groups], np.int8)
    return GroupTable(
        fields,
        unit,
        remembered=np.array([group.remembered for group in groups]),
        closed=np.array([group.kind == "trade" and group.won is not None for group in groups]),
        won=np.array([bool(group.won) for group in groups]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What some neighbouring rows hold at best, and the outcomes of each of their groups."""

    ended: tuple[int, int]
    recorded: tuple[int, int]
    conviction: float
    lowest: tuple[float, ...]
    """By unit; inf and −inf where no row has the unit."""
    highest: tuple[float, ...]
    groups: Whole
    counts: Whole
    squares: Floats
    """Sums of the squared outcomes, R clipped."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """All blocks side by side."""

    size: int
    """How many rows a block has; the last may have fewer."""
    each: tuple[Block, ...] = ()
    ended: Whole = field(init=False)
    recorded: Whole = field(init=False)
    conviction: Floats = field(init=False)
    lowest: Floats = field(init=False)
    highest: Floats = field(init=False)
    block: Whole = field(init=False)
    """The block of each part; a part is the rows of one group in one block."""
    groups: Whole = field(init=False)
    counts: Whole = field(init=False)
    squares: Floats = field(init=False)

    def __post_init__(self) -> None:
        for name, shape, kind in (("ended", 2, "i8"), ("recorded", 2, "i8"), ("lowest", 3, "f8"), ("highest", 3, "f8")):
            values = [getattr(block, name) for block in self.each]
            object.__setattr__(self, name, np.array(values, kind).reshape(-1, shape))
        object.__setattr__(self, "conviction", np.array([block.conviction for block in self.each]))
        object.__setattr__(self, "block", np.repeat(np.arange(len(self.each)), [len(b.groups) for b in self.each]))
        for name, kind in (("groups", "i8"), ("counts", "i8"), ("squares", "f8")):
            parts = [np.empty(0, kind), *(getattr(block, name) for block in self.each)]
            object.__setattr__(self, name, np.concatenate(parts))


class Room:
    """Arrays with room at their end, of which one image, the newest, may take some."""

    def __init__(self, arrays: dict[str, Array], words: Array, *, rows: int, word_count: int) -> None:
        self.arrays = arrays
        self.words = words
        self.rows = rows
        self.word_count = word_count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """The last version of each episode of an owner; rows by (known_at, id), instants in microseconds, NaN not known."""

    known_at: Whole
    recorded_at: Whole
    ended_at: Whole
    outcome: Floats
    conviction: Floats
    """Conf, which depends on nothing asked."""
    atr_d1: Floats
    atr_h1: Floats
    spread_as_atr_pct: Floats
    drawdown_pct: Floats
    price: Floats
    group: Array
    setting: Array
    tagged: Array
    ids: Array
    marks: Array
    """Checksums of the ids, to find one."""
    word_ends: Array
    """Where a row's words end in `words`, and the next row's begin."""
    words: Array
    vocabulary: Vocabulary
    blocks: Blocks
    room: Room
    gone: int = 0
    """How many rows a correction has replaced."""

    def __len__(self) -> int:
        """How many episodes there are."""
        return len(self.known_at) - self.gone

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays, with the room at their end."""
        return sum(held.nbytes for held in self.room.arrays.values()) + self.room.words.nbytes

    def id(self, row: int) -> str:
        return bytes(self.ids[row]).decode()

    def group_of(self, row: int) -> Group:
        return self.vocabulary.groups.values[int(self.group[row])]

    def ended(self, row: int) -> datetime:
        return EPOCH + timedelta(microseconds=int(self.ended_at[row]))

    def outcome_of(self, row: int) -> Outcome | None:
        unit = self.group_of(row).unit
        return None if unit is None else Outcome(value=float(self.outcome[row]), unit=unit)

    def context(self, row: int) -> ContextVector:
        """The fields of the context that likeness looks at."""
        rest, session = divmod(int(self.setting[row]), len(SESSIONS) + 1)
        regime, volatility = divmod(rest, len(VOLATILITY_REGIMES) + 1)
        held = {name: float(getattr(self, name)[row]) for name in NUMBERS}
        numbers: dict[str, Any] = {name: value for name, value in held.items() if value == value}
        return ContextVector(
            regime=REGIMES[regime - 1] if regime else None,
            volatility_regime=VOLATILITY_REGIMES[volatility - 1] if volatility else None,
            session=SESSIONS[session - 1] if session else None,
            **numbers,
        )

    def tags(self, row: int) -> tuple[str, ...]:
        return self.vocabulary.tags.values[int(self.tagged[row])]

    def words_of(self, row: int) -> list[str]:
        """The stems of the row's text."""
        start = int(self.word_ends[row - 1]) if row else 0
        return [self.vocabulary.words.values[code] for code in self.words[start : self.word_ends[row]]]

    def labels(self, name: str) -> tuple[Array, tuple[str, ...]]:
        """A field of the rows' groups as codes, and the values behind them; "" is not known.

        >>> from backsight.testing import an_episode
        >>> codes, values = columns_of([an_episode(1), an_episode(2, symbol="BTC")]).labels("symbol")
        >>> [values[code] for code in codes]
        ['XAUUSD', 'BTC']
        """
        values, codes = np.unique(self.vocabulary.table().fields[name], return_inverse=True)
        return codes[self.group], tuple(map(str, values))


def micros(at: datetime) -> int:
    """Microseconds since 1970.

    >>> micros(EPOCH + timedelta(days=1))
    86400000000
    """
    since = at - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def setting_of(
    regime: Regime | None = None, volatility_regime: VolatilityRegime | None = None, session: Session | None = None
) -> int:
    """One number for regime, volatility regime and session, each known or not.

    >>> setting_of(), setting_of(regime="volatile", session="asia")
    (0, 101)
    """
    return (_REGIME[regime] * 5 + _VOLATILITY[volatility_regime]) * 5 + _SESSION[session]


_REGIME: dict[Regime | None, int] = {value: code for code, value in enumerate((None, *REGIMES))}
_VOLATILITY: dict[VolatilityRegime | None, int] = {
    value: code for code, value in enumerate((None, *VOLATILITY_REGIMES))
}
_SESSION: dict[Session | None, int] = {value: code for code, value in enumerate((None, *SESSIONS))}


def columns_of(episodes: Iterable[Episode], *, block: int = BLOCK) -> Columns:
    """The image of these episodes, whatever their order; of several with one id the last counts.

    >>> from backsight.testing import an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=float(n)) for n in (3, 1, 2))
    >>> len(columns), columns.id(0), columns.outcome.tolist()
    (3, 'episode-000001', [1.0, 2.0, 3.0])
    """
    return changed(no_columns(block=block), rows_of(episodes))


def no_columns(*, block: int = BLOCK) -> Columns:
    """The image of nothing."""
    room = Room({name: np.empty(0, kind) for name, kind in FIELDS.items()}, np.empty(0, "u2"), rows=0, word_count=0)
    return _image(room, Vocabulary(), Blocks(block), gone=0)


def appended(columns: Columns, episodes: Iterable[Episode]) -> Columns:
    """The image with these episodes too; one whose id is there takes that one's place.

    >>> from backsight.testing import an_episode
    >>> first = columns_of([an_episode(1), an_episode(2)])
    >>> second = appended(first, [an_episode(2, pnl_r=-1.0), an_episode(3)])
    >>> len(first), len(second), first.outcome_of(1), second.outcome_of(1)
    (2, 3, Outcome(value=1.0, unit='R'), Outcome(value=-1.0, unit='R'))
    """
    return changed(columns, rows_of(episodes))


def changed(columns: Columns, rows: Rows = NO_ROWS, *, without: Collection[str] = ()) -> Columns:
    """The image with these rows too, in place of those with their ids, and without some that no longer stand.

    The newest are written into the room at the end of the arrays; late ones cost a copy of all rows.

    >>> from backsight.testing import an_episode
    >>> columns = columns_of(an_episode(n) for n in range(3))
    >>> left = changed(columns, without=["episode-000001", "another"])
    >>> len(columns), len(left), [left.id(row) for row in range(2)]
    (3, 2, ['episode-000000', 'episode-000002'])
    """
    if not rows.id and not without:
        return columns
    with columns.vocabulary.lock:
        batch, words = _encoded(rows, columns.vocabulary)
        replaced = _rows_of(columns, {*batch["ids"].tolist(), *(name.encode() for name in without)})
        gone = columns.gone + len(replaced)
        if _are_newest(columns, batch) and gone * MOST_GONE <= len(columns.known_at) + len(rows.id):
            return _extended(columns, batch, words, replaced)
        return _merged(columns, batch, words, replaced)


def image_of(room: Room, vocabulary: Vocabulary, *, block: int, gone: int) -> Columns:
    """The image that these arrays are, with the figures of its blocks."""
    return _summarised(_image(room, vocabulary, Blocks(block), gone=gone), set(), first=0)


def _image(room: Room, vocabulary: Vocabulary, blocks: Blocks, *, gone: int) -> Columns:
    arrays = {name: held[: room.rows] for name, held in room.arrays.items()}
    words = room.words[: room.word_count]
    return Columns(**arrays, words=words, vocabulary=vocabulary, blocks=blocks, room=room, gone=gone)


# Comparing


def differing(one: Columns, other: Columns) -> list[str]:
    """The ids of which two images do not say the same.

    >>> from backsight.testing import an_episode
    >>> first = columns_of(an_episode(n, market_context="London broke") for n in range(4))
    >>> alike = [an_episode(n, market_context="London broke") for n in (2, 1)]
    >>> other = columns_of([*alike, an_episode(3), an_episode(9)])
    >>> differing(first, first), differing(first, other)
    ([], ['episode-000000', 'episode-000003', 'episode-000009'])
    """
    said, told = _said(one), _said(other)
    return sorted(each.decode() for each in said.keys() | told.keys() if said.get(each) != told.get(each))


def _said(columns: Columns) -> dict[bytes, bytes]:
    """What an image says of each episode, whatever the codes."""
    standing = np.flatnonzero(columns.group != GONE)
    fixed = [name for name in FIELDS if name not in ("group", "tagged", "ids", "marks", "word_ends")]
    packed = np.rec.fromarrays([getattr(columns, name)[standing] for name in fixed]).tolist()
    rows: Iterable[tuple[int, tuple[Any, ...]]] = zip(standing.tolist(), packed, strict=True)
    return {
        bytes(columns.ids[row]): repr(
            (values, columns.group_of(row), columns.tags(row), columns.words_of(row))
        ).encode()
        for row, values in rows
    }


# Encoding


def _encoded(rows: Rows, vocabulary: Vocabulary) -> tuple[dict[str, Array], Array]:
    """The rows in their order, of those with one id the last; `word_ends` counts from the first of their words."""
    last = {name: row for row, name in enumerate(rows.id)}
    order = sorted(last.values(), key=lambda row: (rows.known_at[row], rows.id[row]))
    if order != list(range(len(rows.id))):
        held: Iterable[Sequence[Any]] = rows
        rows = Rows(*([column[row] for row in order] for column in held))
    names = [name.encode() for name in rows.id]
    words, ends = _words(rows.market_context, vocabulary)
    settings = zip(rows.context_regime, rows.context_volatility_regime, rows.context_session, strict=True)
    batch: dict[str, Array] = {
        "known_at": _gathered(map(micros, rows.known_at), "i8", len(order)),
        "recorded_at": _gathered(map(micros, rows.recorded_at), "i8", len(order)),
        "ended_at": _gathered(map(micros, rows.ended_at), "i8", len(order)),
        "outcome": np.array(rows.outcome_value, "f8"),
        "conviction": _gathered(map(conviction, rows.confidence), "f8", len(order)),
        "group": _gathered(map(vocabulary.groups.code, _groups(rows)), "u4", len(order)),
        "setting": _gathered((setting_of(*labels) for labels in settings), "u1", len(order)),
        "tagged": _gathered(map(vocabulary.tags.code, rows.tags), "u4", len(order)),
        "ids": np.array(names, "S" if names else "S1"),
        "marks": _gathered(map(zlib.crc32, names), "u4", len(order)),
        "word_ends": ends,
    }
    return batch | {name: np.array(getattr(rows, f"context_{name}"), "f8") for name in NUMBERS}, words


def _gathered(values: Iterable[float], kind: str, count: int) -> Array:
    return np.fromiter(values, kind, count)


def _words(texts: Iterable[str | None], vocabulary: Vocabulary) -> tuple[Array, Array]:
    """The words of all texts one after the other, and where those of each text end."""
    codes, ends = array("I"), array("q")
    for text in texts:
        codes.extend(vocabulary.words.code(stem) for stem in sorted(stems(text)))
        ends.append(len(codes))
    return np.array(codes, "u4"), np.array(ends, "i8")


def _groups(rows: Rows) -> Iterator[Group]:
    labels = zip(rows.symbol, rows.strategy_name, rows.deployment_id, rows.mode, rows.kind, rows.direction, strict=True)
    results = zip(rows.outcome_unit, rows.pnl, rows.outcome_value, rows.archived_at, strict=True)
    for (symbol, strategy, deployment, mode, kind, direction), (unit, pnl, value, archived_at) in zip(
        labels, results, strict=True
    ):
        x = pnl if pnl is not None else value
        won, remembered = (None, False) if x is None else (x > 0, archived_at is None)
        yield Group(symbol, strategy, deployment, mode, kind, direction, unit, won, remembered)


# Growing


def _rows_of(columns: Columns, names: Collection[bytes]) -> Whole:
    """The rows that hold one of these ids."""
    marks = np.fromiter(map(zlib.crc32, names), "u4", len(names))
    if len(marks) <= FEW:
        rows = np.concatenate([np.flatnonzero(columns.marks == mark) for mark in marks])
    else:
        rows = np.flatnonzero(np.isin(columns.marks, marks))
    held = {row for row in rows.tolist() if columns.group[row] != GONE and bytes(columns.ids[row]) in names}
    return np.array(sorted(held), np.int64)


def _are_newest(columns: Columns, batch: Mapping[str, Array]) -> bool:
    if not len(columns.known_at) or not len(batch["known_at"]):
        return True
    last = (int(columns.known_at[-1]), bytes(columns.ids[-1]))
    return last <= (int(batch["known_at"][0]), bytes(batch["ids"][0]))


def _extended(columns: Columns, batch: dict[str, Array], words: Array, replaced: Whole) -> Columns:
    """The batch at the end, in the room there is or in new room; replaced rows are left without a group."""
    old, start = columns.room, columns.room.rows
    rows, word_count = len(columns.known_at), len(columns.words)
    batch = batch | {"word_ends": batch["word_ends"] + word_count}
    mine = start == rows
    arrays = {name: _roomy(columns, name, batch[name], mine=mine) for name in FIELDS}
    flat = _with_room(columns.words, words, old.words if mine else None)
    if len(replaced):
        arrays["group"] = arrays["group"].copy()
        arrays["group"][replaced] = GONE
    for name, held in arrays.items():
        held[rows : rows + len(batch[name])] = batch[name]
    flat[word_count : word_count + len(words)] = words
    if mine:
        old.rows = -1  # its room is taken: what grows from an older image copies
    room = Room(arrays, flat, rows=rows + len(batch["ids"]), word_count=word_count + len(words))
    size = columns.blocks.size
    touched = {int(row) // size for row in replaced}
    image = _image(room, columns.vocabulary, columns.blocks, gone=columns.gone + len(replaced))
    return _summarised(image, touched, first=rows // size)


def _roomy(columns: Columns, name: str, coming: Array, *, mine: bool) -> Array:
    return _with_room(getattr(columns, name), coming, columns.room.arrays[name] if mine else None)


def _with_room(held: Array, coming: Array, room: Array | None) -> Array:
    """The array that begins with what is held and has room for what is coming, of a type that takes both."""
    kind = _wide_enough(held, coming)
    need = len(held) + len(coming)
    if room is not None and len(room) >= need and room.dtype == kind:
        return room
    spare = need // SPARE if len(held) else 0
    grown = np.empty(need + spare, kind)
    grown[: len(held)] = held
    return grown


def _wide_enough(held: Array, coming: Array) -> np.dtype[Any]:
    if held.dtype.kind == "u" and coming.size:
        return np.promote_types(held.dtype, np.min_scalar_type(int(coming.max())))
    return np.promote_types(held.dtype, coming.dtype) if held.dtype.kind == "S" else held.dtype


def _merged(columns: Columns, batch: dict[str, Array], words: Array, replaced: Whole) -> Columns:
    """All rows anew: those still standing, and the batch where it belongs."""
    standing = columns.group != GONE
    standing[replaced] = False
    lengths = _lengths(columns.word_ends)
    said = columns.words[np.repeat(standing, lengths)]
    kept = {name: getattr(columns, name)[standing] for name in FIELDS}
    lengths = lengths[standing]
    places = _places(kept, batch)
    starts = np.append(np.cumsum(lengths) - lengths, len(said))[places]
    counts = _lengths(batch["word_ends"])
    arrays = {}
    for name in FIELDS:
        kind = _wide_enough(kept[name], batch[name])
        arrays[name] = np.insert(kept[name].astype(kind, copy=False), places, batch[name].astype(kind))
    arrays["word_ends"] = np.cumsum(np.insert(lengths, places, counts)).astype(np.uint32)
    kind = _wide_enough(said, words)
    flat = np.insert(said.astype(kind, copy=False), np.repeat(starts, counts), words.astype(kind))
    room = Room(arrays, flat, rows=len(arrays["ids"]), word_count=len(flat))
    return _summarised(_image(room, columns.vocabulary, Blocks(columns.blocks.size), gone=0), set(), first=0)


def _lengths(ends: Array) -> Whole:
    lengths = ends.astype(np.int64)
    lengths[1:] -= ends[:-1].astype(np.int64)
    return lengths


def _places(kept: Mapping[str, Array], batch: Mapping[str, Array]) -> Whole:
    """The rows before which the rows of the batch belong, by (known_at, id)."""
    known = kept["known_at"]
    first, last = (np.searchsorted(known, batch["known_at"], side) for side in ("left", "right"))
    pairs = zip(first.tolist(), last.tolist(), batch["ids"], strict=True)
    return np.array([a + np.searchsorted(kept["ids"][a:b], name) for a, b, name in pairs], np.int64)


# Blocks


def _summarised(columns: Columns, touched: set[int], *, first: int) -> Columns:
    """The image with the figures of its touched blocks, and of all from the first on."""
    size = columns.blocks.size
    count = -(-len(columns.known_at) // size)
    table = columns.vocabulary.table()
    each = list(columns.blocks.each[:first])
    for number in touched:
        if number < first:
            each[number] = _block(columns, table, number)
    each += [_block(columns, table, number) for number in range(first, count)]
    made = {name: getattr(columns, name) for name in Columns.__dataclass_fields__}
    return Columns(**(made | {"blocks": Blocks(size, tuple(each))}))


def _block(columns: Columns, table: GroupTable, number: int) -> Block:
    rows = slice(number * columns.blocks.size, (number + 1) * columns.blocks.size)
    ended, recorded = columns.ended_at[rows], columns.recorded_at[rows]
    groups = columns.group[rows]
    by_unit = [columns.outcome[rows][table.unit.take(groups) == unit] for unit in range(len(UNITS))]
    present, counts, squares = parts(columns, table, rows)
    return Block(
        ended=(int(ended.min()), int(ended.max())),
        recorded=(int(recorded.min()), int(recorded.max())),
        conviction=float(columns.conviction[rows].max()),
        lowest=tuple(float(x.min(initial=np.inf)) for x in by_unit),
        highest=tuple(float(x.max(initial=-np.inf)) for x in by_unit),
        groups=present,
        counts=counts,
        squares=squares,
    )


def parts(columns: Columns, table: GroupTable, rows: slice | Whole) -> tuple[Whole, Whole, Floats]:
    """Of each group among some rows: its code, how many rows, and the sum of their squared outcomes, R clipped."""
    groups, x = columns.group[rows], columns.outcome[rows]
    clipped = np.where(table.unit.take(groups) == 0, np.clip(x, -OUTCOME_CLIP_R, OUTCOME_CLIP_R), x)
    with np.errstate(all="ignore"):
        squares = np.bincount(groups, clipped * clipped)
    counts = np.bincount(groups)
    present = np.flatnonzero(counts).astype(np.int64)
    return present, counts[present].astype(np.int64), squares[present].astype(np.float64)
