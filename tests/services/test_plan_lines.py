"""The plans of a prompt: each once, with the symbols and the direction for which it applies at this instant."""

from typing import Any

from backsight.testing import a_snapshot
from services.test_plans import DEPLOYMENT, HALVE, SKIP, Desk, a_bar, at, create_plan, price


def plan_rows(desk: Desk, hours: float, **more: Any) -> list[str]:
    """The rows of the plans in the prompt of a tick."""
    desk.clock.at = max(desk.clock.at, at(hours))
    call: dict[str, Any] = {"before": a_snapshot(at=at(hours)), "symbols": ["BTC", "ETH"]}
    tick = desk.memory.open_tick(deployment=DEPLOYMENT, at=at(hours), **(call | more))
    (text,) = [segment.text for segment in tick.segments if segment.name == "plans"] or [""]
    return text.split("\n")[1:]


def starts(desk: Desk, hours: float, **more: Any) -> list[str]:
    return [row.partition(": ")[0] for row in plan_rows(desk, hours, **more)]


def test_a_plan_stands_once_with_the_symbols_to_which_it_applies(desk: Desk) -> None:
    create_plan(desk.memory, price(">", 100.0), SKIP)
    create_plan(desk.memory, {"symbol": "ETH"}, HALVE, priority=0.9)
    create_plan(desk.memory, {"hour": at(2).hour}, SKIP, priority=0.1)
    desk.look(1, 101.0)
    clock = f"from {at(2).hour}:00 to {at(2).hour + 1}:00 UTC"
    assert starts(desk, 2, bars=[a_bar(2, 102.0)]) == ["- ETH", "- BTC with price above 100", f"- every symbol {clock}"]
    assert starts(desk, 2, bars=[a_bar(2, 99.0)], symbols=["BTC"]) == [f"- every symbol {clock}"]


def test_a_plan_for_one_direction_is_shown_before_the_direction_is_decided(desk: Desk) -> None:
    create_plan(desk.memory, {"symbol": "BTC", "direction": "short"}, SKIP)
    assert starts(desk, 1) == ["- BTC shorts"]
    assert starts(desk, 1, symbols=["ETH"]) == []


def test_a_crossing_is_shown_against_the_tick_before(desk: Desk) -> None:
    create_plan(desk.memory, price("crosses_above", 100.0), SKIP)
    desk.look(1, 99.0)
    assert starts(desk, 2, bars=[a_bar(2, 101.0)]) == ["- BTC with price crossing above 100"]
    desk.look(2, 101.0)
    assert starts(desk, 3, bars=[a_bar(3, 102.0)]) == []
