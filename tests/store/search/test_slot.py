"""Slots: the search of a store by its name."""

import pytest

from backsight.core.errors import Invalid
from backsight.store.search.slot import slot_named


def test_an_unknown_slot_is_named() -> None:
    with pytest.raises(Invalid, match="known: sqlite_fts, hybrid_embeddings"):
        slot_named("hybrid")
