"""Bars are read from CSV, Parquet and trader files; gaps are reported and bad rows refused."""

import codecs
import importlib
import json
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid, NotFound, Unavailable
from backsight.core.market import check_bars
from backsight.importers.bars import BarsRead, read_bars, read_trader_bars

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "positions" / "bars"
HEADER = "time,open,high,low,close,volume"
GOOD = "2026-06-04T10:00:00Z,1,2,0.5,1.5,10"


def write(folder: Path, *lines: str, header: str = HEADER, end: str = "\n") -> Path:
    path = folder / "bars.csv"
    path.write_bytes(end.join([header, *lines, ""]).encode())
    return path


def read(folder: Path, *lines: str, header: str = HEADER, **options: Any) -> BarsRead:
    defaults: dict[str, Any] = {"symbol": "BTC", "interval_seconds": 60}
    return read_bars(write(folder, *lines, header=header), **defaults | options)


def times(*stamps: str) -> list[str]:
    return [f"{stamp},1,2,0.5,1.5,10" for stamp in stamps]


def refusal(folder: Path, *lines: str, header: str = HEADER, **options: Any) -> str:
    with pytest.raises(Invalid) as caught:
        read(folder, *lines, header=header, **options)
    return caught.value.message.replace(str(folder / "bars.csv"), "bars.csv")


def opened(file: BarsRead, symbol: str = "BTC") -> list[str]:
    return [bar.opened_at.strftime("%m-%d %H:%M") for bar in file.bars[symbol]]


def test_a_row_becomes_a_bar(tmp_path: Path) -> None:
    (bar,) = read(tmp_path, GOOD).bars["BTC"]
    assert (bar.symbol, bar.interval_seconds, bar.opened_at) == ("BTC", 60, datetime(2026, 6, 4, 10, tzinfo=UTC))
    assert (bar.open, bar.high, bar.low, bar.close, bar.volume) == (1.0, 2.0, 0.5, 1.5, 10.0)


def test_times_may_be_those_of_the_closes(tmp_path: Path) -> None:
    lines = times("2026-06-04T10:01:00Z", "2026-06-04T10:02:00Z")
    assert opened(read(tmp_path, *lines, times="close")) == ["06-04 10:00", "06-04 10:01"]
    # 8 March 2026 has 23 hours in New York: the day's bar opened 23 hours before it closed.
    days = read_bars(
        write(tmp_path, *times("2026-03-08", "2026-03-09", "2026-03-10")),
        symbol="BTC",
        timezone="America/New_York",
        times="close",
    )
    assert opened(days) == ["03-07 05:00", "03-08 05:00", "03-09 04:00"]
    assert days.report.gap_count == 0


@pytest.mark.parametrize(
    "header",
    [
        "Open_Time,OPEN,High,low,Close,Volume",
        "timestamp, open , high,low,close,volume",
        "Date,Open,High,Low,Close,VOLUME",
        "Open Time,Open,High,Low,Close,Volume",
        "time;open;high;low;close;volume",
        "datetime\topen\thigh\tlow\tclose\tvolume",
    ],
)
def test_columns_are_found_by_their_common_names(tmp_path: Path, header: str) -> None:
    mark = next((mark for mark in ";\t" if mark in header), ",")
    assert len(read(tmp_path, GOOD.replace(",", mark), header=header).bars["BTC"]) == 1


def test_columns_may_come_in_any_order_among_others(tmp_path: Path) -> None:
    file = read(tmp_path, "9,1.5,2,0.5,1,2026-06-04", header="trades,close,high,low,open,date")
    (bar,) = file.bars["BTC"]
    assert (bar.open, bar.close, bar.volume) == (1.0, 1.5, None)


def test_byte_order_mark_crlf_blank_lines_and_unicode_are_read(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    text = f"{HEADER},Ticker\r\n\r\n{GOOD},中国石化\r\n{GOOD},Ø\r\n"
    path.write_bytes(codecs.BOM_UTF8 + text.encode())
    assert list(read_bars(path, interval_seconds=60).bars) == ["Ø", "中国石化"]


def test_an_empty_volume_is_unknown(tmp_path: Path) -> None:
    file = read(tmp_path, "2026-06-04,1,2,0.5,1.5,", "2026-06-05,1,2,0.5,1.5,nan", "2026-06-06,1,2,0.5,1.5,0")
    assert [bar.volume for bar in file.bars["BTC"]] == [None, None, 0.0]


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-06-04T10:00:00Z",
        "2026-06-04T12:00:00+02:00",
        "2026-06-04 10:00",
        "20260604T100000Z",
        "1780567200",
        "1780567200.0",
        "1780567200000",
        "1780567200000000",
        "1780567200000000999",
    ],
)
def test_times_are_iso_or_numbers_whose_size_tells_the_unit(tmp_path: Path, stamp: str) -> None:
    assert read(tmp_path, *times(stamp)).bars["BTC"][0].opened_at == datetime(2026, 6, 4, 10, tzinfo=UTC)


def test_eight_digits_are_a_date(tmp_path: Path) -> None:
    assert opened(read(tmp_path, *times("20260604"))) == ["06-04 00:00"]


def test_naive_times_are_in_the_timezone_argument(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2025-10-09", "2025-10-10T00:00+00:00"), timezone="Asia/Shanghai")
    assert opened(file) == ["10-08 16:00", "10-10 00:00"]


def test_an_hour_that_occurs_twice_is_read_as_the_first(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2025-11-02 00:30", "2025-11-02 01:30"), timezone="America/New_York")
    assert opened(file) == ["11-02 04:30", "11-02 05:30"]


def test_an_hour_that_is_skipped_is_read_with_the_offset_before(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2025-03-09 02:30"), timezone="America/New_York")
    assert opened(file) == ["03-09 07:30"]


def test_local_times_that_clocks_repeat_need_an_offset(tmp_path: Path) -> None:
    rows = ["2025-11-02 01:00,1,2,0.5,1.5,1", "2025-11-02 01:00,1,2,0.5,1.6,1"]
    message = refusal(tmp_path, *rows, timezone="America/New_York")
    assert message == (
        "time: bars.csv line 3: line 2 has a different bar of BTC at 2025-11-02T05:00:00+00:00; "
        "keep one of them, or give times with an offset if clocks changed"
    )


def test_days_of_23_and_25_hours_are_no_gaps(tmp_path: Path) -> None:
    stamps = [(date(2025, 10, 30) + timedelta(days=n)).isoformat() for n in range(6)]
    stamps += [(date(2025, 3, 7) + timedelta(days=n)).isoformat() for n in range(6)]
    file = read(tmp_path, *times(*stamps), interval_seconds=None, timezone="America/New_York")
    assert file.interval_seconds == 86_400
    assert (file.report.gap_count, file.report.overlaps, file.report.missing) == (1, 0, 231)


def test_a_single_long_day_is_a_day(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2025-11-02", "2025-11-03"), interval_seconds=None, timezone="America/New_York")
    assert file.interval_seconds == 86_400


def test_the_interval_is_the_most_common_distance(tmp_path: Path) -> None:
    file = read(tmp_path, *times(*(f"2026-06-04 10:{m:02}" for m in (0, 5, 10, 25, 30))), interval_seconds=None)
    assert file.interval_seconds == 300
    (gap,) = file.report.gaps
    assert (gap.symbol, gap.after.minute, gap.before.minute, gap.missing) == ("BTC", 10, 25, 2)


def test_of_equally_common_distances_the_shortest_counts(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2026-06-04 10:00", "2026-06-04 10:10", "2026-06-04 10:15"), interval_seconds=None)
    assert file.interval_seconds == 300


def test_a_gap_that_is_no_multiple_counts_the_bars_that_would_have_opened(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2026-06-04 10:00:00", "2026-06-04 10:01:30", "2026-06-04 10:02:00"))
    assert (file.report.missing, file.report.overlaps) == (1, 1)


def test_at_most_a_thousand_gaps_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    file = read(tmp_path, *times(*((start + timedelta(minutes=2 * n)).isoformat() for n in range(1202))))
    assert (len(file.report.gaps), file.report.gap_count, file.report.missing) == (1000, 1201, 1201)


def test_unsorted_rows_are_sorted_and_counted(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2026-06-04 10:03", "2026-06-04 10:01", "2026-06-04 10:02", "2026-06-04 10:04"))
    assert opened(file) == ["06-04 10:01", "06-04 10:02", "06-04 10:03", "06-04 10:04"]
    assert file.report.out_of_order == 2


@given(st.permutations(range(8)))
def test_the_order_of_the_rows_does_not_matter(tmp_path_factory: pytest.TempPathFactory, order: list[int]) -> None:
    folder = tmp_path_factory.mktemp("order")
    rows = times(*(f"2026-06-04 10:{minute:02}" for minute in range(8)))
    assert read(folder, *(rows[place] for place in order)).bars == read(folder, *rows).bars


def test_identical_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    file = read(tmp_path, GOOD, GOOD.replace("1.5", "1.50"), GOOD)
    assert (len(file.bars["BTC"]), file.report.rows, file.report.duplicates) == (1, 3, 2)


def test_every_symbol_has_its_own_bars(tmp_path: Path) -> None:
    rows = ["2026-06-04 10:00,1,2,0.5,1.5,B", "2026-06-04 10:00,9,9,9,9,A", "2026-06-04 10:02,1,2,0.5,1.5,B"]
    file = read(tmp_path, *rows, header="time,open,high,low,close,instrument", symbol=None)
    assert {symbol: len(bars) for symbol, bars in file.bars.items()} == {"A": 1, "B": 2}
    assert [gap.symbol for gap in file.report.gaps] == ["B"]


def test_a_symbol_selects_from_a_file_with_several(tmp_path: Path) -> None:
    rows = ["2026-06-04 10:00,1,2,0.5,1.5,BTC", "2026-06-04 10:00,9,9,9,9,ETH"]
    file = read(tmp_path, *rows, header="time,open,high,low,close,symbol")
    assert (list(file.bars), file.report.rows, file.report.other_symbols) == (["BTC"], 2, 1)


def test_a_symbol_that_the_file_lacks_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"symbol: .* has no rows of 'BTC'; did you mean 'BTCUSD'\? Known: BTCUSD"):
        read(tmp_path, "2026-06-04 10:00,1,2,0.5,1.5,BTCUSD", header="time,open,high,low,close,symbol")


def test_the_bars_read_are_sound_bars(tmp_path: Path) -> None:
    file = read(tmp_path, *times("2026-06-04 10:02", "2026-06-04 10:00", "2026-06-04 10:01"))
    check_bars(file.bars["BTC"])


@pytest.mark.parametrize(
    ("row", "beginning"),
    [
        ("x,1,2,0.5,1.5,1", "time: bars.csv line 3: 'x' is not a time; give one like 2026-06-04T10:00:00Z"),
        (",1,2,0.5,1.5,1", "time: bars.csv line 3: '' is not a time; give one like 2026-06-04T10:00:00Z"),
        ("2026,1,2,0.5,1.5,1", "time: bars.csv line 3: '2026' is too small for a time since 1970; give one like"),
        ("9" * 30 + ",1,2,0.5,1.5,1", f"time: bars.csv line 3: '{'9' * 30}' is too large for a time since 1970; give"),
        ("0001-01-01,1,2,0.5,1.5,1", "time: bars.csv line 3: '0001-01-01' is out of range; give a year from 1700 to"),
        ("2026-06-05,,2,0.5,1.5,1", "open: bars.csv line 3: no price; fill it in or remove the row"),
        ("2026-06-05,NaN,2,0.5,1.5,1", "open: bars.csv line 3: 'NaN' is not a price; correct or remove the row"),
        ("2026-06-05,1,inf,0.5,1.5,1", "high: bars.csv line 3: 'inf' is not a price; correct or remove the row"),
        ("2026-06-05,1,2,1e999,1.5,1", "low: bars.csv line 3: '1e999' is not a price; correct or remove the row"),
        ('2026-06-05,1,2,0.5,"1,5",1', "close: bars.csv line 3: '1,5' is not a number; write it like 1234.5"),
        ("2026-06-05,1,2,0.5,1_5,1", "close: bars.csv line 3: '1_5' is not a number; write it like 1234.5"),
        ("2026-06-05,1,0.4,0.5,1.5,1", "high: bars.csv line 3: 0.4 is below the low 0.5; swap or correct them"),
        ("2026-06-05,3,2,0.5,1.5,1", "open: bars.csv line 3: 3.0 is outside low 0.5 to high 2.0; correct the row"),
        ("2026-06-05,1,2,0.5,0.4,1", "close: bars.csv line 3: 0.4 is outside low 0.5 to high 2.0; correct the row"),
        (
            "2026-06-05,1,2,0.5,1.5,-1",
            "volume: bars.csv line 3: '-1' is not a volume; give 0 or more, or leave the cell",
        ),
        ("2026-06-05,1,2,0.5", "path: bars.csv line 3: 4 cells, but the header has 6; write one cell for each column"),
        ("2026-06-05,1,2,0.5,1.5,1,1", "path: bars.csv line 3: 7 cells, but the header has 6; write one cell for each"),
        ('2026-06-05,1,2,"0.5,1.5,1', "path: bars.csv line 3: not CSV (unexpected end of data); check the quotes"),
        (
            "2026-06-04T10:00Z,1,2,0.5,1,10",
            "time: bars.csv line 3: line 2 has a different bar of BTC at 2026-06-04T10:00:00+00:00",
        ),
    ],
)
def test_a_bad_row_is_refused_by_line_field_and_remedy(tmp_path: Path, row: str, beginning: str) -> None:
    message = refusal(tmp_path, GOOD, row)
    assert message.startswith(beginning)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("header", "beginning"),
    [
        (
            "when,open,high,low,close",
            "time: bars.csv has no time column; name a column open_time or timestamp or datetime",
        ),
        (
            "time,open,high,low",
            "close: bars.csv has no close column; name a column close in the header (it has: 'time',",
        ),
        ("time,open,high,low,close,Close", "close: bars.csv has two columns named 'close'; rename one"),
    ],
)
def test_a_file_without_the_columns_is_refused(tmp_path: Path, header: str, beginning: str) -> None:
    assert refusal(tmp_path, GOOD, header=header).startswith(beginning)


def test_a_file_of_commas_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, ",,", header=",,").startswith("time: bars.csv has no time column; ")


def test_a_row_without_its_symbol_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, "2026-06-04,1,2,0.5,1.5, ", header="time,open,high,low,close,symbol")
    assert message == "symbol: bars.csv line 2: no symbol; name the symbol in every row"


def test_bars_without_a_symbol_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD, symbol=None)
    assert message == "symbol: bars.csv has no symbol column; give the symbol of its bars"


def test_the_interval_cannot_be_inferred_from_one_bar(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD, interval_seconds=None)
    assert message == "interval_seconds: bars.csv has one bar per symbol, so the interval cannot be inferred; give it"


@pytest.mark.parametrize("seconds", [0, -60, 10**30])
def test_an_interval_is_at_least_a_second_and_at_most_a_year(tmp_path: Path, seconds: int) -> None:
    message = refusal(tmp_path, GOOD, interval_seconds=seconds)
    assert message.endswith("is not the length of a bar; give whole seconds, from 1 to 31622400")


def test_bars_of_parts_of_a_second_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, *times("2026-06-04 10:00:00.0", "2026-06-04 10:00:00.5"), interval_seconds=None)
    assert message == "interval_seconds: bars.csv has bars 0:00:00.500000 apart; give whole seconds, from 1 to 31622400"


@pytest.mark.parametrize("zone", ["America/New_Yrok", "", "../UTC", "America", "x\0"])
def test_an_unknown_zone_is_refused(tmp_path: Path, zone: str) -> None:
    message = refusal(tmp_path, GOOD, timezone=zone)
    assert message.startswith(f"timezone: {zone!r} is not a known time zone; ")


@pytest.mark.parametrize("content", [b"", b"\n \r\n", codecs.BOM_UTF8, "\u00a0".encode()])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bars.csv").write_bytes(content)
    with pytest.raises(Invalid, match=r"path: .* is empty; give a file with rows"):
        read_bars(tmp_path / "bars.csv", symbol="BTC")


def test_a_header_without_rows_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "path: bars.csv has no rows below its header; give a file with bars"


def test_bytes_that_are_not_utf8_are_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "bars.csv").write_bytes(f"{HEADER}\n{GOOD}\n".encode() + b"\xe9\n")
    with pytest.raises(Invalid, match=r"path: .* line 3: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        read_bars(tmp_path / "bars.csv", symbol="BTC")


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"path: there is no file .*none\.csv; check its name and folder"):
        read_bars(tmp_path / "none.csv", symbol="BTC")


@pytest.mark.parametrize("name", ["", "x\0"])
def test_a_folder_is_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match=r"path: .* cannot be read .*; give the path of a file"):
        read_bars(tmp_path / name, symbol="BTC")


# Parquet


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "bars.parquet").write_bytes(b"PAR1")
    with pytest.raises(Unavailable, match=r"needs pyarrow; pip install 'backsight\[parquet\]', or give a CSV file"):
        read_bars(tmp_path / "bars.parquet", symbol="BTC")


def parquet(folder: Path, **columns: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    prices = {"Open": [1.0, 1.0], "High": [2, 2], "Low": [0.5, 0.5], "Close": [1.5, 1.5], "Volume": [3.0, None]}
    path = folder / "bars.parquet"
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(prices | columns), path)
    return path


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    stamps = [datetime(2026, 6, 4, 10), datetime(2026, 6, 4, 11)]  # noqa: DTZ001
    file = read_bars(parquet(tmp_path, Timestamp=stamps), symbol="BTC", timezone="America/New_York")
    assert opened(file) == ["06-04 14:00", "06-04 15:00"]
    assert [bar.volume for bar in file.bars["BTC"]] == [3.0, None]


def test_parquet_instants_may_be_to_the_nanosecond(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    stamps = arrow.array([1780567200000000999, 1780567260000000000], arrow.timestamp("ns", tz="Europe/Berlin"))
    assert opened(read_bars(parquet(tmp_path, time=stamps), symbol="BTC")) == ["06-04 10:00", "06-04 10:01"]


def test_parquet_refusals_name_the_row(tmp_path: Path) -> None:
    path = parquet(tmp_path, date=[date(2026, 6, 4), date(2026, 6, 5)], Close=[1.5, float("nan")])
    with pytest.raises(Invalid, match=r"close: .*bars\.parquet row 2: 'nan' is not a price; correct or remove"):
        read_bars(path, symbol="BTC")


def test_a_parquet_file_with_other_content_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "bars.parquet").write_text(HEADER)
    with pytest.raises(Invalid, match=r"path: .*bars\.parquet is not Parquet"):
        read_bars(tmp_path / "bars.parquet", symbol="BTC")


# Bars of traders


def trader_line(*, symbol: str = "AAPL", label: str = "60min", zone: str = "US/Eastern", more: Any = None) -> str:
    series: dict[str, Any] = {"2025-10-30 15:00:00": {"1. buy price": "3"}, "2025-10-30 14:00:00": trader_bar()}
    series |= more or {}
    return json.dumps({"Meta Data": {"2. Symbol": symbol, "6. Time Zone": zone}, f"Time Series ({label})": series})


def trader_bar(*, high: str = "2", volume: str = "7") -> dict[str, str]:
    return {
        "2. high": high,
        "3. low": "0.5",
        "5. volume": volume,
        "1. buy price": "1",
        "4. sell price": "1.5",
    }


NO_BARS = '{"Meta Data": {"2. Symbol": "A", "6. Time Zone": "UTC"}, "Time Series (Daily)": {}}'


def read_trader(folder: Path, *lines: str, timezone: str | None = None) -> BarsRead:
    (folder / "bars.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return read_trader_bars(folder / "bars.jsonl", timezone=timezone)


def test_a_trader_buys_at_the_open_and_sells_at_the_close(tmp_path: Path) -> None:
    file = read_trader(tmp_path, trader_line())
    (bar,) = file.bars["AAPL"]
    assert (bar.open, bar.high, bar.low, bar.close, bar.volume) == (1.0, 2.0, 0.5, 1.5, 7.0)
    assert (bar.interval_seconds, bar.opened_at) == (3600, datetime(2025, 10, 30, 18, tzinfo=UTC))


def test_an_incomplete_bar_is_an_opening(tmp_path: Path) -> None:
    file = read_trader(tmp_path, trader_line())
    (opening,) = file.openings
    assert (opening.symbol, opening.price, file.report.rows) == ("AAPL", 3.0, 2)
    assert opening.closes_at == datetime(2025, 10, 30, 20, tzinfo=UTC)


def test_the_timezone_argument_overrides_the_zone_in_the_file(tmp_path: Path) -> None:
    file = read_trader(tmp_path, trader_line(zone="nowhere", label="Daily"), timezone="UTC")
    assert (opened(file, "AAPL"), file.interval_seconds) == (["10-30 14:00"], 86_400)


@pytest.mark.parametrize(
    ("lines", "beginning"),
    [
        (["{"], "path: bars.jsonl line 1: not JSON"),
        (["[]"], "path: bars.jsonl line 1: '[]' is not an object; write one object a line"),
        (["{}"], "path: bars.jsonl line 1: no object 'Meta Data'; every line needs Meta Data and Time Series"),
        (['{"a": 1, "a": 2}'], "path: bars.jsonl line 1: not JSON (the key 'a' occurs twice); write one object a line"),
        (['{"a": NaN}'], "path: bars.jsonl line 1: not JSON (NaN is not a number); write one object a line"),
        (["[" * 99999], "path: bars.jsonl line 1: not JSON (maximum recursion depth exceeded"),
        ([trader_line(), trader_line(symbol="")], "path: bars.jsonl line 2: Meta Data has no Symbol; name it in every"),
        (
            [trader_line(label="Fortnightly")],
            "interval_seconds: bars.jsonl line 1: 'Time Series (Fortnightly)' names no",
        ),
        (
            [trader_line(), trader_line(label="Daily")],
            "path: bars.jsonl line 2: the interval or the time zone differs from the first",
        ),
        ([trader_line(more={"x": trader_bar()})], "time: bars.jsonl line 1: 'x' is not a time; give one like"),
        (
            [trader_line(more={"2025-10-30": trader_bar(high="0.1")})],
            "high: bars.jsonl line 1: 0.1 is below the low 0.5;",
        ),
        (
            [trader_line(more={"2025-10-30": {"2. high": "1"}})],
            "open: bars.jsonl line 1: no price; fill it in or remove",
        ),
        (
            [trader_line(more={"2025-10-30": 3})],
            "path: bars.jsonl line 1: 2025-10-30 has no prices; give an object with",
        ),
        ([trader_line(), trader_line()], "symbol: bars.jsonl line 2: a second line for 'AAPL'; join the lines"),
        ([NO_BARS], "path: bars.jsonl has no complete bars; give a file with one symbol a line"),
        ([trader_line(zone="Mars/North")], "timezone: 'Mars/North' is not a known time zone; "),
    ],
)
def test_bad_trader_bars_are_refused_by_line(tmp_path: Path, lines: list[str], beginning: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_trader(tmp_path, *lines)
    assert caught.value.message.replace(f"{tmp_path}/", "").startswith(beginning)


@pytest.mark.skipif(not REAL.is_dir(), reason="the position logs are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "seconds", "symbols", "bars", "closed"),
    [
        ("astock_daily", 86_400, 50, 1450, 600),
        ("crypto_daily", 86_400, 10, 3550, 0),
        ("us_nasdaq100_60min", 3600, 101, 17473, 79992),
    ],
)
def test_real_trader_bars_are_read_whole(name: str, seconds: int, symbols: int, bars: int, closed: int) -> None:
    file = read_trader_bars(REAL / f"{name}.jsonl")
    for series in file.bars.values():
        check_bars(series)
    assert (file.interval_seconds, len(file.bars), len(file.openings)) == (seconds, symbols, symbols)
    assert (sum(map(len, file.bars.values())), file.report.rows) == (bars, bars + symbols)
    assert (file.report.gap_count, file.report.missing, file.report.duplicates) == (0, 0, 0)
    assert (file.report.session_count, file.report.closed) == (0, closed)
