"""Columns as bytes and back, so that a process need not build them from every row of the store.

What is packed says what it is of, and a checksum covers all of it. Nothing in it is ever run.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json
from backsight.core.recall.arrays.columns import FIELDS, Array, Columns, Group, Room, Vocabulary, image_of

FORMAT = b"backsight columns 1\n".ljust(32)
"""Counted up with whatever changes what a column says: fields, codes, the stems of words."""
SUMMED = 32
LABEL = 512
LABELLED = len(FORMAT) + SUMMED + LABEL
"""So many bytes tell what a packed image is of."""
LENGTH = 8
ALIGNED = 64
"""Arrays start at multiples of this, as the processor likes it."""


def packed(columns: Columns, *, label: str) -> Iterator[bytes]:
    """The parts of the packed image, in their order."""
    arrays = {**{name: getattr(columns, name) for name in FIELDS}, "words": columns.words}
    vocabulary = columns.vocabulary
    with vocabulary.lock:
        head = {
            "arrays": [[name, held.dtype.str, len(held)] for name, held in arrays.items()],
            "groups": [list(group) for group in vocabulary.groups.values],
            "tags": vocabulary.tags.values,
            "words": vocabulary.words.values,
            "gone": columns.gone,
            "block": columns.blocks.size,
        }
        told = canonical_json(head).encode()
    told += b" " * (-(len(told) + LENGTH) % ALIGNED)
    named = label.encode().ljust(LABEL)
    if len(named) > LABEL:
        raise Invalid("too long to be packed", field="label")
    parts = [named, len(told).to_bytes(LENGTH) + told, *(_padded(held.tobytes()) for held in arrays.values())]
    summed = hashlib.sha256()
    for part in parts:
        summed.update(part)
    yield FORMAT
    yield summed.digest()
    yield from parts


def label_of(start: bytes) -> str:
    """What a packed image says it is of, from its first bytes; empty where it is none of ours.

    Whether the rest is sound only `unpacked` knows.
    """
    return start[LABELLED - LABEL : LABELLED].decode(errors="replace").rstrip() if start.startswith(FORMAT) else ""


def unpacked(content: bytes) -> Columns:
    """The image that was packed.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import an_episode
    >>> content = b"".join(packed(columns_of([an_episode(1)]), label="mine"))
    >>> label_of(content), unpacked(content).id(0)
    ('mine', 'episode-000001')
    >>> unpacked(content[:-1])
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: columns: spoilt, or of another version
    """
    body = memoryview(content)[len(FORMAT) + SUMMED :]
    if not content.startswith(FORMAT) or hashlib.sha256(body).digest() != content[len(FORMAT) : len(FORMAT) + SUMMED]:
        raise Invalid("spoilt, or of another version", field="columns")
    start = LABEL + LENGTH + int.from_bytes(body[LABEL : LABEL + LENGTH])
    head = json.loads(bytes(body[LABEL + LENGTH : start]))
    arrays: dict[str, Array] = {}
    for name, kind, count in head["arrays"]:
        arrays[name] = np.frombuffer(body, kind, count, start)
        start += arrays[name].nbytes + -arrays[name].nbytes % ALIGNED
    words = arrays.pop("words")
    room = Room(arrays, words, rows=len(arrays["ids"]), word_count=len(words))
    vocabulary = _vocabulary(head["groups"], head["tags"], head["words"])
    return image_of(room, vocabulary, block=head["block"], gone=head["gone"])


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % ALIGNED)


def _vocabulary(groups: Sequence[Sequence[object]], tags: Sequence[Sequence[str]], words: Sequence[str]) -> Vocabulary:
    made = Vocabulary()
    for group in groups:
        made.groups.code(Group._make(group))
    for labels in tags:
        made.tags.code(tuple(labels))
    for word in words:
        made.words.code(word)
    return made
