"""The episodes of an owner as arrays, one a column, sorted by the instant they became known.

Because of that order, the episodes known as of an instant are the first rows. Repeated labels are stored once: a row
has the code of its *group* (the labels that filters use) and of its *setting* (the three market labels). Rows are
summarised in blocks, so that a scan can skip a block whose best row is not good enough. `Columns` is immutable: an
update returns a new one that shares arrays with the old one. It has the last version of each episode only.
"""

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from backsight.core.context import ContextVector
from backsight.core.instants import EPOCH
from backsight.core.memory.episodic import Episode, EpisodeKind
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.arrays.words import encode_texts
from backsight.core.recall.score import OUTCOME_CLIP_R, conviction
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES, Regime, Session, VolatilityRegime
from backsight.core.trades.trade import Outcome, OutcomeUnit

T = TypeVar("T")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Array = NDArray[Any]
RowSelection = slice | Integers
"""EpisodeRows of the columns: a run of neighbours, or row numbers in ascending order."""

BLOCK_ROWS = 8_192
"""EpisodeRows of a block: one column of a block fits the processor's first-level cache."""
UNITS: tuple[OutcomeUnit, ...] = ("R", "vol", "pct")
NUMBERS = ("atr_d1", "atr_h1", "spread_as_atr_pct", "drawdown_pct", "price")
REPLACED = 0
"""The group code of a row that a newer version has replaced."""
GROWTH = 16
"""Arrays that grow get spare space for one row in this many."""
REPLACED_SHARE = 8
"""Replaced rows are removed once they are more than one row in this many."""
FEW_IDS = 32
"""Up to this many ids are searched one by one."""
DAY_MICROS = 86_400_000_000
COLUMN_TYPES: dict[str, str] = {
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
"""The columns and their narrowest types: codes and ids widen when a value needs more bytes."""
SETTING_LABELS: dict[str, Array] = dict(
    zip(
        ("regime", "volatility_regime", "session"),
        np.array(list(product(("", *REGIMES), ("", *VOLATILITY_REGIMES), ("", *SESSIONS)))).T,
        strict=True,
    )
)
"""The three labels of each setting code; "" is unknown."""


class EpisodeGroup(NamedTuple):
    """The labels that a row shares with many others."""

    symbol: str
    strategy_name: str
    deployment_id: str
    mode: Mode
    kind: EpisodeKind
    direction: Direction | None
    unit: OutcomeUnit | None
    won: bool | None
    recallable: bool
    """Whether the episode ended and is not archived."""


class Interned(Generic[T]):
    """Values numbered from 0 in the order they were added; the code of a value never changes."""

    def __init__(self, *values: T) -> None:
        self.values = list(values)
        self.codes = {value: code for code, value in enumerate(values)}

    def code(self, value: T) -> int:
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups as arrays, indexed by group code."""

    fields: Mapping[str, Array]
    unit: NDArray[np.int8]
    """Index in `UNITS`; −1 without an outcome."""
    recallable: Booleans
    closed: Booleans
    """Trades with a result, archived or not."""
    won: Booleans

    def __len__(self) -> int:
        return len(self.unit)

    def recallable_with(self, **labels: str | tuple[str, ...] | None) -> Booleans:
        """Which groups are recallable and have these labels, or one of several; None matches every group."""
        return self._matching(self.recallable, labels)

    def trades_with(self, **labels: str | None) -> Booleans:
        """Which groups are closed trades and have these labels; a label of None matches every group."""
        return self._matching(self.closed, labels)

    def judged_calls_with(self, **labels: str | None) -> Booleans:
        """Which groups are calls and cards with an outcome and have these labels; None matches every group."""
        return self._matching((self.fields["kind"] == "call") & (self.unit >= 0), labels)

    def _matching(self, groups: Booleans, labels: Mapping[str, str | tuple[str, ...] | None]) -> Booleans:
        matches = groups.copy()
        for name, label in labels.items():
            if label is not None:
                matches &= self.with_label(name, label if isinstance(label, tuple) else (label,))
        return matches

    def with_label(self, name: str, labels: tuple[str, ...]) -> Booleans:
        """Which groups have one of these labels."""
        field = self.fields[name]
        matches: Booleans = field == labels[0] if len(labels) == 1 else np.isin(field, labels)
        return matches


class EpisodeRows(NamedTuple):
    """Episodes column by column; the fields have the names of the table's columns."""

    id: Sequence[str]
    known_at: Sequence[datetime] | Integers
    """Instants are datetimes, or an array of microseconds since 1970."""
    recorded_at: Sequence[datetime] | Integers
    ended_at: Sequence[datetime] | Integers
    archived_at: Sequence[object | None]
    """None if the episode is not archived."""
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


NO_ROWS = EpisodeRows(*[()] * len(EpisodeRows._fields))


def episode_rows(episodes: Iterable[Episode]) -> EpisodeRows:
    """Transpose episodes into columns.

    >>> from backsight.testing import an_episode
    >>> episode_rows([an_episode(1), an_episode(2)]).symbol
    ('XAUUSD', 'XAUUSD')
    """
    rows = [
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
    return EpisodeRows(*zip(*rows, strict=True)) if rows else NO_ROWS


REPLACED_GROUP = EpisodeGroup("", "", "", "live", "trade", None, None, None, recallable=False)


class Vocabulary:
    """The values of the codes, shared by all columns that grew from one another.

    It only grows, and is not locked: whoever updates columns from several threads must let one at a time do so.
    Readers need no lock.
    """

    def __init__(self) -> None:
        self.groups = Interned(REPLACED_GROUP)
        self.tags: Interned[tuple[str, ...]] = Interned(())
        self.words: Interned[str] = Interned()
        self._table = _table([REPLACED_GROUP])

    def table(self) -> GroupTable:
        """The groups added so far."""
        table = self._table
        if len(table) != len(self.groups.values):
            table = self._table = _table(tuple(self.groups.values))  # a copy: another thread may add groups meanwhile
        return table


def _table(groups: Sequence[EpisodeGroup]) -> GroupTable:
    fields = {
        name: np.array([getattr(group, name) or "" for group in groups])
        for name in ("symbol", "strategy_name", "deployment_id", "mode", "kind", "direction")
    }
    unit = np.array([-1 if group.unit is None else UNITS.index(group.unit) for group in groups], np.int8)
    return GroupTable(
        fields,
        unit,
        recallable=np.array([group.recallable for group in groups]),
        closed=np.array([group.kind == "trade" and group.won is not None for group in groups]),
        won=np.array([bool(group.won) for group in groups]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSummary:
    """The extremes of a block of neighbouring rows, and the counts and sums of each group in the block."""

    ended_range: tuple[int, int]
    recorded_range: tuple[int, int]
    conviction: float
    """The highest."""
    lowest: tuple[float, ...]
    """The lowest outcome by unit; inf if no row has the unit."""
    highest: tuple[float, ...]
    """The highest outcome by unit; −inf if no row has the unit."""
    groups: Integers
    counts: Integers
    squares: Floats
    """The sum of the squared outcomes by group, R clipped."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockSummaries:
    """The summaries of all blocks as arrays. A *part* is the rows of one group in one block."""

    size: int
    """The rows of a block; the last block may have fewer."""
    summaries: tuple[BlockSummary, ...] = ()
    ended_range: Integers = field(init=False)
    recorded_range: Integers = field(init=False)
    conviction: Floats = field(init=False)
    lowest: Floats = field(init=False)
    highest: Floats = field(init=False)
    part_block: Integers = field(init=False)
    part_group: Integers = field(init=False)
    part_count: Integers = field(init=False)
    part_squares: Floats = field(init=False)

    def __post_init__(self) -> None:
        blocks = self.summaries
        for name, width, kind in (
            ("ended_range", 2, "i8"),
            ("recorded_range", 2, "i8"),
            ("lowest", 3, "f8"),
            ("highest", 3, "f8"),
        ):
            values = [getattr(block, name) for block in blocks]
            object.__setattr__(self, name, np.array(values, kind).reshape(-1, width))
        object.__setattr__(self, "conviction", np.array([block.conviction for block in blocks]))
        object.__setattr__(self, "part_block", np.repeat(np.arange(len(blocks)), [len(b.groups) for b in blocks]))
        for name, of_block, kind in (
            ("part_group", "groups", "i8"),
            ("part_count", "counts", "i8"),
            ("part_squares", "squares", "f8"),
        ):
            arrays = [np.empty(0, kind), *(getattr(block, of_block) for block in blocks)]
            object.__setattr__(self, name, np.concatenate(arrays))

    def __len__(self) -> int:
        return len(self.summaries)


class ColumnBuffers:
    """The arrays behind columns, with spare space at their end, into which only the newest columns may grow."""

    def __init__(self, arrays: dict[str, Array], words: Array, *, rows: int, word_count: int) -> None:
        self.arrays = arrays
        self.words = words
        self.rows = rows
        """The rows in use; −1 once newer columns have taken the spare space."""
        self.word_count = word_count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Columns:
    """The last version of each episode, sorted by (known_at, id); instants are microseconds, NaN is unknown."""

    known_at: Integers
    recorded_at: Integers
    ended_at: Integers
    outcome: Floats
    conviction: Floats
    """The factor Conf, which does not depend on the query."""
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
    """Checksums of the ids, to search them quickly."""
    word_ends: Array
    """The index in `words` at which a row's words end and the next row's words begin."""
    words: Array
    vocabulary: Vocabulary
    blocks: BlockSummaries
    buffers: ColumnBuffers
    replaced: int = 0
    """The number of rows that newer versions have replaced."""

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.known_at) - self.replaced

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays, spare space included."""
        return sum(each.nbytes for each in self.buffers.arrays.values()) + self.buffers.words.nbytes

    def id(self, row: int) -> str:
        return bytes(self.ids[row]).decode()

    def group_of(self, row: int) -> EpisodeGroup:
        return self.vocabulary.groups.values[int(self.group[row])]

    def end_of(self, row: int) -> datetime:
        return EPOCH + timedelta(microseconds=int(self.ended_at[row]))

    def outcome_of(self, row: int) -> Outcome | None:
        unit = self.group_of(row).unit
        return None if unit is None else Outcome(value=float(self.outcome[row]), unit=unit)

    def context(self, row: int) -> ContextVector:
        """The fields of the context that similarity compares."""
        rest, session = divmod(int(self.setting[row]), len(SESSIONS) + 1)
        regime, volatility = divmod(rest, len(VOLATILITY_REGIMES) + 1)
        values = {name: float(getattr(self, name)[row]) for name in NUMBERS}
        numbers: dict[str, Any] = {name: value for name, value in values.items() if not math.isnan(value)}
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
        """A label of each row as a code, and the values of the codes; "" is unknown.

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
    """One code for regime, volatility regime and session, each known or unknown.

    >>> setting_of(), setting_of(regime="volatile", session="asia")
    (0, 101)
    """
    return (_REGIME[regime] * 5 + _VOLATILITY[volatility_regime]) * 5 + _SESSION[session]


_REGIME: dict[Regime | None, int] = {value: code for code, value in enumerate((None, *REGIMES))}
_VOLATILITY: dict[VolatilityRegime | None, int] = {
    value: code for code, value in enumerate((None, *VOLATILITY_REGIMES))
}
_SESSION: dict[Session | None, int] = {value: code for code, value in enumerate((None, *SESSIONS))}

_SETTING_CODES = {
    labels: setting_of(*labels) for labels in product((None, *REGIMES), (None, *VOLATILITY_REGIMES), (None, *SESSIONS))
}


def columns_of(episodes: Iterable[Episode], *, block: int = BLOCK_ROWS) -> Columns:
    """Build columns from episodes in any order; of several with the same id the last counts.

    >>> from backsight.testing import an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=float(n)) for n in (3, 1, 2))
    >>> len(columns), columns.id(0), columns.outcome.tolist()
    (3, 'episode-000001', [1.0, 2.0, 3.0])
    """
    return update_columns(empty_columns(block=block), episode_rows(episodes))


def empty_columns(*, block: int = BLOCK_ROWS) -> Columns:
    arrays = {name: np.empty(0, kind) for name, kind in COLUMN_TYPES.items()}
    buffers = ColumnBuffers(arrays, np.empty(0, "u2"), rows=0, word_count=0)
    return _columns(buffers, Vocabulary(), BlockSummaries(block), replaced=0)


def append_episodes(columns: Columns, episodes: Iterable[Episode]) -> Columns:
    """The columns with these episodes added; an episode replaces the one with the same id.

    >>> from backsight.testing import an_episode
    >>> first = columns_of([an_episode(1), an_episode(2)])
    >>> second = append_episodes(first, [an_episode(2, pnl_r=-1.0), an_episode(3)])
    >>> len(first), len(second), first.outcome_of(1), second.outcome_of(1)
    (2, 3, Outcome(value=1.0, unit='R'), Outcome(value=-1.0, unit='R'))
    """
    return update_columns(columns, episode_rows(episodes))


def update_columns(columns: Columns, rows: EpisodeRows = NO_ROWS, *, without: Collection[str] = ()) -> Columns:
    """The columns with these rows added, replacing rows with the same ids, and without the ids `without`.

    Rows that became known last are written into the spare space of the arrays; older rows cost a copy of all rows.

    >>> from backsight.testing import an_episode
    >>> columns = columns_of(an_episode(n) for n in range(3))
    >>> left = update_columns(columns, without=["episode-000001", "another"])
    >>> len(columns), len(left), [left.id(row) for row in range(2)]
    (3, 2, ['episode-000000', 'episode-000002'])
    """
    if not rows.id and not without:
        return columns
    batch, words = _encoded(rows, columns.vocabulary)
    replaced = _rows_with(columns, {*batch["ids"].tolist(), *(name.encode() for name in without)})
    total_replaced = columns.replaced + len(replaced)
    if _are_newest(columns, batch) and total_replaced * REPLACED_SHARE <= len(columns.known_at) + len(rows.id):
        return _extended(columns, batch, words, replaced)
    return _merged(columns, batch, words, replaced)


def columns_from(buffers: ColumnBuffers, vocabulary: Vocabulary, *, block: int, replaced: int) -> Columns:
    """The columns over these arrays, with newly computed block summaries."""
    return _summarised(_columns(buffers, vocabulary, BlockSummaries(block), replaced=replaced), set(), first=0)


def _columns(buffers: ColumnBuffers, vocabulary: Vocabulary, blocks: BlockSummaries, *, replaced: int) -> Columns:
    arrays = {name: values[: buffers.rows] for name, values in buffers.arrays.items()}
    words = buffers.words[: buffers.word_count]
    return Columns(**arrays, words=words, vocabulary=vocabulary, blocks=blocks, buffers=buffers, replaced=replaced)


# Comparing


def differing_ids(first: Columns, second: Columns) -> list[str]:
    """The ids of the episodes that differ between two columns.

    >>> from backsight.testing import an_episode
    >>> first = columns_of(an_episode(n, market_context="London broke") for n in range(4))
    >>> same = [an_episode(n, market_context="London broke") for n in (2, 1)]
    >>> second = columns_of([*same, an_episode(3), an_episode(9)])
    >>> differing_ids(first, first), differing_ids(first, second)
    ([], ['episode-000000', 'episode-000003', 'episode-000009'])
    """
    contents = [_contents(columns) for columns in (first, second)]
    ids = contents[0].keys() | contents[1].keys()
    return sorted(key.decode() for key in ids if contents[0].get(key) != contents[1].get(key))


def _contents(columns: Columns) -> dict[bytes, bytes]:
    """The values of each episode by id, independent of codes."""
    current = np.flatnonzero(columns.group != REPLACED)
    plain = [name for name in COLUMN_TYPES if name not in ("group", "tagged", "ids", "marks", "word_ends")]
    packed = np.rec.fromarrays([getattr(columns, name)[current] for name in plain]).tolist()
    rows: Iterable[tuple[int, tuple[Any, ...]]] = zip(current.tolist(), packed, strict=True)
    return {
        bytes(columns.ids[row]): repr(
            (values, columns.group_of(row), columns.tags(row), sorted(columns.words_of(row)))
        ).encode()
        for row, values in rows
    }


# Encoding


def _encoded(rows: EpisodeRows, vocabulary: Vocabulary) -> tuple[dict[str, Array], Array]:
    """Encode rows as sorted arrays, and their words; `word_ends` counts from the first of these words."""
    # Keep the last of several rows with the same id.
    last = {name: row for row, name in enumerate(rows.id)}
    order = sorted(last.values(), key=lambda row: (rows.known_at[row], rows.id[row]))
    if order != list(range(len(rows.id))):
        unsorted: Iterable[Any] = rows
        rows = EpisodeRows(*([column[row] for row in order] for column in unsorted))
    return encode_rows(rows, vocabulary)


def encode_rows(rows: EpisodeRows, vocabulary: Vocabulary) -> tuple[dict[str, Array], Array]:
    """Encode rows as arrays in their order, and their words; `word_ends` counts from the first of these words."""
    count, names = len(rows.id), [name.encode() for name in rows.id]
    words, ends = encode_texts(rows.market_context, vocabulary.words.code)
    settings = zip(rows.context_regime, rows.context_volatility_regime, rows.context_session, strict=True)
    batch: dict[str, Array] = {
        "known_at": _micros_of(rows.known_at),
        "recorded_at": _micros_of(rows.recorded_at),
        "ended_at": _micros_of(rows.ended_at),
        "outcome": np.array(rows.outcome_value, "f8"),
        "conviction": _array_of(map(conviction, rows.confidence), "f8", count),
        "group": _array_of(_coded(_groups(rows), vocabulary.groups, EpisodeGroup._make), "u4", count),
        "setting": _array_of(map(_SETTING_CODES.__getitem__, settings), "u1", count),
        "tagged": _array_of(map(vocabulary.tags.code, rows.tags), "u4", count),
        "ids": np.array(names, "S" if names else "S1"),
        "marks": _array_of(map(zlib.crc32, names), "u4", count),
        "word_ends": ends,
    }
    return batch | {name: np.array(getattr(rows, f"context_{name}"), "f8") for name in NUMBERS}, words


def _micros_of(instants: Sequence[datetime] | Integers) -> Integers:
    return instants if isinstance(instants, np.ndarray) else np.fromiter(map(micros, instants), "i8", len(instants))


def _coded(keys: Iterable[Any], interned: Interned[T], make: Callable[[Any], T]) -> Iterator[int]:
    """The codes of values; `make` makes a value of a key that equals it, for the keys that have no code yet."""
    known = interned.codes
    for key in keys:
        code = known.get(key)
        yield interned.code(make(key)) if code is None else code


def _array_of(values: Iterable[float], kind: str, count: int) -> Array:
    return np.fromiter(values, kind, count)


def _groups(rows: EpisodeRows) -> Iterator[tuple[Any, ...]]:
    """The fields of each row's group."""
    labels = rows.symbol, rows.strategy_name, rows.deployment_id, rows.mode, rows.kind, rows.direction
    results = [value if pnl is None else pnl for pnl, value in zip(rows.pnl, rows.outcome_value, strict=True)]
    won = [None if x is None else x > 0 for x in results]
    recallable = [x is not None and at is None for x, at in zip(results, rows.archived_at, strict=True)]
    return zip(*labels, rows.outcome_unit, won, recallable, strict=True)


# Growing


def _rows_with(columns: Columns, ids: Collection[bytes]) -> Integers:
    """The current rows that have one of these ids."""
    marks = np.fromiter(map(zlib.crc32, ids), "u4", len(ids))
    if len(marks) <= FEW_IDS:
        rows = np.concatenate([np.flatnonzero(columns.marks == mark) for mark in marks])
    else:
        rows = np.flatnonzero(np.isin(columns.marks, marks))
    # Different ids may have the same checksum.
    matches = {row for row in rows.tolist() if columns.group[row] != REPLACED and bytes(columns.ids[row]) in ids}
    return np.array(sorted(matches), np.int64)


def _are_newest(columns: Columns, batch: Mapping[str, Array]) -> bool:
    """Whether every row of the batch belongs after the last row of the columns."""
    if not len(columns.known_at) or not len(batch["known_at"]):
        return True
    last = (int(columns.known_at[-1]), bytes(columns.ids[-1]))
    return last <= (int(batch["known_at"][0]), bytes(batch["ids"][0]))


def _extended(columns: Columns, batch: dict[str, Array], words: Array, replaced: Integers) -> Columns:
    """The columns with the batch at the end; replaced rows stay in place with the group code `REPLACED`."""
    old = columns.buffers
    rows, word_count = len(columns.known_at), len(columns.words)
    batch = batch | {"word_ends": batch["word_ends"] + word_count}
    # Only the newest columns may write into the spare space; an older one has to copy the arrays.
    is_newest = old.rows == rows
    arrays = {
        name: _with_space(getattr(columns, name), batch[name], old.arrays[name] if is_newest else None)
        for name in COLUMN_TYPES
    }
    all_words = _with_space(columns.words, words, old.words if is_newest else None)
    if len(replaced):
        arrays["group"] = arrays["group"].copy()  # the old columns still show these rows
        arrays["group"][replaced] = REPLACED
    for name in COLUMN_TYPES:
        arrays[name][rows : rows + len(batch[name])] = batch[name]
    all_words[word_count : word_count + len(words)] = words
    if is_newest:
        old.rows = -1
    buffers = ColumnBuffers(arrays, all_words, rows=rows + len(batch["ids"]), word_count=word_count + len(words))
    size = columns.blocks.size
    grown = _columns(buffers, columns.vocabulary, columns.blocks, replaced=columns.replaced + len(replaced))
    return _summarised(grown, {int(row) // size for row in replaced}, first=rows // size)


def _with_space(current: Array, added: Array, buffer: Array | None) -> Array:
    """An array that begins with the current values and has space for the added ones: the buffer if it fits.

    The buffer of columns that were read from a file is read-only.
    """
    kind, need = narrowest(current, added), len(current) + len(added)
    if buffer is not None and buffer.flags.writeable and len(buffer) >= need and buffer.dtype == kind:
        return buffer
    spare = need // GROWTH if len(current) else 0
    grown = np.empty(need + spare, kind)
    grown[: len(current)] = current
    return grown


def narrowest(current: Array, added: Array) -> np.dtype[Any]:
    """The narrowest type for both arrays."""
    if current.dtype.kind == "u" and added.size:
        return np.promote_types(current.dtype, np.min_scalar_type(int(added.max())))
    return np.promote_types(current.dtype, added.dtype) if current.dtype.kind == "S" else current.dtype


def _merged(columns: Columns, batch: dict[str, Array], words: Array, replaced: Integers) -> Columns:
    """New arrays: the rows that are not replaced, with the batch inserted in its order."""
    is_current = columns.group != REPLACED
    is_current[replaced] = False
    lengths = _lengths(columns.word_ends)
    old_words = columns.words[np.repeat(is_current, lengths)]
    old = {name: getattr(columns, name)[is_current] for name in COLUMN_TYPES}
    lengths = lengths[is_current]
    # Insert each row of the batch, and its words, before the old row that follows it.
    positions = _insert_positions(old, batch)
    word_positions = np.append(np.cumsum(lengths) - lengths, len(old_words))[positions]
    batch_lengths = _lengths(batch["word_ends"])
    arrays = {}
    for name in COLUMN_TYPES:
        kind = narrowest(old[name], batch[name])
        arrays[name] = np.insert(old[name].astype(kind, copy=False), positions, batch[name].astype(kind))
    arrays["word_ends"] = np.cumsum(np.insert(lengths, positions, batch_lengths)).astype(np.uint32)
    kind = narrowest(old_words, words)
    repeated = np.repeat(word_positions, batch_lengths)
    all_words = np.insert(old_words.astype(kind, copy=False), repeated, words.astype(kind))
    buffers = ColumnBuffers(arrays, all_words, rows=len(arrays["ids"]), word_count=len(all_words))
    return columns_from(buffers, columns.vocabulary, block=columns.blocks.size, replaced=0)


def _lengths(ends: Array) -> Integers:
    lengths = ends.astype(np.int64)
    lengths[1:] -= ends[:-1].astype(np.int64)
    return lengths


def _insert_positions(old: Mapping[str, Array], batch: Mapping[str, Array]) -> Integers:
    """The old rows before which the rows of the batch belong, by (known_at, id)."""
    first, last = (np.searchsorted(old["known_at"], batch["known_at"], side) for side in ("left", "right"))
    pairs = zip(first.tolist(), last.tolist(), batch["ids"], strict=True)
    return np.array([a + np.searchsorted(old["ids"][a:b], key) for a, b, key in pairs], np.int64)


# Blocks


def _summarised(columns: Columns, touched: set[int], *, first: int) -> Columns:
    """The columns with new summaries of the touched blocks, and of all blocks from `first` on."""
    size = columns.blocks.size
    count = -(-len(columns.known_at) // size)
    table = columns.vocabulary.table()
    summaries = list(columns.blocks.summaries[:first])
    for number in touched:
        if number < first:
            summaries[number] = _summary(columns, table, number)
    summaries += [_summary(columns, table, number) for number in range(first, count)]
    return replace(columns, blocks=BlockSummaries(size, tuple(summaries)))


def _summary(columns: Columns, table: GroupTable, number: int) -> BlockSummary:
    rows = slice(number * columns.blocks.size, (number + 1) * columns.blocks.size)
    ends, recorded = columns.ended_at[rows], columns.recorded_at[rows]
    units = table.unit.take(columns.group[rows])
    by_unit = [columns.outcome[rows][units == unit] for unit in range(len(UNITS))]
    groups, counts, squares = group_sums(columns, table, rows)
    return BlockSummary(
        ended_range=(int(ends.min()), int(ends.max())),
        recorded_range=(int(recorded.min()), int(recorded.max())),
        conviction=float(columns.conviction[rows].max()),
        lowest=tuple(float(x.min(initial=np.inf)) for x in by_unit),
        highest=tuple(float(x.max(initial=-np.inf)) for x in by_unit),
        groups=groups,
        counts=counts,
        squares=squares,
    )


def group_sums(columns: Columns, table: GroupTable, rows: RowSelection) -> tuple[Integers, Integers, Floats]:
    """The groups among some rows, their numbers of rows, and the sums of their squared outcomes, R clipped."""
    groups, x = columns.group[rows], columns.outcome[rows]
    clipped = np.where(table.unit.take(groups) == 0, np.clip(x, -OUTCOME_CLIP_R, OUTCOME_CLIP_R), x)
    with np.errstate(all="ignore"):
        squares = np.bincount(groups, clipped * clipped)
    counts = np.bincount(groups)
    present = np.flatnonzero(counts).astype(np.int64)
    return present, counts[present].astype(np.int64), squares[present].astype(np.float64)


def values_at(column: Array, rows: RowSelection) -> Array:
    """A column's values in some rows; `take` is faster than indexing by row numbers."""
    return column[rows] if isinstance(rows, slice) else column.take(rows)
