"""The lease of the process that fires heartbeats: one at a time in a store."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLease:
    """Who fires the heartbeats of an owner, and until when nobody else may."""

    owner_id: str
    name: str
    holder: str
    """The name of the process, unique among processes."""
    expires_at: datetime

    def belongs_to_other(self, holder: str, *, now: datetime) -> bool:
        """Whether another process has the lease at an instant."""
        return self.holder != holder and self.expires_at > now
