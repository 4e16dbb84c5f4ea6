"""Documents and their chunks: the smallest change between two versions, and the words that find a chunk."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.document import (
    ChangeStamp,
    IndexedChunk,
    LoadedDocument,
    assign_numbers,
    compare_chunks,
    index_chunks,
    indexed_words,
)
from backsight.testing import T0

LINES = st.lists(st.sampled_from(["# Risk", "Never above 2%.", "", "Wait an hour.", "# Entries"]), max_size=12)


def chunks(text: str) -> list[IndexedChunk]:
    stamp = ChangeStamp(size=len(text), changed=0)
    loaded = LoadedDocument(path="rules.md", source="manual", agent=None, written_at=T0, stamp=stamp, text=text)
    return index_chunks(loaded, owner="ana", now=T0)


@given(LINES, LINES)
def test_what_is_removed_and_added_makes_the_new_version(before: list[str], after: list[str]) -> None:
    old, new = chunks("\n".join(before)), chunks("\n".join(after))
    changes = compare_chunks(old, new)
    unchanged = [chunk for chunk in old if chunk not in changes.removed]
    assert sorted(chunk.identity for chunk in (*unchanged, *changes.added)) == sorted(chunk.identity for chunk in new)


def test_an_unchanged_document_has_no_changes() -> None:
    changes = compare_chunks(chunks("# Risk\nNever above 2%."), chunks("# Risk\nNever above 2%."))
    assert (changes.removed, changes.added) == ((), ())


def test_numbers_go_on_after_the_last_one() -> None:
    text = "# Risk\n" + "Never above 2%. " * 400 + "\n# Entries\n" + "Wait an hour. " * 400
    numbers = [chunk.number for chunk in assign_numbers(chunks(text), 41, at=T0)]
    assert numbers == list(range(42, 42 + len(numbers)))
    assert len(numbers) > 1


def test_a_word_of_the_heading_counts_once() -> None:
    assert indexed_words(("Risk", "Size"), "size matters").count("size") == 1
    assert indexed_words(("Risk",), "size matters")[0] == indexed_words((), "risk")[0]
