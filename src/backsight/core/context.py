"""The context vector: what was known of the market and the agent's state at one instant."""

import math
from dataclasses import dataclass
from datetime import datetime

from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.quick_init import quick_init
from backsight.core.regime import Regime, Session, VolatilityRegime, session_of


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class ContextVector:
    """What was known at an instant; None means "not known", never zero.

    >>> ContextVector(regime="ranging").known
    ('regime',)
    """

    symbol: str | None = None
    price: float | None = None
    atr_d1: float | None = None
    """ATR(14) on daily bars, in price units; `atr_h1` and `atr_m5` are on hourly and 5-minute bars."""
    atr_h1: float | None = None
    atr_m5: float | None = None
    atr_ratio_h1_d1: float | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None
    hour_utc: int | None = None
    day_of_week: int | None = None
    """0 is Monday."""
    spread_points: float | None = None
    spread_as_atr_pct: float | None = None
    """Spread over the ATR of 5-minute bars: the cost of an entry."""
    drawdown_pct: float | None = None
    """Drawdown of the account as a share of its peak, from 0 to 1."""
    consecutive_losses: int | None = None
    """Losing trades of the strategy in a row, up to the instant."""
    confidence: float | None = None
    """The confidence of the agent's mood, from 0 to 1; the confidence that an agent states of a decision is apart."""

    @property
    def known(self) -> tuple[str, ...]:
        """The names of the fields that hold a value."""
        return tuple(name for name in self.__dataclass_fields__ if getattr(self, name) is not None)

    def completed(self, *, symbol: str, price: float | None, at: datetime | None) -> "ContextVector":
        """The vector with its missing fields filled in from the symbol, the price and the instant of a decision.

        >>> from datetime import UTC
        >>> entry = ContextVector(atr_d1=50.0, atr_h1=10.0)
        >>> entry.completed(symbol="XAUUSD", price=2400.0, at=datetime(2026, 6, 4, 13, tzinfo=UTC)).known
        ('symbol', 'price', 'atr_d1', 'atr_h1', 'atr_ratio_h1_d1', 'session', 'hour_utc', 'day_of_week')
        """
        derived: dict[str, object] = {"symbol": symbol, "price": price}
        if self.atr_d1 and self.atr_h1 is not None and math.isfinite(self.atr_h1 / self.atr_d1):
            derived["atr_ratio_h1_d1"] = self.atr_h1 / self.atr_d1
        if at is not None:
            derived |= {"session": session_of(at), "hour_utc": at.hour, "day_of_week": at.weekday()}
        return copy_with(self, **{name: value for name, value in derived.items() if getattr(self, name) is None})


def merged_context(
    context: ContextVector | None, *, symbol: str, regime: Regime | None, atr_d1: float | None
) -> ContextVector:
    """The context vector with the separate arguments filled in; `Invalid` if an argument contradicts the vector."""
    vector = context or ContextVector()
    arguments = {"symbol": symbol, "regime": regime, "atr_d1": atr_d1}
    for name, value in arguments.items():
        stated = getattr(vector, name)
        if value is not None and stated is not None and value != stated:
            field = "symbol" if name == "symbol" else f"context_{name}"
            raise Invalid(f"{value!r} contradicts context.{name} {stated!r}; give one of them", field=field)
    added = {name: value for name, value in arguments.items() if value is not None and name != "symbol"}
    return copy_with(vector, **added) if added else vector


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext(ContextVector):
    """A context for a check of plans, with the strategy that is about to decide."""

    strategy: str | None = None
