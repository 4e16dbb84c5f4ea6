"""How closed trades are grouped: by what was known at their entry, never by what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from backsight.core.reflection.patterns import DIMENSIONS, ClosedTrade, Dimension

UNKNOWN = "unknown"
LONGEST_NAME = 40
WORDS = {
    "trending_up": "markets trending up",
    "trending_down": "markets trending down",
    "ranging": "ranging markets",
    "volatile": "volatile markets",
    "asia": "the Asian session",
    "london": "the London session",
    "overlap": "the London and New York overlap",
    "newyork": "the New York session",
    "long": "longs",
    "short": "shorts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeGroup:
    """Trades that share a value in a dimension."""

    dimension: Dimension
    value: str
    label: str
    members: tuple[int, ...]
    """Their places among all trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBands:
    """Where small sizes end and large ones begin: below the lower third, above the upper."""

    small_below: float
    large_above: float

    def of(self, share: float) -> str:
        if share < self.small_below:
            return "small"
        return "large" if share > self.large_above else "medium"


def group_trades(trades: Sequence[ClosedTrade]) -> list[TradeGroup]:
    """All groups that these trades fall into, in the order of the dimensions, then by value."""
    bands = size_bands([trade.size_share for trade in trades if trade.size_share is not None])
    members: dict[tuple[Dimension, str], list[int]] = {}
    for place, trade in enumerate(trades):
        for dimension in DIMENSIONS:
            if (value := _value(trade, dimension, bands)) is not None:
                members.setdefault((dimension, value), []).append(place)
    ordered = sorted(members.items(), key=lambda each: (DIMENSIONS.index(each[0][0]), each[0][1]))
    return [
        TradeGroup(dimension=dimension, value=value, label=_label(dimension, value, bands), members=tuple(places))
        for (dimension, value), places in ordered
    ]


def size_bands(shares: Sequence[float]) -> SizeBands | None:
    """The thirds of sizes, by the sizes at a third and two thirds of their order; None without any.

    >>> bands = size_bands([0.01, 0.02, 0.02, 0.03, 0.04, 0.05])
    >>> bands, [bands.of(share) for share in (0.01, 0.02, 0.04, 0.05)]
    (SizeBands(small_below=0.02, large_above=0.03), ['small', 'medium', 'large', 'large'])
    """
    if not shares:
        return None
    ordered = sorted(shares)
    return SizeBands(small_below=ordered[len(ordered) // 3], large_above=ordered[(2 * len(ordered) - 1) // 3])


def _value(trade: ClosedTrade, dimension: Dimension, bands: SizeBands | None) -> str | None:
    if dimension == "size":
        return None if bands is None or trade.size_share is None else bands.of(trade.size_share)
    held = getattr(trade, dimension)
    return None if held is None or held == UNKNOWN else f"{held:02d}" if dimension == "hour" else str(held)


def _label(dimension: Dimension, value: str, bands: SizeBands | None) -> str:
    """The group in a trader's words.

    >>> _label("hour", "09", None), _label("volatility_regime", "high", None), _label("regime", "ranging", None)
    ('the hour from 09:00 UTC', 'high volatility', 'ranging markets')
    >>> _label("size", "large", SizeBands(small_below=0.02, large_above=0.031))
    'sizes above 3.1 % of equity'
    """
    if dimension == "hour":
        return f"the hour from {value}:00 UTC"
    if dimension == "volatility_regime":
        return f"{value} volatility"
    if dimension == "size" and bands is not None:
        low, high = (f"{100.0 * share:.3g} %" for share in (bands.small_below, bands.large_above))
        spans = {"small": f"below {low}", "medium": f"of {low} to {high}", "large": f"above {high}"}
        return f"sizes {spans[value]} of equity"
    return " ".join((WORDS.get(value, value) if dimension != "symbol" else value).split())[:LONGEST_NAME]
