"""The stems of many texts are those of each text."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.recall.arrays.columns import Interned
from backsight.core.recall.arrays.words import encode_texts
from backsight.core.text.stems import stems

PIECES = ["Ranges", "broke", "it's", "don't", "’s", "the", "_x_", "2nd", "über", "中国", "\n", "\x1f", "\0", "a'b", "İ"]
TEXTS = st.one_of(st.none(), st.text(max_size=20), st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))


@given(st.lists(TEXTS, max_size=6))
def test_texts_are_stemmed_in_bulk_as_one_by_one(texts: list[str | None]) -> None:
    words: Interned[str] = Interned()
    codes, ends = encode_texts(texts, words.code)
    parts = [codes[start:end].tolist() for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
    assert [{words.values[code] for code in part} for part in parts] == [set(stems(text)) for text in texts]
    assert all(part == sorted(set(part)) for part in parts)
