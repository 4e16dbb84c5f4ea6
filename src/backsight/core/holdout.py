"""The holdout: on randomly chosen days memory is withheld, so that its effect can be measured."""

import hashlib
from datetime import datetime
from typing import Literal

MemoryArm = Literal["shown", "withheld", "off"]
"""Whether memory was shown, withheld by the draw of the day, or switched off."""


def memory_arm(deployment_id: str, at: datetime, *, holdout: float, enabled: bool = True) -> MemoryArm:
    """The arm of a UTC day, drawn with the deployment and the day as the seed; `holdout` is the share of withheld days.

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
    draw = hashlib.sha256(f"{deployment_id} {at.date().isoformat()}".encode()).digest()
    return "withheld" if int.from_bytes(draw[:8]) < holdout * 2**64 else "shown"
