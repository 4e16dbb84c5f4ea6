"""Strategies and deployments: an authored way to trade, and where it runs."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.portfolio import Mode

MANUAL = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One version of a way to trade; a version never changes."""

    owner_id: str
    id: str
    """The same for all versions of a name."""
    version: int
    name: str
    thesis: str | None
    rules: tuple[str, ...]
    avoid: tuple[str, ...]
    """What the owner forbids: the only "never"."""
    risk_per_trade: float | None
    """Share of equity that a trade puts at stake where no stop says so."""
    known_at: datetime
    recorded_at: datetime

    def same_text(self, other: "Strategy") -> bool:
        """Whether two versions say the same."""
        ours, theirs = ((each.thesis, each.rules, each.avoid, each.risk_per_trade) for each in (self, other))
        return ours == theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One strategy version running against one account."""

    owner_id: str
    id: str
    name: str
    strategy_id: str
    strategy_name: str
    strategy_version: int | None
    """None where trades are remembered for a strategy that was never saved."""
    account_id: str
    mode: Mode
    memory_enabled: bool
    """Whether the agent is shown memory at all."""
    memory_holdout: float
    """Share of the days on which it is withheld, so that its worth can be told."""
    known_at: datetime
    recorded_at: datetime


def manual_name(strategy_name: str) -> str:
    """The deployment that holds the trades remembered for a strategy without naming one.

    >>> manual_name("VolBreakout")
    'manual:VolBreakout'
    """
    return f"{MANUAL}:{strategy_name}"
