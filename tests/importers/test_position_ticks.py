"""Position logs become ticks with increasing times, prices known at the time, and proposals."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.importers.bars import Opening
from backsight.importers.position_ticks import PositionTick, position_ticks
from backsight.importers.positions import check_cash, log_changes, quotes_of, read_positions

T = datetime(2026, 6, 4, tzinfo=UTC)


def a_row(hour: int, *, cash: float = 1000.0, did: str = "", **holdings: float) -> dict[str, Any]:
    row: dict[str, Any] = {"date": f"2026-06-04 {hour:02d}:00:00", "positions": holdings | {"CASH": cash}}
    word, symbol, amount = did.split() if did else ("", "", "0")
    return row | {"this_action": {"action": word, "symbol": symbol, "amount": float(amount)}}


def a_bar(hour: int, price: float = 100.0, *, symbol: str = "BTC") -> Bar:
    at = T + timedelta(hours=hour)
    prices = {"open": price, "high": price + 50, "low": price, "close": price + 10}
    return Bar(symbol=symbol, interval_seconds=3600, opened_at=at, **prices)


def ticks_of(folder: Path, *rows: dict[str, Any], bars: tuple[Bar, ...] = (), opened: float = 0) -> list[PositionTick]:
    path = folder / "log.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    log = read_positions(path, timezone="UTC")
    last = Opening(symbol="BTC", interval_seconds=3600, opened_at=T + timedelta(hours=3), price=opened)
    quotes = quotes_of({"BTC": bars}, [last] if opened else [])
    return list(position_ticks(log, log_changes(log), quotes=quotes))


def test_time_only_goes_forward_and_rows_of_an_instant_are_counted(tmp_path: Path) -> None:
    ticks = ticks_of(tmp_path, *(a_row(hour) for hour in (1, 2, 1, 2, 3, 3)))
    assert [(tick.at.hour, tick.sequence) for tick in ticks] == [(1, 0), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1)]


def test_a_tick_has_the_holdings_of_the_row_before_and_of_its_row_at_its_prices(tmp_path: Path) -> None:
    rows = a_row(1, BTC=1), a_row(2, cash=700.0, BTC=3)
    first, second = ticks_of(tmp_path, *rows, bars=(a_bar(1, 90), a_bar(2, 140)))
    assert (first.before.portfolio.equity, first.after) == (1090.0, None)
    assert second.after is not None
    before, after = second.before.portfolio, second.after.portfolio
    assert (before.cash, before.equity, after.cash, after.equity) == (1000.0, 1150.0, 700.0, 1150.0)
    assert [(position.size, position.mark, position.average_price) for position in after.positions] == [
        (3.0, 150.0, None)
    ]


@pytest.mark.parametrize(
    ("hour", "mark"),
    [(1, 100.0), (2, 110.0), (3, 300.0), (4, 300.0)],
    ids=["its bar", "after a gap", "a bar that only opened", "the last one seen"],
)
def test_a_mark_is_never_a_price_from_later_in_the_bar(tmp_path: Path, hour: int, mark: float) -> None:
    rows = [a_row(each, BTC=1) for each in range(1, hour + 1)]
    assert ticks_of(tmp_path, *rows, bars=(a_bar(1, 100.0),), opened=300.0)[-1].before.marks == {"BTC": mark}


def test_the_last_price_is_the_later_one_of_log_and_bars(tmp_path: Path) -> None:
    rows = a_row(1), a_row(5, cash=880.0, BTC=1), a_row(6, cash=880.0, BTC=1)
    assert ticks_of(tmp_path, *rows, bars=(a_bar(1),))[-1].before.marks == {"BTC": 120.0}
    assert ticks_of(tmp_path, *rows, bars=(a_bar(1), a_bar(5)))[-1].before.marks == {"BTC": 110.0}


def test_without_any_price_the_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"bars: .* line 2: no price of 'BTC' is known at 2026-06-04T02:00:00\+00:00"):
        ticks_of(tmp_path, a_row(1), a_row(2, BTC=1), bars=(a_bar(3),))


@pytest.mark.parametrize(
    ("did", "proposed"),
    [
        ("buy BTC 2", ("BTC", 2.0, "buy")),
        ("sell_crypto BTC 2", ("BTC", -2.0, "sell_crypto")),
        ("buy BTC 0", None),
        ("stake BTC 2", None),
        (f"buy {'X' * 65} 2", None),
        ("", None),
    ],
)
def test_an_action_that_is_an_order_is_the_proposal(
    tmp_path: Path, did: str, proposed: tuple[str, float, str] | None
) -> None:
    order = ticks_of(tmp_path, a_row(1, did=did), a_row(2, did=did))[-1].proposal
    assert proposed == (None if order is None else (order.symbol, order.quantity, order.reason))
    assert ticks_of(tmp_path, a_row(1, did=did))[0].proposal is None


def test_a_verdict_follows_the_holdings_and_says_why_nothing_was_executed(tmp_path: Path) -> None:
    rows = a_row(1), a_row(2, cash=900.0, BTC=1), a_row(3, cash=900.0, did="sell BTC 1", BTC=1)
    verdicts = [tick.verdict for tick in ticks_of(tmp_path, *rows)]
    assert [verdict.kind for verdict in verdicts] == ["noop", "executed", "noop"]
    assert verdicts[-1].detail == "line 3: sell 1 BTC is stated, but nothing changed"


def test_a_dust_holding_counts_as_flat(tmp_path: Path) -> None:
    sizes = (0.0, 0.3, 5e-17, 5e-17, 0.2, -1e-12, 0.0)
    rows = [a_row(hour, cash=1000 - 100 * size, BTC=size) for hour, size in enumerate(sizes)]
    ends = [(tick.after or tick.before).portfolio.positions for tick in ticks_of(tmp_path, *rows)]
    assert [[position.size for position in each] for each in ends] == [[], [0.3], [], [], [0.2], [], []]


def test_cash_is_compared_with_the_opens(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "\n".join(
            json.dumps(row)
            for row in (
                a_row(1),
                a_row(2, cash=900.0, BTC=1),
                a_row(3, cash=799.0, BTC=2),
                a_row(4, cash=700.0, BTC=3),
                a_row(5, cash=650.0, BTC=3, ETH=1),
            )
        ),
        encoding="utf-8",
    )
    changed = log_changes(read_positions(tmp_path / "log", timezone="UTC"))
    counted = check_cash(changed, quotes_of({"BTC": [a_bar(2), a_bar(3)], "ETH": [a_bar(5, 50, symbol="ETH")]}))
    assert (counted.changes, counted.checked, counted.reconciled) == (4, 3, 2)
