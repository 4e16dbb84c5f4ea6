"""Position logs: the rows, the change at each row, and the contradictions reported as dirt."""

import codecs
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid, NotFound
from backsight.core.market import Bar
from backsight.importers.bars import BarsRead, Opening, read_trader_bars
from backsight.importers.positions import (
    DirtKind,
    PositionLog,
    PositionSummary,
    RowChange,
    log_changes,
    read_positions,
    summarise,
    transition_of,
)

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "positions"
T = datetime(2026, 6, 4, 10, tzinfo=UTC)
Row = dict[str, Any]


def a_row(number: int = 0, *, cash: float = 1000.0, did: Row | None = None, **holdings: float) -> Row:
    """A row at 10:00, an hour later each number."""
    row: Row = {"date": f"2026-06-04 {10 + number}:00:00", "id": number, "positions": holdings | {"CASH": cash}}
    return row if did is None else row | {"this_action": did}


def act(action: str, symbol: str, amount: float, **more: float) -> Row:
    return {"action": action, "symbol": symbol, "amount": amount} | more


def log_of(folder: Path, *rows: Row, timezone: str = "UTC") -> PositionLog:
    path = folder / "position.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_positions(path, timezone=timezone)


def a_bar(number: int, *, symbol: str = "BTC") -> Bar:
    """A bar of the hour of row `number`: open 100, low 90, high 120."""
    at = T + timedelta(hours=number)
    return Bar(symbol=symbol, interval_seconds=3600, opened_at=at, open=100, high=120, low=90, close=110)


def kinds(change: RowChange) -> list[DirtKind]:
    return [dirt.kind for dirt in change.dirt]


def last(folder: Path, *rows: Row, bars: list[Bar] | None = None, openings: tuple[Opening, ...] = ()) -> RowChange:
    given_bars = None if bars is None else {"BTC": bars}
    return log_changes(log_of(folder, *rows), bars=given_bars, openings=openings)[-1]


def bought(folder: Path, *, cost: float = 200.0, bars: list[Bar] | None = None, **more: float) -> RowChange:
    """Two BTC bought at 11:00."""
    return last(folder, a_row(), a_row(1, cash=1000 - cost, did=act("buy", "BTC", 2, **more), BTC=2), bars=bars)


def test_a_row_has_a_time_holdings_cash_and_an_action(tmp_path: Path) -> None:
    (row,) = log_of(tmp_path, a_row(3, cash=5.5, did=act("buy_crypto", "BTC", 0.1, price=7), BTC=0.1, ETH=0)).rows
    assert (row.line, row.id, row.at, row.cash) == (1, 3, T + timedelta(hours=3), 5.5)
    assert row.holdings == {"BTC": 0.1}
    assert row.action is not None
    assert (row.action.action, row.action.symbol, row.action.amount, row.action.price) == ("buy_crypto", "BTC", 0.1, 7)


def test_a_row_need_not_state_an_action_or_an_id(tmp_path: Path) -> None:
    (row,) = log_of(tmp_path, {"date": "2026-06-04", "positions": {"CASH": 1}}).rows
    assert (row.action, row.id, row.holdings) == (None, None, {})


def test_rows_keep_the_order_of_the_file_also_within_an_instant(tmp_path: Path) -> None:
    log = log_of(tmp_path, a_row(0), a_row(0) | {"id": 1}, a_row(0) | {"id": 2})
    assert [row.id for row in log.rows] == [0, 1, 2]
    assert summarise(log_changes(log)).instants == 1


@pytest.mark.parametrize(
    ("stamp", "zone", "instant"),
    [
        ("2025-10-09", "Asia/Shanghai", "2025-10-08T16:00:00+00:00"),
        ("2025-10-01 10:00:00", "America/New_York", "2025-10-01T14:00:00+00:00"),
        ("2025-11-02 01:30:00", "America/New_York", "2025-11-02T05:30:00+00:00"),
        ("2025-03-09 02:30:00", "America/New_York", "2025-03-09T07:30:00+00:00"),
        ("2025-10-09T10:00:00+02:00", "America/New_York", "2025-10-09T08:00:00+00:00"),
    ],
)
def test_naive_times_are_in_the_timezone_argument_and_the_first_of_two(
    tmp_path: Path, stamp: str, zone: str, instant: str
) -> None:
    (row,) = log_of(tmp_path, a_row() | {"date": stamp}, timezone=zone).rows
    assert row.at.isoformat() == instant


def test_byte_order_mark_crlf_blank_lines_and_unicode_are_read(tmp_path: Path) -> None:
    text = json.dumps(a_row() | {"positions": {"中国石化\u2028": 3, "CASH": 1}}, ensure_ascii=False)
    (tmp_path / "log").write_bytes(codecs.BOM_UTF8 + f"{text}\r\n\r\n{text}\r\n".encode())
    log = read_positions(tmp_path / "log", timezone="UTC")
    assert [(row.line, *row.holdings) for row in log.rows] == [(1, "中国石化\u2028"), (3, "中国石化\u2028")]


@pytest.mark.parametrize(
    ("row", "beginning"),
    [
        ({}, "positions: log line 2: no object with CASH; give the quantity of each symbol, and CASH"),
        (
            {"positions": {"A": 1}},
            "positions: log line 2: no object with CASH; give the quantity of each symbol, and CASH",
        ),
        (a_row() | {"date": None}, "date: log line 2: None is not a time; give one like 2026-06-04 10:00:00"),
        (a_row() | {"date": "soon"}, "date: log line 2: 'soon' is not a time; give one like 2026-06-04T10:00:00Z"),
        (a_row(A="1"), "positions: log line 2: A is '1'; give a finite number"),  # type: ignore[arg-type]
        (a_row(A=True), "positions: log line 2: A is True; give a finite number"),
        (a_row(A=10**400), "positions: log line 2: A is 1000"),
        (a_row() | {"id": 1.5}, "id: log line 2: 1.5 is not an id; give a whole number or text"),
        (a_row() | {"this_action": "buy"}, "this_action: log line 2: 'buy' is not an object; give action, symbol, amo"),
        (a_row(did={"action": "buy"}), "this_action: log line 2: no text for action or symbol; give both"),
        (a_row(did=act("buy", "A", None)), "this_action: log line 2: amount is None; give"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_row_is_refused_by_line_field_and_remedy(tmp_path: Path, row: Row, beginning: str) -> None:
    (tmp_path / "log").write_text(f"{json.dumps(a_row())}\n{json.dumps(row)}\n", encoding="utf-8")
    with pytest.raises(Invalid) as caught:
        read_positions(tmp_path / "log", timezone="UTC")
    assert caught.value.message.replace(f"{tmp_path}/", "").startswith(beginning)


@pytest.mark.parametrize(
    ("content", "pattern"),
    [
        (b"", "is empty; give a file with rows"),
        (b"{}\n\xff", "line 2: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b'{"positions"', r"line 1: not JSON \(.*\); write one object a line"),
        (b'{"positions": {"CASH": NaN}}', r"line 1: not JSON \(NaN is not a number\); write one object a line"),
        (b'{"positions": {"A": 1, "A": 2}}', r"line 1: not JSON \(the key 'A' occurs twice\)"),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path: Path, content: bytes, pattern: str) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(Invalid, match=pattern):
        read_positions(tmp_path / "log", timezone="UTC")


def test_a_missing_log_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="path: there is no file"):
        read_positions(tmp_path / "none", timezone="UTC")


def test_an_unknown_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="timezone: 'Eastern Time' is not a known time zone"):
        log_of(tmp_path, a_row(), timezone="Eastern Time")


# Changes


def test_a_step_changes_quantity_and_cash(tmp_path: Path) -> None:
    change = bought(tmp_path)
    (move,) = change.moves
    assert (move.symbol, move.before, move.after, move.quantity, move.transition) == ("BTC", 0, 2, 2, "open")
    assert (change.cash, change.price, change.dirt) == (-200, 100, ())


def test_the_first_row_changes_nothing(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(BTC=3))
    assert (change.moves, change.cash, change.price, change.dirt) == ((), None, None, ())
    assert summarise([change]).held_at_start == 1


def test_no_trade_and_no_change_is_clean(tmp_path: Path) -> None:
    assert last(tmp_path, a_row(BTC=1), a_row(1, did=act("no_trade", "", 0), BTC=1)).dirt == ()


@pytest.mark.parametrize(
    ("before", "after", "transition"),
    [
        (0, 2, "open"),
        (0, -2, "open"),
        (2, 3, "addition"),
        (-2, -3, "addition"),
        (3, 2, "reduction"),
        (-3, -2, "reduction"),
        (2, 0, "close"),
        (2, 1e-10, "close"),
        (-2, 0, "close"),
        (2, -1, "flip"),
        (-1, 2, "flip"),
        (2, 2 + 1e-12, None),
        (0, 0, None),
    ],
)
def test_a_change_of_quantity_is_a_named_transition(before: float, after: float, transition: str | None) -> None:
    assert transition_of(before, after) == transition


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_the_reverse_change_is_the_opposite_transition(before: float, after: float) -> None:
    undone = {"open": "close", "close": "open", "addition": "reduction", "reduction": "addition", "flip": "flip"}
    there, back = transition_of(before, after), transition_of(after, before)
    assert (there is None and back is None) or (there is not None and undone[there] == back)


def test_a_repeated_id_names_the_line_that_had_it(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(), a_row(1), a_row(2) | {"id": 0})
    assert [dirt.message for dirt in change.dirt] == ["line 3: id 0 is that of line 1"]
    assert kinds(change) == ["repeated_id"]


def test_time_that_goes_backwards_is_reported(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(2), a_row(1))
    assert kinds(change) == ["time_backwards"]
    assert change.dirt[0].message == ("line 2: 2026-06-04T11:00:00+00:00 is before 2026-06-04T12:00:00+00:00 of line 1")


@pytest.mark.parametrize(
    ("did", "message"),
    [
        (act("buy", "BTC", 3), "line 2: buy 3 BTC is stated, but BTC +2 changed"),
        (act("buy", "ETH", 2), "line 2: buy 2 ETH is stated, but BTC +2 changed"),
        (act("sell_crypto", "BTC", 2), "line 2: sell_crypto 2 BTC is stated, but BTC +2 changed"),
        (act("buy", "BTC", 2.00001), "line 2: buy 2.00001 BTC is stated, but BTC +2 changed"),
        (act("no_trade", "", 0), "line 2: no trade is stated, but BTC +2 changed"),
        (None, "line 2: no trade is stated, but BTC +2 changed"),
    ],
)
def test_a_change_that_contradicts_the_action_is_reported(tmp_path: Path, did: Row | None, message: str) -> None:
    change = last(tmp_path, a_row(), a_row(1, cash=800, did=did, BTC=2))
    assert kinds(change) == ["not_the_action"]
    assert change.dirt[0].message == message


def test_an_action_within_rounding_of_doubles_is_the_change(tmp_path: Path) -> None:
    assert last(tmp_path, a_row(BTC=0.2), a_row(1, cash=990, did=act("buy", "BTC", 0.1), BTC=0.1 + 0.2)).dirt == ()


@pytest.mark.parametrize("amount", [0, 5])
def test_an_action_without_a_change_is_reported(tmp_path: Path, amount: float) -> None:
    change = last(tmp_path, a_row(), a_row(1, did=act("buy", "BTC", amount)))
    assert kinds(change) == ["action_without_change"]
    assert change.dirt[0].message == f"line 2: buy {amount} BTC is stated, but nothing changed"


def test_an_action_that_is_neither_buy_nor_sell_is_reported(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(), a_row(1, did=act("stake", "BTC", 1)))
    assert kinds(change) == ["unknown_action"]
    assert change.dirt[0].message == "line 2: 'stake' is neither buy nor sell; changed: nothing"


def test_an_action_in_the_first_row_cannot_be_checked_and_is_reported(tmp_path: Path) -> None:
    assert kinds(last(tmp_path, a_row(did=act("buy", "BTC", 1), BTC=1))) == ["no_row_before"]


def test_several_symbols_in_one_step_are_reported_and_imply_no_price(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(ETH=5), a_row(1, cash=900, did=act("buy", "BTC", 2), BTC=2, ETH=4), bars=[])
    assert kinds(change) == ["several_symbols", "not_the_action"]
    assert change.dirt[0].message == "line 2: one step changed BTC +2, ETH -1"
    assert change.price is None


def test_a_change_of_cash_without_a_change_of_quantity_is_reported(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(), a_row(1, cash=1001.5))
    assert [dirt.message for dirt in change.dirt] == ["line 2: cash changed by +1.5, and no holding did"]


def test_cash_within_rounding_of_doubles_has_not_changed(tmp_path: Path) -> None:
    change = last(tmp_path, a_row(), a_row(1, cash=1000 + 1e-9))
    assert (change.cash, change.dirt) == (0, ())


@pytest.mark.parametrize("cost", [0, -200])
def test_a_price_that_is_not_positive_is_reported_even_without_bars(tmp_path: Path, cost: float) -> None:
    assert kinds(bought(tmp_path, cost=cost)) == ["price_not_positive"]


def test_a_price_that_differs_from_the_stated_price_is_reported(tmp_path: Path) -> None:
    assert kinds(bought(tmp_path, price=100)) == []
    assert kinds(bought(tmp_path, price=101)) == ["price_not_stated"]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (200, []),
        (200.0001, []),
        (200.001, ["price_off_open"]),
        (240, ["price_off_open"]),
        (241, ["price_outside_bar"]),
        (170, ["price_outside_bar"]),
    ],
)
def test_a_price_is_compared_with_its_bar(tmp_path: Path, cost: float, expected: list[str]) -> None:
    assert kinds(bought(tmp_path, cost=cost, bars=[a_bar(0), a_bar(1), a_bar(2)])) == expected


def test_prices_outside_the_bars_are_reported_with_both_numbers(tmp_path: Path) -> None:
    (off,) = bought(tmp_path, cost=210, bars=[a_bar(1)]).dirt
    (outside,) = bought(tmp_path, cost=300, bars=[a_bar(1)]).dirt
    assert off.message == "line 2: BTC cost 105, and the bar opened at 100"
    assert outside.message == "line 2: BTC cost 150, outside low 90 to high 120"


def test_a_price_without_a_bar_is_reported(tmp_path: Path) -> None:
    for bars in ([], [a_bar(0)], [a_bar(2)]):
        assert kinds(bought(tmp_path, bars=bars)) == ["no_bar"]


def test_an_incomplete_bar_still_has_an_open(tmp_path: Path) -> None:
    opening = Opening(symbol="BTC", interval_seconds=3600, opened_at=T + timedelta(hours=1), price=100)
    rows = a_row(), a_row(1, cash=400, did=act("buy", "BTC", 2), BTC=2)
    assert kinds(last(tmp_path, *rows, bars=[a_bar(0)], openings=(opening,))) == ["price_off_open"]


def test_a_summary_counts_rows_transitions_and_dirt(tmp_path: Path) -> None:
    steps = [0, 2, 3, 1, -1, 0]
    rows = [a_row(n, cash=1000 - 100 * quantity, BTC=quantity) for n, quantity in enumerate(steps)]
    assert summarise(log_changes(log_of(tmp_path, *rows))) == PositionSummary(
        rows=6,
        instants=6,
        held_at_start=0,
        opens=1,
        closes=1,
        flips=1,
        additions=1,
        reductions=1,
        dirt={"not_the_action": 5},
    )


@given(st.lists(st.dictionaries(st.sampled_from("ABC"), st.integers(-3, 3)), min_size=1, max_size=8))
def test_the_moves_lead_from_the_first_row_to_the_last(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, Any]]
) -> None:
    log = log_of(tmp_path_factory.mktemp("log"), *(a_row(n, **step) for n, step in enumerate(steps)))
    holdings = dict(log.rows[0].holdings)
    for change in log_changes(log):
        for move in change.moves:
            holdings[move.symbol] = holdings.get(move.symbol, 0) + move.quantity
    assert {symbol: quantity for symbol, quantity in holdings.items() if quantity} == log.rows[-1].holdings


# The real logs

BARS = {
    "ashare_daily": ("astock_daily", "Asia/Shanghai"),
    "crypto_daily": ("crypto_daily", "UTC"),
    "us_hourly": ("us_nasdaq100_60min", "America/New_York"),
}
LOGS = sorted(REAL.glob("*/*/position/position.jsonl"))
real = pytest.mark.skipif(not LOGS, reason="the position logs are not beside this checkout")


@pytest.fixture(scope="module")
def market() -> dict[str, BarsRead]:
    return {group: read_trader_bars(REAL / "bars" / f"{name}.jsonl") for group, (name, _) in BARS.items()}


def real_changes(path: Path, market: dict[str, BarsRead]) -> tuple[RowChange, ...]:
    group = path.parts[-4]
    log = read_positions(path, timezone=BARS[group][1])
    return log_changes(log, bars=market[group].bars, openings=market[group].openings)


@real
def test_all_real_logs_are_read_and_counted(market: dict[str, BarsRead]) -> None:
    summaries = [summarise(real_changes(path, market)) for path in LOGS]
    assert (len(summaries), sum(each.rows for each in summaries)) == (19, 2527)
    assert sum(each.opens for each in summaries) == 482
    assert sum(each.closes for each in summaries) == 310
    assert (sum(each.flips for each in summaries), sum(each.held_at_start for each in summaries)) == (0, 0)
    dirt: dict[str, int] = {}
    for kind, count in (item for each in summaries for item in each.dirt.items()):
        dirt[kind] = dirt.get(kind, 0) + count
    assert dirt == {
        "action_without_change": 12,
        "repeated_id": 28,
        "not_the_action": 11,
        "several_symbols": 7,
        "price_off_open": 102,
        "price_outside_bar": 239,
    }


@real
def test_real_chinese_logs_pay_the_open_price_for_the_stated_action(market: dict[str, BarsRead]) -> None:
    logs = [path for path in LOGS if path.parts[-4] == "ashare_daily"]
    assert len(logs) == 7
    for path in logs:
        opens = {(bar.symbol, bar.opened_at): bar.open for bars in market["ashare_daily"].bars.values() for bar in bars}
        opens |= {(each.symbol, each.opened_at): each.price for each in market["ashare_daily"].openings}
        for change in real_changes(path, market)[1:]:
            action = change.row.action
            assert action is not None
            paid = -(action.quantity or 0) * opens.get((action.symbol, change.row.at), 0)
            assert change.cash == pytest.approx(paid, rel=1e-6)
            assert set(kinds(change)) <= {"action_without_change"}


@real
def test_real_american_prices_never_match_the_bars_in_october(market: dict[str, BarsRead]) -> None:
    """The agents did not trade on the October bars; they mostly traded on the November bars."""
    logs = [path for path in LOGS if path.parts[-4] == "us_hourly"]
    priced = [change for path in logs for change in real_changes(path, market) if change.price is not None]
    clean = [change.row.at.month for change in priced if not change.dirt]
    assert {month: clean.count(month) for month in (10, 11)} == {10: 0, 11: 196}
