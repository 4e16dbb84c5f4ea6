"""The clock of a simulation; its time is set by the program."""

from datetime import datetime, timedelta


class SimulatedClock:
    """A clock that stands still until it is set or advanced."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        """Advance the clock by days, hours, minutes or seconds."""
        self.at += timedelta(**by)
