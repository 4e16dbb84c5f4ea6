"""The clock of a simulation: it shows the time it is told."""

from datetime import datetime, timedelta


class SimulatedClock:
    """Stands still until it is set."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def advance(self, **by: float) -> None:
        """Move on, by days, hours, minutes or seconds."""
        self.at += timedelta(**by)
