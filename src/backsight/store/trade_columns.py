"""The columnar image of an owner's closed trades, from which counts and sums are computed as of any instant.

It stays up to date in the same way as the image of the episodes (`store/images.py`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, or_, select

from backsight.core.trades.columns import (
    EMPTY,
    UNKNOWN_INSTANT,
    ClosedTradeColumns,
    EntryLabels,
    Integers,
    TradeLabels,
    TradeRows,
    differing_trades,
    update_trades,
)
from backsight.store.columns_build import ROWS_AT_ONCE, micros_of, undecoded
from backsight.store.columns_file import pack_arrays, unpack_arrays
from backsight.store.images import ChangedRows, ImageCache, changed_conditions
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, Columns, parameters, prepared_within
from backsight.store.trades import TRADES
from backsight.store.view import View

MAX_BYTES = 128 * 1024 * 1024
FILE_FORMAT = b"backsight trade columns 3\n".ljust(32)
"""Increase the number when the meaning of a column changes."""
VALUES = (
    "id",
    "known_at",
    "recorded_at",
    "exit_tick_at",
    "entry_tick_at",
    "pnl",
    "realized_pnl_usd",
    "outcome_value",
    "holding_minutes",
    "entry_equity",
    "mfe_r",
    "mae_r",
)
"""The columns of `TradeRows` before its labels, in the order of its fields."""
LABELS = (
    "deployment_id",
    "skill_id",
    "strategy_name",
    "version",
    "symbol",
    "mode",
    "currency",
    "outcome_unit",
    "entry_lessons_hash",
)
"""The columns of a `TradeLabels`, in the order of its fields."""
ENTRY_LABELS = (
    "side",
    "context_regime",
    "context_volatility_regime",
    "context_session",
    "memory_arm",
    "entry_model",
    "tags",
)
"""The columns of an `EntryLabels`, in the order of its fields."""


class TradeImages(ImageCache[ClosedTradeColumns]):
    """A cache of the closed trades of all owners."""

    noun = TRADES
    suffix = ".trades"
    file_format = FILE_FORMAT

    def __init__(self, folder: Path | None = None, *, prefix: str = "", max_bytes: int = MAX_BYTES) -> None:
        super().__init__(folder, prefix=prefix, max_bytes=max_bytes)

    def build(self, connection: Connection, owner: str) -> ClosedTradeColumns:
        return update_trades(EMPTY, _rows(connection, select(*_fields(TRADES.table.c)).where(*_closed(owner))))

    def update(
        self, connection: Connection, owner: str, columns: ClosedTradeColumns, changed: ChangedRows
    ) -> ClosedTradeColumns:
        statements = (
            select(*_fields(TRADES.table.c)).where(*_closed(owner), condition)
            for condition in changed_conditions(TRADES, changed)
        )
        parts = [part for statement in statements for part in _rows(connection, statement)]
        return update_trades(columns, parts, without=changed.ids)

    def with_former(self, view: View, columns: ClosedTradeColumns) -> ClosedTradeColumns:
        return update_trades(columns, _rows(view.connection, _FORMER, parameters(view.owner, view.horizon)))

    def differing_ids(self, first: ClosedTradeColumns, second: ClosedTradeColumns) -> list[str]:
        return differing_trades(first, second)

    def pack(self, columns: ClosedTradeColumns, *, label: str) -> Iterator[bytes | memoryview]:
        labels = {"groups": columns.groups, "entries": columns.entries}
        return pack_arrays(FILE_FORMAT, columns.arrays(), labels, label=label)

    def unpack(self, content: bytes) -> ClosedTradeColumns:
        arrays, head = unpack_arrays(FILE_FORMAT, content)
        return ClosedTradeColumns(
            **arrays,
            groups=tuple(map(TradeLabels._make, head["groups"])),
            entries=tuple(map(EntryLabels._make, head["entries"])),
        )


def _fields(c: Columns) -> list[Any]:
    return undecoded(c, (*VALUES, *LABELS, *ENTRY_LABELS))


def _closed(owner: str) -> list[ColumnElement[bool]]:
    c = TRADES.table.c
    return [c[OWNER] == owner, c.status == "closed"]


def _former_versions() -> Any:
    """The versions that were current at a horizon and have been replaced since."""
    former = TRADES.former
    if former is None:
        raise TypeError("the table of trades has no former versions")
    c = former.table.c
    current_then = or_(c[REPLACED_KNOWN] > AS_OF, c[REPLACED_RECORDED] > SEEN_AT)
    return select(*_fields(c)).where(c[OWNER] == OWNED, c.status == "closed", *prepared_within(former), current_then)


_FORMER = _former_versions()


def _rows(connection: Connection, statement: Any, values: dict[str, object] | None = None) -> Iterator[TradeRows]:
    result = connection.execute(statement, values, execution_options={"yield_per": ROWS_AT_ONCE})
    for rows in result.partitions():
        ids, known_at, recorded_at, *columns = zip(*rows, strict=True)
        closed_at, opened_at, pnl, realized_pnl_usd, outcome, minutes, equity, mfe_r, mae_r, *labels = columns
        yield TradeRows(
            id=ids,
            known_at=micros_of(known_at),
            recorded_at=micros_of(recorded_at),
            closed_at=micros_of(closed_at),
            opened_at=_micros_or_unknown(opened_at),
            pnl=pnl,
            realized_pnl_usd=realized_pnl_usd,
            outcome=outcome,
            minutes=minutes,
            entry_equity=equity,
            mfe_r=mfe_r,
            mae_r=mae_r,
            group=zip(*labels[: len(LABELS)], strict=True),
            entry=zip(*labels[len(LABELS) :], strict=True),
        )


def _micros_or_unknown(instants: Sequence[Any]) -> Integers:
    """As `micros_of`, with `UNKNOWN_INSTANT` for an instant that is not known."""
    known = [each is not None for each in instants]
    if all(known):
        return micros_of(instants)
    micros = np.full(len(instants), UNKNOWN_INSTANT)
    if any(known):
        micros[known] = micros_of([each for each in instants if each is not None])
    return micros
