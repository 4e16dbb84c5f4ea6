"""Tampering with any field, row or link of a store is found."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Double, delete, insert, select, text, update

from backsight.core.audit import link_hash
from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json
from backsight.core.market import Bar
from backsight.core.memory import checkpoints
from backsight.core.memory.prospective import PlanSource
from backsight.memory import Memory, open_memory
from backsight.services.verification import Verification
from backsight.store.audit import AUDIT
from backsight.store.bars import BARS
from backsight.store.decisions import DECISIONS, SEGMENTS
from backsight.store.experience import BELIEF_CHECKPOINTS, CELL_CHECKPOINTS, DERIVED, HABIT_CHECKPOINTS
from backsight.store.mapping import SALT, JsonText, Noun, UtcInstant
from backsight.store.memories import RECALLS, RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.tables import AUDITED
from backsight.store.trades import MARKS
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed, is_row, lived_in_copy, lost_in_ranges, raw

BY_NAME = {noun.table.name: noun for noun in (*AUDITED, AUDIT)}
BATCHES = (BARS, MARKS, DECISIONS, SEGMENTS, RECALLS, RETRIEVALS, RETRIEVED_EPISODES)
SINGLE = [noun for noun in AUDITED if noun not in BATCHES]
"""Nouns whose rows the audit chain records column by column; for other nouns it records a hash of each row."""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[str]:
    """A store with rows in every table, on each database."""
    with lived_in_copy(request.param, tmp_path) as (made, last):
        clock.at = last
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, on each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def filled(memory: Memory) -> Memory:
    return memory


def test_an_untouched_store_is_intact(filled: Memory) -> None:
    assert filled.verify_audit().intact


def other_value(column: Any, value: Any) -> Any:
    """A different value of the column's type."""
    if isinstance(column.type, BigInteger):
        return (value or 0) + 1000
    if isinstance(column.type, Double):
        return (value or 0.0) * (1 + 2**-52) + (0.0 if value else 5e-324)
    if isinstance(column.type, Boolean):
        return not value
    if isinstance(column.type, UtcInstant):
        return (value or T0) + timedelta(microseconds=1)
    if column.name == "sources" and column.table.name == "prospective_memory":
        return (*value, PlanSource(kind="semantic", id="x"))
    if isinstance(value, tuple):
        return (*value, "x")
    return f"{value or ''}x"


def row_of(noun: Noun[Any], url: str) -> dict[str, Any]:
    with raw(url) as connection:
        return dict(connection.execute(select(noun.table).limit(1)).mappings().one())


def change(url: str, noun: Noun[Any], row: dict[str, Any], column: str, value: Any) -> None:
    with raw(url) as connection:
        connection.execute(update(noun.table).where(*is_row(noun, row)).values({column: value}))


def replace_row(url: str, noun: Noun[Any], row: dict[str, Any], changed: dict[str, Any]) -> None:
    with raw(url) as connection:
        connection.execute(update(noun.table).where(*is_row(noun, row)).values(changed))


def named(verified: Verification, table: str) -> bool:
    return not verified.intact and any(finding.table == table for finding in verified.findings)


def shown_as(noun: Noun[Any], column: str) -> str:
    """The column that a finding names: another salt shows itself in the hash of the sealed text."""
    return next(iter(noun.sealed)) if column == SALT else column


@pytest.mark.parametrize("table", BY_NAME)
def test_any_field_changed_is_found_and_named(filled: Memory, url: str, table: str) -> None:
    noun = BY_NAME[table]
    row = row_of(noun, url)
    columns = list(noun.table.columns)
    if url.startswith("postgresql") and noun in SINGLE:  # all but the key at once: SQLite's turn is one by one
        others = [column for column in columns if column.name not in ("owner_id", *noun.key)]
        changed = row | {column.name: other_value(column, row[column.name]) for column in others}
        replace_row(url, noun, row, changed)
        (finding,) = filled.verify_audit().findings
        assert (finding.kind, finding.key) == ("changed", ", ".join(map(str, noun.key_of(row))))
        assert all(f"{shown_as(noun, column.name)} was " in finding.detail for column in others)
        replace_row(url, noun, row, row)
        columns = [column for column in columns if column.name in ("owner_id", *noun.key)]
    for column in columns:
        changed = row | {column.name: other_value(column, row[column.name])}
        change(url, noun, row, column.name, changed[column.name])
        verified = filled.verify_audit()
        assert named(verified, table), column.name
        if noun in SINGLE and column.name not in ("owner_id", *noun.key):
            (finding,) = verified.findings
            assert (finding.kind, finding.key) == ("changed", ", ".join(map(str, noun.key_of(row))))
            assert finding.detail.startswith(f"{shown_as(noun, column.name)} was ")
        change(url, noun, changed, column.name, row[column.name])
    assert filled.verify_audit().intact


@pytest.mark.parametrize("noun", SINGLE, ids=lambda noun: noun.table.name)
def test_a_row_removed_is_found_and_named(filled: Memory, url: str, noun: Noun[Any]) -> None:
    row = row_of(noun, url)
    with raw(url) as connection:
        connection.execute(delete(noun.table).where(*is_row(noun, row)))
    (finding,) = filled.verify_audit().findings
    assert (finding.kind, finding.table) == ("removed", noun.table.name)
    assert finding.key == ", ".join(map(str, noun.key_of(row)))


@pytest.mark.parametrize("noun", SINGLE, ids=lambda noun: noun.table.name)
def test_a_row_added_is_found_and_named(filled: Memory, url: str, noun: Noun[Any]) -> None:
    row = row_of(noun, url) | {"id" if "id" in noun.key else noun.key[0]: "forged", "status": "closed"}
    row = {name: value for name, value in row.items() if name in noun.table.c}
    with raw(url) as connection:
        connection.execute(insert(noun.table).values(**row))
    (finding,) = filled.verify_audit().findings
    assert (finding.kind, finding.table) == ("added", noun.table.name)
    assert "forged" in finding.key


CHECKPOINTS = (BELIEF_CHECKPOINTS, CELL_CHECKPOINTS, HABIT_CHECKPOINTS)
LEARNED = [noun for noun in DERIVED if noun not in CHECKPOINTS]


@pytest.mark.parametrize(
    ("noun", "column"),
    [(BELIEF_CHECKPOINTS, "established"), (CELL_CHECKPOINTS, "width"), (HABIT_CHECKPOINTS, "trades")],
    ids=["beliefs", "cells", "habits"],
)
def test_a_changed_checkpoint_is_found_and_named(
    empty: str, noun: Noun[Any], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 2)
    clock = FakeClock(T0)
    with open_memory(empty, clock=clock) as memory:
        lost_in_ranges(memory, days=8, until=T0)
        memory.add_belief(proposition="Ranges lose", strategy_name="Fade", regime="ranging")
        clock.advance(days=8)
        lost_in_ranges(memory, days=8, until=clock.now())
        assert memory.verify_audit().intact
        row = row_of(noun, empty)
        change(empty, noun, row, column, other_value(noun.table.c[column], row[column]))
        findings = memory.verify_audit().findings
    assert {(finding.kind, finding.table) for finding in findings} == {("changed", noun.table.name)}


@pytest.mark.parametrize("noun", LEARNED, ids=lambda noun: noun.table.name)
def test_a_derived_row_changed_removed_or_added_is_found_and_named(filled: Memory, url: str, noun: Noun[Any]) -> None:
    row = row_of(noun, url)
    plain = [c for c in noun.table.c if not isinstance(c.type, JsonText) and c.name not in ("owner_id", *noun.key)]
    if url.startswith("postgresql"):
        replace_row(url, noun, row, row | {column.name: other_value(column, row[column.name]) for column in plain})
        (finding,) = filled.verify_audit().findings
        assert (finding.kind, finding.table) == ("changed", noun.table.name)
        assert all(f"{column.name} is " in finding.detail for column in plain)
        replace_row(url, noun, row, row)
    for column in plain if url.startswith("sqlite") else []:
        change(url, noun, row, column.name, other_value(column, row[column.name]))
        (finding,) = filled.verify_audit().findings
        assert (finding.kind, finding.table) == ("changed", noun.table.name)
        assert finding.detail.startswith(f"{column.name} is ")
        change(url, noun, row, column.name, row[column.name])
    with raw(url) as connection:
        connection.execute(delete(noun.table).where(*is_row(noun, row)))
    assert [finding.kind for finding in filled.doctor().findings] == ["removed"]
    with raw(url) as connection:
        connection.execute(
            insert(noun.table).values(
                **row | {noun.key[-1]: other_value(noun.table.c[noun.key[-1]], row[noun.key[-1]])}
            )
        )
    assert sorted(finding.kind for finding in filled.doctor(repair=True).findings) == ["added", "removed"]
    assert filled.doctor().healthy
    assert filled.verify_audit().intact


@pytest.mark.parametrize("sequence", [1, 3, 14])
def test_a_link_dropped_is_found(filled: Memory, url: str, sequence: int) -> None:
    last = filled.verify_audit().links
    with raw(url) as connection:
        connection.execute(delete(AUDIT.table).where(AUDIT.table.c.sequence == sequence))
    verified = filled.verify_audit()
    assert not verified.intact
    if sequence < last:
        assert named(verified, "audit_log")
    assert {"added", "link_missing"} & {finding.kind for finding in verified.findings}


def test_links_reordered_are_found(filled: Memory, url: str) -> None:
    with raw(url) as connection:
        for former, latter in ((2, 99), (3, 2), (99, 3)):
            connection.execute(update(AUDIT.table).where(AUDIT.table.c.sequence == former).values(sequence=latter))
    findings = filled.verify_audit().findings
    assert {finding.key for finding in findings if finding.kind == "link_changed"} >= {"2", "3"}


def test_a_link_inserted_at_the_end_is_found(filled: Memory, url: str) -> None:
    last = row_of(AUDIT, url) | {"sequence": filled.verify_audit().links + 1}
    with raw(url) as connection:
        connection.execute(insert(AUDIT.table).values(**last))
    assert named(filled.verify_audit(), "audit_log")


@pytest.mark.parametrize("sequence", [0, -5])
def test_a_link_before_the_beginning_is_found(filled: Memory, url: str, sequence: int) -> None:
    with raw(url) as connection:
        connection.execute(insert(AUDIT.table).values(**row_of(AUDIT, url) | {"sequence": sequence}))
    (finding,) = filled.verify_audit().findings
    assert (finding.kind, finding.key) == ("link_added", str(sequence))


def test_a_chain_cut_off_after_an_exported_head_is_found(filled: Memory, url: str, clock: FakeClock) -> None:
    clock.advance(hours=1)
    filled.remember_trade(**a_trade_call(pnl=-500.0, pnl_r=-2.0, symbol="EURUSD"))
    head, last = filled.export_audit().head, filled.verify_audit().links
    with raw(url) as connection:  # the loss, its episode and its link: without a trace
        connection.execute(delete(AUDIT.table).where(AUDIT.table.c.sequence == last))
        for name in ("episodic_memory", "trade_history"):
            table = BY_NAME[name].table
            connection.execute(delete(table).where(table.c.symbol == "EURUSD"))
    assert {finding.table for finding in filled.verify_audit().findings} <= {noun.table.name for noun in DERIVED}
    (finding,) = filled.verify_audit(head=head).findings
    assert (finding.kind, finding.key) == ("cut_off", str(last))
    filled.doctor(repair=True)  # and what followed from it; the repair is a link of its own
    assert filled.verify_audit().intact
    (finding,) = filled.verify_audit(head=head).findings
    assert (finding.kind, finding.key) == ("link_changed", str(last))


def test_a_chain_rewritten_after_an_exported_head_is_found(filled: Memory, url: str) -> None:
    head, last = filled.export_audit().head, filled.verify_audit().links
    with raw(url) as connection:
        row = connection.execute(select(AUDIT.table).where(AUDIT.table.c.sequence == last)).one()
        link = replace(AUDIT.from_row(row), actor="somebody else")
        forged = {"actor": link.actor, "hash": link_hash(link)}
        connection.execute(update(AUDIT.table).where(AUDIT.table.c.sequence == last).values(**forged))
    assert filled.verify_audit().intact
    (finding,) = filled.verify_audit(head=head).findings
    assert "rewritten" in finding.detail


def test_a_verification_since_a_checkpoint_compares_what_was_written_since(filled: Memory, clock: FakeClock) -> None:
    first = filled.verify_audit()
    clock.advance(hours=1)
    filled.remember_trade(**a_trade_call(symbol="EURUSD"))
    second = filled.verify_audit(since=first.checkpoint)
    assert (second.intact, second.links, second.since is not None) == (True, first.links + 1, True)
    assert 0 < second.rows < first.rows
    assert second.checkpoint == filled.verify_audit().checkpoint
    assert filled.verify_audit(since=second.checkpoint).rows == 0


def test_rows_of_a_batch_are_compared_since_a_checkpoint(filled: Memory, url: str, clock: FakeClock) -> None:
    checkpoint = filled.verify_audit().checkpoint
    clock.advance(hours=1)
    opened_at = clock.now() - timedelta(minutes=10)
    bar = Bar(symbol="NEW", interval_seconds=300, opened_at=opened_at, open=1.0, high=2.0, low=1.0, close=2.0)
    filled.record_bars(bars=[bar])
    assert filled.verify_audit(since=checkpoint).intact
    with raw(url) as connection:
        connection.execute(update(BARS.table).where(BARS.table.c.symbol == "NEW").values(high=3.0))
    assert named(filled.verify_audit(since=checkpoint), "bars")


def test_rows_changed_since_a_checkpoint_or_removed_before_it_are_found(
    filled: Memory, url: str, clock: FakeClock
) -> None:
    checkpoint, trades = filled.verify_audit().checkpoint, BY_NAME["trade_history"].table
    clock.advance(hours=1)
    trade = filled.remember_trade(**a_trade_call(symbol="EURUSD")).trade
    with raw(url) as connection:
        connection.execute(update(trades).where(trades.c.id == trade.id).values(pnl=1e6))
    assert named(filled.verify_audit(since=checkpoint), "trade_history")
    with raw(url) as connection:
        connection.execute(update(trades).where(trades.c.id == trade.id).values(pnl=trade.pnl))
    assert filled.verify_audit(since=checkpoint).intact
    with raw(url) as connection:
        connection.execute(delete(RETRIEVALS.table))
    (finding,) = filled.verify_audit(since=checkpoint).findings
    assert (finding.kind, finding.table) == ("removed", "all tables")


@pytest.mark.parametrize("seconds_late", [0, 3600])
def test_retrievals_since_a_checkpoint_are_verified_however_late_their_tick_is_closed(
    empty: str, clock: FakeClock, seconds_late: int
) -> None:
    with open_memory(empty, owner="ana", clock=clock) as memory:
        deployed(memory)
        episode_id = memory.remember_trade(**a_trade_call()).episode_id
        clock.advance(hours=2)
        at, checkpoint = clock.now(), None
        for number in range(2):
            clock.advance(seconds=seconds_late + 1)
            if number == 1:
                checkpoint = memory.verify_audit().checkpoint
            tick_at = at + timedelta(seconds=number)
            tick: dict[str, Any] = {"before": a_snapshot(at=tick_at), "verdict": {"kind": "noop"}}
            memory.close_tick(deployment="VolBreakout@main", at=tick_at, **tick, recalled=[episode_id])
        later = memory.verify_audit(since=checkpoint)
        assert (later.intact, later.findings) == (True, ())
        for noun in (RETRIEVALS, RETRIEVED_EPISODES):
            with raw(empty) as connection:
                rows = noun.table
                where = rows.c.known_at == tick_at if noun is RETRIEVALS else rows.c.episode_id == episode_id
                connection.execute(update(rows).where(where).values(episodes_hash=f"{number:032}"))
            assert named(memory.verify_audit(since=checkpoint if noun is RETRIEVALS else None), noun.table.name)


def test_a_checkpoint_of_another_chain_or_no_checkpoint_is_refused(filled: Memory) -> None:
    links = filled.verify_audit().links
    (finding, *_) = filled.verify_audit(since=f"{links}:{'0' * 64}:10").findings
    assert finding.kind == "cut_off"
    with pytest.raises(Invalid, match="checkpoint"):
        filled.verify_audit(since="42")


def test_a_head_stays_good_while_the_chain_grows(filled: Memory, clock: FakeClock) -> None:
    head = filled.export_audit().head
    clock.advance(hours=1)
    filled.remember_trade(**a_trade_call(symbol="EURUSD"))
    assert filled.verify_audit(head=head).intact


def test_changes_that_cannot_be_read_are_found(filled: Memory, url: str) -> None:
    with raw(url) as connection:
        connection.execute(update(AUDIT.table).where(AUDIT.table.c.sequence == 2).values(changes="[1, 2"))
    details = [finding.detail for finding in filled.verify_audit().findings]
    assert "its list of changes cannot be read" in details


@pytest.mark.parametrize("value", ["'not a time'", "x'00ff'", "NULL", "12.5", "9e999"])
def test_values_of_the_wrong_kind_are_found(clock: FakeClock, tmp_path: Path, value: str) -> None:

    with lived_in_copy("sqlite", tmp_path) as (url, _), open_memory(url, owner="ana", clock=clock) as memory:
        with raw(url) as connection:
            connection.execute(text(f"UPDATE trade_history SET pnl = {value}, entry_tick_at = {value}"))
            connection.execute(text(f"UPDATE bars SET volume = {value}, known_at = coalesce({value}, 'x')"))
        kinds = {(finding.kind, finding.table) for finding in memory.verify_audit().findings}
        assert kinds == {("changed", "trade_history"), ("added", "bars"), ("removed", "bars")}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_found(filled: Memory, url: str, value: str) -> None:
    number = float(value) if url.startswith("postgresql") or value != "NaN" else None  # SQLite keeps NaN as NULL
    with raw(url) as connection:
        connection.execute(update(BY_NAME["trade_history"].table).values(pnl=number))
        connection.execute(update(BARS.table).values(volume=number))
    kinds = {(finding.kind, finding.table) for finding in filled.verify_audit().findings}
    assert kinds == {("changed", "trade_history"), ("added", "bars"), ("removed", "bars")}


@pytest.mark.parametrize("changes", ["[[]]", '[{"table": [], "items": 5}]', "[" * 100_000, "null", "5"])
def test_an_unreadable_link_is_found_and_does_not_stop_the_check(filled: Memory, url: str, changes: str) -> None:
    with raw(url) as connection:
        connection.execute(update(AUDIT.table).where(AUDIT.table.c.sequence == 3).values(changes=changes))
    assert named(filled.verify_audit(), "audit_log")


def test_a_sequence_that_is_no_number_is_found(clock: FakeClock, tmp_path: Path) -> None:
    with lived_in_copy("sqlite", tmp_path) as (url, _), open_memory(url, owner="ana", clock=clock) as memory:
        with raw(url) as connection:
            connection.execute(text("UPDATE audit_log SET sequence = 'three' WHERE sequence = 3"))
        kinds = {finding.kind for finding in memory.verify_audit().findings}
        assert {"link_missing", "link_changed"} <= kinds


def test_an_export_can_be_followed_without_the_store(filled: Memory) -> None:
    export = filled.export_audit()
    previous = "0" * 64
    for link in export.links:
        assert link.previous == previous
        assert link.hash == link_hash(link)
        assert canonical_json(json.loads(link.changes)) == link.changes
        previous = link.hash
    assert export.head == f"{len(export.links)}:{previous}"
    assert filled.export_audit(after=4, limit=1).links == export.links[4:5]
