"""The hours of a market, read from its bars: which intervals without a bar are missing, and which are closed hours.

An interval is open if the same interval of the week has a bar in one of the four weeks before and in one of the four
weeks after; one side is enough if another day of its own week has a bar at that time. So closed nights and weekends
need no calendar, and hours that move when clocks change, or when a market changes its hours, are right on both sides of
the change. A file of fewer than three weeks is compared day by day.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 4
"""Periods before and after that are looked at."""
FEWEST_PERIODS = 3
LONGEST_HOLIDAY = 7
"""Sessions in a row that may be holidays, like those of a lunar new year; more are missing bars."""
THURSDAY = 3
"""The weekday of 1 January 1970, from which days are counted."""
SATURDAY = 5

Open = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SlotGap:
    """Intervals without a bar between two bars, by their numbers since 1970."""

    after: int
    before: int
    missing: int
    """Intervals in which the market was open, without those of whole sessions."""
    sessions: tuple[tuple[int, int], ...]
    """The first interval and the length of each session that is missing as a whole."""
    closed: int
    """Intervals outside the hours of the market."""


def gaps_within_hours(slots: Sequence[int] | NDArray[np.int64], *, per_day: int) -> Iterator[SlotGap] | None:
    """The gaps of a series of intervals; None if the series is too short to tell the hours of its market.

    `slots` are the numbers of the intervals that have a bar, ascending; `per_day` is how many intervals a day has.

    >>> days = [day for day in range(60) if (day + 3) % 7 < 5 and day != 28]  # weekdays since 1970, without a holiday
    >>> [(gap.missing, gap.sessions, gap.closed) for gap in gaps_within_hours(days, per_day=1) if gap.sessions]
    [(0, ((28, 1),), 0)]
    """
    present = np.unique(np.asarray(slots, dtype=np.int64))
    hours = next(
        (
            hours
            for hours in (_Hours(present, days=days, per_day=per_day) for days in (7, 1))
            if len(hours.periods) >= FEWEST_PERIODS and hours.length > 1
        ),
        None,
    )
    return None if hours is None else _gaps(present, hours, per_day=per_day)


def _gaps(present: NDArray[np.int64], hours: "_Hours", *, per_day: int) -> Iterator[SlotGap]:
    for index in np.flatnonzero(np.diff(present) > 1):
        after, before = int(present[index]), int(present[index + 1])
        open_slots = hours.open_between(after + 1, before)
        sessions = tuple(_whole_sessions(open_slots, after + 1, daily=per_day == 1))
        if len(sessions) > LONGEST_HOLIDAY:
            sessions = ()
        count = int(open_slots.sum())
        missing = count - sum(length for _, length in sessions)
        yield SlotGap(after, before, missing, sessions, len(open_slots) - count)


def _whole_sessions(open_slots: Open, first: int, *, daily: bool) -> Iterator[tuple[int, int]]:
    """Runs of open intervals between closed ones; of daily bars every one is a session."""
    place = 0
    for is_open, run in groupby(open_slots.tolist()):
        length = len(list(run))
        if is_open and daily:
            yield from ((first + place + each, 1) for each in range(length))
        elif is_open and place > 0 and place + length < len(open_slots):
            yield first + place, length
        place += length


class _Hours:
    """The intervals of each week, or of each day, in which a market is open."""

    def __init__(self, present: NDArray[np.int64], *, days: int, per_day: int) -> None:
        self.length, self._per_day = days * per_day, per_day
        first_day = int(present[0]) // per_day
        self._first_day = first_day - (first_day + THURSDAY) % 7 if days == 7 else first_day  # weeks begin on Monday
        self._first = self._first_day * per_day
        numbers, offsets = np.divmod(present - self._first, self.length)
        self.periods = np.unique(numbers)
        rows = np.searchsorted(self.periods, numbers)
        shape = (len(self.periods), self.length)
        self._bars, self._covered = np.zeros(shape, dtype=np.bool_), np.ones(shape, dtype=np.bool_)
        self._bars[rows, offsets] = True
        # The file begins and ends within a period, and so does a gap that is longer than a period.
        for index in (-1, *np.flatnonzero(np.diff(present) > self.length), len(present) - 1):
            if index >= 0:
                self._covered[rows[index], offsets[index] + 1 :] = False
            if index + 1 < len(present):
                self._covered[rows[index + 1], : offsets[index + 1]] = False
        weekdays = set(((self._first_day + self.periods + THURSDAY) % 7).tolist())
        self._days_off = {SATURDAY, SATURDAY + 1} - weekdays if days == 1 else set()
        self._last: tuple[int, Open] = (-1, np.zeros(self.length, dtype=np.bool_))

    def open_between(self, first: int, end: int) -> Open:
        """Whether the market is open in each of the intervals from `first` up to, but not including, `end`."""
        first, end = first - self._first, end - self._first
        parts = []
        for period in range(first // self.length, (end - 1) // self.length + 1):
            start = period * self.length
            parts.append(self._open_in(period)[max(0, first - start) : end - start])
        return np.concatenate(parts)

    def _open_in(self, period: int) -> Open:
        if self._last[0] != period:
            self._last = (period, self._compare(period))
        return self._last[1]

    def _compare(self, period: int) -> Open:
        if (self._first_day + period + THURSDAY) % 7 in self._days_off:
            return np.zeros(self.length, dtype=np.bool_)
        row = int(np.searchsorted(self.periods, period))
        own = slice(row, row + 1 if row < len(self.periods) and self.periods[row] == period else row)
        before, after = slice(max(0, row - NEIGHBOURS), row), slice(own.stop, own.stop + NEIGHBOURS)
        had_before, had_after = self._bars[before].any(axis=0), self._bars[after].any(axis=0)
        # What no period of a side covers, that side does not contradict.
        open_on_both = (had_before | ~self._covered[before].any(axis=0)) & (
            had_after | ~self._covered[after].any(axis=0)
        )
        times_of_day = self._bars[own].reshape(-1, self._per_day).any(axis=0)
        same_time_this_week = np.tile(times_of_day, self.length // self._per_day)
        return open_on_both | ((had_before | had_after) & same_time_this_week)
