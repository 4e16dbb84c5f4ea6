"""Columns built from all episodes of an owner, batch by batch, so that memory holds the values of one batch."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from backsight.core.recall.arrays.columns import (
    BLOCK_ROWS,
    COLUMN_TYPES,
    Array,
    ColumnBuffers,
    Columns,
    EpisodeRows,
    Vocabulary,
    columns_from,
    empty_columns,
    encode_rows,
    narrowest,
)

ARRAY_TYPES = {**COLUMN_TYPES, "words": "u2"}
"""The smallest type of each array of a batch."""
PARTS_AT_ONCE = 32
"""Batches whose arrays are joined at once: small arrays in memory beside the joined ones take their space twice."""


def build_columns(batches: Iterable[EpisodeRows], *, block: int = BLOCK_ROWS) -> Columns:
    """Build columns from batches of episodes in any order; no two of them have the same id.

    >>> from backsight.core.recall.arrays.columns import episode_rows
    >>> from backsight.testing import an_episode
    >>> columns = build_columns(episode_rows(an_episode(n) for n in numbers) for numbers in [(3, 1), (2,)])
    >>> [columns.id(row) for row in range(len(columns))]
    ['episode-000001', 'episode-000002', 'episode-000003']
    """
    vocabulary, count = Vocabulary(), 0
    few: list[dict[str, Array]] = []
    many: list[dict[str, Array]] = []
    for rows in batches:
        part, words = encode_rows(rows, vocabulary)
        few.append({**part, "words": words, "word_ends": part["word_ends"] + count})
        count += len(words)
        if len(few) == PARTS_AT_ONCE:
            many.append(_joined(few))
    if few:
        many.append(_joined(few))
    if not many:
        return empty_columns(block=block)
    arrays = _joined(many)
    arrays, all_words = _sorted(arrays, arrays.pop("words"))
    buffers = ColumnBuffers(arrays, all_words, rows=len(arrays["ids"]), word_count=len(all_words))
    return columns_from(buffers, vocabulary, block=block, replaced=0)


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Arrays of the narrowest types that hold all parts; empties the list, so that no array is in memory twice."""
    joined: dict[str, Array] = {}
    for name, kind in ARRAY_TYPES.items():
        values = np.concatenate([part.pop(name) for part in parts])
        joined[name] = values.astype(narrowest(np.empty(0, kind), values), copy=False)
    parts.clear()
    return joined


def _sorted(arrays: dict[str, Array], words: Array) -> tuple[dict[str, Array], Array]:
    """The rows by (known_at, id), with their words."""
    known_at = arrays["known_at"]
    if np.all(known_at[1:] > known_at[:-1]):  # so they are read from an index
        return arrays, words
    order = np.lexsort((arrays["ids"], known_at))
    ends = arrays["word_ends"].astype(np.int64)
    lengths = np.diff(ends, prepend=0)
    starts, lengths = (ends - lengths)[order], lengths[order]
    new_ends = np.cumsum(lengths)
    # The place of each word: the start of its row's words, and how far it is from there.
    places = np.repeat(starts - (new_ends - lengths), lengths) + np.arange(len(words))
    ordered: dict[str, Any] = {name: values[order] for name, values in arrays.items()}
    return {**ordered, "word_ends": new_ends.astype(arrays["word_ends"].dtype)}, words[places]
