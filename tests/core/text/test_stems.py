"""The stems of many texts are those of each text."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.text.stems import stems, stems_of_texts

PIECES = ["Ranges", "broke", "it's", "don't", "’s", "the", "_x_", "2nd", "über", "中国", "\n", "\x1f", "a'b'c", "İ"]
TEXTS = st.one_of(st.none(), st.text(max_size=20), st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))


@given(st.lists(TEXTS, max_size=6))
def test_texts_are_stemmed_in_bulk_as_one_by_one(texts: list[str | None]) -> None:
    assert [set(each) for each in stems_of_texts(texts)] == [set(stems(text)) for text in texts]
