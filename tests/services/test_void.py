"""A voided tick leaves the store as if it had not happened, and closing it again restores it."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.orders import Order, ReportedFill
from backsight.memory import Memory
from backsight.store.decisions import SEGMENTS
from backsight.store.experience import DERIVED
from backsight.store.tables import AUDITED
from backsight.testing import T0, FakeClock, a_position, a_snapshot

HOUR = timedelta(hours=1)
YEARS = timedelta(days=26_000)


def a_tick(clock: FakeClock, number: int, size: float, price: float, **more: Any) -> dict[str, Any]:
    """The arguments of a tick after which the account has a position of this size."""
    at = clock.at
    before = a_position(more.pop("former", 0.0)) if more.get("former") else None
    former = () if before is None else (before,)
    position = () if size == 0 else (a_position(size, mark=price),)
    fill = ReportedFill(
        id=f"f{number}", at=at, sequence=0, kind="trade", symbol="BTC", quantity=more.pop("traded"), price=price
    )
    order = Order(symbol="BTC", quantity=fill.quantity, reason=f"tick {number}")
    return {
        "deployment": "S@main",
        "at": at,
        "before": a_snapshot(*former, at=at, marks={"BTC": price}),
        "after": a_snapshot(*position, at=at, marks={"BTC": price}, fills=[fill]),
        "proposal": order,
        "verdict": Verdict(kind="executed"),
    }


def rows(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table but the chain and the prompt texts, without the instants of recording."""
    tables = [noun.table for noun in (*AUDITED, *DERIVED) if noun is not SEGMENTS]
    with memory.reading() as connection:
        return {
            table.name: sorted(
                (
                    tuple(cell for name, cell in row._mapping.items() if "recorded_at" not in name)
                    for row in connection.execute(select(*table.c))
                ),
                key=repr,
            )
            for table in tables
        }


@pytest.fixture
def lived(memory: Memory, clock: FakeClock) -> Memory:
    """A deployment that made three trades, of which the last is open."""
    memory.open_account(venue="x", name="main", currency="EUR", mode="paper")
    memory.save_strategy(name="S", risk_per_trade=0.01)
    memory.deploy(strategy_name="S", account="main")
    for number, (size, traded) in enumerate([(2.0, 2.0), (0.0, -2.0), (1.0, 1.0), (0.0, -1.0), (3.0, 3.0)]):
        clock.at = T0 + number * HOUR
        memory.close_tick(**a_tick(clock, number, size, 100.0 + number, traded=traded, former=size - traded))
    return memory


def test_a_tick_of_a_wrong_clock_is_voided_and_the_account_goes_on(lived: Memory, clock: FakeClock) -> None:
    before, now = rows(lived), clock.at
    clock.at = T0 + YEARS
    wrong = a_tick(clock, 9, 0.0, 90.0, traded=-3.0, former=3.0)
    closed = lived.close_tick(**wrong)
    assert len(closed.closed) == 1
    clock.at = now + HOUR
    right = a_tick(clock, 5, 0.0, 90.0, traded=-3.0, former=3.0)
    with pytest.raises(Conflict, match="void_tick"):
        lived.close_tick(**right)
    voided = lived.void_tick(decision_id=closed.decision.id)
    assert voided.decision == closed.decision
    assert rows(lived) == before
    assert lived.verify_audit().intact
    assert len(lived.close_tick(**right).closed) == 1
    assert lived.verify_audit().intact


def test_closing_a_voided_tick_again_restores_every_row(lived: Memory, clock: FakeClock) -> None:
    clock.advance(hours=1)
    tick = a_tick(clock, 5, 0.0, 90.0, traded=-3.0, former=3.0)
    closed = lived.close_tick(**tick)
    before = rows(lived)
    lived.void_tick(decision_id=closed.decision.id[:12])
    again = lived.close_tick(**tick)
    assert not again.replayed
    assert rows(lived) == before
    assert lived.doctor().healthy


def test_only_the_last_tick_of_an_account_is_voided(lived: Memory) -> None:
    _, former, *_ = lived.list_decisions().decisions
    with pytest.raises(Conflict, match="void that one first"):
        lived.void_tick(decision_id=former.id)
    with pytest.raises(NotFound):
        lived.void_tick(decision_id="0" * 36)
    for decision in lived.list_decisions().decisions:
        lived.void_tick(decision_id=decision.id)
    assert lived.list_decisions().decisions == ()
    assert lived.verify_audit().intact


def test_a_tick_whose_trade_was_annotated_since_is_not_voided(lived: Memory, clock: FakeClock) -> None:
    clock.advance(hours=1)
    closed = lived.close_tick(**a_tick(clock, 5, 0.0, 90.0, traded=-3.0, former=3.0))
    clock.advance(hours=1)
    lived.annotate_trade(trade_id=closed.closed[0].id, reflection="Sold too late.")
    with pytest.raises(Conflict, match="was changed after the tick"):
        lived.void_tick(decision_id=closed.decision.id)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_snapshot_from_the_future_is_refused(lived: Memory, clock: FakeClock, side: str) -> None:
    clock.advance(hours=1)
    tick = a_tick(clock, 5, 0.0, 90.0, traded=-3.0, former=3.0)
    tick[side] = a_snapshot(at=clock.at + timedelta(seconds=61))
    with pytest.raises(Invalid, match=rf"{side}.portfolio.at: .* in the future: .* by 60 s \(setting clock_skew\)"):
        lived.close_tick(**tick)
