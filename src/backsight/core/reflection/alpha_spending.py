"""When new patterns are tested for, and at which level: the budget of false lessons."""

import math
from math import log2

FALSE_LESSON_RATE = 0.05
DOUBLINGS = 6
"""Within 10 to 639 trades: over those, false lessons are at most .05 together."""
FIRST_TEST = 10
QUARTER_SHARES = (log2(8 / 7), log2(5 / 4), log2(6 / 5), log2(7 / 6))
"""Of a doubling's level, for the test in each quarter: how much trades grew since the one before; 1 together."""


def significance_level(closed: int, *, tested_at: int = 0) -> float:
    """The level of a test at so many trades closed, after one at `tested_at`; 0 where none is due.

    Each doubling of trades closed (10–19, 20–39, …) may spend .05/6, in four parts, one for each quarter of it. The
    first reflection in a quarter tests, and spends its own part with those passed over in the same doubling; later
    ones in that quarter find nothing new. What is not spent lapses with the doubling. So false lessons are at most
    .05/6 in any doubling, however often one reflects.

    Why so. The full level at every reflection would break that bound: two tests ten trades apart are alike, sixteen in
    a doubling are not. Spread over every reflection it would halve with each doubling, until no number of flips could
    tell it, for tests that hardly differ from the last. Once a doubling would leave a pattern unseen for as long as
    the strategy has lived. A quarter apart, tests are few enough to afford, four thousand flips tell their levels, and
    what two tests share is not paid twice (`flips.without_earlier`).

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
    spent = last_quarter + 1 if doubling == last_doubling else 0
    return FALSE_LESSON_RATE / DOUBLINGS * math.fsum(QUARTER_SHARES[spent : quarter + 1])


def same_doubling(closed: int, other: int) -> bool:
    """Whether two numbers of trades closed lie in one doubling.

    >>> same_doubling(160, 319), same_doubling(160, 320), same_doubling(9, 9)
    (True, False, False)
    """
    return min(closed, other) >= FIRST_TEST and _doubling_and_quarter(closed)[0] == _doubling_and_quarter(other)[0]


def _doubling_and_quarter(closed: int) -> tuple[int, int]:
    """The doubling and the quarter of it, each from 0.

    >>> [_doubling_and_quarter(closed) for closed in (10, 19, 20, 30, 160, 200, 319, 320)]
    [(0, 0), (0, 3), (1, 0), (1, 2), (4, 0), (4, 1), (4, 3), (5, 0)]
    """
    doubling = (closed // FIRST_TEST).bit_length() - 1
    begins = FIRST_TEST << doubling
    return doubling, len(QUARTER_SHARES) * (closed - begins) // begins
