"""Numbers with their nouns."""


def count_of(number: int, noun: str) -> str:
    """A number with its noun, which is in the plural unless the number is one.

    >>> count_of(1, "trade"), count_of(2, "closed trade"), count_of(0, "strategy"), count_of(1_000, "loss")
    ('1 trade', '2 closed trades', '0 strategies', '1,000 losses')
    """
    ends_in_consonant_and_y = noun.endswith("y") and noun[-2] not in "aeou"
    plural = noun[:-1] + "ies" if ends_in_consonant_and_y else noun + ("es" if noun.endswith("ss") else "s")
    return f"{number:,} {noun if number == 1 else plural}"
