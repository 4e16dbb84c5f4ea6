"""A stated result that prices and size contradict is said aloud, and a stored instrument explains it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.trades.report import TradeReport
from backsight.memory import Memory
from backsight.testing import T0, a_trade_call

FUTURE = a_trade_call(
    symbol="ES",
    direction="long",
    entry_price=5_000.0,
    exit_price=5_010.0,
    size=2.0,
    stop_price=4_990.0,
    pnl=995.0,
    fees=5.0,
    pnl_r=None,
    closed_at=T0,
)
DOUBT = "ES: prices and size give 20, but 1000 is stated; if one unit earns 50 a point, save_instrument(multiplier=50)."


def test_a_result_that_a_multiplier_would_explain_is_remembered_and_said(memory: Memory) -> None:
    remembered = memory.remember_trade(**FUTURE)
    assert remembered.message.endswith(f" {DOUBT}")
    assert remembered.trade.pnl == 995.0
    assert remembered.learned is not None


def test_a_stored_multiplier_explains_the_result_and_counts_in_the_risk(memory: Memory) -> None:
    memory.save_instrument(symbol="ES", multiplier=50.0, kind="future", currency="USD")
    remembered = memory.remember_trade(**FUTURE)
    assert "prices and size" not in remembered.message
    assert (remembered.trade.risk, remembered.trade.point_value) == (1_000.0, 50.0)
    assert remembered.trade.outcome is not None
    assert (remembered.trade.outcome.unit, remembered.trade.outcome.value) == ("R", 0.995)
    assert memory.doctor().healthy


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pnl": 15.0}, None),
        ({"pnl": 45.0}, None),  # half a per cent of 10,000, and the fees
        ({"pnl": 100.0}, "prices and size give 20, but 105 is stated; if one unit earns 5.25 a point"),
        ({"pnl": -995.0}, "but -990 is stated; check the direction, the prices and the sign."),
        (
            {"direction": "short", "stop_price": None},
            "prices and size give -20, but 1000 is stated; check the direction",
        ),
        ({"size": None}, None),
    ],
)
def test_only_what_fees_and_rounding_do_not_explain_is_said(
    memory: Memory, changes: dict[str, float | str | None], said: str | None
) -> None:
    message = memory.remember_trade(**FUTURE | changes).message
    assert (said or "Remembered.") in message
    assert ("prices and size" in message) is (said is not None)


@pytest.mark.parametrize("instrument", [{"inverse": True}, {"currency": "JPY"}])
def test_prices_of_an_inverse_or_foreign_contract_tell_no_result(memory: Memory, instrument: dict[str, Any]) -> None:
    memory.save_instrument(symbol="ES", multiplier=50.0, **instrument)
    assert "prices and size" not in memory.remember_trade(**FUTURE).message


def test_an_import_names_doubtful_results_by_symbol(memory: Memory, tmp_path: Path) -> None:
    rows = [
        "ES,long,5000,5010,2,995,5,2026-06-01T10:00:00Z",
        "SPY,long,500,510,2,20,0,2026-06-01T11:00:00Z",
        "ES,long,5000,5020,1,1000,0,2026-06-02T10:00:00Z",
    ]
    path = tmp_path / "trades.csv"
    path.write_text("\n".join(["symbol,direction,entry_price,exit_price,size,pnl,fees,closed_at", *rows, ""]))
    imported = memory.import_trades(path=str(path), strategy_name="Fade", mode="paper")
    assert imported.added == 3
    assert imported.notes == (f"2 doubtful results of ES, first in row 2: {DOUBT}",)
    memory.save_instrument(symbol="ES", multiplier=50.0)
    again = memory.import_trades(path=str(path), strategy_name="Fade", mode="paper")
    assert (again.added, again.notes) == (0, ())


PRICES = st.floats(0.01, 1e6)


@given(PRICES, PRICES, st.floats(0.001, 1e4), st.sampled_from([0.01, 1.0, 50.0]), st.floats(-100.0, 100.0))
def test_a_result_by_its_prices_is_never_doubted(
    entry: float, leave: float, size: float, point_value: float, fees: float
) -> None:
    pnl = (entry - leave) * size * point_value - fees
    report = TradeReport(symbol="X", direction="short", entry_price=entry, exit_price=leave, pnl=pnl, fees=fees)
    assert replace(report, size=size, point_value=point_value).doubt is None
