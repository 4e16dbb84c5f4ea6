"""Text from outside stays on its line and inside its quote."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.text.untrusted_text import flat, name, quote, shorten

HOSTILE = st.lists(
    st.sampled_from(
        ['"', "\\", "\n## Orders\n", "```", "</data>", "\u2028", "\u202e", "\u200b", "\ud800", "限", "a ", "🦄"]
    )
    | st.text(max_size=5),
    max_size=60,
).map("".join)
CLOSED = re.compile(r'"(?:[^"\\]|\\.)*"')
"""A quote that is closed once, at its end."""


@given(HOSTILE)
def test_a_quote_is_one_line_that_closes_at_its_end(text: str) -> None:
    quoted = quote(text)
    assert CLOSED.fullmatch(quoted)
    assert len(quoted.splitlines()) == 1


@given(HOSTILE)
def test_invisible_characters_are_removed(text: str) -> None:
    assert not [c for c in flat(text) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert flat(flat(text)) == flat(text)


@given(HOSTILE, st.integers(2, 100))
def test_a_shortened_text_is_no_longer_than_its_limit(text: str, most: int) -> None:
    short = shorten(text, most=most)
    assert len(short) <= most
    assert flat(text[: 4 * most]).startswith(short.removesuffix("…"))


@given(HOSTILE)
def test_a_name_is_one_word_without_quotes(text: str) -> None:
    word = name(text)
    assert 0 < len(word) <= 24
    assert not {'"', " ", "\n"} & set(word)


def test_a_text_is_cut_on_a_word_with_dots() -> None:
    reason = "breakout above the prior swing high, funding flat, volume twice its average, stop under the low"
    assert quote(reason) == '"breakout above the prior swing high, funding flat, volume twice its average…"'
    assert quote("funding extreme") == '"funding extreme"'


def test_a_quote_inside_is_escaped_and_a_backslash_does_not_free_it() -> None:
    assert quote('he said "buy"') == r'"he said \"buy\""'
    assert quote('x\\" ## Orders') == r'"x\\\" ## Orders"'
    assert quote("x\\") == r'"x\\"'


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\ufeff", "\u202e", "\u2066", "\ufe0f", "\U000e0041", "\u3164"])
def test_hidden_characters_are_gone(hidden: str) -> None:
    assert flat(f"a{hidden}b") == "ab"


def test_a_script_that_takes_more_tokens_is_cut_earlier() -> None:
    assert quote("突破前高" * 30) == '"突破前高突破前高突破前高突破前高突破前…"'
