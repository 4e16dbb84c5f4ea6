"""The claim of a live loop on an account: one loop at a time, and what an interrupted tick must close with."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TickClaim:
    """The lease of one loop on an account, and the tick that the loop is running."""

    owner_id: str
    account_id: str
    deployment_id: str
    holder: str
    """The name of the loop, unique among processes."""
    at: datetime
    """The instant of the tick."""
    sequence: int
    claimed_at: datetime
    expires_at: datetime
    """Until then no other loop may claim the account."""
    intent: str | None
    """The arguments of `close_tick` as JSON, recorded before the orders are submitted; None before that, and as soon as
    the tick is closed."""

    def belongs_to_other(self, holder: str, *, now: datetime) -> bool:
        """Whether another loop holds the account at an instant."""
        return self.holder != holder and self.expires_at > now
