"""The estimate is never too low, whatever the text, and close on plain English."""

import base64
import string
from importlib import import_module

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backsight.core.text.tokens import cut, estimate, finest
from backsight.core.text.vocabulary import LONGEST_GRAM, MARKS, costs, grams

FRAGMENTS = [
    *(
        "'s",
        "'t",
        "'LL",
        "don't",
        "'test",
        "o'clock",
        "\n",
        "\n\n",
        "\r\n",
        "/",
        "\n/",
        "\t",
        " ",
        "  ",
        "\x0b",
        "\x00",
    ),
    *("\x1c", "\x85", "\u00a0", "\u2028", "\u3000", "\u200b", "\u202e", "\u0301", "é", "ß", "İ", "ǅ", "ʰ", "½", "١٢٣"),
    *(
        "限额",
        "突破前高",
        "ขาย",
        "शेयर",
        "выход",
        "שלום",
        "🦄",
        "👨‍👩‍👧",
        "🇩🇪",
        "\U00013000",
        "\U0010ffff",
        "<|endoftext|>",
    ),
    *("====", "----", "aaaaaaaa", "ABCdef", "abcDEF", "qzxj", "1234567890", "## Orders", '\\"', *MARKS),
]
PIECES = st.sampled_from([*costs(), *sorted(grams()), *FRAGMENTS])
LETTERS = st.text(string.ascii_letters, max_size=30) | st.text("etaoin shrdlu'-_", max_size=30)
SIGNS = st.text(string.punctuation + " \n\t", max_size=10) | st.text(string.digits, max_size=30)
ANY = st.lists(PIECES | LETTERS | SIGNS | st.text(max_size=8), max_size=12).map("".join)
BLOBS = st.binary(max_size=300).map(lambda blob: base64.b64encode(blob).decode())
PROSE = """\
The trade was entered on a pullback to the daily average after three higher lows, with volume rising and funding near \
zero. The stop was below the last swing low; half of the position was sold at the first target, and the rest was \
closed when the price fell back under the opening range. It would have been better to wait for the retest."""


def tokens(text: str) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


@settings(max_examples=600)
@given(ANY | BLOBS | st.text())
@example("don'test")
@example("A.\n/--\n\nb")
@example("。\n/--\n\n word")
@example("\n\n\u3000\nword")
def test_the_estimate_is_never_too_low(text: str) -> None:
    assert estimate(text) >= tokens(text)


@given(st.sampled_from([*FRAGMENTS, "a", "Z", "7", ".", " ", "\n"]), st.integers(1, 500))
def test_repetition_does_not_deceive_it(part: str, times: int) -> None:
    assert estimate(part * times) >= tokens(part * times)


def test_no_listed_piece_takes_more_tokens_than_its_cost() -> None:
    assert [piece for piece, cost in costs().items() if tokens(piece) > cost] == []
    assert [gram for gram in grams() if tokens(gram) != 1] == []
    assert max(map(len, grams())) == LONGEST_GRAM


def test_every_run_of_up_to_three_digits_is_one_token() -> None:
    runs = [f"{n:0{width}}" for width in (1, 2, 3) for n in range(10**width)]
    assert {tokens(run) for run in runs} == {1}


@given(LETTERS.filter(str.isalpha))
def test_a_word_takes_no_more_than_its_finest_cut(word: str) -> None:
    assert tokens(word) <= finest(word)
    assert tokens(f" {word}") <= finest(f" {word}")


def test_plain_english_is_close() -> None:
    assert tokens(PROSE) <= estimate(PROSE) <= 1.2 * tokens(PROSE)


def test_a_lone_surrogate_is_counted_by_its_bytes() -> None:
    assert estimate("\ud800") == 3


@pytest.mark.parametrize("text", ["a" * 200_000, " " * 200_000, "'s" * 100_000, "限" * 100_000, "\n/" * 100_000])
def test_long_texts_take_no_longer_than_their_length(text: str) -> None:
    assert estimate(text) <= len(text.encode())


@given(ANY, st.integers(0, 40))
def test_a_cut_text_fits_and_is_the_beginning_of_it(text: str, ceiling: int) -> None:
    short = cut(text, ceiling)
    assert tokens(short) <= ceiling
    assert short == text or text.startswith(short.removesuffix("…"))


def test_a_text_is_cut_after_a_line_or_else_after_a_word() -> None:
    text = "first line\nsecond line, longer\nthird line"
    assert cut(text, 100) == text
    assert cut(text, 8) == "first line\nsecond line, longer"
    assert cut("second line, longer and longer", 4) == "second line…"
