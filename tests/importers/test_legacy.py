"""Databases of the older three-layer schema: converted rows, and rows left out with the reason."""

import json
import sqlite3
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid, NotFound, Unavailable
from backsight.core.memory.conditions import parse_condition
from backsight.importers.legacy import LegacyRead, read_legacy
from backsight.ops.trades import FileColumns
from backsight.testing import FakeClock, open_memory
from support import LEGACY_PATTERN as PATTERN
from support import LEGACY_TRADE as TRADE
from support import a_legacy_database as a_database

UNSTATED = {*FileColumns.model_fields, "point_value"}
"""Fields of a report that are no arguments of remember_trade."""


def read(folder: Path, **changes: Any) -> LegacyRead:
    """A database with the usual trade, changed."""
    return read_legacy(a_database(folder / "old.db", trade_records=[TRADE | changes]))


def read_pattern(folder: Path, **changes: Any) -> LegacyRead:
    return read_legacy(a_database(folder / "old.db", patterns=[PATTERN | changes]))


def test_a_trade_keeps_its_values(tmp_path: Path) -> None:
    (legacy,) = read(tmp_path).trades
    trade = legacy.report
    assert (trade.symbol, trade.direction, legacy.strategy_name) == ("XAUUSD", "long", "VolBreakout")
    assert (trade.entry_price, trade.exit_price, trade.pnl, trade.pnl_r) == (2891.5, 2900.0, 42.5, 1.4)
    assert (trade.opened_at, trade.closed_at) == tuple(datetime(2026, 2, 23, h, 30, tzinfo=UTC) for h in (10, 12))
    assert (trade.context.regime, trade.context.atr_d1, trade.context.session) == ("trending_up", 28.3, "london")
    assert (trade.confidence, trade.tags) == (0.72, ("breakout", "grade:A"))
    assert trade.reflection == "wait for the retest\ntarget"


def test_a_trade_imported_twice_is_remembered_once(tmp_path: Path) -> None:
    (trade,) = read(tmp_path).trades
    with open_memory("sqlite://", clock=FakeClock(datetime(2026, 6, 4, tzinfo=UTC))) as memory:
        names = [field.name for field in fields(trade.report) if field.name not in UNSTATED]
        arguments: Any = {name: getattr(trade.report, name) for name in names}
        arguments |= {"strategy_name": trade.strategy_name, "idempotency_key": trade.idempotency_key}
        answers = [memory.remember_trade(**arguments | {"tags": list(trade.report.tags)}) for _ in range(2)]
    assert [answer.replayed for answer in answers] == [False, True]
    assert answers[0].trade.known_at == trade.closed_at


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pnl": None}, "no pnl: the trade is still open, or its result is not known"),
        ({"pnl": "lots"}, "no pnl: the trade is still open, or its result is not known"),
        ({"exit_price": None}, "no exit price"),
        ({"market_context": "{}"}, "no entry price"),
        ({"market_context": '{"price": 0}'}, "no entry price"),
        ({"direction": "up"}, "direction 'up' is neither long nor short"),
        ({"strategy": None}, "strategy None is not one line of 1 to 100 characters"),
        ({"id": None}, "id None is not one line of 1 to 200 characters"),
        ({"symbol": "A\nB"}, "symbol 'A\\nB' is not one line of 1 to 64 characters"),
        ({"exit_timestamp": "soon"}, "exit_timestamp: 'soon' is not a time"),
        (
            {"exit_timestamp": "2026-02-23T09:00:00Z"},
            "closed at 2026-02-23T09:00:00+00:00, before it was opened",
        ),
        (
            {"exit_timestamp": None, "hold_duration": 1e300},
            "a hold_duration of 1e+300 minutes leads out of the calendar",
        ),
    ],
)
def test_a_trade_that_lacks_something_is_left_out_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    content = read(tmp_path, **changes)
    (left,) = content.report.left_out
    assert (content.trades, left.table) == ((), "trade_records")
    assert left.reason.startswith(reason)


def test_a_row_without_an_id_is_named_by_its_number(tmp_path: Path) -> None:
    assert read(tmp_path, id=None).report.left_out[0].row == "number 1"


def test_an_exit_time_may_follow_from_the_minutes_held(tmp_path: Path) -> None:
    (trade,) = read(tmp_path, exit_timestamp=None, hold_duration=45).trades
    assert trade.closed_at == datetime(2026, 2, 23, 11, 15, tzinfo=UTC)


def test_without_an_exit_time_the_close_is_at_the_decision_and_that_is_noted(tmp_path: Path) -> None:
    content = read(tmp_path, exit_timestamp=None, hold_duration=None)
    assert (content.trades[0].report.opened_at, content.trades[0].closed_at) == (
        None,
        datetime(2026, 2, 23, 10, 30, tzinfo=UTC),
    )
    assert "no exit time" in content.report.notes[0].reason
    assert content.trades[0].report.context.hour_utc == 10


def test_unknown_r_and_confidence_stay_unknown(tmp_path: Path) -> None:
    (trade,) = read(tmp_path, pnl_r=None, confidence=None).trades
    assert (trade.report.pnl_r, trade.report.confidence) == (None, None)


def test_unknown_labels_are_dropped_and_noted(tmp_path: Path) -> None:
    content = read(tmp_path, market_context='{"price": 5, "regime": "sideways", "session": "NY"}', confidence=7)
    assert (content.trades[0].report.context.regime, content.trades[0].report.context.session) == (None, "newyork")
    assert [note.reason for note in content.report.notes] == [
        "unknown regime 'sideways' is dropped",
        "confidence 7 is not a share from 0 to 1 and is dropped",
    ]


def test_values_without_a_field_stay_as_text(tmp_path: Path) -> None:
    context = '{"price": 5, "atr": 28.3, "indicators": {"rsi": 1e999}, "mood": "\\ud800"}'
    (trade,) = read(tmp_path, market_context=context, reasoning="why").trades
    assert trade.report.market_context == 'why\n{"atr":28.3,"indicators":{"rsi":null},"mood":"?"}'


def test_a_market_context_may_be_words(tmp_path: Path) -> None:
    content = read_legacy(
        a_database(tmp_path / "db", trade_records=[TRADE | {"market_context": "calm", "entry_price": 5}])
    )
    assert content.trades[0].report.market_context == "calm\nLondon open above the 20-period high"


def test_trades_come_in_the_order_in_which_they_closed_and_an_id_counts_once(tmp_path: Path) -> None:
    later = TRADE | {"id": "T-0", "exit_timestamp": "2026-02-24T00:00:00Z"}
    content = read_legacy(a_database(tmp_path / "db", trade_records=[later, TRADE, TRADE | {"pnl": 1.0}]))
    assert [(trade.id, trade.report.pnl) for trade in content.trades] == [("T-2026-0001", 42.5), ("T-0", 42.5)]
    assert content.report.left_out[0].reason == "an earlier row has the same id; only the first is converted"


def test_times_without_an_offset_are_in_the_timezone_argument(tmp_path: Path) -> None:
    path = a_database(tmp_path / "db", trade_records=[TRADE | {"timestamp": "2026-02-23 10:30:00"}])
    assert read_legacy(path, timezone="Europe/Berlin").trades[0].report.opened_at == datetime(
        2026, 2, 23, 9, 30, tzinfo=UTC
    )


def test_a_pattern_with_a_domain_becomes_a_belief(tmp_path: Path) -> None:
    (belief,) = read_pattern(tmp_path).beliefs
    assert belief.domain == {"strategy": "VolBreakout", "session": "asia"}
    assert (belief.alpha, belief.beta, belief.sample_size, belief.claims) == (8.0, 4.0, 10, "below")
    assert (belief.proposition, belief.stated_source) == ("VolBreakout loses in Asia", "backtest_auto")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"strategy": None, "metrics": "{}"}, "no domain: no strategy, symbol, direction, regime"),
        ({"confidence": 70}, "confidence 70 is not a share from 0 to 1"),
        ({"sample_size": 2.5}, "sample size 2.5 is not a whole number"),
        ({"sample_size": -1}, "sample size -1 is not a whole number"),
        ({"description": " "}, "no description"),
        ({"metrics": '{"direction": "up"}'}, "direction 'up' is neither long nor short"),
    ],
)
def test_a_pattern_that_lacks_something_is_left_out_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    content = read_pattern(tmp_path, **changes)
    assert content.beliefs == ()
    assert content.report.left_out[0].reason.startswith(reason)


def test_conditions_in_the_grammar_are_a_domain_too(tmp_path: Path) -> None:
    pattern = PATTERN | {"strategy": None, "metrics": None, "validity_conditions": '{"atr_d1": 100}'}
    content = read_legacy(a_database(tmp_path / "db", patterns=[pattern]))
    assert content.beliefs[0].conditions == parse_condition({"field": "atr_d1", "op": "==", "value": 100.0})
    assert content.report.notes[0].reason.startswith(
        "the metrics have no mean outcome: the pattern is taken as a claim"
    )


@pytest.mark.parametrize(
    ("metrics", "claim"),
    [
        ({"win_rate": 0.3, "avg_pnl": 12.5}, ("mean_outcome", "above")),
        ({"win_rate": 0.9, "avg_pnl_r": -0.2}, ("mean_outcome", "below")),
        ({"profit_factor": 0.9}, ("mean_outcome", "below")),
        ({"win_rate": 0.3}, ("win_rate", "below")),
        ({"win_rate": 65}, ("win_rate", "above")),
        ({}, ("mean_outcome", "above")),
    ],
)
def test_a_pattern_claims_what_its_metrics_say_about_money(
    tmp_path: Path, metrics: dict[str, float], claim: tuple[str, str]
) -> None:
    content = read_legacy(a_database(tmp_path / "db", patterns=[PATTERN | {"metrics": json.dumps(metrics)}]))
    assert (content.beliefs[0].about, content.beliefs[0].claims) == claim


def test_unknown_conditions_are_dropped_and_noted(tmp_path: Path) -> None:
    content = read_legacy(a_database(tmp_path / "db", patterns=[PATTERN | {"validity_conditions": '{"n": 3}'}]))
    assert content.beliefs[0].conditions is None
    assert "validity conditions are dropped: condition: 'n' is not a known field" in content.report.notes[0].reason


def test_an_invalid_day_of_discovery_is_noted(tmp_path: Path) -> None:
    content = read_pattern(tmp_path, discovered_at="once")
    assert content.beliefs[0].discovered_at is None
    assert "the belief counts as known from now on" in content.report.notes[0].reason


def test_an_adjustment_cannot_be_converted_and_other_tables_are_named(tmp_path: Path) -> None:
    adjustment = {"adjustment_id": "A-1", "parameter": "rr", "new_value": 3.5}
    path = a_database(
        tmp_path / "db", trade_records=[TRADE], strategy_adjustments=[adjustment], session_state=[{"agent_id": "a"}]
    )
    report = read_legacy(path).report
    assert [(left.table, left.row) for left in report.left_out] == [("strategy_adjustments", "A-1")]
    assert "make a plan with a condition" in report.left_out[0].reason
    assert (report.rows, report.tables_ignored) == ({"strategy_adjustments": 1, "trade_records": 1}, ("session_state",))


def test_reading_changes_no_file_and_is_repeatable(tmp_path: Path) -> None:
    path = a_database(tmp_path / "old ?%23.db", trade_records=[TRADE], patterns=[PATTERN])
    before = path.read_bytes()
    assert read_legacy(path) == read_legacy(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        read_legacy(tmp_path / "none.db")


@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db").write_bytes(content)
    with pytest.raises(Invalid, match="cannot be read"):
        read_legacy(tmp_path / "db")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read_legacy(tmp_path)


def test_a_database_with_other_tables_is_refused_naming_its_tables(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="neither trade_records nor patterns; its tables: bars, ticks"):
        read_legacy(a_database(tmp_path / "db", ticks=[{"a": 1}], bars=[{"b": 1}]))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db").touch()
    with pytest.raises(Invalid, match="its tables: none"):
        read_legacy(tmp_path / "db")


def test_a_table_without_its_columns_is_refused_naming_them(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="trade_records has no column timestamp, symbol, direction; it has id, strategy"):
        read_legacy(a_database(tmp_path / "db", trade_records=[{"id": 1, "strategy": "x"}]))


def test_a_database_that_is_being_written_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_database(tmp_path / "db", trade_records=[TRADE])
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, timeout=0))
    with closing(connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="is being written"):
            read_legacy(path)
