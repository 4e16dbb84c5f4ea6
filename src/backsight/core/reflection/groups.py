"""Groups of closed trades that share a property known at entry, never one that depends on the result."""

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
    """Indexes into the list of all trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBands:
    """The thirds of position sizes: small, medium and large, as shares of equity."""

    small_below: float
    large_above: float

    def band(self, share: float) -> str:
        if share < self.small_below:
            return "small"
        return "large" if share > self.large_above else "medium"


def group_trades(trades: Sequence[ClosedTrade]) -> list[TradeGroup]:
    """All groups of the trades, in the order of the dimensions, then by value."""
    bands = size_bands([trade.size_share for trade in trades if trade.size_share is not None])
    members: dict[tuple[Dimension, str], list[int]] = {}
    for index, trade in enumerate(trades):
        for dimension in DIMENSIONS:
            if (value := _value(trade, dimension, bands)) is not None:
                members.setdefault((dimension, value), []).append(index)
    ordered = sorted(members.items(), key=lambda item: (DIMENSIONS.index(item[0][0]), item[0][1]))
    return [
        TradeGroup(dimension=dimension, value=value, label=_label(dimension, value, bands), members=tuple(indexes))
        for (dimension, value), indexes in ordered
    ]


def size_bands(shares: Sequence[float]) -> SizeBands | None:
    """The bands between the lower and the upper tercile of sizes; None without any size.

    A band never ends between equal sizes: it ends at the change of size that is nearest to the tercile. So two sizes
    are two bands, small and large.

    >>> bands = size_bands([0.01, 0.02, 0.02, 0.03, 0.04, 0.05])
    >>> bands, [bands.band(share) for share in (0.01, 0.02, 0.04, 0.05)]
    (SizeBands(small_below=0.02, large_above=0.03), ['small', 'medium', 'large', 'large'])
    >>> two = size_bands([0.01, 0.01, 0.01, 0.02, 0.02, 0.02])
    >>> two.band(0.01), two.band(0.02)
    ('small', 'large')
    """
    if not shares:
        return None
    ordered = sorted(shares)
    n = len(ordered)
    changes = [place for place in range(1, n) if ordered[place - 1] < ordered[place]]
    if not changes:
        return SizeBands(small_below=ordered[0], large_above=ordered[0])
    lower, upper = (min(changes, key=lambda place: abs(3 * place - tercile)) for tercile in (n, 2 * n))
    return SizeBands(small_below=ordered[lower], large_above=ordered[upper - 1])


def _value(trade: ClosedTrade, dimension: Dimension, bands: SizeBands | None) -> str | None:
    if dimension == "size":
        return None if bands is None or trade.size_share is None else bands.band(trade.size_share)
    value = getattr(trade, dimension)
    if value is None or value == UNKNOWN:
        return None
    return f"{value:02d}" if dimension == "hour" else str(value)


def _label(dimension: Dimension, value: str, bands: SizeBands | None) -> str:
    """The name of the group in a trader's words.

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
