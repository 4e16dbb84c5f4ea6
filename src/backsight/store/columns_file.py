"""The file format of columns, so that a process need not build them from every row of the store.

A file has a label that says what the columns belong to, and a checksum over all of its content. It contains data only:
nothing in it is executed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json
from backsight.core.recall.arrays.columns import (
    COLUMN_TYPES,
    Array,
    ColumnBuffers,
    Columns,
    EpisodeGroup,
    Vocabulary,
    columns_from,
)

FORMAT = b"backsight columns 1\n".ljust(32)
"""Increase the number when the meaning of a column changes: fields, codes, the stems of words."""
CHECKSUM_BYTES = 32
LABEL_BYTES = 512
LABEL_END = len(FORMAT) + CHECKSUM_BYTES + LABEL_BYTES
"""The bytes of a file up to the end of its label."""
LENGTH_BYTES = 8
ALIGNMENT = 64
"""Arrays start at multiples of this many bytes, which the processor reads faster."""


def pack_columns(columns: Columns, *, label: str) -> Iterator[bytes | memoryview]:
    """The content of the file, part by part; no other thread may update the columns meanwhile."""
    arrays = {**{name: getattr(columns, name) for name in COLUMN_TYPES}, "words": columns.words}
    vocabulary = columns.vocabulary
    head = {
        "groups": [list(group) for group in vocabulary.groups.values],
        "tags": vocabulary.tags.values,
        "words": vocabulary.words.values,
        "gone": columns.replaced,
        "block": columns.blocks.size,
    }
    return pack_arrays(FORMAT, arrays, head, label=label)


def pack_arrays(
    file_format: bytes, arrays: Mapping[str, Array], head: Mapping[str, object], *, label: str
) -> Iterator[bytes | memoryview]:
    """The content of a file of arrays and of a head, which is any JSON object."""
    described = {**head, "arrays": [[name, array.dtype.str, len(array)] for name, array in arrays.items()]}
    head_text = canonical_json(described).encode()
    head_text += b" " * (-(len(head_text) + LENGTH_BYTES) % ALIGNMENT)
    padded_label = label.encode().ljust(LABEL_BYTES)
    if len(padded_label) > LABEL_BYTES:
        raise Invalid(f"longer than {LABEL_BYTES} bytes; give a shorter label", field="label")
    parts: list[bytes | memoryview] = [padded_label, len(head_text).to_bytes(LENGTH_BYTES) + head_text]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).data, bytes(-array.nbytes % ALIGNMENT)]
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    yield file_format
    yield checksum.digest()
    yield from parts


def read_label(start: bytes, file_format: bytes = FORMAT) -> str:
    """The label, from the first bytes of a file; empty if the file has another format.

    Only `unpack_arrays` verifies the rest of the file.
    """
    if not start.startswith(file_format):
        return ""
    return start[LABEL_END - LABEL_BYTES : LABEL_END].decode(errors="replace").rstrip()


def unpack_columns(content: bytes) -> Columns:
    """The columns in a file.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import an_episode
    >>> content = b"".join(pack_columns(columns_of([an_episode(1)]), label="mine"))
    >>> read_label(content), unpack_columns(content).id(0)
    ('mine', 'episode-000001')
    >>> unpack_columns(content[:-1])
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: columns: damaged, or of another version
    """
    arrays, head = unpack_arrays(FORMAT, content)
    words = arrays.pop("words")
    buffers = ColumnBuffers(arrays, words, rows=len(arrays["ids"]), word_count=len(words))
    vocabulary = _vocabulary(head["groups"], head["tags"], head["words"])
    return columns_from(buffers, vocabulary, block=head["block"], replaced=head["gone"])


def unpack_arrays(file_format: bytes, content: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the head in a file; `Invalid` if its checksum or its format is another."""
    body = memoryview(content)[len(file_format) + CHECKSUM_BYTES :]
    checksum = content[len(file_format) : len(file_format) + CHECKSUM_BYTES]
    if not content.startswith(file_format) or hashlib.sha256(body).digest() != checksum:
        raise Invalid("damaged, or of another version", field="columns")
    start = LABEL_BYTES + LENGTH_BYTES + int.from_bytes(body[LABEL_BYTES : LABEL_BYTES + LENGTH_BYTES])
    head = json.loads(bytes(body[LABEL_BYTES + LENGTH_BYTES : start]))
    arrays: dict[str, Array] = {}
    for name, kind, count in head["arrays"]:
        arrays[name] = np.frombuffer(body, kind, count, start)
        start += arrays[name].nbytes + -arrays[name].nbytes % ALIGNMENT
    return arrays, head


def _vocabulary(groups: Sequence[Sequence[object]], tags: Sequence[Sequence[str]], words: Sequence[str]) -> Vocabulary:
    vocabulary = Vocabulary()
    for group in groups:
        vocabulary.groups.code(EpisodeGroup._make(group))
    for labels in tags:
        vocabulary.tags.code(tuple(labels))
    for word in words:
        vocabulary.words.code(word)
    return vocabulary
