"""A verification of the audit chain, as it is remembered."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRecord:
    """The result of a verification: what was compared, up to which link, and how many differences there were."""

    owner_id: str
    id: str
    intact: bool
    links: int
    rows: int
    findings: int
    head: str
    """The head of the chain that was verified."""
    checkpoint: str | None
    """From which the next verification may go on; None if a difference was found."""
    since: datetime | None
    """When the last link before this verification was written, if only later rows were verified; None: everything."""
    note: str
    known_at: datetime
    recorded_at: datetime
