"""Migration: rows of a legacy database become memories, once, and rows left out are listed with the reason."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import BacksightError, Invalid, NotFound
from backsight.core.memory.semantic import Domain
from backsight.memory import Memory
from backsight.testing import FakeClock
from support import LEGACY_PATTERN as PATTERN
from support import LEGACY_TRADE as TRADE
from support import a_legacy_database as a_database

OPENED, CLOSED = (datetime(2026, 2, 23, hour, 30, tzinfo=UTC) for hour in (10, 12))
DISCOVERED = datetime(2026, 2, 28, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
LOST = {"pnl": -42.5, "pnl_r": -1.4}


def a_trade(number: int, **changes: Any) -> dict[str, Any]:
    """The trade of a day."""
    days = {
        name: (datetime.fromisoformat(str(TRADE[name])) + timedelta(days=number)).isoformat()
        for name in ("timestamp", "exit_timestamp")
    }
    return TRADE | {"id": f"T-{number}"} | days | changes


def a_file(folder: Path, **tables: list[dict[str, Any]]) -> str:
    return str(a_database(folder / "old.db", **tables))


def test_a_trade_becomes_a_trade_and_an_episode_known_from_its_close(memory: Memory, tmp_path: Path) -> None:
    done = memory.migrate_legacy(path=a_file(tmp_path, trade_records=[TRADE]))
    assert (done.trades, done.known_trades, done.report.left_out) == (1, 0, ())
    (trade,) = memory.list_trades().trades
    assert (trade.opened_at, trade.closed_at, trade.known_at) == (OPENED, CLOSED, CLOSED)
    assert (trade.pnl, trade.entry_price, trade.confidence) == (42.5, 2891.5, 0.72)
    assert (trade.outcome and trade.outcome.value, trade.outcome and trade.outcome.unit) == (1.4, "R")
    assert memory.list_trades(as_of=CLOSED - INSTANT).trades == ()
    assert memory.get_my_deployments().deployments[0].deployment.name == "manual:VolBreakout"


def test_a_migrated_trade_is_recalled_from_its_close_on(memory: Memory, tmp_path: Path) -> None:
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=[TRADE]))
    (match,) = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up", as_of=CLOSED).memories
    assert (match.episode.context.session, match.episode.context.atr_d1) == ("london", 28.3)
    assert match.episode.reflection == "wait for the retest\ntarget"
    assert match.episode.tags == ("breakout", "grade:A")
    assert memory.recall_memories(symbol="XAUUSD", as_of=CLOSED - INSTANT).memories == ()


def test_trades_teach_in_the_order_in_which_they_closed(memory: Memory, tmp_path: Path) -> None:
    rows = [a_trade(3, **LOST), a_trade(1), a_trade(4, **LOST), a_trade(2)]
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=rows))
    state = memory.get_agent_state()
    assert (state.closes, state.mood.consecutive_losses, state.mood.consecutive_wins) == (4, 2, 0)
    then = memory.get_agent_state(deployment="manual:VolBreakout", as_of=CLOSED + timedelta(days=2))
    assert (then.closes, then.mood.consecutive_wins) == (2, 2)
    assert memory.get_behavioral_analysis().behaviors[0].habits.n == 4


@pytest.mark.parametrize(
    ("confidence", "size", "prior"), [(0.7, 10, (8.0, 4.0)), (1.0, 3, (4.0, 1.0)), (0.0, 0, (1.0, 1.0))]
)
def test_a_pattern_becomes_a_belief_with_its_confidence_and_sample_as_the_prior(
    memory: Memory, tmp_path: Path, confidence: float, size: int, prior: tuple[float, float]
) -> None:
    pattern = PATTERN | {"confidence": confidence, "sample_size": size}
    done = memory.migrate_legacy(path=a_file(tmp_path, patterns=[pattern]))
    assert (done.beliefs, done.known_beliefs) == (1, 0)
    (view,) = memory.list_beliefs().beliefs
    belief = view.belief
    assert (belief.source, belief.claims, belief.mode, belief.known_at) == ("migrated", "below", "live", DISCOVERED)
    assert (belief.prior_alpha, belief.prior_beta) == pytest.approx(prior)
    assert belief.domain == Domain(strategy="VolBreakout", session="asia")
    assert memory.list_beliefs(as_of=DISCOVERED - INSTANT).beliefs == ()


def test_trades_after_a_pattern_was_found_are_its_evidence(memory: Memory, tmp_path: Path) -> None:
    pattern = PATTERN | {"metrics": '{"win_rate": 0.6, "session": "london"}'}
    rows = [a_trade(1), a_trade(6), a_trade(7, **LOST), a_trade(8)]
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=rows, patterns=[pattern]))
    (view,) = memory.list_beliefs().beliefs
    assert (view.posterior.n, view.posterior.alpha, view.posterior.beta) == (3, 10.0, 5.0)


def test_migrating_again_changes_nothing_and_counts_the_known_rows(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    path = a_file(tmp_path, trade_records=[a_trade(n) for n in range(3)], patterns=[PATTERN])
    first = memory.migrate_legacy(path=path)
    links, head = memory.verify_audit().links, memory.verify_audit().head
    clock.advance(days=10)
    again = memory.migrate_legacy(path=path)
    assert (first.trades, first.known_trades, first.beliefs, first.known_beliefs) == (3, 0, 1, 0)
    assert (again.trades, again.known_trades, again.beliefs, again.known_beliefs) == (0, 3, 0, 1)
    assert again.report == first.report
    assert (memory.verify_audit().links, memory.verify_audit().head) == (links, head)


def test_a_file_that_has_grown_adds_only_new_rows(memory: Memory, tmp_path: Path) -> None:
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=[a_trade(5)]))
    grown = a_database(tmp_path / "grown.db", trade_records=[a_trade(5), a_trade(9), a_trade(2, **LOST)])
    done = memory.migrate_legacy(path=str(grown))
    assert (done.trades, done.known_trades) == (2, 1)
    assert [trade.pnl for trade in memory.list_trades().trades] == [42.5, 42.5, -42.5]
    assert memory.get_agent_state().mood.consecutive_wins == 2
    assert memory.doctor().healthy


def test_rows_that_cannot_be_converted_are_left_out_with_the_reason(memory: Memory, tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        patterns=[
            PATTERN,
            PATTERN | {"pattern_id": "P-2", "strategy": None, "metrics": "{}"},
            PATTERN | {"pattern_id": "P-3", "metrics": "{}"},
        ],
        strategy_adjustments=[{"adjustment_id": "A-1", "parameter": "rr", "new_value": 3.5}],
    )
    done = memory.migrate_legacy(path=path)
    reasons = {(left.table, left.row): left.reason for left in done.report.left_out}
    assert reasons["patterns", "P-2"].startswith("no domain")
    assert "does not say where it holds" in reasons["patterns", "P-3"]
    assert "make a plan with a condition" in reasons["strategy_adjustments", "A-1"]
    assert (done.beliefs, len(reasons), len(memory.list_beliefs().beliefs)) == (1, 3, 1)


def test_a_trade_that_contradicts_itself_is_left_out_and_the_rest_comes_in(memory: Memory, tmp_path: Path) -> None:
    rows = [a_trade(1), a_trade(2, pnl_r=-1.4), a_trade(3, pnl=None), a_trade(400)]
    path = a_file(tmp_path, trade_records=rows)
    done = memory.migrate_legacy(path=path)
    reasons = {left.row: left.reason for left in done.report.left_out}
    assert (done.trades, done.known_trades, sorted(reasons)) == (1, 0, ["T-2", "T-3", "T-400"])
    assert "-1.4 and pnl 42.5 have different signs" in reasons["T-2"]
    assert "no pnl" in reasons["T-3"]
    assert "is in the future" in reasons["T-400"]
    again = memory.migrate_legacy(path=path)
    assert (again.trades, again.known_trades, again.report) == (0, 1, done.report)


def test_a_trade_that_is_left_out_leaves_no_deployment_behind(memory: Memory, tmp_path: Path) -> None:
    done = memory.migrate_legacy(path=a_file(tmp_path, trade_records=[a_trade(1, strategy="Fade", pnl_r=-1.4)]))
    assert (done.trades, len(done.report.left_out)) == (0, 1)
    assert (memory.get_my_deployments().deployments, memory.verify_audit().links) == ((), 0)


def test_of_two_patterns_that_say_the_same_the_second_is_left_out_with_the_reason(
    memory: Memory, tmp_path: Path
) -> None:
    path = a_file(tmp_path, patterns=[PATTERN, PATTERN | {"pattern_id": "P-2", "confidence": 0.2, "sample_size": 50}])
    first, again = memory.migrate_legacy(path=path), memory.migrate_legacy(path=path)
    (left,) = first.report.left_out
    assert (left.table, left.row, left.reason) == ("patterns", "P-2", "pattern P-1 claims the same for the same domain")
    assert (first.beliefs, first.known_beliefs) == (1, 0)
    assert (again.beliefs, again.known_beliefs, again.report) == (0, 1, first.report)
    assert memory.list_beliefs().beliefs[0].belief.prior_alpha == pytest.approx(8.0)


def test_the_state_as_of_before_the_migration_needs_no_name(memory: Memory, tmp_path: Path) -> None:
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=[TRADE]))
    unnamed, named = (memory.get_agent_state(as_of=CLOSED, deployment=each) for each in (None, "manual:VolBreakout"))
    assert (replace(unnamed, message=named.message), unnamed.closes) == (named, 1)
    assert memory.get_agent_state(as_of=CLOSED - INSTANT).closes == 0


def test_times_without_a_zone_are_in_the_zone_given(memory: Memory, tmp_path: Path) -> None:
    path = a_file(tmp_path, trade_records=[TRADE | {"exit_timestamp": "2026-02-23 13:30:00"}])
    memory.migrate_legacy(path=path, timezone="Europe/Berlin")
    assert memory.list_trades().trades[0].closed_at == CLOSED


@pytest.mark.parametrize("content", [None, b"", b"not a database at all" * 50])
def test_a_missing_file_or_one_that_is_no_database_is_refused(
    memory: Memory, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "old.db").write_bytes(content)
    with pytest.raises(NotFound if content is None else Invalid, match="path: "):
        memory.migrate_legacy(path=str(tmp_path / "old.db"))
    assert memory.verify_audit().links == 0


@pytest.mark.parametrize("tables", [{"ticks": [{"a": 1}]}, {"trade_records": [{"id": 1}]}])
def test_a_database_with_other_tables_is_refused_and_nothing_is_written(
    memory: Memory, tmp_path: Path, tables: dict[str, list[dict[str, Any]]]
) -> None:
    with pytest.raises(BacksightError, match="path: "):
        memory.migrate_legacy(path=a_file(tmp_path, **tables))
    assert memory.verify_audit().links == 0


def test_every_memory_follows_from_the_migrated_rows(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    rows = [a_trade(n, **(LOST if n % 3 else {})) for n in range(25)]
    memory.migrate_legacy(path=a_file(tmp_path, trade_records=rows, patterns=[PATTERN]))
    assert memory.doctor().healthy
    assert memory.verify_audit().intact
    (link,) = memory.export_audit().links
    assert link.operation == "migrate_legacy"
    assert memory.list_trades(seen_at=clock.now() - INSTANT).trades == ()
