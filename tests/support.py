"""What tests of the store share: empty schemas, and raw access as somebody with the password has it."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, event, select, text

from backsight.core.context import ContextVector
from backsight.core.decision import Segment, Verdict
from backsight.core.orders import Order, ReportedFill
from backsight.memory import Memory
from backsight.store.mapping import METADATA
from backsight.testing import FakeClock, a_position, a_snapshot, a_trade_call

POSTGRES = "TEST_POSTGRES_URL"
"""The variable that names the server which the run has started."""
_counter = itertools.count()


def fresh_postgres() -> str:
    """The URL of a new, empty schema."""
    schema = f"t{os.getpid()}_{next(_counter)}"
    engine = create_engine(os.environ[POSTGRES])
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    base = os.environ[POSTGRES]
    return f"{base}{'&' if '?' in base else '?'}options={quote(f'-csearch_path={schema}')}"


@contextmanager
def raw(url: str) -> Iterator[Connection]:
    """A connection that no rule of the schema binds: foreign keys are off."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=OFF"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        yield connection
    engine.dispose()


def deployed(memory: Memory) -> None:
    """An account, a strategy, and the one deployed on the other: VolBreakout@main."""
    memory.open_account(venue="binance", name="main", currency="USDT")
    memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", rules=["enter on a close"], avoid=["news"])
    memory.deploy(strategy_name="VolBreakout", account="main")


def lived_in(memory: Memory, clock: FakeClock) -> None:
    """One row or more in every table."""
    deployed(memory)
    full = a_trade_call(
        deployment="VolBreakout@main",
        opened_at="2026-06-04T07:30:00Z",
        closed_at="2026-06-04T09:00:00Z",
        size=75.0,
        stop_price=5170.0,
        fees=1.5,
        max_adverse_excursion=120.0,
        reflection="Held for the whole move.",
        tags=["london", "gold"],
        position_key="p-1",
        context={
            "atr_h1": 20.0,
            "atr_m5": 4.0,
            "volatility_regime": "high",
            "spread_points": 0.3,
            "spread_as_atr_pct": 0.075,
            "drawdown_pct": 0.02,
            "consecutive_losses": 1,
            "confidence": 0.6,
        },
    )
    memory.remember_trade(**full)
    clock.advance(minutes=1)
    memory.remember_trade(**a_trade_call(pnl=-300.0, pnl_r=-1.0, symbol="BTC/USDT"))
    clock.advance(minutes=1)
    memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason="range too narrow", direction="long")
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("time,open,high,low,close,volume\n2026-06-04T08:00:00Z,10,12,9,11,5\n")
        file.flush()
        memory.import_bars(path=file.name, symbol="XAUUSD", interval_seconds=3600)
    memory.record_equity(account="main", equity=10_000.0)
    memory.create_trading_plan(
        condition={"regime": "ranging"}, action={"type": "skip_trade"}, reasoning="three losses there"
    )
    memory.check_active_plans(deployment="VolBreakout@main", context=ContextVector(regime="ranging"))
    ticked(memory, clock, deployment="VolBreakout@main")


def ticked(memory: Memory, clock: FakeClock, *, deployment: str) -> None:
    """Four ticks: in without a fill reported, half of it reported late, out, and a fee that comes after."""
    executed, noop = Verdict(kind="executed"), Verdict(kind="noop", detail="nothing to do")
    home: dict[str, Any] = {"deployment": deployment}
    held = a_position(2.0, stop_price=95.0)

    def at(hours: int) -> datetime:
        clock.advance(hours=hours)
        return clock.now()

    first = at(1)
    memory.close_tick(
        **home,
        at=first,
        before=a_snapshot(at=first),
        after=a_snapshot(held, at=first + timedelta(seconds=3)),
        proposal=Order(symbol="BTC", quantity=2.0, stop_price=95.0, reason="break of the range"),
        verdict=executed,
        confidence=0.7,
        shown=[Segment(name="recent_activity", text="## Recent activity (this session)")],
    )
    late = ReportedFill(
        id="f1", at=first + timedelta(seconds=2), sequence=0, kind="trade", symbol="BTC", quantity=1.0, price=99.0
    )
    second = at(1)
    memory.close_tick(**home, at=second, before=a_snapshot(held, at=second, fills=[late]), verdict=noop)
    third = at(1)
    memory.close_tick(
        **home,
        at=third,
        before=a_snapshot(held, at=third),
        after=a_snapshot(at=third),
        proposal=Order(symbol="BTC", quantity=-2.0, reason="out"),
        verdict=executed,
    )
    fourth = at(1)
    fee = ReportedFill(id="f2", at=fourth, sequence=0, kind="fee", symbol="BTC", fee=1.5)
    memory.close_tick(**home, at=fourth, before=a_snapshot(at=fourth, fills=[fee]), verdict=noop)


def dump(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in the order of its key."""
    with memory.database.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in METADATA.tables.values()
        }
