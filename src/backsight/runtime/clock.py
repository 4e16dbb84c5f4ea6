"""The clock of a simulation: it shows the time it is told."""

from datetime import datetime


class SimulatedClock:
    """Stands still until it is set."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
