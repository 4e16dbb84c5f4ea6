"""When a reflection is due. Failed attempts count too, so an unavailable model is not called at every tick."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from backsight.core.errors import Invalid
from backsight.core.strategies import Cadence

MAX_TRADES = 10_000
"""Between two reflections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceReflection:
    """The activity of a deployment since its last reflection, as of a tick."""

    closed_in_tick: int = 0
    closed_since_attempt: int = 0
    """Trades closed since the last attempt, this tick included; all trades before the first attempt."""
    closed_since_note: int = 0
    """Trades closed since the last attempt that wrote a note."""
    last_attempt_at: datetime | None = None


def parse_cadence(text: str, *, field: str = "cadence") -> Cadence:
    """The cadence of a text such as `off`, `daily` or `per_n_trades:10`.

    >>> parse_cadence("per_n_trades:25")
    Cadence(kind='per_n_trades', trades=25)
    >>> parse_cadence("weekly")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: cadence: 'weekly' is not a cadence; give off, daily, or per_n_trades:10
    """
    kind, colon, number = text.partition(":")
    if kind in ("off", "daily") and not colon:
        return Cadence(kind="off" if kind == "off" else "daily")
    if kind == "per_n_trades" and (
        not colon or (number.isascii() and number.isdigit() and 0 < int(number[:9]) <= MAX_TRADES)
    ):
        return Cadence(kind="per_n_trades", trades=int(number)) if colon else Cadence(kind="per_n_trades")
    raise Invalid(f"{text[:40]!r} is not a cadence; give off, daily, or per_n_trades:10", field=field)


def is_due(cadence: Cadence, since: SinceReflection, *, now: datetime) -> bool:
    """Whether a reflection is due after this tick.

    >>> from datetime import timedelta
    >>> noon = datetime(2026, 6, 4, 12, tzinfo=UTC)
    >>> ten = Cadence(kind="per_n_trades", trades=10)
    >>> is_due(ten, SinceReflection(closed_in_tick=1, closed_since_attempt=10), now=noon)
    True
    >>> is_due(ten, SinceReflection(closed_in_tick=0, closed_since_attempt=12), now=noon)
    False
    >>> today = SinceReflection(closed_since_note=1, last_attempt_at=noon - timedelta(hours=1))
    >>> is_due(Cadence(kind="daily"), today, now=noon)
    False
    """
    match cadence.kind:
        case "off":
            return False
        case "per_n_trades":
            return since.closed_in_tick > 0 and since.closed_since_attempt >= cadence.trades
        case "daily":
            return since.closed_since_note > 0 and not _same_day(since.last_attempt_at, now)
    assert_never(cadence.kind)


def _same_day(earlier: datetime | None, now: datetime) -> bool:
    return earlier is not None and earlier.astimezone(UTC).date() >= now.astimezone(UTC).date()
