"""A regular file read in bulk gives the same bars, report and errors as the same file read row by row."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.errors import BacksightError
from backsight.importers.bars import BarsReading, TimeLabel, read_bars, read_bars_by_row, read_regular_bars
from backsight.importers.files import zone_named
from backsight.importers.regular_bars import ROWS_AT_ONCE

START = datetime(2026, 3, 6, 20, tzinfo=UTC)
STAMPS: dict[str, Callable[[datetime], str]] = {
    "Z": lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "offset": lambda at: at.isoformat(),
    "wall clock": lambda at: at.strftime("%Y-%m-%d %H:%M:%S"),
    "other offset": lambda at: at.astimezone(zone_named("Asia/Tokyo")).isoformat(),
    "minutes": lambda at: at.strftime("%Y-%m-%d %H:%M"),
    "seconds since 1970": lambda at: str(int(at.timestamp())),
    "milliseconds since 1970": lambda at: str(int(at.timestamp()) * 1_000),
}
ODD_CELLS = ("", " ", "nan", "inf", "-1", "1_0", "x", "1e3", " 2.5 ", "20260306", "2026-02-30T00:00:00Z", "9999-12-31")
SYMBOLS = ("BTC", " BTC", "ETH", "")


def a_row(at: str, price: float, volume: str, symbol: str) -> list[str]:
    return [at, symbol, str(price), str(price + 1.0), str(price - 1.0), str(price + 0.5), volume]


@st.composite
def files(draw: st.DrawFn) -> str:
    """The text of a file: mostly regular rows, with gaps, duplicates, several symbols and odd cells."""
    stamp = STAMPS[draw(st.sampled_from(sorted(STAMPS)))]
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 1, 2, 70, 1_440, -3]), min_size=1, max_size=25))
    several = draw(st.booleans())
    rows, at = [], START
    for step in steps:
        at += timedelta(minutes=step)
        price = draw(st.sampled_from([5.0, 5.0, 7.25, -2.0, 1e-7]))
        symbol = draw(st.sampled_from(SYMBOLS[: 3 if draw(st.integers(0, 9)) else 4])) if several else "BTC"
        rows.append(a_row(stamp(at), price, draw(st.sampled_from(["1", "0", "", "3.5", "-0.0"])), symbol))
    if draw(st.integers(0, 2)) == 0:
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(ODD_CELLS))
    lines = [",".join(row) for row in rows]
    if draw(st.integers(0, 4)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["", ",", ",,,,,,"])))
    return "\n".join(["time,symbol,open,high,low,close,volume", *lines]) + "\n"


def outcome(read: Any) -> Any:
    """What a reading gives: its bars and its report, or its error."""
    try:
        file = read()
    except BacksightError as error:
        return type(error), error.field, error.message
    return file.interval_seconds, {symbol: tuple(bars) for symbol, bars in file.bars.items()}, file.report


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=files(),
    symbol=st.sampled_from([None, "BTC", "XAU"]),
    interval=st.sampled_from([None, 60, 86_400]),
    timezone=st.sampled_from(["UTC", "America/New_York"]),
    times=st.sampled_from(["open", "close"]),
)
def test_in_bulk_and_row_by_row_are_the_same(
    tmp_path: Path, text: str, symbol: str | None, interval: int | None, timezone: str, times: TimeLabel
) -> None:
    path = tmp_path / "bars.csv"
    path.write_text(text)
    reading = BarsReading(path=path, symbol=symbol, interval_seconds=interval, zone=zone_named(timezone), times=times)
    whole = outcome(lambda: read_bars(path, symbol=symbol, interval_seconds=interval, timezone=timezone, times=times))
    assert whole == outcome(lambda: read_bars_by_row(reading))


@pytest.mark.parametrize("stamp", sorted(STAMPS))
def test_regular_files_are_read_in_bulk(tmp_path: Path, stamp: str) -> None:
    path, count = tmp_path / "bars.csv", ROWS_AT_ONCE + 5 if stamp == "Z" else 50
    rows = (a_row(STAMPS[stamp](START + timedelta(minutes=number)), 5.0, "1", "BTC") for number in range(count))
    path.write_text("\n".join(["time,symbol,open,high,low,close,volume", *map(",".join, rows)]))
    reading = BarsReading(path=path, symbol=None, interval_seconds=None, zone=UTC, times="open")
    in_bulk = read_regular_bars(reading)
    assert in_bulk is not None
    assert in_bulk.bars["BTC"][-1].opened_at == START + timedelta(minutes=count - 1)
    assert in_bulk.bars["BTC"] == read_bars_by_row(reading).bars["BTC"]
