"""Accounts: where positions are held, and whether the money in them is real."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Mode = Literal["live", "paper", "sim"]
PositionMode = Literal["netting", "hedging"]

MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account at one venue; evidence from live, paper and simulated accounts never blends."""

    owner_id: str
    id: str
    venue: str
    name: str
    currency: str
    mode: Mode
    position_mode: PositionMode
    """`hedging` accounts may hold several positions in one symbol."""
    known_at: datetime
    recorded_at: datetime
