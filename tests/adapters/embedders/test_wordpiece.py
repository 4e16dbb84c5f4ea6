"""WordPiece tokens are those of the reference."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.adapters.embedders.wordpiece import token_ids, vocabulary


def test_tokens_are_those_of_the_reference() -> None:
    """The expected tokens are from the `tokenizers` library with the model's own file."""
    known = list(vocabulary())
    assert [known[number] for number in token_ids("R3_POSITION_CAP: never above 2%\tof équité!")] == (
        ["r", "##3", "_", "position", "_", "cap", ":", "never", "above", "2", "%", "of", "e", "##qui", "##te", "!"]
    )
    assert [known[number] for number in token_ids("限额BTC\u200b " + "x" * 101)] == [
        "[UNK]",
        "[UNK]",
        "bt",
        "##c",
        "[UNK]",
    ]


@given(st.text(max_size=60))
def test_any_text_can_be_tokenized(text: str) -> None:
    assert all(0 <= number < len(vocabulary()) for number in token_ids(text))
