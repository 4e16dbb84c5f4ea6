"""The closed trades of an owner as arrays, one a column, so that counts and sums as of any instant need no rows.

Repeated labels are stored once: a row has the code of its *group*, and the code of the labels of its *entry*. The two
are apart because together they would hardly repeat. The rows are in no particular order, and there is one version of
each trade. `ClosedTradeColumns` is immutable: an update returns a new one.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from backsight.core.holdout import MemoryArm
from backsight.core.instants import EPOCH, Horizon
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.trades.summary import ClosedTradeRow, Tally
from backsight.core.trades.trade import Outcome, OutcomeUnit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Array = NDArray[Any]

UNKNOWN_INSTANT = np.iinfo(np.int64).min
FEW_IDS = 32
"""Up to this many ids are searched one by one."""
NO_TALLY = Tally(trades=0, wins=0, pnl=0.0, last_closed_at=None)


class TradeLabels(NamedTuple):
    """The labels that a trade shares with many others."""

    deployment_id: str
    strategy_id: str
    strategy_name: str
    strategy_version: int | None
    symbol: str
    mode: Mode
    currency: str | None
    """Given if the result could not be converted into the account's currency: it is in no sum."""
    outcome_unit: OutcomeUnit | None
    lessons_hash: str | None


class EntryLabels(NamedTuple):
    """The labels of a trade's entry."""

    direction: Direction
    regime: Regime | None
    volatility_regime: VolatilityRegime | None
    session: Session | None
    memory_arm: MemoryArm | None
    model: str | None
    tags: str
    """A JSON array."""


class TradeRows(NamedTuple):
    """Closed trades column by column; instants are microseconds since 1970, `UNKNOWN_INSTANT` if not known."""

    id: Sequence[str]
    known_at: Integers
    recorded_at: Integers
    closed_at: Integers
    opened_at: Integers
    pnl: Sequence[float | None]
    realized_pnl_usd: Sequence[float | None]
    outcome: Sequence[float | None]
    minutes: Sequence[float | None]
    """From the entry to the close."""
    entry_equity: Sequence[float | None]
    mfe_r: Sequence[float | None]
    mae_r: Sequence[float | None]
    group: Iterable[tuple[Any, ...]]
    """The fields of each trade's `TradeLabels`."""
    entry: Iterable[tuple[Any, ...]]
    """The fields of each trade's `EntryLabels`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosedTradeColumns:
    """The last version of each closed trade; instants are microseconds, NaN is unknown."""

    ids: Array
    known_at: Integers
    recorded_at: Integers
    closed_at: Integers
    opened_at: Integers
    pnl: Floats
    realized_pnl_usd: Floats
    outcome: Floats
    minutes: Floats
    entry_equity: Floats
    mfe_r: Floats
    """How far the trade went in its favour, in R."""
    mae_r: Floats
    """How far the trade went against it, in R."""
    group: NDArray[np.uint32]
    """The place of a trade's group in `groups`."""
    entry: NDArray[np.uint32]
    """The place of the labels of a trade's entry in `entries`."""
    groups: tuple[TradeLabels, ...] = ()
    entries: tuple[EntryLabels, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """The columns by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("groups", "entries")}


EMPTY = ClosedTradeColumns(
    ids=np.empty(0, "S1"),
    known_at=np.empty(0, np.int64),
    recorded_at=np.empty(0, np.int64),
    closed_at=np.empty(0, np.int64),
    opened_at=np.empty(0, np.int64),
    pnl=np.empty(0),
    realized_pnl_usd=np.empty(0),
    outcome=np.empty(0),
    minutes=np.empty(0),
    entry_equity=np.empty(0),
    mfe_r=np.empty(0),
    mae_r=np.empty(0),
    group=np.empty(0, np.uint32),
    entry=np.empty(0, np.uint32),
)


def update_trades(
    columns: ClosedTradeColumns, parts: Iterable[TradeRows], *, without: Collection[str] = ()
) -> ClosedTradeColumns:
    """The columns with these rows added, replacing trades with the same ids, and without the trades `without`.

    Of several rows with the same id the last one counts.
    """
    groups = {group: code for code, group in enumerate(columns.groups)}
    entries = {labels: code for code, labels in enumerate(columns.entries)}
    encoded = [_encoded(part, groups, entries) for part in parts if len(part.id)]
    empty = EMPTY.arrays()
    added = {name: np.concatenate([empty[name], *(part[name] for part in encoded)]) for name in empty}
    last = {name: row for row, name in enumerate(added["ids"].tolist())}
    if len(last) < len(added["ids"]):
        rows = np.array(list(last.values()))
        added = {name: array[rows] for name, array in added.items()}
    replaced = last.keys() | {name.encode() for name in without}
    if not replaced:
        return columns
    stays = ~_has_id(columns.ids, replaced)
    arrays = {name: np.concatenate([array[stays], added[name]]) for name, array in columns.arrays().items()}
    return ClosedTradeColumns(**arrays, groups=tuple(groups), entries=tuple(entries))


def _encoded(rows: TradeRows, groups: dict[TradeLabels, int], entries: dict[EntryLabels, int]) -> dict[str, Array]:
    """Rows as arrays; labels that are new get the next codes."""
    return {
        "ids": np.array([name.encode() for name in rows.id]),
        "known_at": rows.known_at,
        "recorded_at": rows.recorded_at,
        "closed_at": rows.closed_at,
        "opened_at": rows.opened_at,
        "pnl": np.array(rows.pnl, np.float64),
        "realized_pnl_usd": np.array(rows.realized_pnl_usd, np.float64),
        "outcome": np.array(rows.outcome, np.float64),
        "minutes": np.array(rows.minutes, np.float64),
        "entry_equity": np.array(rows.entry_equity, np.float64),
        "mfe_r": np.array(rows.mfe_r, np.float64),
        "mae_r": np.array(rows.mae_r, np.float64),
        "group": _coded(rows.group, groups, TradeLabels._make, len(rows.id)),
        "entry": _coded(rows.entry, entries, EntryLabels._make, len(rows.id)),
    }


L = TypeVar("L", TradeLabels, EntryLabels)


def _coded(
    labels: Iterable[tuple[Any, ...]], codes: dict[L, int], make: Callable[[tuple[Any, ...]], L], count: int
) -> NDArray[np.uint32]:
    """The code of each row's labels; labels that are new get the next codes."""

    def code_of(fields_of_row: tuple[Any, ...]) -> int:
        code = codes.get(fields_of_row)  # type: ignore[call-overload]  # a plain tuple equals the labels it makes
        if code is None:
            code = codes[make(fields_of_row)] = len(codes)
        return int(code)

    return np.fromiter(map(code_of, labels), np.uint32, count)


def _has_id(ids: Array, searched: Collection[bytes]) -> NDArray[np.bool_]:
    if len(searched) > FEW_IDS:
        return np.isin(ids, np.array(list(searched)))
    has_id = np.zeros(len(ids), np.bool_)
    for name in searched:
        has_id |= ids == name
    return has_id


def differing_trades(first: ClosedTradeColumns, second: ClosedTradeColumns) -> list[str]:
    """The ids of the trades that differ between two columns."""
    contents = [_contents(columns) for columns in (first, second)]
    ids = contents[0].keys() | contents[1].keys()
    return sorted(key.decode() for key in ids if contents[0].get(key) != contents[1].get(key))


def _contents(columns: ClosedTradeColumns) -> dict[bytes, str]:
    arrays = columns.arrays()
    rows = zip(*(arrays[name].tolist() for name in arrays if name not in ("ids", "group", "entry")), strict=True)
    groups = (columns.groups[code] for code in columns.group.tolist())
    entries = (columns.entries[code] for code in columns.entry.tolist())
    return {key: repr(row) for key, *row in zip(columns.ids.tolist(), rows, groups, entries, strict=True)}


# Answers


def known_trades(columns: ClosedTradeColumns, horizon: Horizon, matches: Callable[[TradeLabels], bool]) -> Integers:
    """The rows of the trades that were known at a horizon and whose group matches."""
    chosen = np.fromiter(map(matches, columns.groups), np.bool_, len(columns.groups))
    known = columns.known_at <= _micros(horizon.as_of)
    if horizon.seen_at is not None:
        known &= columns.recorded_at <= _micros(horizon.seen_at)
    if not chosen.all():
        known &= chosen[columns.group]
    return np.flatnonzero(known)


def trades_of_strategy(columns: ClosedTradeColumns, horizon: Horizon, *, strategy_id: str, mode: Mode) -> Integers:
    """The rows of a strategy's trades in a mode, over all its versions and deployments, known at a horizon."""
    key = strategy_id, mode
    return known_trades(columns, horizon, lambda group: (group.strategy_id, group.mode) == key)


def trades_in_arms(columns: ClosedTradeColumns, rows: Integers) -> list[ClosedTradeRow]:
    """Those of some trades that have an arm of the holdout, in the order of the closes."""
    has_arm = np.fromiter((labels.memory_arm is not None for labels in columns.entries), np.bool_, len(columns.entries))
    rows = rows[has_arm[columns.entry[rows]]]
    rows = rows[np.lexsort((columns.ids[rows], columns.closed_at[rows]))]
    arrays = (columns.ids, columns.opened_at, columns.closed_at, columns.outcome, columns.pnl, columns.group)
    cells = zip(*(array[rows].tolist() for array in (*arrays, columns.entry)), strict=True)
    return [
        ClosedTradeRow(
            id=name.decode(),
            deployment_id=group.deployment_id,
            opened_at=None if opened == UNKNOWN_INSTANT else _instant(opened),
            closed_at=_instant(closed),
            outcome=None if group.outcome_unit is None else Outcome(value=outcome, unit=group.outcome_unit),
            pnl=None if math.isnan(pnl) else pnl,
            currency=group.currency,
            memory_arm=columns.entries[entry].memory_arm,
        )
        for name, opened, closed, outcome, pnl, code, entry in cells
        for group in [columns.groups[code]]
    ]


def order_of_codes(codes: Integers, count: int) -> Integers:
    """The stable order of codes from 0 up to a count; NumPy sorts 16-bit integers by radix, much faster than others."""
    return np.argsort(codes.astype(np.uint16) if count <= 2**16 else codes, kind="stable")


def tallies(columns: ClosedTradeColumns, rows: Integers) -> dict[str, Tally]:
    """The tally of some trades by deployment; the sums are exact, so that the order of the trades does not matter."""
    names = sorted({group.deployment_id for group in columns.groups})
    place = {name: number for number, name in enumerate(names)}
    by_row = np.array([place[group.deployment_id] for group in columns.groups], np.int64)[columns.group[rows]]
    order = order_of_codes(by_row, len(names))
    ends = np.cumsum(np.bincount(by_row, minlength=len(names)))[:-1]
    parts = np.split(rows[order], ends) if len(rows) else []
    return {name: _tally(columns, part) for name, part in zip(names, parts, strict=False) if len(part)}


def _tally(columns: ClosedTradeColumns, rows: Integers) -> Tally:
    pnl, converted = columns.pnl[rows], _is_converted(columns)[columns.group[rows]]
    return Tally(
        trades=len(rows),
        wins=int(np.count_nonzero(pnl > 0.0)),
        pnl=math.fsum(pnl[converted].tolist()),
        last_closed_at=_instant(int(columns.closed_at[rows].max())),
        unconverted=len(rows) - int(np.count_nonzero(converted)),
    )


def group_counts(columns: ClosedTradeColumns, rows: Integers) -> Mapping[TradeLabels, int]:
    """The number of some trades by group."""
    counts = np.bincount(columns.group[rows], minlength=len(columns.groups)).tolist()
    return {group: count for group, count in zip(columns.groups, counts, strict=True) if count}


def converted_pnl(columns: ClosedTradeColumns, rows: Integers) -> Floats:
    """The results in the account's currency; NaN where a result could not be converted."""
    return np.where(_is_converted(columns)[columns.group[rows]], columns.pnl[rows], np.nan)


def _is_converted(columns: ClosedTradeColumns) -> NDArray[np.bool_]:
    return np.array([group.currency is None for group in columns.groups], np.bool_)


def _micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def _instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def closed_between(columns: ClosedTradeColumns, rows: Integers) -> tuple[datetime | None, datetime | None]:
    """The first and the last close of some trades; None for none."""
    if not len(rows):
        return None, None
    closed_at = columns.closed_at[rows]
    return _instant(int(closed_at.min())), _instant(int(closed_at.max()))


def closed_within(
    columns: ClosedTradeColumns,
    rows: Integers,
    *,
    symbols: Collection[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Integers:
    """Of some trades those in some symbols that were closed from `since` on and before `until`."""
    stays = np.ones(len(rows), np.bool_)
    if symbols is not None:
        is_symbol = np.array([group.symbol in symbols for group in columns.groups], np.bool_)
        stays &= is_symbol[columns.group[rows]]
    if since is not None:
        stays &= columns.closed_at[rows] >= _micros(since)
    if until is not None:
        stays &= columns.closed_at[rows] < _micros(until)
    return rows[stays]
