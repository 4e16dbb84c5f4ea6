"""Checkpoints: when the state of a derived memory is kept, so that a past state need not be learned from the beginning.

A belief and the habits of a strategy in a symbol are kept every `INTERVAL` trades of their own. Their state as of an
instant is the last checkpoint by then, plus the trades since.

The cells of a mode are kept too, so that a trade that belongs before others is learned without the trades before it.
They are many rows, so old checkpoints of cells are thinned out: the farther back, the fewer.
"""

from datetime import datetime

INTERVAL = 64
"""Trades of a belief or of a strategy in a symbol between two checkpoints."""

Place = tuple[datetime, int, str]
"""The place of an episode in the teaching order: first_known_at, sequence, id."""


def is_checkpoint(trades: int) -> bool:
    """Whether the state after this many trades is kept.

    >>> [trades for trades in range(1, 200) if is_checkpoint(trades)]
    [64, 128, 192]
    """
    return trades % INTERVAL == 0


def is_retained(number: int, *, latest: int) -> bool:
    """Whether the checkpoint of cells with this number is kept once there is a later one.

    About one checkpoint remains for every doubling of the distance, so that learning again from a place takes at most
    about twice the trades since then.

    >>> [number for number in range(1, 101) if is_retained(number, latest=100)]
    [64, 80, 88, 96, 98, 99, 100]
    """
    age = latest - number
    return age < 2 or number % (1 << (age.bit_length() - 1)) == 0
