"""Alpha spending: when new patterns are tested for, and how much of the false-positive budget each test may use."""

import math

FALSE_LESSON_RATE = 0.04
"""The probability of any false lesson within the first 1,000 closed trades is at most this."""
FIRST_TEST = 20
"""Ten separate runs inside and outside a group, which a pattern needs, take as many trades."""
FIRST_DOUBLING = 25
"""Doublings begin at 25, 50, 100, 200, … closed trades; the first test before the first of them counts as its."""
SPENDING = (0.0015, 0.003, 0.006, 0.016, 0.007)
"""The error that each doubling of closed trades may spend: 25 to 49, 50 to 99, … 400 to 799, and every one after."""
TEST_SHARES = (0.4, 0.6)
"""The share of a doubling's error for each of its tests: one from its beginning, one from 1.4 times as many trades."""
SECOND_TEST = 1.4
USUAL_LEVEL = SPENDING[-1] * TEST_SHARES[-1]
"""The level of the second test in a doubling from 400 closed trades on."""


def significance_level(closed: int, *, tested_at: int = 0) -> float:
    """The level of a test at `closed` trades, when the last test was at `tested_at` trades; 0 if no test is due.

    Tests are due from 20, 35, 50, 70, 100, 140, 200, 280, … closed trades on, each with 1.4 times the trades of the one
    before. The first reflection from there on tests; later ones test nothing new until the next number. A test that was
    skipped leaves its share to the next one of the same doubling. So the error of a doubling is at most that of
    `SPENDING`, however often the strategy reflects, and .04 in all within 1,000 trades.

    Why this schedule:

    - The full level at every reflection would break the bound. Two tests ten trades apart are nearly the same, but
      sixteen tests in a doubling are not.
    - Few trades prove nothing but the largest effects: what they would spend is better spent between 200 and 400.
    - Four tests a doubling found less than two: they share most of their trades, and divide the level by twice as many.
    - One test a doubling would leave a pattern undetected for as long as the strategy has been running.

    >>> [round(significance_level(closed, tested_at=last), 4) for closed, last in ((19, 0), (20, 0), (280, 200))]
    [0.0, 0.0006, 0.0096]
    >>> significance_level(270, tested_at=200), round(significance_level(300, tested_at=150), 4)
    (0.0, 0.016)
    """
    if closed < FIRST_TEST:
        return 0.0
    doubling, test = _doubling_and_test(closed)
    last_doubling, last_test = _doubling_and_test(tested_at) if tested_at >= FIRST_TEST else (-1, 0)
    if doubling < last_doubling:
        return 0.0
    first_unspent = last_test + 1 if doubling == last_doubling else 0
    return SPENDING[min(doubling, len(SPENDING) - 1)] * math.fsum(TEST_SHARES[first_unspent : test + 1])


def next_test(closed: int, *, tested_at: int = 0) -> int:
    """The number of closed trades, above `closed`, at which new patterns are tested for again.

    >>> next_test(3), next_test(200, tested_at=200), next_test(165, tested_at=0)
    (20, 280, 166)
    """
    count = max(closed + 1, FIRST_TEST)
    while not significance_level(count, tested_at=tested_at):
        count += 1
    return count


def same_doubling(closed: int, other: int) -> bool:
    """Whether two numbers of closed trades are in the same doubling.

    >>> same_doubling(200, 399), same_doubling(200, 400), same_doubling(9, 9)
    (True, False, False)
    """
    return min(closed, other) >= FIRST_TEST and _doubling_and_test(closed)[0] == _doubling_and_test(other)[0]


def _doubling_and_test(closed: int) -> tuple[int, int]:
    """The number of the doubling and of the test within it, both from 0.

    >>> [_doubling_and_test(closed) for closed in (20, 34, 35, 50, 69, 70, 200, 279, 280, 400)]
    [(0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (3, 0), (3, 0), (3, 1), (4, 0)]
    """
    doubling = max(0, (closed // FIRST_DOUBLING).bit_length() - 1)
    return doubling, int(closed >= round(SECOND_TEST * (FIRST_DOUBLING << doubling)))
