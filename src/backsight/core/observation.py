"""The context vector of an instant, computed from the bars that were closed then."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.instants import to_utc
from backsight.core.market import Bar, aggregate, bars_closed_by, check_bars
from backsight.core.regime import FEWEST_BARS, Regime, atr, classify_regime, regime_of, volatility_regime

DAY, HOUR, FIVE_MINUTES = 86_400, 3_600, 300
ATR_BARS = 14


def context_from_bars(
    symbol: str,
    *,
    at: datetime,
    bars: Mapping[int, Sequence[Bar]],
    spread: float | None = None,
    drawdown_pct: float | None = None,
    consecutive_losses: int | None = None,
    confidence: float | None = None,
) -> ContextVector:
    """The context vector of an instant, from bars by their interval in seconds; unknown fields are None.

    Only bars that closed at or before `at` count. The price is the close of the last bar; of several, the finest. The
    regime is that of the finest interval with 12 bars. The volatility regime is that of daily bars or, if there are too
    few, of hourly bars. If there are fewer than 14 daily, hourly or 5-minute bars, they are made from finer bars. The
    spread is in price units, as the ATRs are.

    >>> from datetime import UTC, timedelta
    >>> start = datetime(2026, 6, 1, tzinfo=UTC)
    >>> hours = [Bar(symbol="XAUUSD", interval_seconds=3600, opened_at=start + timedelta(hours=n),
    ...              open=2400.0 + n, high=2402.0 + n, low=2398.0 + n, close=2401.0 + n) for n in range(15 * 24)]
    >>> context = context_from_bars("XAUUSD", at=start + timedelta(days=14, hours=13), bars={3600: hours})
    >>> context.price, context.atr_d1, context.atr_h1, context.atr_m5
    (2749.0, 27.0, 4.0, None)
    >>> context.regime, context.volatility_regime, context.session
    ('trending_up', 'normal', 'overlap')
    """
    at = to_utc(at, field="at")
    if spread is not None and not math.isfinite(spread):
        raise Invalid(f"{spread} is not a spread; give a number, or leave it out", field="spread")
    context = context_of_closed(symbol, at=at, closed=_closed_bars(symbol, bars=bars, at=at))
    return replace(
        context,
        spread_points=spread,
        spread_as_atr_pct=_share(spread, of=context.atr_m5),
        drawdown_pct=drawdown_pct,
        consecutive_losses=consecutive_losses,
        confidence=confidence,
    )


def context_of_closed(symbol: str, *, at: datetime, closed: Mapping[int, list[Bar]]) -> ContextVector:
    """The context vector from closed, valid bars of the symbol by interval: finest first, no series empty."""
    days, hours, fives = (_bars_of(closed, interval_seconds=length) for length in (DAY, HOUR, FIVE_MINUTES))
    return ContextVector(
        atr_d1=atr(days),
        atr_h1=atr(hours),
        atr_m5=atr(fives),
        regime=_regime(closed),
        volatility_regime=volatility_regime(days) or volatility_regime(hours),
    ).completed(symbol=symbol, price=_price(closed), at=at)


def _closed_bars(symbol: str, *, bars: Mapping[int, Sequence[Bar]], at: datetime) -> dict[int, list[Bar]]:
    """The valid bars of the symbol that were closed at the instant, by interval, finest first."""
    closed = {length: bars_closed_by(series, at=at) for length, series in sorted(bars.items())}
    for length, series in closed.items():
        field = f"bars[{length}]"
        check_bars(series, field=field)
        if series and (series[0].symbol, series[0].interval_seconds) != (symbol, length):
            present = f"{series[0].symbol!r} by {series[0].interval_seconds} seconds"
            raise Invalid(f"holds bars of {present}; give bars of {symbol!r} by {length} seconds", field=field)
    return {length: series for length, series in closed.items() if series}


def _bars_of(closed: Mapping[int, list[Bar]], *, interval_seconds: int) -> list[Bar]:
    """The bars of an interval; if they are too few for an ATR, the longest series made from finer bars."""
    own = closed.get(interval_seconds, [])
    if len(own) >= ATR_BARS:
        return own
    coarsest_first = [closed[length] for length in sorted(closed, reverse=True)]
    finer = [series for series in coarsest_first if series[0].interval_seconds < interval_seconds]
    fitting = [series for series in finer if interval_seconds % series[0].interval_seconds == 0]
    return max([own, *(aggregate(series, interval_seconds=interval_seconds) for series in fitting)], key=len)


def _price(closed: Mapping[int, list[Bar]]) -> float | None:
    lasts = [series[-1] for series in closed.values()]
    return max(lasts, key=lambda bar: bar.closes_at).close if lasts else None


def _regime(closed: Mapping[int, list[Bar]]) -> Regime | None:
    enough = [series for series in closed.values() if len(series) >= FEWEST_BARS]
    return regime_of(classify_regime(enough[0]).tag) if enough else None


def _share(part: float | None, *, of: float | None) -> float | None:
    if part is None or not of or not math.isfinite(part / of):
        return None
    return part / of
