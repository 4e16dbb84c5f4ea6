"""The episodes of an owner read for their columns: in batches, and as the driver gives them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, type_coerce

from backsight.core.recall.arrays.columns import EpisodeRows, micros
from backsight.store.mapping import PlainText, TextTuple, UtcInstant
from backsight.store.reading import Columns as TableColumns

ROWS_AT_ONCE = 1_000
"""So few that their values stay in the cache of the processor: 5,000 take a tenth longer."""
INSTANTS = ("known_at", "recorded_at", "ended_at")


def undecoded(c: TableColumns, names: Iterable[str]) -> list[Any]:
    """Columns as the driver gives them."""
    return [
        type_coerce(c[name], PlainText).label(name) if isinstance(c[name].type, UtcInstant | TextTuple) else c[name]
        for name in names
    ]


def batches(connection: Connection, statement: Select[Any]) -> Iterator[EpisodeRows]:
    """The rows of a statement that selects the `undecoded` columns of `EpisodeRows`."""
    result = connection.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE})
    for rows in result.partitions():
        columns: dict[str, Any] = dict(zip(EpisodeRows._fields, zip(*rows, strict=True), strict=True))
        columns |= {name: micros_of(columns[name]) for name in INSTANTS}
        columns["tags"] = list(map(_tags, columns["tags"]))
        yield EpisodeRows(**columns)


def micros_of(instants: Sequence[Any]) -> NDArray[np.int64]:
    """Microseconds since 1970 of instants: datetimes in PostgreSQL, text in SQLite."""
    if isinstance(instants[0], datetime):
        return np.fromiter(map(micros, instants), np.int64, len(instants))
    without_zone = np.array(instants, dtype="S26")  # the text ends with Z
    return without_zone.astype("datetime64[us]").astype(np.int64)


@lru_cache(maxsize=4_096)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
