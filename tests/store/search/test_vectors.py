"""Vectors of chunks: exact cosines, one model at a time, and chunks that wait for a vector."""

from datetime import timedelta

import pytest

from backsight.core.errors import Conflict
from backsight.store import documents as stored
from backsight.store.database import Database
from backsight.store.search.vectors import VectorCache
from backsight.testing import T0
from store.search.test_hybrid import RULES, assert_nearest, near, scattered, with_passages, with_vectors, written


@pytest.mark.usefixtures("in_the_database")
def test_cosines_are_exact_and_follow_changes_of_documents(database: Database) -> None:
    cache = VectorCache()
    written(database, RULES)
    assert near(database, cache, [1.0, 0.0]) == {}
    with_vectors(database, "m", {"cap.md": [1.0, 0.0], "stop.md": [0.0, 1.0]})
    assert near(database, cache, [1.0, 0.0]) == {"cap.md": 1.0, "stop.md": 0.0}
    written(database, {"cap.md": None}, at=T0 + timedelta(days=1))
    assert near(database, cache, [0.6, 0.8]) == {"stop.md": 0.8}
    assert near(database, cache, [0.6, 0.8], at=T0) == {"cap.md": 0.6, "stop.md": 0.8}


@pytest.mark.usefixtures("in_the_database")
def test_a_chunk_is_as_near_as_its_nearest_passage_less_what_their_number_makes(database: Database) -> None:
    cache = VectorCache()
    written(database, RULES)
    four = [[0.0, 1.0], [0.8, 0.6], [-1.0, 0.0], [0.6, -0.8]]
    with_passages(database, "m", {"cap.md": four, "stop.md": [[0.6, 0.8]]})
    nearest = {"cap.md": 0.74, "stop.md": 0.6}
    assert near(database, cache, [1.0, 0.0]) == nearest
    assert near(database, cache, [1.0, 0.0], path_prefix="cap") == {"cap.md": 0.74}
    assert near(database, cache, [1.0, 0.0], path_prefix="stop") == {"stop.md": 0.6}
    assert near(database, cache, [1.0, 0.0], text="equity") == nearest
    written(database, {"new.md": "new"}, at=T0 + timedelta(days=1))
    with_passages(database, "m", {"new.md": [[0.0, -1.0], [1.0, 0.0]]})
    assert near(database, cache, [1.0, 0.0]) == {**nearest, "new.md": 0.97}
    assert near(database, cache, [1.0, 0.0], at=T0) == nearest
    with database.reading("ana") as connection:
        assert stored.count_embedded(connection, "ana", "m") == 3


@pytest.mark.usefixtures("in_the_database")
def test_two_models_never_mix(database: Database) -> None:
    written(database, RULES)
    with_vectors(database, "other", {"cap.md": [1.0, 0.0]})
    assert near(database, VectorCache(), [1.0, 0.0]) == {}
    with_vectors(database, "m", {"stop.md": [0.0, 1.0, 0.0]})
    assert near(database, VectorCache(), [0.0, 1.0, 0.0]) == {"stop.md": 1.0}
    assert near(database, VectorCache(), [0.0, 1.0]) == {}
    with pytest.raises(Conflict, match="'m' now gives vectors of 2 dimensions, but its stored vectors have 3"):
        with_vectors(database, "m", {"cap.md": [1.0, 0.0]})


@pytest.mark.usefixtures("in_the_database")
def test_the_nearest_chunks_are_found_with_and_without_filters(database: Database) -> None:
    direction, cosines = scattered(database, 250)
    assert_nearest(database, direction, cosines)


def test_chunks_without_a_vector_are_listed_until_they_have_one(database: Database) -> None:
    written(database, RULES)
    with database.reading("ana") as connection:
        assert len(stored.chunks_to_embed(connection, "ana", "m", limit=100)) == 4
    with_vectors(database, "m", {"cap.md": [1.0, 0.0]})
    with database.reading("ana") as connection:
        assert len(stored.chunks_to_embed(connection, "ana", "m", limit=100)) == 3
        assert stored.count_embedded(connection, "ana", "m") == 1
