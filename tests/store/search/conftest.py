"""Fixtures that the tests of search share."""

from collections.abc import Iterator

import pytest

from backsight.store.database import Database, open_database
from backsight.store.search import postgres_vectors


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url)
    yield opened
    opened.close()


@pytest.fixture(params=["where it can", "never"])
def in_the_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the database compares vectors, if its extension is available."""
    if request.param == "never":
        monkeypatch.setattr(postgres_vectors, "_create_table", lambda *_, **__: None)
    return bool(request.param == "where it can")
