"""The hash of a recall, which a brief answer has in place of the long handle, and how the recall is found by it.

A handle says all of a query, so that any process can repeat the recall. It takes some 200 tokens of an answer of 1,200.
The hash takes 7. A recall is found by its hash in the process that answered it, or in the store if a decision was based
on it.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from backsight.core.errors import NotFound
from backsight.core.ids import digest
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.record import RankingName, RecallResult
from backsight.services.context import Context
from backsight.services.recall import encode_recall
from backsight.store.database import Connection
from backsight.store.recalls import last_recalls

HASH = re.compile(r"r\d{18}")
"""Digits, because a tokenizer takes three of them at once."""
MOST_RECORDED = 1_000
"""Recorded recalls among which a hash is looked for, the latest."""


def hash_of_recall(handle: str, nearest_and_warnings: Iterable[str]) -> str:
    """The hash of a recall, from its query and instants, which make up the handle, and the ids that it answered.

    The ids are those of the nearest episodes and of the warnings: they are the same on every page of an answer.

    >>> hash_of_recall("eNqrVkrLz1eyUkpKLFKqBQAhuAR_", ["e1", "e2"])
    'r106012708247287663'
    """
    number = int(digest([handle, *nearest_and_warnings])[:16], 16)
    return f"r{number % 10**18:018}"


def remember_recall(ctx: Context, handle: str, answered: Sequence[RecalledMemory]) -> str:
    """The hash of a recall that was answered now; this process finds the recall by it."""
    recall_hash = hash_of_recall(handle, [memory.id for memory in answered])
    ctx.database.recent_recalls.add(ctx.owner, recall_hash, handle)
    return recall_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRecalls:
    """The recalls that a caller names, as handles, and the hashes of those that are not known."""

    handles: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing because of recalls that are not known; empty if all are known."""
        if not self.unknown:
            return ()
        names = ", ".join(self.unknown)
        return (
            f"Recorded without the recall {names}, whose memories are not known: another server answered it, or this "
            'one before it was restarted. The `recall` of an answer with detail="full" is known everywhere.',
        )


def named_recalls(ctx: Context, names: Sequence[str], *, connection: Connection | None = None) -> NamedRecalls:
    """The handles of recalls that are named by their handle or by their hash."""
    handles: dict[str, str | None] = {
        name: ctx.database.recent_recalls.handle(ctx.owner, name) if HASH.fullmatch(name) else name for name in names
    }
    if None in handles.values():
        reading: AbstractContextManager[Connection] = ctx.reading() if connection is None else nullcontext(connection)
        with reading as opened:
            handles |= _recorded(opened, ctx.owner, {name for name, handle in handles.items() if handle is None})
    return NamedRecalls(
        handles=tuple(handle for handle in handles.values() if handle is not None),
        unknown=tuple(name for name, handle in handles.items() if handle is None),
    )


def named_recall(ctx: Context, name: str, *, field: str) -> str:
    """The handle of one recall; `NotFound` if it is named by a hash that is not known."""
    recalls = named_recalls(ctx, [name])
    if not recalls.handles:
        raise NotFound(
            f'no recall {name} is known here; call recall_memories again, or with detail="full", '
            "whose `recall` is known everywhere",
            field=field,
        )
    return recalls.handles[0]


def _recorded(connection: Connection, owner: str, hashes: set[str]) -> dict[str, str]:
    """The handles of these hashes, of those that a decision was recorded with lately."""
    handles: dict[str, str] = {}
    for result in last_recalls(connection, owner, most=MOST_RECORDED):
        handle = encode_recall(result.asked, now=result.asked.as_of)
        recall_hash = hash_of_recall(handle, _answered(result))
        if recall_hash in hashes:
            handles[recall_hash] = handle
            if len(handles) == len(hashes):
                break
    return handles


def _answered(result: RecallResult) -> list[str]:
    """The ids of the nearest episodes and the warnings of a recorded recall, as its answer had them."""
    if "episodic" not in result.asked.memory_types:
        return []
    rankings: tuple[RankingName, ...] = ("nearest", "warnings")
    return [ranked.id for name in rankings for ranked in result.found.get(name, ())]
