"""Search by words, vectors and versions works the same on both databases, and during a rebuild."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.documents.citation import Source
from backsight.core.documents.document import (
    ChangeStamp,
    Document,
    IndexedChunk,
    IndexState,
    LoadedDocument,
    compare_chunks,
    content_hash,
    index_chunks,
)
from backsight.core.documents.merge import DEPTH
from backsight.core.documents.query import read_query
from backsight.store import documents as stored
from backsight.store.database import Connection, Database, open_database
from backsight.store.documents import Scope
from backsight.store.publishing import Publication, prepare, publish, put_vectors
from backsight.store.search.hybrid import QueryVector, hybrid_search, keyword_search
from backsight.store.search.vectors import VectorCache
from backsight.testing import T0

NOW = Scope()


def written(
    database: Database,
    texts: dict[str, str | None],
    *,
    at: datetime = T0,
    owner: str = "ana",
    source: Source = "manual",
) -> IndexState:
    """Publish documents by path; None removes a document."""
    with database.writing(owner) as connection:
        before = stored.index_or_empty(connection, owner, now=at)
        current = stored.documents(connection, owner)
        removed: list[Document] = []
        added: list[Document] = []
        removed_chunks: list[IndexedChunk] = []
        added_chunks: list[IndexedChunk] = []
        for path, text in texts.items():
            removed += [current[path]] if path in current else []
            chunks: list[IndexedChunk] = []
            if text is not None:
                loaded = LoadedDocument(
                    path=path,
                    source=source,
                    agent=None,
                    written_at=at,
                    stamp=ChangeStamp(size=len(text), changed=0),
                    text=text,
                )
                chunks = index_chunks(loaded, owner=owner, now=at)
                added.append(
                    Document(
                        owner_id=owner,
                        path=path,
                        source=source,
                        agent=None,
                        written_at=at,
                        content_hash=content_hash(text),
                        lines=text.count("\n"),
                        stamp=loaded.stamp,
                        valid_from=at,
                    )
                )
            changes = compare_chunks(stored.chunks(connection, owner, path), chunks)
            removed_chunks += changes.removed
            added_chunks += changes.added
        publication = Publication(
            removed=tuple(removed),
            added=tuple(added),
            removed_chunks=tuple(removed_chunks),
            added_chunks=tuple(added_chunks),
        )
        return publish(connection, before, prepare(connection, publication), replace(before, synced_at=at))


def searched(database: Database, text: str, scope: Scope = NOW, *, owner: str = "ana") -> dict[str, float]:
    """The BM25 score of each path that is found, best first."""
    with database.reading(owner) as connection:
        index = stored.index_state(connection, owner, scope.at)
        if index is None:
            return {}
        matches = keyword_search(connection, index, read_query(text), scope)
        chunks = stored.numbered_chunks(connection, owner, matches.numbers)
    order = sorted(matches.numbers, key=lambda number: -matches.keyword[number])
    return {chunks[number].path: matches.keyword[number] for number in order}


RULES: dict[str, str | None] = {
    "cap.md": "R3_POSITION_CAP: never hold more than 2% in BTC/USDT.",
    "stop.md": "R4_STOP: every trade has a stop; trading without one is over. See #406.",
    "cafe.md": "Notes from the café: 仓位上限 is two percent.",
    "risk.md": "Positions are small. The cap is a ceiling on risk.",
}


def test_a_rule_is_found_by_its_name_whole_and_in_part(database: Database) -> None:
    written(database, RULES)
    assert next(iter(searched(database, "R3_POSITION_CAP"))) == "cap.md"
    assert next(iter(searched(database, "BTC/USDT"))) == "cap.md"
    assert list(searched(database, "usdt")) == ["cap.md"]
    assert list(searched(database, "#406")) == ["stop.md"]
    written(database, {"price.md": "Sold 406 at 406, then 406."}, at=T0 + timedelta(days=1))
    assert list(searched(database, "what is #406")) == ["stop.md", "price.md"]


def test_a_search_as_of_an_instant_weighs_words_as_they_were_then(database: Database) -> None:
    written(database, RULES)
    then = Scope(at=T0)
    queries = ("cap", "R3_POSITION_CAP", "stop trade", "ceil*", '"two percent"', "the cap is 2%", "xylophone")
    answers = [searched(database, query, then) for query in queries]
    for query, answer in zip(queries, answers, strict=True):
        now = searched(database, query)
        assert list(answer) == list(now)
        assert answer == pytest.approx(now, rel=1e-9)
    more = {f"more{number}.md": f"The cap, the cap: stop {'and go ' * number}" for number in range(30)}
    written(database, {**more, "cap.md": "No cap any more.", "risk.md": None}, at=T0 + timedelta(days=1))
    assert [searched(database, query, then) for query in queries] == answers
    assert searched(database, "cap") != answers[0]


def test_one_unknown_word_does_not_hide_the_rest(database: Database) -> None:
    written(database, RULES)
    assert next(iter(searched(database, "stop xylophone quux"))) == "stop.md"


def test_search_ignores_endings_accents_and_signs_and_matches_beginnings(database: Database) -> None:
    written(database, RULES)
    assert "stop.md" in searched(database, "stops traded")
    assert list(searched(database, "CAFE")) == ["cafe.md"]
    assert list(searched(database, "ceil*")) == ["risk.md"]
    assert list(searched(database, "usd*")) == ["cap.md"]
    assert set(searched(database, "posi")) == {"cap.md", "risk.md"}
    assert searched(database, "POSI") == {}
    assert list(searched(database, "上限")) == ["cafe.md"]
    assert list(searched(database, "限")) == ["cafe.md"]


def test_more_matching_words_rank_higher_and_a_phrase_highest(database: Database) -> None:
    written(
        database,
        {
            "both.md": "the position has a cap",
            "phrase.md": "the position cap holds",
            "one.md": "the position is open",
            "none.md": "gold fell",
        },
    )
    assert list(searched(database, '"position cap"')) == ["phrase.md", "both.md", "one.md"]


def test_a_word_in_every_chunk_of_a_small_manual_still_counts(database: Database) -> None:
    written(
        database, {"a.md": "cap cap cap", "b.md": "a cap on size and much else that is said here", "c.md": "cap it"}
    )
    scores = searched(database, "cap")
    assert next(iter(scores)) == "a.md"
    assert min(scores.values()) > 0.05


MANY: dict[str, str | None] = {f"n{number}.md": f"risk note {number}" for number in range(60)}


def test_every_word_finds_in_a_small_workspace(database: Database) -> None:
    written(database, MANY | {"rare.md": "liquidation gone", "both.md": "liquidation risk"})
    matches = list(searched(database, "liquidation risk"))
    assert (matches[:2], len(matches)) == (["both.md", "rare.md"], 62)


def test_in_a_large_index_a_common_word_only_ranks_the_matches_of_rarer_words(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backsight.store.search.hybrid.EVERY_TERM_FINDS", 10)
    written(database, MANY | {"rare.md": "liquidation gone", "both.md": "liquidation risk"})
    assert list(searched(database, "liquidation risk")) == ["both.md", "rare.md"]
    assert len(searched(database, "gone risk")) == 62  # no chunk has both, so the common word finds as well


def test_a_typing_error_finds_what_was_meant_where_nothing_matches_exactly(database: Database) -> None:
    written(database, {"a.md": "slippage on two fills", "b.md": "Gebühren je Seite", "c.md": "slip of paper, E1042"})
    assert list(searched(database, "slipage")) == ["a.md"]
    assert list(searched(database, "Gebuehren")) == ["b.md"]
    assert list(searched(database, "Gebührem")) == ["b.md"]
    assert searched(database, "E1043") == {}
    assert searched(database, "slipage", Scope(at=T0)) == pytest.approx(searched(database, "slipage"))


def test_a_ticker_is_not_found_as_the_stem_of_another_word(database: Database) -> None:
    written(database, {"a.md": "filed the files, a tone, a dog on the run", "b.md": "notes on rates"})
    assert [searched(database, ticker) for ticker in ("FIL", "TON", "DOGE", "RUNE", "NOT")] == [{}] * 5
    for query in ("filing", "file", "tones", "runs", "running", "dogs"):
        assert list(searched(database, query)) == ["a.md"]
    assert list(searched(database, "rated")) == list(searched(database, "noting")) == ["b.md"]


def test_coverage_is_the_share_of_the_query_and_missing_words_are_named(database: Database) -> None:
    written(database, {"a.md": "funding rate " + "x" * 10 + " filler" * 3_000, "b.md": "EUR/USD funding"})
    with database.reading("ana") as connection:
        index = stored.index_state(connection, "ana")
        assert index is not None
        both = keyword_search(connection, index, read_query("funding rate"), NOW)
        sol = keyword_search(connection, index, read_query("SOL funding rate"), NOW)
        pair = keyword_search(connection, index, read_query("EURUSD funding"), NOW)
    assert max(both.coverage.values()) == pytest.approx(1.0)
    assert both.missing == pair.missing == ()
    assert (sol.missing, sol.names_missing) == (("SOL",), True)
    assert max(sol.coverage.values()) < 0.5
    assert max(pair.coverage.values()) == pytest.approx(1.0)


def test_filters_narrow_what_is_found(database: Database) -> None:
    written(database, RULES)
    written(database, {"journal/a.md": "the stop held"}, at=T0 + timedelta(days=1), source="journal")
    assert set(searched(database, "stop")) == {"stop.md", "journal/a.md"}
    assert set(searched(database, "stop", Scope(sources=("journal",)))) == {"journal/a.md"}
    assert set(searched(database, "stop", Scope(path_prefix="jour"))) == {"journal/a.md"}
    assert set(searched(database, "stop", Scope(path_prefix="%"))) == set()
    assert set(searched(database, "stop", Scope(since=T0 + timedelta(hours=1)))) == {"journal/a.md"}
    assert set(searched(database, "stop", Scope(until=T0))) == {"stop.md"}


def test_a_former_version_is_found_as_of_its_time(database: Database) -> None:
    written(database, {"a.md": "the old cap is two", "b.md": "other"})
    later = T0 + timedelta(days=1)
    written(database, {"a.md": "the new ceiling is three"}, at=later)
    assert searched(database, "cap") == {}
    assert list(searched(database, "cap", Scope(at=T0))) == ["a.md"]
    assert searched(database, "ceiling", Scope(at=T0)) == {}
    assert list(searched(database, "ceiling", Scope(at=later))) == ["a.md"]
    assert searched(database, "cap", Scope(at=T0 - timedelta(seconds=1))) == {}


def test_a_removed_document_is_out_of_every_search(database: Database) -> None:
    written(database, RULES)
    written(database, {"stop.md": None}, at=T0 + timedelta(days=1))
    assert searched(database, "stop 406") == {}
    assert list(searched(database, "406", Scope(at=T0))) == ["stop.md"]


def test_a_search_finds_only_the_owners_documents(database: Database) -> None:
    alone = written(database, RULES, owner="ana")
    before = searched(database, "cap stop")
    written(database, {f"x{number}.md": "cap stop cap" for number in range(50)}, owner="bob")
    assert searched(database, "cap stop") == before
    with database.reading("ana") as connection:
        assert stored.index_state(connection, "ana") == alone


def without(connection: Connection, path: str) -> None:
    before = stored.index_state(connection, "ana")
    assert before is not None
    publication = Publication(removed_chunks=tuple(stored.chunks(connection, "ana", path)))
    publish(connection, before, prepare(connection, publication), before)


def test_a_search_during_a_rebuild_sees_the_old_index(url: str, database: Database) -> None:
    written(database, RULES)
    reader = open_database(url)
    with database.writing("ana") as connection:
        without(connection, "stop.md")
        assert list(searched(reader, "406")) == ["stop.md"]
    assert searched(reader, "406") == {}
    reader.close()


def failing(database: Database) -> None:
    with database.writing("ana") as connection:
        without(connection, "stop.md")
        raise ZeroDivisionError


def test_a_rebuild_that_fails_leaves_the_old_index(database: Database) -> None:
    written(database, RULES)
    with pytest.raises(ZeroDivisionError):
        failing(database)
    assert list(searched(database, "406")) == ["stop.md"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.text(max_size=60), st.text(alphabet="\"'*()^:-+{}AND OR NOT NEAR/\\%_\0", max_size=30)))
def test_any_string_can_be_searched_for(database: Database, text: str) -> None:
    with database.reading("ana") as connection:
        index = stored.index_state(connection, "ana")
    if index is None:
        written(database, RULES)
    assert all(score >= 0 for score in searched(database, text).values())


def with_vectors(database: Database, model: str, by_path: dict[str, list[float]]) -> None:
    with_passages(database, model, {path: [vector] for path, vector in by_path.items()})


def with_passages(database: Database, model: str, by_path: dict[str, list[list[float]]]) -> None:
    """Store the vectors of the passages of documents."""
    with database.writing("ana") as connection:
        index = stored.index_state(connection, "ana")
        assert index is not None
        chunks = (chunk for path in by_path for chunk in stored.chunks(connection, "ana", path))
        put_vectors(connection, index, model, {chunk.text_hash: by_path[chunk.path] for chunk in chunks})


def near(database: Database, cache: VectorCache, direction: list[float], **more: Any) -> dict[str, float]:
    with database.reading("ana") as connection:
        index = stored.index_state(connection, "ana")
        assert index is not None
        vector = QueryVector(np.array(direction, dtype=np.float32), "m", cache)
        query = read_query(more.pop("text", ""))
        matches = hybrid_search(connection, index, query, Scope(**more), vector)
        chunks = stored.numbered_chunks(connection, "ana", matches.numbers)
        return {chunks[number].path: round(cosine, 2) for number, cosine in matches.vector.items()}


def scattered(database: Database, count: int) -> tuple[list[float], dict[str, float]]:
    """Index chunks with random vectors; returns a random query vector and the cosine of each path with it."""
    directions = np.random.default_rng(5).standard_normal((count + 1, 16)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    paths = [f"{'even' if place % 2 == 0 else 'odd'}/{place:03d}.md" for place in range(count)]
    written(database, {path: f"note {path}" for path in paths})
    with_vectors(database, "m", {path: row.tolist() for path, row in zip(paths, directions, strict=False)})
    cosines = directions[:-1] @ directions[-1]
    return directions[-1].tolist(), dict(zip(paths, cosines.tolist(), strict=True))


def nearest_of(cosines: dict[str, float], most: int, prefix: str = "") -> set[str]:
    within = [path for path in cosines if path.startswith(prefix)]
    return set(sorted(within, key=lambda path: -cosines[path])[:most])


def assert_nearest(database: Database, direction: list[float], cosines: dict[str, float]) -> None:
    nearest = near(database, VectorCache(), direction)
    assert set(nearest) == nearest_of(cosines, DEPTH)
    assert all(abs(nearest[path] - cosines[path]) < 0.01 for path in nearest)
    assert set(near(database, VectorCache(), direction, path_prefix="even/")) == nearest_of(cosines, DEPTH, "even/")
    assert set(near(database, VectorCache(), direction, path_prefix="odd/00")) == nearest_of(cosines, 5, "odd/00")


@pytest.mark.usefixtures("in_the_database")
def test_a_chunk_found_by_words_has_its_cosine_too(database: Database) -> None:
    direction, cosines = scattered(database, 250)
    far = min(cosines, key=lambda path: cosines[path])
    assert far in near(database, VectorCache(), direction, text=f'"{far}"')


def test_a_code_with_another_number_is_no_match(database: Database) -> None:
    written(database, {"a.md": "The licence LIC-2207 lapsed", "b.md": "nothing else"})
    with database.reading("ana") as connection:
        index = stored.index_state(connection, "ana")
        assert index is not None
        same = keyword_search(connection, index, read_query("LIC-2207"), NOW)
        other = keyword_search(connection, index, read_query("LIC-3310"), NOW)
    assert max(same.coverage.values()) == pytest.approx(1.0)
    assert max(other.coverage.values(), default=0.0) == 0.0
