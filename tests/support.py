"""What tests of the store share: empty schemas, and raw access as somebody with the password has it."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, event, text

from backsight.memory import Memory
from backsight.testing import FakeClock, a_trade_call

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


def lived_in(memory: Memory, clock: FakeClock) -> None:
    """One row or more in every table."""
    memory.open_account(venue="binance", name="main", currency="USDT")
    memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", rules=["enter on a close"], avoid=["news"])
    memory.deploy(strategy_name="VolBreakout", account="main")
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
