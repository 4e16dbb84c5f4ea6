import pytest

from backsight.core.text.counts import count_of


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "plan", "0 plans"),
        (1, "plan", "1 plan"),
        (2, "closed trade", "2 closed trades"),
        (1, "entry", "1 entry"),
        (3, "entry", "3 entries"),
        (1_500, "day", "1,500 days"),
    ],
)
def test_a_noun_is_in_the_plural_unless_there_is_one(number: int, noun: str, text: str) -> None:
    assert count_of(number, noun) == text
