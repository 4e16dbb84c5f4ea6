"""Bars of one series as NumPy columns: a sequence of bars that takes 48 bytes a bar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import overload

import numpy as np
from numpy.typing import NDArray

from backsight.core.instants import EPOCH
from backsight.core.market import Bar

AT_ONCE = 10_000
"""Bars that iteration makes at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BarColumns(Sequence[Bar]):
    """The bars of one symbol and interval, oldest first. A bar is made when it is read."""

    symbol: str
    interval_seconds: int
    opened: NDArray[np.int64]
    """Microseconds since 1970."""
    open: NDArray[np.float64]
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    close: NDArray[np.float64]
    volume: NDArray[np.float64]
    """NaN if the volume is not known."""

    def __len__(self) -> int:
        return len(self.opened)

    @overload
    def __getitem__(self, place: int) -> Bar: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Bar]: ...
    def __getitem__(self, place: int | slice) -> Bar | Sequence[Bar]:
        if isinstance(place, slice):
            return self._bars(place)
        (bar,) = self._bars(slice(place, place + 1 or None))
        return bar

    def __iter__(self) -> Iterator[Bar]:
        for first in range(0, len(self), AT_ONCE):
            yield from self._bars(slice(first, first + AT_ONCE))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def part(self, first: int, last: int) -> "BarColumns":
        """The bars from a place up to another."""
        columns = {name: getattr(self, name)[first:last] for name in ("opened", *VALUES)}
        return BarColumns(symbol=self.symbol, interval_seconds=self.interval_seconds, **columns)

    def _bars(self, place: slice) -> tuple[Bar, ...]:
        volumes = [None if volume != volume else volume for volume in self.volume[place].tolist()]
        prices = (getattr(self, name)[place].tolist() for name in VALUES[:-1])
        return tuple(
            Bar(
                symbol=self.symbol,
                interval_seconds=self.interval_seconds,
                opened_at=instant_from(opened),
                open=open_,
                high=high,
                low=low,
                close=close,
                volume=volume,
            )
            for opened, open_, high, low, close, volume in zip(
                self.opened[place].tolist(), *prices, volumes, strict=True
            )
        )


VALUES = ("open", "high", "low", "close", "volume")


def instant_from(microseconds: int) -> datetime:
    """The instant of a number of microseconds since 1970.

    >>> instant_from(1_780_567_200_000_000).isoformat()
    '2026-06-04T10:00:00+00:00'
    """
    return EPOCH + timedelta(microseconds=microseconds)
