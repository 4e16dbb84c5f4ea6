"""A chunk is cut into passages at its paragraphs, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.passages import MAX_CHARACTERS, MAX_PASSAGES, WHOLE_CHARACTERS, passages_of

TEXTS = st.lists(
    st.sampled_from(
        ["# Rule\n", "\n", "\r\n", " \t\n", "word ", "Stop. " * 30, "跳空触发。" * 90, "x" * 700, "\n", "| a | b |\n"]
    ),
    max_size=30,
).map("".join)


@given(TEXTS)
def test_passages_one_after_the_other_are_the_chunk_and_none_is_too_long(text: str) -> None:
    passages = passages_of(text)
    assert "".join(passages).rstrip() == text.rstrip()
    if len(text) <= WHOLE_CHARACTERS:
        assert passages == [text]
    else:
        assert all(len(passage.strip()) <= MAX_CHARACTERS for passage in passages)
        assert all(map(str.strip, passages)) or len(passages) == 1


def test_each_paragraph_is_a_passage_and_a_heading_belongs_to_the_next() -> None:
    paragraphs = [f"{word} " * 100 + "\n\n" for word in ("gap", "fee", "risk", "tick")]
    text = f"## Costs\n\n{''.join(paragraphs)}"
    assert passages_of(text) == ["## Costs\n\n" + paragraphs[0], *paragraphs[1:]]


def test_of_a_line_without_end_only_the_beginning_is_embedded() -> None:
    assert len(passages_of("word " * 200_000)) == MAX_PASSAGES
