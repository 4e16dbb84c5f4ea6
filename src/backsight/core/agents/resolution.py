"""What became of a decision with levels: a walk over bars from the decision to its entry, target or stop.

The walk is cautious where a bar leaves the order of prices open: target and stop in one bar are a loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Literal

from backsight.core.market import Bar
from backsight.core.portfolio import Direction

ResolutionStatus = Literal["pending", "active", "resolved", "expired", "not_applicable"]
ExitKind = Literal["target", "stop", "owner"]
TOUCH = 0.001
"""An entry counts as touched if a bar comes within this share of it."""
EXPIRE_BARS = 24
"""Bars of the card's timeframe after which an entry that was not touched is given up."""
FINEST = 300
"""Seconds: bars of a shorter interval are not walked if there are longer ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The levels of a decision in one direction."""

    direction: Direction
    entry: float
    target: float
    stop: float

    @property
    def sign(self) -> float:
        return 1.0 if self.direction == "long" else -1.0

    def outcome_r(self, fill: float, exit_price: float) -> float | None:
        """The result in multiples of the risk from the real fill; None if it cannot be told."""
        risk = self.sign * (fill - self.stop)
        if risk <= 0:
            return None
        outcome = self.sign * (exit_price - fill) / risk
        return outcome if isfinite(outcome) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """One state of a decision, and the instant from which it was known."""

    status: ResolutionStatus
    known_at: datetime
    reason: str | None = None
    """Why there is no result, if there is none and will be none."""
    entry_at: datetime | None = None
    """The opening of the bar that touched the entry."""
    fill: float | None = None
    exit_at: datetime | None = None
    """The opening of the bar that reached target or stop."""
    exit_price: float | None = None
    exit_kind: ExitKind | None = None
    outcome_r: float | None = None


def levels_of(direction: Direction | None, entry: object, target: object, stop: object) -> Levels | str:
    """The levels of a decision, or the reason why they cannot be.

    >>> levels_of("long", 100.0, 110.0, 95.0)
    Levels(direction='long', entry=100.0, target=110.0, stop=95.0)
    >>> levels_of("short", 100.0, 110.0, 95.0)
    'a SHORT needs target < entry < stop; given are 110, 100 and 95'
    >>> levels_of(None, None, None, None)
    'no position was taken'
    """
    if direction is None:
        return "no position was taken"
    numbers: list[float] = []
    for name, value in (("entry", entry), ("target", target), ("stop", stop)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return f"the {name} is missing"
        numbers.append(float(value))
    levels = Levels(direction=direction, entry=numbers[0], target=numbers[1], stop=numbers[2])
    if levels.sign * (levels.target - levels.entry) > 0 and levels.sign * (levels.entry - levels.stop) > 0:
        return levels
    order = "target > entry > stop" if direction == "long" else "target < entry < stop"
    given = f"{levels.target:g}, {levels.entry:g} and {levels.stop:g}"
    return f"a {direction.upper()} needs {order}; given are {given}"


def resolve(
    levels: Levels, bars: Sequence[Bar], *, decided_at: datetime, expire_bars: int = EXPIRE_BARS
) -> tuple[Resolution, ...]:
    """The states of a decision in their order, each from the close of the bar that decided it.

    `bars` are of one interval, oldest first. Those that opened before the decision are not walked. Without any state
    the decision is pending.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 6, 4, tzinfo=UTC)
    >>> def bar(n, low, high):
    ...     return Bar(symbol="BTC", interval_seconds=300, opened_at=t0 + n * timedelta(minutes=5), open=low, high=high,
    ...                low=low, close=high)
    >>> levels = Levels(direction="long", entry=100.0, target=110.0, stop=95.0)
    >>> [(each.status, each.outcome_r) for each in resolve(levels, [bar(0, 99, 101), bar(1, 101, 111)], decided_at=t0)]
    [('active', None), ('resolved', 2.0)]
    """
    walked = [bar for bar in bars if bar.opened_at >= decided_at]
    entry = _entry(levels, walked[:expire_bars])
    if entry is None:
        if len(walked) < expire_bars:
            return ()
        reason = f"the entry was not touched within {expire_bars} bars"
        return (Resolution(status="expired", known_at=walked[expire_bars - 1].closes_at, reason=reason),)
    number, fill = entry
    active = Resolution(
        status="active", known_at=walked[number].closes_at, entry_at=walked[number].opened_at, fill=fill
    )
    for later, bar in enumerate(walked[number:]):
        exit_price, kind = _exit(levels, bar, is_entry_bar=later == 0)
        if kind is None:
            continue
        resolved = Resolution(
            status="resolved",
            known_at=bar.closes_at,
            entry_at=active.entry_at,
            fill=fill,
            exit_at=bar.opened_at,
            exit_price=exit_price,
            exit_kind=kind,
            outcome_r=levels.outcome_r(fill, exit_price),
        )
        return (resolved,) if later == 0 else (active, resolved)
    return (active,)


def _entry(levels: Levels, bars: Sequence[Bar]) -> tuple[int, float] | None:
    """The first bar that touches the entry, by its number, and the fill: the entry clamped to the bar's range.

    A bar that touches the entry only from beyond the stop or the target fills nothing there.
    """
    near = TOUCH * abs(levels.entry)
    for number, bar in enumerate(bars):
        if bar.low - near <= levels.entry <= bar.high + near:
            fill = min(max(levels.entry, bar.low), bar.high)
            if levels.sign * (fill - levels.stop) > 0 and levels.sign * (levels.target - fill) > 0:
                return number, fill
    return None


def _exit(levels: Levels, bar: Bar, *, is_entry_bar: bool) -> tuple[float, ExitKind | None]:
    """The price and the kind of the exit in a bar; no kind if the bar reaches neither level.

    A bar that opens beyond the stop exits at its open. The bar of the entry opened before the position was there.
    """
    worst, best = (bar.low, bar.high) if levels.direction == "long" else (bar.high, bar.low)
    if levels.sign * (worst - levels.stop) <= 0:
        gapped = levels.sign * (bar.open - levels.stop) < 0 and not is_entry_bar
        return (bar.open if gapped else levels.stop), "stop"
    if levels.sign * (best - levels.target) >= 0:
        return levels.target, "target"
    return bar.close, None


def marked_r(levels: Levels, resolution: Resolution, price: float) -> float | None:
    """The result of an active decision in R if it were left at a price."""
    if resolution.status != "active" or resolution.fill is None:
        return None
    return levels.outcome_r(resolution.fill, price)


def bars_to_expire(interval_seconds: int, timeframe_seconds: int | None, *, bars: int = EXPIRE_BARS) -> int:
    """How many bars of an interval are as long as so many bars of the card's timeframe, at least one.

    >>> bars_to_expire(300, 3600), bars_to_expire(300, None), bars_to_expire(3600, 60)
    (288, 24, 1)
    """
    if timeframe_seconds is None:
        return bars
    return max(1, -(-bars * timeframe_seconds // interval_seconds))
