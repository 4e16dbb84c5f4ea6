"""Numbers with their nouns."""


def count_of(number: int, noun: str) -> str:
    """A number with its noun, which is in the plural unless the number is one.

    >>> count_of(1, "trade"), count_of(2, "closed trade"), count_of(0, "entry"), count_of(1_000, "loss")
    ('1 trade', '2 closed trades', '0 entries', '1,000 losses')
    """
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith("ss") else "s")
    return f"{number:,} {noun if number == 1 else plural}"
