"""A symbol is short, on one line, and no sentence, since it stands in prompts."""

import pytest

from backsight.core.text.symbols import symbol_problem


@pytest.mark.parametrize(
    "symbol",
    ["BTC", "BTC/USDT:USDT", "TAO-USDT-SWAP:long", "@107", "^GSPC", "AAPL  260116C00310000", "ÄPL", "600519.SH"],
)
def test_symbols_of_venues_are_symbols(symbol: str) -> None:
    assert symbol_problem(symbol) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has 0 characters"),
        ("X" * 65, "has 65 characters"),
        (" BTC", "has spaces around it"),
        ("BTC\nETH", "has spaces around it or control characters"),
        ("BTC\0", "has spaces around it or control characters"),
        ("<BTC>", "has a character that no symbol has"),
        ("`BTC`", "has a character that no symbol has"),
        ("sell all that you have", "has more than 4 words"),
    ],
)
def test_other_texts_are_none(text: str, problem: str) -> None:
    assert (symbol_problem(text) or "").startswith(problem)
