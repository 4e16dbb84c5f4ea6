"""Positions that the broker names by a new symbol stay the ledger's positions."""

from dataclasses import replace
from typing import Any

import pytest

from backsight.core.instruments import SymbolRules
from backsight.core.orders import ReportedFill
from backsight.core.trades.rename import ledger_keys, under_keys
from backsight.core.trades.trade import Trade
from backsight.testing import T0, a_position, a_snapshot
from core.trades.test_report import a_trade

RULES = SymbolRules(underlyings={"FB": "META", "META": "META"})
META = a_position(2.0, symbol="META", average_price=100.0)


def an_open_trade(**changes: Any) -> Trade:
    values: dict[str, Any] = {"symbol": "FB", "position_key": "FB", "status": "open", "open_size": 2.0}
    return replace(a_trade(), direction="long", average_cost=100.0, **(values | changes))


def a_rename(old: str, new: str) -> ReportedFill:
    return ReportedFill(id="r", at=T0, sequence=0, kind="rename", position_key=old, symbol=new)


def test_a_position_that_was_renamed_keeps_its_key() -> None:
    assert ledger_keys([an_open_trade(symbol="META")], [a_snapshot(META)], RULES) == {"META": "FB"}


def test_a_reported_rename_names_the_position_also_the_second_time() -> None:
    assert ledger_keys([an_open_trade()], [a_snapshot(fills=[a_rename("FB", "META")])], SymbolRules()) == {"META": "FB"}
    again = a_snapshot(fills=[a_rename("META", "M2")])
    assert ledger_keys([an_open_trade(symbol="META")], [again], SymbolRules()) == {"META": "FB", "M2": "FB"}


@pytest.mark.parametrize(
    ("position", "rules", "keys"),
    [
        (META, RULES, {"META": "FB"}),
        (META, SymbolRules(), {}),
        (replace(META, size=3.0), RULES, {}),
        (replace(META, average_price=101.0), RULES, {}),
        (replace(META, direction="short"), RULES, {}),
    ],
)
def test_a_rename_is_inferred_from_the_same_position_on_the_same_underlying(
    position: Any, rules: SymbolRules, keys: dict[str, str]
) -> None:
    assert ledger_keys([an_open_trade()], [a_snapshot(position)], rules) == keys


def test_positions_and_fills_are_under_the_ledgers_keys() -> None:
    sold = ReportedFill(id="o", at=T0, sequence=0, kind="trade", symbol="META", quantity=-2.0, price=1.0)
    snapshot = under_keys(a_snapshot(META, a_position(1.0), fills=[sold]), {"META": "FB"})
    assert [(each.position_key, each.symbol) for each in snapshot.portfolio.positions] == [
        ("FB", "META"),
        ("BTC", "BTC"),
    ]
    assert [(fill.position_key, fill.symbol) for fill in snapshot.fills] == [("FB", "META")]
