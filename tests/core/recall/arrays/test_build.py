"""Columns built batch by batch equal columns built at once."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.build import build_columns
from backsight.core.recall.arrays.columns import COLUMN_TYPES, columns_of, differing_ids, episode_rows
from core.recall.arrays.test_scan import BLOCKS, EPISODES


@given(EPISODES, st.integers(1, 5), BLOCKS, st.booleans())
def test_columns_built_in_batches_equal_columns_built_at_once(
    episodes: list[Episode], size: int, block: int, backwards: bool
) -> None:
    unique = list({episode.id: episode for episode in episodes}.values())[:: -1 if backwards else 1]
    parts = [unique[first : first + size] for first in range(0, len(unique), size)]
    in_batches, at_once = build_columns(map(episode_rows, parts), block=block), columns_of(unique, block=block)
    assert differing_ids(in_batches, at_once) == []
    assert in_batches.ids.tolist() == at_once.ids.tolist()
    assert [getattr(in_batches, name).dtype for name in COLUMN_TYPES] == [
        getattr(at_once, name).dtype for name in COLUMN_TYPES
    ]
    assert len(in_batches.blocks) == len(at_once.blocks)
