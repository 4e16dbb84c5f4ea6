"""Accounts, positions and portfolios, as the broker reports them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Mode = Literal["live", "paper", "sim"]
ModeChoice = Literal["live", "paper", "sim", "all"]
MODES: tuple[Mode, ...] = get_args(Mode)
PositionMode = Literal["netting", "hedging"]
Direction = Literal["long", "short"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

MODE_WORDS: Mapping[str, Mode] = {
    "real": "live",
    "production": "live",
    "paper trading": "paper",
    "simulated": "sim",
    "simulation": "sim",
    "backtest": "sim",
}
MODE_CHOICE_WORDS: Mapping[str, ModeChoice] = {**MODE_WORDS, "any": "all", "every": "all"}
POSITION_MODE_WORDS: Mapping[str, PositionMode] = {"net": "netting", "hedge": "hedging", "hedged": "hedging"}
DIRECTION_WORDS: Mapping[str, Direction] = {
    "buy": "long",
    "bull": "long",
    "bullish": "long",
    "sell": "short",
    "sell short": "short",
    "bear": "short",
    "bearish": "short",
}
"""Common words for one of the choices each. A word that may mean two of them is in no such table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account at one venue; evidence from live, paper and simulated accounts is never mixed."""

    owner_id: str
    id: str
    venue: str
    name: str
    currency: str
    mode: Mode
    position_mode: PositionMode
    """`hedging` accounts may hold several positions in one symbol."""
    dust: float | None = None
    """A position worth no more than this is none: what lot steps and fees in coin leave behind."""
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """An open position, as the broker reports it."""

    position_key: str
    """The broker's id of the position, else the symbol."""
    symbol: str
    """The instrument."""
    direction: Direction
    """Long gains if the price rises."""
    size: float
    """In base units, above 0."""
    mark: float
    """The price at which the broker values the position now."""
    average_price: float | None = None
    """The broker's average entry price."""
    leverage: float | None = None
    """Notional divided by the margin that it uses."""
    stop_price: float | None = None
    """The stop in force; None if there is none."""
    target_price: float | None = None
    """The target in force; None if there is none."""
    liquidation_price: float | None = None
    """The price at which the broker closes the position by force, if it says so."""

    @property
    def signed_size(self) -> float:
        return self.size if self.direction == "long" else -self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOrder:
    """An order that is waiting at the broker."""

    id: str
    """The broker's id of the order."""
    symbol: str
    """The instrument."""
    quantity: float
    """Buy is positive, sell negative, in base units."""
    price: float | None = None
    """The limit or trigger price; None for a market order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """An account's equity, positions and open orders at an instant, as the broker reports them."""

    at: datetime
    """When the broker was asked."""
    equity: float
    """Cash and open positions at their marks, in the account's currency."""
    cash: float
    """Money that is not in positions, in the account's currency."""
    account: str | None = None
    """The account's name or id, if the broker gives it."""
    positions: tuple[Position, ...] = ()
    """Every open position."""
    open_orders: tuple[OpenOrder, ...] = ()
    """Orders that wait at the broker; they link fills to the decision that placed the order."""

    def by_key(self) -> dict[str, Position]:
        """The positions by their key."""
        return {position.position_key: position for position in self.positions}
