"""The image of episodes in columns: it grows, shares arrays, and older images stay as they were."""

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.candidates import Filters
from backsight.core.recall.arrays.columns import append_episodes, columns_of, micros
from backsight.core.recall.arrays.scan import scan
from backsight.core.recall.score import Situation
from backsight.core.text.stems import stems
from backsight.testing import T0, an_episode
from core.recall.arrays.test_scan import BLOCKS, EPISODES, QUERIES, rows


@given(EPISODES, st.lists(EPISODES, max_size=4), QUERIES, st.integers(1, 5), BLOCKS)
def test_appended_columns_equal_columns_built_at_once(
    start: list[Episode], batches: list[list[Episode]], query: Situation, limit: int, block: int
) -> None:
    grown, every = columns_of(start, block=block), list(start)
    images = [(grown, list(every))]
    for batch in batches:
        grown = append_episodes(grown, batch)
        every += batch
        images.append((grown, list(every)))
    for image, episodes in images:  # older images stay as they were
        at_once = columns_of(episodes, block=block)
        assert rows(image) == rows(at_once)
        assert len(image) == len(at_once)
        result, expected = (
            scan(columns, query, horizon=Horizon(as_of=T0), limit=limit) for columns in (image, at_once)
        )
        assert [hit.id for hit in result.memories] == [hit.id for hit in expected.memories]
        assert [hit.id for hit in result.nearest] == [hit.id for hit in expected.nearest]
        assert [hit.id for hit in result.warnings] == [hit.id for hit in expected.warnings]
        assert result.candidates == expected.candidates


def test_two_images_may_grow_from_one() -> None:
    base = columns_of([an_episode(n) for n in range(40)])
    base = append_episodes(base, [an_episode(40)])
    one, other = append_episodes(base, [an_episode(41)]), append_episodes(base, [an_episode(42)])
    assert (one.id(41), other.id(41), len(base)) == ("episode-000041", "episode-000042", 41)


def test_growing_at_the_end_shares_the_arrays() -> None:
    base = append_episodes(columns_of([an_episode(n) for n in range(100)]), [an_episode(100)])
    grown = append_episodes(base, [an_episode(101)])
    assert np.shares_memory(base.outcome, grown.outcome)
    assert np.shares_memory(base.words, grown.words) or not len(base.words)


def test_a_correction_at_the_end_leaves_older_images_as_they_were() -> None:
    base = columns_of([an_episode(n, pnl_r=1.0) for n in range(100)])
    late = an_episode(3, pnl_r=-4.0, known_at=T0 + timedelta(hours=1))
    grown = append_episodes(base, [late])
    now = T0 + timedelta(hours=1)
    assert np.shares_memory(base.ids, grown.ids) or len(base.buffers.arrays["ids"]) == 100
    assert [hit.id for hit in scan(grown, Situation(), horizon=Horizon(as_of=now)).warnings] == ["episode-000003"]
    assert scan(base, Situation(), horizon=Horizon(as_of=now)).warnings == ()
    assert len(grown) == 100


def test_corrections_do_not_pile_up() -> None:
    columns = columns_of([an_episode(n) for n in range(50)])
    for hour in range(1, 200):
        columns = append_episodes(columns, [an_episode(hour % 50, known_at=T0 + timedelta(hours=hour))])
    assert len(columns) == 50
    assert len(columns.known_at) <= 60


def test_codes_and_ids_widen() -> None:
    many = [an_episode(n, tags=(f"tag {n}",), symbol=f"S{n}", market_context=f"word{n}") for n in range(70_000)]
    columns = append_episodes(columns_of(many[:10]), many[10:])
    long = an_episode(0, id="x" * 90, known_at=T0 + timedelta(hours=1))
    columns = append_episodes(columns, [long])
    assert {columns.group.dtype, columns.tagged.dtype, columns.words.dtype} == {np.dtype("u4")}
    assert (columns.id(70_000), columns.id(5), columns.tags(69_999)) == (long.id, many[5].id, ("tag 69999",))
    query = Situation(symbol="S69999", words=stems("word69999"))
    result = scan(columns, query, Filters(symbol="S69999"), horizon=Horizon(as_of=T0))
    assert [(hit.id, hit.factors.Sim) for hit in result.memories] == [("episode-069999", 1.0)]


def test_instants_are_kept_to_the_microsecond() -> None:
    at = datetime(2026, 6, 4, 10, 0, 0, 1, tzinfo=UTC)
    assert columns_of([an_episode(1, known_at=at, ended_at=at)]).end_of(0) == at
    assert micros(at) % 10 == 1
