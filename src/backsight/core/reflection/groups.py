"""Groups of closed trades that share a property known at entry, never one that depends on the result."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.reflection.patterns import (
    AND,
    DIMENSIONS,
    PAIRED_WITH_DIRECTION,
    ClosedTrade,
    Dimension,
    pair_parts,
)

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
    "win": "trades after a win",
    "loss": "trades after a loss",
}
WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


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
    """All groups of the trades, in the order of the dimensions, then by value.

    A pair that has all trades of one of its parts is left out: it is the same group.
    """
    bands = size_bands([trade.size_share for trade in trades if trade.size_share is not None])
    members: dict[tuple[Dimension, str], list[int]] = defaultdict(list)
    for index, (trade, after) in enumerate(zip(trades, results_before(trades), strict=True)):
        for item in _values(trade, after, bands).items():
            members[item].append(index)
    return [
        TradeGroup(dimension=dimension, value=value, label=_label(dimension, value, bands), members=tuple(indexes))
        for dimension in DIMENSIONS
        for value, indexes in sorted((value, each) for (name, value), each in members.items() if name == dimension)
        if all(part == (dimension, value) or members[part] != indexes for part in pair_parts(dimension, value).items())
    ]


def results_before(trades: Sequence[ClosedTrade]) -> list[str | None]:
    """`win` or `loss` for each trade: the result of the trade, of any symbol, that its agent had closed last by then.

    None where the entry is not known, or where no trade was closed before it.
    """
    closes: dict[str | None, list[tuple[datetime, str, bool | None]]] = defaultdict(list)
    for trade in trades:
        closes[trade.deployment_id].append((trade.ended_at, trade.id, trade.won))
    for each in closes.values():
        each.sort(key=lambda close: close[:2])
    return [_result_before(trade, closes[trade.deployment_id]) for trade in trades]


def _result_before(trade: ClosedTrade, closes: Sequence[tuple[datetime, str, bool | None]]) -> str | None:
    if trade.opened_at is None:
        return None
    last = bisect_right(closes, trade.opened_at, key=lambda close: close[0]) - 1
    if last >= 0 and closes[last][1] == trade.id:  # closed in the instant in which it was opened
        last -= 1
    won = closes[last][2] if last >= 0 else None
    return None if won is None else "win" if won else "loss"


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


def _values(trade: ClosedTrade, after: str | None, bands: SizeBands | None) -> dict[Dimension, str]:
    """The trade's value in every dimension in which it is known."""
    size = None if bands is None or trade.size_share is None else bands.band(trade.size_share)
    values: dict[Dimension, str] = {}
    for dimension in DIMENSIONS:
        if (paired := PAIRED_WITH_DIRECTION.get(dimension)) is None:
            value = {"after": after, "size": size}.get(dimension, getattr(trade, dimension, None))
        elif paired in values and "direction" in values:
            value = f"{values[paired]}{AND}{values['direction']}"
        else:
            continue
        if value is not None and value != UNKNOWN:
            values[dimension] = f"{value:02d}" if dimension == "hour" else str(value)
    return values


def _label(dimension: Dimension, value: str, bands: SizeBands | None) -> str:
    """The name of the group in a trader's words.

    >>> _label("hour", "09", None), _label("volatility_regime", "high", None), _label("regime", "ranging", None)
    ('the hour from 09:00 UTC', 'high volatility', 'ranging markets')
    >>> _label("weekday", "0", None), _label("symbol_and_direction", "BTC_and_short", None)
    ('Mondays', 'shorts in BTC')
    >>> _label("size", "large", SizeBands(small_below=0.02, large_above=0.031))
    'sizes above 3.1% of equity'
    """
    if dimension in PAIRED_WITH_DIRECTION:
        first, second = (_label(name, part, bands) for name, part in pair_parts(dimension, value).items())
        return f"{second} in {first}"
    if dimension == "hour":
        return f"the hour from {value}:00 UTC"
    if dimension == "weekday":
        return WEEKDAYS[int(value)]
    if dimension == "volatility_regime":
        return f"{value} volatility"
    if dimension == "size" and bands is not None:
        low, high = (f"{100.0 * share:.3g}%" for share in (bands.small_below, bands.large_above))
        spans = {"small": f"below {low}", "medium": f"of {low} to {high}", "large": f"above {high}"}
        return f"sizes {spans[value]} of equity"
    return " ".join((WORDS.get(value, value) if dimension != "symbol" else value).split())[:LONGEST_NAME]
