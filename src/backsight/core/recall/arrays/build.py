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


def build_columns(batches: Iterable[EpisodeRows], *, block: int = BLOCK_ROWS) -> Columns:
    """Build columns from batches of episodes in any order; no two of them have the same id.

    >>> from backsight.core.recall.arrays.columns import episode_rows
    >>> from backsight.testing import an_episode
    >>> columns = build_columns(episode_rows(an_episode(n) for n in numbers) for numbers in [(3, 1), (2,)])
    >>> [columns.id(row) for row in range(len(columns))]
    ['episode-000001', 'episode-000002', 'episode-000003']
    """
    vocabulary = Vocabulary()
    parts: list[dict[str, Array]] = []
    words: list[Array] = []
    count = 0
    for rows in batches:
        part, part_words = encode_rows(rows, vocabulary)
        part["word_ends"] = part["word_ends"] + count
        count += len(part_words)
        parts.append(part)
        words.append(part_words)
    if not parts:
        return empty_columns(block=block)
    arrays = {name: _joined([part.pop(name) for part in parts], kind) for name, kind in COLUMN_TYPES.items()}
    all_words = _joined(words, "u2")
    arrays, all_words = _sorted(arrays, all_words)
    buffers = ColumnBuffers(arrays, all_words, rows=len(arrays["ids"]), word_count=len(all_words))
    return columns_from(buffers, vocabulary, block=block, replaced=0)


def _joined(parts: list[Array], kind: str) -> Array:
    """One array of the narrowest type that holds all parts."""
    joined = np.concatenate(parts)
    return joined.astype(narrowest(np.empty(0, kind), joined), copy=False)


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
