"""What the outside world must offer: each a protocol, handed in and never looked up."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, aware and in UTC."""
        ...
