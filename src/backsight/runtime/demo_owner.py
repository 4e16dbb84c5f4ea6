"""What the demonstration's owner told a coach, and its calendar of events; both are invented."""

import random

from backsight.memory import Memory
from backsight.runtime.load import example

FACTS = (
    ("I risk at most 1.5% of equity on a trade.", "risk"),
    ("I trade gold only, no stocks and no coins.", "symbols"),
    ("I want to double the account in two years without a drawdown above 15%.", "goal"),
)
OBSERVED = ("Asks about single losing trades more often than about the month.", "habits")


class RepeatableSalts:
    """Salts that are the same in every demonstration; the owner is invented, so nothing needs to be secret."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 (not secret)

    def random_bytes(self, count: int) -> bytes:
        return self._rng.randbytes(count)


def tell_about_owner(memory: Memory, *, seed: int) -> None:
    """Store facts about the owner, and import the example calendar."""
    memory.randomness = RepeatableSalts(seed)
    for fact, topic in FACTS:
        memory.add_fact(fact=fact, topic=topic)
    memory.remember(fact=OBSERVED[0], topic=OBSERVED[1], origin="observed")
    memory.import_events(path=str(example("market_calendar.csv")), source="example")
