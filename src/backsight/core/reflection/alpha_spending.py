"""Alpha spending: when new patterns are tested for, and how much of the false-positive budget each test may use."""

import math
from math import log2

FALSE_LESSON_RATE = 0.05
"""The probability of any false lesson within the first six doublings of closed trades."""
DOUBLINGS = 6
"""From 10 to 639 closed trades."""
FIRST_TEST = 10
QUARTER_SHARES = (log2(8 / 7), log2(5 / 4), log2(6 / 5), log2(7 / 6))
"""The share of a doubling's level for the test in each quarter: the growth in trades since the quarter before."""
USUAL_LEVEL = FALSE_LESSON_RATE / DOUBLINGS / len(QUARTER_SHARES)
"""The mean level of a test."""


def significance_level(closed: int, *, tested_at: int = 0) -> float:
    """The level of a test at `closed` trades, when the last test was at `tested_at` trades; 0 if no test is due.

    Each doubling of closed trades (10 to 19, 20 to 39, …) may spend .05/6, divided among its four quarters. The first
    reflection in a quarter tests. It spends the share of its quarter and those of quarters skipped in the same
    doubling. Later reflections in that quarter test nothing new. Unspent level lapses with the doubling. So the
    probability of a false lesson is at most .05/6 in any doubling, however often the strategy reflects.

    Why this schedule:

    - The full level at every reflection would break the bound. Two tests ten trades apart are nearly the same, but
      sixteen tests in a doubling are not.
    - The level divided among all reflections would halve with each doubling. Soon no number of deals could resolve
      it, and it would be spent on tests that hardly differ from the one before.
    - One test a doubling would leave a pattern undetected for as long as the strategy has been running.
    - With one test a quarter, two thousand deals (`shift_test`) resolve the levels.

    >>> [round(significance_level(closed, tested_at=last), 5) for closed, last in ((9, 0), (10, 0), (20, 10), (30, 20))]
    [0.0, 0.00161, 0.00161, 0.00487]
    >>> significance_level(190, tested_at=160), round(significance_level(200, tested_at=160), 5)
    (0.0, 0.00268)
    >>> round(significance_level(39, tested_at=19), 5) == round(0.05 / 6, 5)
    True
    """
    if closed < FIRST_TEST:
        return 0.0
    doubling, quarter = _doubling_and_quarter(closed)
    last_doubling, last_quarter = _doubling_and_quarter(tested_at) if tested_at >= FIRST_TEST else (-1, 0)
    if doubling < last_doubling:
        return 0.0
    first_unspent = last_quarter + 1 if doubling == last_doubling else 0
    return FALSE_LESSON_RATE / DOUBLINGS * math.fsum(QUARTER_SHARES[first_unspent : quarter + 1])


def next_test(closed: int, *, tested_at: int = 0) -> int:
    """The number of closed trades, above `closed`, at which new patterns are tested for again.

    >>> next_test(3), next_test(160, tested_at=160), next_test(165, tested_at=0)
    (10, 200, 166)
    """
    count = max(closed + 1, FIRST_TEST)
    while not significance_level(count, tested_at=tested_at):
        count += 1
    return count


def same_doubling(closed: int, other: int) -> bool:
    """Whether two numbers of closed trades are in the same doubling.

    >>> same_doubling(160, 319), same_doubling(160, 320), same_doubling(9, 9)
    (True, False, False)
    """
    return min(closed, other) >= FIRST_TEST and _doubling_and_quarter(closed)[0] == _doubling_and_quarter(other)[0]


def _doubling_and_quarter(closed: int) -> tuple[int, int]:
    """The number of the doubling and of the quarter within it, both from 0.

    >>> [_doubling_and_quarter(closed) for closed in (10, 19, 20, 30, 160, 200, 319, 320)]
    [(0, 0), (0, 3), (1, 0), (1, 2), (4, 0), (4, 1), (4, 3), (5, 0)]
    """
    doubling = (closed // FIRST_TEST).bit_length() - 1
    begins = FIRST_TEST << doubling
    return doubling, len(QUARTER_SHARES) * (closed - begins) // begins
