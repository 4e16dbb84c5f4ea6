"""The holdout: on a share of the days, chosen by a seeded coin, memory is withheld to measure its worth."""

import hashlib
from datetime import datetime
from typing import Literal

MemoryArm = Literal["shown", "withheld", "off"]
"""Whether memory was shown, withheld by the day's coin, or not used at all."""


def memory_arm(deployment_id: str, at: datetime, *, holdout: float, enabled: bool = True) -> MemoryArm:
    """The arm of a UTC day: a coin seeded by the deployment and the day withholds memory on a share of the days.

    >>> from datetime import UTC, timedelta
    >>> day = datetime(2026, 6, 4, tzinfo=UTC)
    >>> [memory_arm("d", day, holdout=share) for share in (0.0, 1.0)], memory_arm("d", day, holdout=0.2, enabled=False)
    (['shown', 'withheld'], 'off')
    >>> days = [memory_arm("d", day + timedelta(days=n), holdout=0.2) for n in range(1000)]
    >>> 160 < days.count("withheld") < 240
    True
    """
    if not enabled:
        return "off"
    toss = hashlib.sha256(f"{deployment_id} {at.date().isoformat()}".encode()).digest()
    return "withheld" if int.from_bytes(toss[:8]) < holdout * 2**64 else "shown"
