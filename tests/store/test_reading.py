"""Statements that every tick runs find their rows by an index, however many ticks there were."""

import re
from pathlib import Path

from sqlalchemy import Engine, event

from backsight.core.decision import Verdict
from backsight.core.orders import Order
from backsight.memory import Memory, open_memory
from backsight.testing import FakeClock, a_position, a_snapshot

EVERY_TICK = (
    "decision_snapshots|position_marks|retrievals|retrieved_episodes|recalls|affective_state|shown_segments|fills"
)
"""Tables that grow with ticks; but the audit log, whose last link is read by its key, which a plan does not say."""
READS_ALL = re.compile(rf"SCAN (?:{EVERY_TICK})\b|SEARCH (?:{EVERY_TICK}) .*\(owner_id=\?\)$")
"""SQLite's words for reading every row of an owner."""


def tick(memory: Memory, clock: FakeClock, *, before: bool, after: bool) -> None:
    """A tick at which a position may be open before, and after; its order is what lies between."""
    clock.advance(minutes=1)
    at = clock.now()
    snapshots = [a_snapshot(*[a_position()] * is_open, at=at, marks={"BTC": 100.0}) for is_open in (before, after)]
    order = Order(symbol="BTC", quantity=-1.0 if before else 1.0, reason="test") if before != after else None
    opened = memory.open_tick(deployment="VolBreakout@desk", at=at, before=snapshots[0], symbols=["BTC"])
    memory.close_tick(
        deployment="VolBreakout@desk",
        at=at,
        before=snapshots[0],
        after=snapshots[1],
        proposal=order,
        verdict=Verdict(kind="executed" if order else "noop"),
        shown=list(opened.memory),
        recalls=list(opened.recalls),
    )


def test_no_statement_of_a_tick_reads_every_row_that_ticks_wrote(clock: FakeClock, tmp_path: Path) -> None:
    statements: dict[str, object] = {}

    def note(_connection: object, _cursor: object, statement: str, values: object, *_: object) -> None:
        statements[statement] = values

    url, positions = f"sqlite:///{tmp_path}/store.db", (False, True, True, False, False, True, True, False, False)
    with open_memory(url, owner="ana", clock=clock) as memory:
        memory.open_account(venue="x", name="desk", mode="sim")
        memory.save_strategy(name="VolBreakout")
        memory.deploy(strategy_name="VolBreakout", account="desk")
    event.listen(Engine, "before_cursor_execute", note)
    for number in range(len(positions) - 1):  # each in a process that has read nothing yet
        with open_memory(url, owner="ana", clock=clock) as memory:
            tick(memory, clock, before=positions[number], after=positions[number + 1])
            tick(memory, clock, before=positions[number + 1], after=positions[number + 1])
    event.remove(Engine, "before_cursor_execute", note)

    plans: dict[str, str] = {}
    with open_memory(url, owner="ana", clock=clock) as memory, memory.database.reading() as connection:
        for statement, values in statements.items():
            if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH")) and isinstance(values, tuple):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
                plans |= {f"{row.detail}: {statement}": row.detail for row in plan}

    assert any("position_marks" in detail for detail in plans.values())
    assert [statement for statement, detail in plans.items() if READS_ALL.search(detail)] == []
