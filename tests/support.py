"""Helpers that tests share: empty stores, stores with rows, and raw access to the database."""

import atexit
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from datetime import datetime, timedelta
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from sqlalchemy import ColumnElement, Connection, create_engine, event, make_url, select, text, type_coerce
from sqlalchemy.exc import OperationalError

import backsight.store.tables  # noqa: F401 (it defines every table of METADATA)
from backsight.core.agents.card import CardField
from backsight.core.context import ContextVector
from backsight.core.decision import Segment, Verdict
from backsight.core.orders import Order, ReportedFill
from backsight.memory import Memory, open_memory
from backsight.services.library import Library
from backsight.store.database import PRIVATE_MODE
from backsight.store.mapping import METADATA, JsonText, Noun, PlainText
from backsight.store.row_security import WORDS_TABLE
from backsight.surfaces.main import run
from backsight.testing import T0, FakeClock, FakeRandomness, a_position, a_snapshot, a_trade_call
from backsight.testing.runners import FakeRunner

POSTGRES = "TEST_POSTGRES_URL"
"""The environment variable with the URL of the PostgreSQL server of this test run."""
_counter = itertools.count()


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program that ends with its test: if the test fails it is killed, while `with Popen` would wait for its end."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
            process.wait(timeout=60)
        finally:
            process.kill()


def fresh_postgres() -> str:
    """The URL of a new, empty schema."""
    schema = f"t{os.getpid()}_{next(_counter)}"
    engine = create_engine(os.environ[POSTGRES])
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    base = os.environ[POSTGRES]
    return f"{base}{'&' if '?' in base else '?'}options={quote(f'-csearch_path={schema}')}"


def empty_sqlite_store(folder: Path) -> str:
    """The URL of a copy of a store without rows, which takes half as long as creating one."""
    copy = folder / "store.db"
    copy.write_bytes(_sqlite_store())
    copy.chmod(PRIVATE_MODE)
    return f"sqlite:///{copy}"


@cache
def _sqlite_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store.db")
        open_memory(f"sqlite:///{store}").close()
        return store.read_bytes()


MOST_USES = 50
"""Tests that share a PostgreSQL store: deleted rows slow it down, since nothing vacuums it."""
_idle: list["_EmptyStore"] = []


@contextmanager
def empty_postgres_store() -> Iterator[str]:
    """The URL of a PostgreSQL store without rows.

    Creating a store takes thirty times as long as deleting its rows, so a store serves many tests. A store in which a
    test made tables or indexes, or that a test left locked, is not used again.
    """
    store = _idle.pop() if _idle else _EmptyStore()
    yield store.url
    if store.uses < MOST_USES and store.emptied():
        _idle.append(store)
    else:
        store.engine.dispose()


class _EmptyStore:
    """A store whose rows are deleted over a connection that stays open: a new one would first read the catalogue."""

    def __init__(self) -> None:
        self.url, self.uses = fresh_postgres(), 0
        open_memory(self.url).close()
        self.engine = create_engine(self.url, pool_size=1)
        with self.engine.begin() as connection:
            connection.execute(text("SET session_replication_role = replica"))
            connection.execute(text("SET lock_timeout = '1s'"))
        self.relations = self._count_relations()

    def emptied(self) -> bool:
        """Delete all rows; whether the store can be used again."""
        self.uses += 1
        try:
            with self.engine.begin() as connection:
                connection.exec_driver_sql(_DELETE_ALL)
            return self._count_relations() == self.relations
        except OperationalError:
            return False

    def _count_relations(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text(_RELATIONS)).scalar_one())


_RELATIONS = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
_DELETE_ALL = ";".join(f"DELETE FROM {table}" for table in (*reversed(METADATA.sorted_tables), WORDS_TABLE))


_lived: dict[str, tuple[str, datetime]] = {}


@contextmanager
def lived_in_copy(database: str, folder: Path) -> Iterator[tuple[str, datetime]]:
    """The URL of a copy of a store with rows in every table, and the last instant in it; the store is filled once."""
    if database not in _lived:
        _lived[database] = _live_once(database)
    template, last = _lived[database]
    if database == "sqlite":
        copy = folder / "store.db"
        shutil.copy(template, copy)
        yield f"sqlite:///{copy}", last
        return
    name = f"t{os.getpid()}_{next(_counter)}"
    with _postgres() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
    yield _of_database(name), last
    with _postgres() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def _live_once(database: str) -> tuple[str, datetime]:
    """Fill a store; the name of its file or database, and the last instant in it."""
    clock = FakeClock(T0)
    if database == "sqlite":
        template = str(Path(tempfile.mkdtemp(prefix="backsight-lived-")) / "store.db")
        url = f"sqlite:///{template}"
    else:
        template = f"lived_{os.getpid()}"
        with _postgres() as connection:
            connection.execute(text(f"CREATE DATABASE {template}"))
        url = _of_database(template)
    with open_memory(url, owner="ana", actor="test", clock=clock) as memory:
        lived_in(memory, clock)
    if database == "sqlite":
        atexit.register(shutil.rmtree, Path(template).parent, ignore_errors=True)
    return template, clock.at


@contextmanager
def _postgres() -> Iterator[Connection]:
    engine = create_engine(os.environ[POSTGRES], isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def own_postgres_database() -> str:
    """The URL of a new database of this process."""
    name = f"worker_{os.getpid()}"
    with _postgres() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    return _of_database(name)


def _of_database(name: str) -> str:
    return make_url(os.environ[POSTGRES]).set(database=name).render_as_string(hide_password=False)


@contextmanager
def raw(url: str) -> Iterator[Connection]:
    """A direct database connection with foreign keys off."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=OFF"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET session_replication_role = replica"))
        yield connection
    engine.dispose()


def deployed(memory: Memory) -> None:
    """An account, a strategy, and the deployment VolBreakout@main."""
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
    memory.save_instrument(symbol="ES", multiplier=5.0)
    edited(memory, clock)
    memory.save_instrument(symbol="ES", multiplier=50.0, lot_step=1.0, tick_size=0.25, underlying="SPX", kind="future")
    memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "skip_trade"}, reasoning="three losses there"
    )
    memory.check_active_plans(deployment="VolBreakout@main", current_context=ContextVector(regime="ranging"))
    belief = memory.add_belief(
        proposition="Breaks hold in a trend",
        strategy_name="VolBreakout",
        symbol="BTC",
        direction="long",
        conditions={"field": "confidence", "op": ">=", "value": 0.5},
    )
    ticked(memory, clock, deployment="VolBreakout@main")
    memory.retire_belief(belief_id=belief.belief.belief.id, reason="not mine")
    memory.record_decision(
        symbol="XAUUSD",
        direction="short",
        strategy_name="VolBreakout",
        horizon_hours=4.0,
        reasoning="stretched",
        benchmark="BTC",
        recalled=["episode"],
        recalls=[memory.recall_memories(symbol="XAUUSD").recall],
    )
    asked(memory, clock)
    memory.randomness = FakeRandomness()
    key = memory.create_key(name="agent").key
    clock.advance(minutes=1)
    memory.revoke_key(key_id=key.id)
    told(memory, clock)
    taught(memory, clock)
    memory.record_verification()


def told(memory: Memory, clock: FakeClock) -> None:
    """A fact that was edited and shown, and a market event that was corrected."""
    fact = memory.add_fact(fact="I trade gold only.", topic="symbols").fact
    memory.compose_chat(session="monday")
    with tempfile.TemporaryDirectory() as folder:
        calendar = Path(folder, "calendar.csv")
        for forecast in ("3.0%", "3.1%"):
            at = (clock.now() + timedelta(days=9)).replace(minute=0)
            calendar.write_text(f"time,kind,title,source_id,forecast\n{at.isoformat()},cpi,CPI,c1,{forecast}\n")
            memory.import_events(path=str(calendar))
            clock.advance(minutes=1)
    memory.edit_fact(fact_id=fact.id, fact="I trade gold and silver.")


def asked(memory: Memory, clock: FakeClock) -> None:
    """Runs of an agent, with a card of a type that was changed."""
    fields = [CardField(name="view", type="text", role="summary")]
    memory.save_card_type(name="view", fields=fields)
    clock.advance(minutes=1)
    memory.save_card_type(name="view", fields=fields, re_examinable="always")
    agent: dict[str, Any] = {"deployment": "VolBreakout@main", "prompt": "Look.", "output": "Flat."}
    memory.share_session(deployment="VolBreakout@main")
    memory.record_run(**agent, card_type="view", result={"view": "flat"}, session_after="s")
    card = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}
    run = memory.record_run(**agent, card_type="trade_decision", result=card).run
    memory.configure_deployment(deployment="VolBreakout@main", default_prompt="Look.")
    clock.advance(minutes=1)
    memory.configure_deployment(deployment="VolBreakout@main", review_decisions=True)
    memory.settle_decision(run=run.id, entry=100.0, exit=104.0)
    memory.runners = lambda _settings: FakeRunner(before_answer=lambda: clock.advance(minutes=1))
    memory.configure_deployment(deployment="VolBreakout@main", runner="claude")
    memory.run_agent(deployment="VolBreakout@main", wait_seconds=30.0)


LESSONS = """\
### Entry timing
- wait for the retest
### Sizing
(no clear pattern yet)
### Symbol selection
(no clear pattern yet)
### Exit timing
(no clear pattern yet)
### Regime fit
(no clear pattern yet)"""
"""A note written by an owner."""


def lost_in_ranges(memory: Memory, *, days: int = 24, until: datetime, **changes: Any) -> None:
    """One trade of Fade a day until an instant: losses in ranging markets, and wins in rising markets except one."""
    for number in range(days):
        ranging = number % 2 == 0
        r = (-1.0 if ranging or number == 5 else 1.0) * (1.0 + number / 100)
        closed = until - timedelta(days=days - 1 - number)
        subject = {"strategy_name": "Fade", "symbol": "BTC", "direction": "long" if number % 3 else "short"}
        called = a_trade_call(**subject, pnl=100.0 * r, pnl_r=r, context_regime="ranging" if ranging else "trending_up")
        memory.remember_trade(**called | {"opened_at": closed - timedelta(minutes=30), "closed_at": closed} | changes)


def taught(memory: Memory, clock: FakeClock) -> None:
    """Twenty-four trades, the lessons and proposals from them, and lessons that supersede each other."""
    lost_in_ranges(memory, until=clock.now())
    deployment = "manual:Fade"
    memory.reflect(deployment=deployment)
    clock.advance(minutes=1)
    (proposal, *_) = memory.list_proposals(deployment=deployment, status="proposed").proposals
    memory.accept_proposal(proposal_id=proposal.proposal.id, reason="seen it myself")
    memory.promote_lessons(deployment=deployment)
    clock.advance(minutes=1)
    memory.promote_lessons(deployment=deployment, lessons=LESSONS)


def edited(memory: Memory, clock: FakeClock) -> None:
    """Two edits of the rules, of which the owner rejected one."""
    library = memory.library
    with tempfile.TemporaryDirectory() as folder:
        memory.library = Library(folder=folder)
        edit = memory.propose_edit(path="SOUL.md", text="# Soul\n", reason="to begin with", agent="a")
        memory.propose_edit(path="TRADING_MANUAL.md", text="# Manual\n", reason="to go on with", agent="a")
        clock.advance(minutes=1)
        memory.reject_edit(edit_id=edit.edit.id, reason="not mine")
    memory.library = library


def ticked(memory: Memory, clock: FakeClock, *, deployment: str) -> None:
    """Four ticks: an entry without a reported fill, half of it reported late, an exit, and a late fee."""
    executed, noop = Verdict(kind="executed"), Verdict(kind="noop", detail="nothing to do")
    position = a_position(2.0, stop_price=95.0)

    def at(hours: int) -> datetime:
        clock.advance(hours=hours)
        return clock.now()

    first = at(1)
    memory.close_tick(
        deployment=deployment,
        at=first,
        before=a_snapshot(at=first),
        after=a_snapshot(position, at=first + timedelta(seconds=3)),
        proposal=Order(symbol="BTC", quantity=2.0, stop_price=95.0, reason="break of the range", order_id="41"),
        verdict=executed,
        confidence=0.7,
        shown=[Segment(name="recent_activity", text="## Recent activity (this session)")],
    )
    late = ReportedFill(
        id="f1", at=first + timedelta(seconds=2), sequence=0, kind="trade", symbol="BTC", quantity=1.0, price=99.0
    )
    second = at(1)
    memory.close_tick(
        deployment=deployment, at=second, before=a_snapshot(position, at=second, fills=[late]), verdict=noop
    )
    third = at(1)
    memory.close_tick(
        deployment=deployment,
        at=third,
        before=a_snapshot(position, at=third),
        after=a_snapshot(at=third),
        proposal=Order(symbol="BTC", quantity=-2.0, reason="out"),
        verdict=executed,
    )
    fourth = at(1)
    fee = ReportedFill(id="f2", at=fourth, sequence=0, kind="fee", symbol="BTC", fee=1.5)
    memory.close_tick(deployment=deployment, at=fourth, before=a_snapshot(at=fourth, fills=[fee]), verdict=noop)


def dump(memory: Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table in the order of its key, with the stored text of JSON columns."""
    with memory.database.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(*columns).order_by(*table.primary_key))]
            for table in METADATA.tables.values()
            for columns in [[type_coerce(c, PlainText) if isinstance(c.type, JsonText) else c for c in table.c]]
        }


LEGACY_TRADE = {
    "id": "T-2026-0001",
    "timestamp": "2026-02-23T10:30:00Z",
    "symbol": "XAUUSD",
    "direction": "long",
    "lot_size": 0.05,
    "strategy": "VolBreakout",
    "confidence": 0.72,
    "reasoning": "London open above the 20-period high",
    "market_context": json.dumps({"price": 2891.5, "regime": "trending_up", "atr_d1": 28.3, "session": "london"}),
    "exit_timestamp": "2026-02-23T12:30:00Z",
    "exit_price": 2900.0,
    "pnl": 42.5,
    "pnl_r": 1.4,
    "hold_duration": 120,
    "exit_reasoning": "target",
    "lessons": "wait for the retest",
    "tags": '["breakout"]',
    "grade": "A",
}
LEGACY_PATTERN = {
    "pattern_id": "P-1",
    "description": "VolBreakout loses in Asia",
    "confidence": 0.7,
    "sample_size": 10,
    "strategy": "VolBreakout",
    "symbol": None,
    "metrics": json.dumps({"win_rate": 0.3, "session": "asian"}),
    "source": "backtest_auto",
    "discovered_at": "2026-02-28T12:00:00+00:00",
}


def a_legacy_database(path: Path, **tables: list[dict[str, Any]]) -> Path:
    """A file of the older three-layer scheme with these rows."""
    with closing(sqlite3.connect(path)) as connection:
        for table, rows in tables.items():
            columns = list(rows[0])
            connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            marks = ", ".join("?" for _ in columns)
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", [tuple(row.values()) for row in rows])
        connection.commit()
    return path


def is_row(noun: Noun[Any], row: dict[str, Any]) -> list[ColumnElement[bool]]:
    """The conditions that pick one row of a table."""
    return [noun.table.c[name] == value for name, value in noun.key_values(row).items()]


def run_here(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program `backsight` in this process, because a new one takes over a second to start."""
    out, err, code = StringIO(), StringIO(), 0
    with (
        patch.dict(os.environ, environment or {}),
        patch.object(sys, "argv", ["backsight", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
