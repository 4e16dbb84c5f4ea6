"""Importing an agent's position log gives the same ledger and memories as if the agent had traded here."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.decision import Decision, Verdict
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound
from backsight.core.ids import derive_id
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import BeliefRecords
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import Trade
from backsight.importers.bars import read_trader_bars
from backsight.importers.positions import log_changes, read_positions, summarise
from backsight.memory import Memory, open_simulation
from backsight.ops.positions import ImportedPositions, agent_name
from backsight.services import learning
from backsight.services.belief_learning import rebuild_beliefs
from backsight.store import bars as stored_bars
from backsight.store import decisions as stored_decisions
from backsight.store import trades as stored_trades
from backsight.store.transaction import Transaction
from backsight.testing import T0, FakeClock, a_snapshot

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "positions"
DAY = datetime(2026, 6, 4, tzinfo=UTC)
Row = dict[str, Any]
Opens = Mapping[str, Mapping[int, float]]
"""By symbol and hour."""


def a_row(hour: int, *, cash: float = 1000.0, did: Sequence[object] = (), **holdings: float) -> Row:
    """A log row with the holdings at an hour of the day; `did` is action, symbol, amount."""
    row = holding(holdings, hour=hour, cash=cash)
    return row | {"this_action": dict(zip(("action", "symbol", "amount"), did, strict=True))} if did else row


def holding(holdings: Mapping[str, float], *, hour: int = 1, cash: float = 1000.0) -> Row:
    return {"date": f"2026-06-04 {hour:02d}:00:00", "positions": {**holdings, "CASH": cash}}


ROUND = [
    a_row(1),
    a_row(2, cash=800.0, did=("buy", "BTC", 2), BTC=2),
    a_row(3, cash=910.0, did=("sell", "BTC", 1), BTC=1),
    a_row(4, cash=1030.0, did=("sell", "BTC", 1)),
]
"""Two bought at 100, one sold at 110 and one at 120: 30 won."""


def a_log(folder: Path, rows: Sequence[Row], name: str = "momentum") -> str:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def some_bars(folder: Path, opens: Opens, name: str = "bars", zone: str | None = None) -> str:
    """A trader's file of hourly bars: each goes from its open up to ten times that, and closes at twice that."""
    lines = []
    for symbol, by_hour in opens.items():
        meta = {"2. Symbol": symbol} | ({} if zone is None else {"6. Time Zone": zone})
        series = {f"2026-06-04 {hour:02d}:00:00": prices(each) for hour, each in by_hour.items()}
        lines.append(json.dumps({"Meta Data": meta, "Time Series (60min)": series}))
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def prices(opened: float) -> dict[str, str]:
    fields = {"1. buy price": opened, "2. high": 10 * opened, "3. low": opened, "4. sell price": 2 * opened}
    return {name: repr(float(price)) for name, price in fields.items()}


def imported(memory: Memory, folder: Path, rows: Sequence[Row], **more: Any) -> ImportedPositions:
    return memory.import_positions(path=a_log(folder, rows), timezone="UTC", **more)


def decisions(memory: Memory, answer: ImportedPositions) -> list[Decision]:
    with memory.reading() as connection:
        return stored_decisions.decisions_of_account(connection, memory.owner, answer.deployment.account_id)


def open_trades(memory: Memory, answer: ImportedPositions) -> list[Trade]:
    with memory.reading() as connection:
        return stored_trades.open_trades(connection, memory.owner, answer.deployment.account_id)


def closed_trades(memory: Memory, **query: Any) -> tuple[Trade, ...]:
    return memory.list_trades(limit=100, **query).trades


def marks(decision: Decision) -> Mapping[str, float]:
    return decision.last_snapshot.marks


def written(memory: Memory) -> tuple[int, int]:
    verified = memory.verify_audit()
    assert verified.intact
    return verified.links, verified.rows


# Trades and decisions from a log


def test_a_log_becomes_trades_as_if_it_had_been_traded_here(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, ROUND)
    (trade,) = closed_trades(memory)
    assert (answer.opened, answer.closed, answer.added, answer.replayed) == (1, 1, 4, False)
    assert (trade.symbol, trade.direction, trade.entry_price, trade.exit_price, trade.size) == (
        ("BTC", "long", 100.0, 115.0, 2.0)
    )
    assert (trade.pnl, trade.inferred, trade.entry.reason, trade.exit_reason) == (30.0, True, "buy", "sell")
    assert (trade.opened_at, trade.closed_at) == (DAY + timedelta(hours=2), DAY + timedelta(hours=4))
    assert memory.verify_audit().links == 1


def test_account_strategy_and_deployment_are_those_the_operations_would_create(memory: Memory, tmp_path: Path) -> None:
    deployment = imported(memory, tmp_path, ROUND, currency="USDT", mode="sim").deployment
    account = memory.open_account(venue="import", name="momentum", currency="USDT", mode="sim")
    strategy = memory.save_strategy(name="momentum")
    deployed = memory.deploy(strategy_name="momentum", account="momentum")
    assert (account.replayed, strategy.replayed, deployed.replayed) == (True, True, True)
    assert (deployment.name, deployment.mode, deployment.id) == ("momentum@momentum", "sim", deployed.deployment.id)
    assert deployment.account_id == account.account.id == derive_id("account", "ana", "import", "momentum")


def test_an_existing_strategy_is_used_unchanged(memory: Memory, tmp_path: Path) -> None:
    memory.save_strategy(name="momentum", thesis="What rises goes on rising.", risk_per_trade=0.01)
    deployment = imported(memory, tmp_path, ROUND).deployment
    assert memory.save_strategy(name="momentum", thesis="It does not.").strategy.version == 2
    again = imported(memory, tmp_path, ROUND)
    assert (deployment.strategy_version, again.deployment.strategy_version, again.replayed) == (1, 1, True)
    (trade,) = closed_trades(memory)
    assert (trade.risk, trade.outcome and trade.outcome.unit) == (10.0, "R")


def test_every_row_is_a_decision(memory: Memory, tmp_path: Path) -> None:
    rows = [*ROUND[:2], a_row(2, cash=800.0, did=("no_trade", "", 0), BTC=2), a_row(2, cash=805.0, BTC=2)]
    recorded = decisions(memory, imported(memory, tmp_path, rows))
    assert [(each.at.hour, each.sequence, each.verdict.kind) for each in recorded] == [
        (1, 0, "noop"),
        (2, 0, "executed"),
        (2, 1, "noop"),
        (2, 2, "noop"),
    ]
    assert [each.equity for each in recorded] == [1000.0, 1000.0, 1000.0, 1005.0]
    assert [each.symbol for each in recorded] == [None, "BTC", None, None]
    assert recorded[3].verdict.detail == "line 4: cash changed by +5, and no holding did"
    assert {each.memory_arm for each in recorded} == {"off"}


def test_holdings_decide_and_a_contradicting_action_is_only_reported(memory: Memory, tmp_path: Path) -> None:
    rows = [a_row(1), a_row(2, cash=900.0, did=("buy", "ETH", 5), BTC=1), a_row(3, cash=950.0, did=("hold", "", 0))]
    answer = imported(memory, tmp_path, rows)
    (trade,) = closed_trades(memory)
    assert (trade.symbol, trade.pnl, trade.entry.reason, trade.exit_reason) == ("BTC", -50.0, None, "unexplained")
    assert [each.kind for each in answer.dirt] == ["not_the_action", "not_the_action"]
    assert [(each.symbol, each.verdict.kind) for each in decisions(memory, answer)[1:]] == [
        ("ETH", "executed"),
        (None, "executed"),
    ]


def test_a_position_held_at_the_start_is_a_trade_without_a_decision(memory: Memory, tmp_path: Path) -> None:
    bars = some_bars(tmp_path, {"BTC": {1: 90.0}})
    answer = imported(memory, tmp_path, [a_row(1, BTC=2, did=("buy", "BTC", 2)), *ROUND[2:]], bars=bars)
    (trade,) = closed_trades(memory)
    assert (trade.entry_price, trade.entry.snapshot_id, trade.opened_at) == (
        (90.0, None, DAY + timedelta(hours=1, microseconds=-1))
    )
    assert (answer.summary.held_at_start, answer.opened, answer.closed) == (1, 1, 1)


def test_shorts_and_flips_are_trades_too(memory: Memory, tmp_path: Path) -> None:
    turned = [a_row(1), a_row(2, cash=1200.0, BTC=-2), a_row(3, cash=900.0, BTC=1), a_row(4, cash=1020.0)]
    answer = imported(memory, tmp_path, turned)
    last, first = closed_trades(memory)
    assert (first.direction, first.pnl, last.direction, last.pnl) == ("short", 0.0, "long", 20.0)
    assert (answer.opened, answer.closed, answer.summary.flips) == (2, 2, 1)


def test_a_rounding_remainder_of_a_position_is_no_trade(memory: Memory, tmp_path: Path) -> None:
    rows = [a_row(1), a_row(2, cash=990.0, BTC=0.3), a_row(3, cash=1002.0, BTC=5e-17), a_row(4, cash=1002.0, BTC=5e-17)]
    answer = imported(memory, tmp_path, rows)
    assert (answer.opened, answer.closed, open_trades(memory, answer)) == (1, 1, [])
    again = imported(memory, tmp_path, [*rows, a_row(5, cash=902.0, BTC=1)])
    assert [trade.open_size for trade in open_trades(memory, again)] == [1.0]


def test_a_row_that_goes_back_in_time_is_applied_at_the_last_instant_and_reported(
    memory: Memory, tmp_path: Path
) -> None:
    answer = imported(memory, tmp_path, [ROUND[0], ROUND[1], a_row(1, cash=900.0, BTC=1), ROUND[3]])
    recorded = decisions(memory, answer)
    assert [(each.at.hour, each.sequence) for each in recorded] == [(1, 0), (2, 0), (2, 1), (4, 0)]
    assert answer.summary.dirt["time_backwards"] == 1
    assert answer.summary.instants == 3
    assert answer.closed == 1


def test_clock_changes_and_symbols_with_slashes_are_imported_like_others(memory: Memory, tmp_path: Path) -> None:
    odd = "BTC/USDT:PERP"
    hours = ["2025-11-02 00:30", "2025-11-02 01:30", "2025-11-02 02:30", "2025-11-02T01:30:00-05:00"]
    rows = [
        {"date": hour, "positions": {odd: size, "CASH": 100.0 * (5 - size)}}
        for hour, size in zip(hours, (0, 1, 2, 0), strict=True)
    ]
    answer = memory.import_positions(path=a_log(tmp_path, rows), timezone="America/New_York")
    recorded = decisions(memory, answer)
    assert [(each.at.hour, each.sequence) for each in recorded] == [(4, 0), (5, 0), (7, 0), (7, 1)]
    assert closed_trades(memory)[0].symbol == odd


def test_results_in_dollars_need_a_rate_or_a_dollar_account(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND, currency="CNY", name="yuan", usd_rate=0.14)
    imported(memory, tmp_path, ROUND, currency="CNY", name="no rate")
    imported(memory, tmp_path, ROUND, name="dollars")
    pnl_usd = {trade.strategy_name: trade.realized_pnl_usd for trade in closed_trades(memory)}
    assert pnl_usd == {"yuan": pytest.approx(4.2), "no rate": None, "dollars": 30.0}


# Prices


def test_a_single_change_is_priced_by_the_cash_difference_and_not_by_bars(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, ROUND, bars=some_bars(tmp_path, {"BTC": {1: 1.0, 2: 2.0, 3: 110.0, 4: 4.0}}))
    assert [marks(each).get("BTC") for each in decisions(memory, answer)] == [None, 100.0, 110.0, 120.0]
    assert (answer.cash.changes, answer.cash.checked, answer.cash.reconciled) == (3, 3, 1)
    assert answer.summary.dirt == {"price_outside_bar": 2}


def test_several_changes_at_once_are_priced_at_the_opens_of_their_bars(memory: Memory, tmp_path: Path) -> None:
    bars = some_bars(tmp_path, {"BTC": {2: 100.0}, "ETH": {2: 50.0}})
    answer = imported(memory, tmp_path, [a_row(1), a_row(2, cash=850.0, BTC=2, ETH=-1)], bars=bars)
    assert {trade.symbol: trade.entry_price for trade in open_trades(memory, answer)} == {"BTC": 100.0, "ETH": 50.0}
    assert (answer.cash.changes, answer.cash.checked, answer.cash.reconciled) == (1, 1, 1)


@pytest.mark.parametrize("cash", [1000.0, 1100.0])
def test_a_cash_difference_that_gives_no_positive_price_is_ignored(memory: Memory, tmp_path: Path, cash: float) -> None:
    bars = some_bars(tmp_path, {"BTC": {2: 100.0}})
    answer = imported(memory, tmp_path, [a_row(1), a_row(2, cash=cash, BTC=1)], bars=bars)
    assert [trade.entry_price for trade in open_trades(memory, answer)] == [100.0]
    assert answer.summary.dirt["price_not_positive"] == 1


def test_an_unchanged_holding_is_marked_at_the_price_known_by_then(memory: Memory, tmp_path: Path) -> None:
    """Within its bar at the open, never at a later high or close; after it at the close; else at the last price."""
    bars = some_bars(tmp_path, {"BTC": {2: 100.0, 3: 150.0}})
    idle = [a_row(hour, cash=800.0, BTC=2) for hour in (3, 4, 6)]
    answer = imported(memory, tmp_path, [*ROUND[:2], *idle], bars=bars)
    assert [marks(each)["BTC"] for each in decisions(memory, answer)[1:]] == [100.0, 150.0, 300.0, 300.0]
    without_bars = imported(memory, tmp_path, [*ROUND[:2], *idle], name="without bars")
    assert [marks(each)["BTC"] for each in decisions(memory, without_bars)[1:]] == [100.0] * 4


def test_an_unfinished_bar_gives_a_price_and_is_not_stored(memory: Memory, tmp_path: Path) -> None:
    path = Path(some_bars(tmp_path, {"BTC": {1: 90.0, 2: 100.0}}))
    line = json.loads(path.read_text(encoding="utf-8"))
    line["Time Series (60min)"]["2026-06-04 03:00:00"] = {"1. buy price": "130"}
    path.write_text(json.dumps(line), encoding="utf-8")
    answer = imported(memory, tmp_path, [*ROUND[:2], a_row(3, cash=800.0, BTC=2)], bars=str(path))
    assert marks(decisions(memory, answer)[-1]) == {"BTC": 130.0}
    assert answer.bars is not None
    assert [(each.bars, each.added) for each in answer.bars.symbols] == [(2, 2)]


def test_bars_are_stored_and_give_context_and_excursions(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, ROUND, bars=some_bars(tmp_path, {"BTC": {1: 90, 2: 100, 3: 110, 4: 120}}))
    (trade,) = closed_trades(memory)
    assert (trade.excursion_source, trade.mfe, trade.context.price) == ("bars", 1800.0, 180.0)
    with memory.reading() as connection:
        assert stored_bars.intervals(connection, "ana", "BTC") == (3600,)
    assert answer.bars is not None
    assert (answer.bars.symbols[0].added, answer.bars.report.rows) == (4, 4)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_bars_may_be_csv_or_parquet(memory: Memory, tmp_path: Path, suffix: str) -> None:
    text = "time,symbol,open,high,low,close\n" + "".join(
        f"2026-06-04 0{hour}:00,BTC,{price},200,10,150\n" for hour, price in ((2, 100), (3, 110), (4, 120))
    )
    path = tmp_path / f"bars.{suffix}"
    path.write_text(text)
    if suffix == "parquet":
        import_module("pyarrow.parquet").write_table(import_module("pyarrow.csv").read_csv(path), path)
    answer = imported(memory, tmp_path, ROUND, bars=str(path))
    assert (answer.cash.checked, answer.cash.reconciled, answer.dirt) == (3, 3, ())


def test_the_zone_of_bars_is_their_own_else_that_of_the_log(memory: Memory, tmp_path: Path) -> None:
    eastern = some_bars(tmp_path, {"BTC": {1: 7.0}}, zone="US/Eastern")
    answer = imported(memory, tmp_path, [a_row(5, BTC=1)], bars=eastern)
    assert marks(decisions(memory, answer)[0]) == {"BTC": 7.0}
    without_zone = some_bars(tmp_path, {"ETH": {1: 8.0}}, name="no zone")
    answer_without_zone = memory.import_positions(
        path=a_log(tmp_path, [a_row(1, ETH=1)]), timezone="US/Eastern", bars=without_zone, name="eth"
    )
    assert marks(decisions(memory, answer_without_zone)[0]) == {"ETH": 8.0}


# as_of and seen_at


def answers(memory: Memory, **query: Any) -> list[Any]:
    """Closed trades, recalled episodes and deployments, as of an instant after the log."""
    past = {"as_of": DAY + timedelta(hours=5), **query}
    return [
        [(trade.symbol, trade.pnl) for trade in closed_trades(memory, **past)],
        [(each.episode.symbol, each.episode.pnl) for each in recalled(memory, **past)],
        [(each.deployment.name, each.tally.trades) for each in memory.get_my_deployments(**past).deployments],
    ]


def recalled(memory: Memory, **query: Any) -> tuple[Any, ...]:
    return memory.recall_memories(symbol="BTC", mode="paper", **query).memories


def test_an_imported_log_is_in_answers_about_the_past_but_not_in_those_with_an_earlier_seen_at(
    memory: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    before = answers(memory, seen_at=T0)
    assert before == [[], [], []]
    clock.advance(hours=1)
    imported(memory, tmp_path, ROUND)
    assert answers(memory, seen_at=T0) == before
    assert answers(memory) == [[("BTC", 30.0)], [("BTC", 30.0)], [("momentum@momentum", 1)]]
    assert answers(memory, seen_at=clock.now()) == answers(memory)


def test_nothing_is_known_before_its_row(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND)
    hour = timedelta(hours=1)
    moment = timedelta(microseconds=1)
    assert answers(memory, as_of=DAY + hour - moment) == [[], [], []]
    assert answers(memory, as_of=DAY + hour) == [[], [], [("momentum@momentum", 0)]]
    assert answers(memory, as_of=DAY + 4 * hour - moment) == [[], [], [("momentum@momentum", 0)]]
    assert answers(memory, as_of=DAY + 4 * hour) == answers(memory)


def test_a_trade_is_read_as_it_was_at_each_row(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND)
    (trade,) = closed_trades(memory)
    versions = [memory.get_trade(trade_id=trade.id, as_of=DAY + timedelta(hours=hour)).trade for hour in (2, 3, 4)]
    assert [(each.status, each.open_size, each.realized_pnl) for each in versions] == [  # type: ignore[union-attr]
        ("open", 2.0, 0.0),
        ("open", 1.0, 10.0),
        ("closed", 0.0, 30.0),
    ]


# Importing again, longer logs, and contradictions


def test_importing_again_changes_nothing_and_says_so(memory: Memory, tmp_path: Path, clock: FakeClock) -> None:
    bars = some_bars(tmp_path, {"BTC": {2: 100, 3: 110}})
    first = imported(memory, tmp_path, ROUND, bars=bars)
    before = written(memory)
    clock.advance(days=1)
    again = imported(memory, tmp_path, ROUND, bars=bars)
    assert (first.replayed, again.replayed, again.added) == (False, True, 0)
    assert (again.opened, again.closed, again.summary) == (first.opened, first.closed, first.summary)
    assert written(memory) == before


def test_bars_that_come_later_are_stored_and_change_no_trade(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND)
    before = closed_trades(memory)
    again = imported(memory, tmp_path, ROUND, bars=some_bars(tmp_path, {"BTC": {2: 5}}))
    assert again.bars is not None
    assert (again.replayed, again.added, again.bars.symbols[0].added) == (False, 0, 1)
    assert closed_trades(memory) == before


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_longer_log_adds_only_its_new_rows(memory: Memory, tmp_path: Path, clock: FakeClock, cut: int) -> None:
    rows = [*ROUND[:3], a_row(3, cash=800.0, BTC=2), a_row(4, cash=1030.0)]
    whole = imported(memory, tmp_path, rows, name="whole")
    imported(memory, tmp_path, rows[:cut], name="in parts")
    clock.advance(hours=1)
    rest = imported(memory, tmp_path, rows, name="in parts")
    assert (rest.added, rest.opened, rest.closed) == (5 - cut, whole.opened, whole.closed)
    results = {trade.strategy_name: (trade.entry_price, trade.exit_price, trade.pnl) for trade in closed_trades(memory)}
    assert results["in parts"] == results["whole"]
    assert [each.equity for each in decisions(memory, rest)] == [each.equity for each in decisions(memory, whole)]
    assert memory.verify_audit().intact


def test_a_shorter_version_of_a_log_is_a_replay(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND)
    assert imported(memory, tmp_path, ROUND[:2]).replayed


OTHERS = {
    "another quantity": [*ROUND[:2], a_row(3, cash=910.0, did=("sell", "BTC", 1), BTC=1.5), ROUND[3]],
    "another cash": [*ROUND[:2], a_row(3, cash=911.0, did=("sell", "BTC", 1), BTC=1), ROUND[3]],
    "another action": [*ROUND[:2], a_row(3, cash=910.0, did=("hold", "", 0), BTC=1), ROUND[3]],
    "a row between": [*ROUND[:2], a_row(2, cash=800.0, BTC=2), *ROUND[2:]],
    "a row left out": [*ROUND[:2], ROUND[3]],
    "a start before": [a_row(0), *ROUND],
    "a later start": [a_row(2), a_row(5)],
}


@pytest.mark.parametrize("rows", OTHERS.values(), ids=OTHERS.keys())
def test_a_log_that_contradicts_the_stored_one_is_a_conflict(memory: Memory, tmp_path: Path, rows: list[Row]) -> None:
    imported(memory, tmp_path, ROUND)
    before = written(memory)
    with pytest.raises(Conflict, match=r"^path: .*momentum\.jsonl line [123]: .* give .*another name$"):
        imported(memory, tmp_path, rows)
    assert written(memory) == before


def test_an_account_that_has_traded_since_is_a_conflict(memory: Memory, tmp_path: Path) -> None:
    deployment = imported(memory, tmp_path, ROUND).deployment
    at = DAY + timedelta(hours=5)
    memory.close_tick(deployment=deployment.name, at=at, before=a_snapshot(at=at), verdict=Verdict(kind="noop"))
    before = written(memory)
    assert imported(memory, tmp_path, ROUND).replayed
    for hour in (4, 5, 6):
        with pytest.raises(Conflict, match="line 5: "):
            imported(memory, tmp_path, [*ROUND, a_row(hour)])
    assert written(memory) == before


def test_other_settings_of_the_account_are_a_conflict(memory: Memory, tmp_path: Path) -> None:
    imported(memory, tmp_path, ROUND)
    for other in ({"currency": "EUR"}, {"mode": "live"}):
        with pytest.raises(Conflict, match="name: 'momentum' at 'import' is already open with other settings"):
            imported(memory, tmp_path, ROUND, **other)
    assert written(memory)[0] == 1


def test_a_name_that_runs_elsewhere_is_a_conflict(memory: Memory, tmp_path: Path) -> None:
    memory.open_account(venue="binance", name="momentum")
    memory.save_strategy(name="momentum")
    memory.deploy(strategy_name="momentum", account="momentum")
    with pytest.raises(Conflict, match="name: 'momentum@momentum' already runs on an account that was not imported"):
        imported(memory, tmp_path, ROUND)
    assert written(memory)[0] == 3


def test_agents_of_different_names_have_separate_trades(memory: Memory, tmp_path: Path) -> None:
    for name in ("one", "two"):
        imported(memory, tmp_path, ROUND, name=name)
    assert {trade.strategy_name for trade in closed_trades(memory)} == {"one", "two"}
    assert len({trade.id for trade in closed_trades(memory)}) == 2


# Refusals


WRONG: dict[str, tuple[list[Row], dict[str, Any], str]] = {
    "held without a price": ([a_row(1), a_row(2, BTC=1, ETH=1)], {}, r"^bars: .* line 2: no price of 'BTC' is known"),
    "held at the start": ([a_row(1, ETH=1)], {}, r"^bars: .* line 1: no price of 'ETH' .*; give bars that have it$"),
    "the future": (
        [a_row(1), a_row(11)],
        {},
        r"^date: .* line 2: 2026-06-04T11.* is in the future; check the timezone",
    ),
    "no cash": ([a_row(1), {"date": "2026-06-04", "positions": {}}], {}, "^positions: .* line 2: no object with CASH"),
    "no time": ([a_row(1) | {"date": "soon"}], {}, "^date: .* line 1: 'soon' is not a time; give one like"),
    "no symbol": ([holding({"": 1.0})], {}, "^positions: .* line 1: '' has 0 characters; give 1 to 64"),
    "a long symbol": ([holding({"X" * 65: 1.0})], {}, "^positions: .* line 1: 'X+…' has 65 characters; give 1 to 64"),
    "an unknown zone": (ROUND, {"timezone": "New York"}, "^timezone: 'New York' is not a known time zone; did you"),
    "an unknown mode": (ROUND, {"mode": "demo"}, "^mode: 'demo' is not known"),
    "a rate of nothing": (ROUND, {"usd_rate": 0.0}, "^usd_rate: 0.0 is out of range"),
    "a name kept back": (ROUND, {"name": "manual"}, "^name: 'manual' is reserved for trades without a deployment"),
    "no bars there": (ROUND, {"bars": "nowhere.csv"}, r"^bars: there is no file nowhere\.csv; check its name"),
}


@pytest.mark.parametrize(("rows", "more", "message"), WRONG.values(), ids=WRONG.keys())
def test_an_error_names_its_line_and_remedy_and_nothing_is_written(
    memory: Memory, tmp_path: Path, rows: list[Row], more: dict[str, Any], message: str
) -> None:
    imported(memory, tmp_path, ROUND, name="before")
    before = written(memory)
    with pytest.raises(BacksightError, match=message):
        memory.import_positions(**{"path": a_log(tmp_path, rows), "timezone": "UTC", **more})
    assert written(memory) == before


def test_bad_bars_are_refused_and_nothing_is_written(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "bars.csv").write_text("time,symbol,open,high,low,close\n2026-06-04,BTC,nan,1,1,1\n")
    with pytest.raises(Invalid, match=r"^bars\.open: .*bars\.csv line 2: 'nan' is not a price; correct or remove"):
        imported(memory, tmp_path, ROUND, bars=str(tmp_path / "bars.csv"))
    imported(memory, tmp_path, ROUND, bars=some_bars(tmp_path, {"BTC": {2: 100}}))
    before = written(memory)
    with pytest.raises(
        Conflict, match=r"^bars: the BTC bar of 2026-06-04T02.* differs from the stored bar; correct it"
    ):
        imported(memory, tmp_path, [*ROUND, a_row(5)], bars=some_bars(tmp_path, {"ETH": {1: 1}, "BTC": {2: 101}}))
    assert written(memory) == before


def test_more_than_a_number_can_hold_is_refused(memory: Memory, tmp_path: Path) -> None:
    bars = some_bars(tmp_path, {"BTC": {1: 1e10}})
    with pytest.raises(
        Invalid, match=r"^positions: .* line 1: the value of cash and holdings is too large for a number"
    ):
        imported(memory, tmp_path, [a_row(1, BTC=1e300)], bars=bars)
    assert written(memory) == (0, 0)


def test_a_log_that_is_not_there_is_not_found(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="path: there is no file"):
        memory.import_positions(path=str(tmp_path / "none.jsonl"), timezone="UTC")
    assert written(memory) == (0, 0)


def test_an_agent_is_named_after_its_file_or_its_folder(tmp_path: Path) -> None:
    assert agent_name(Path("agents/gpt-5/position/position.jsonl")) == "gpt-5"
    assert agent_name(Path("agents/gpt-5/Positions.jsonl")) == "gpt-5"
    assert agent_name(Path("gpt-5.2.jsonl")) == "gpt-5.2"
    for nameless in ("/position/position.jsonl", f"{'x' * 101}.jsonl", " .jsonl"):
        with pytest.raises(Invalid, match=r"name: .*is not a name; give the agent's name"):
            agent_name(Path(nameless))


def test_all_dirt_is_counted_and_the_first_findings_are_listed(memory: Memory, tmp_path: Path) -> None:
    answer = imported(memory, tmp_path, [a_row(1, did=("buy", "BTC", 1)) for _ in range(300)])
    assert (len(answer.dirt), answer.summary.dirt["action_without_change"]) == (200, 299)
    assert answer.dirt[1].message == "line 2: buy 1 BTC is stated, but nothing changed"


# Any log

SYMBOLS = ("A", "B/C:D", "é")


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Row], Opens]:
    """Rows at any hours, also several at one; cash changes by the cost of the holdings at the hour's open."""
    price = st.integers(1, 10_000).map(lambda cents: cents / 16)
    opens = {symbol: {hour: draw(price) for hour in range(9)} for symbol in SYMBOLS}
    some = st.dictionaries(st.sampled_from(SYMBOLS), st.integers(-8, 8).map(lambda size: size / 4), max_size=3)
    hours = sorted(draw(st.lists(st.integers(0, 8), min_size=1, max_size=8)))
    rows: list[Row] = []
    cash, holdings = 1000.0, draw(some)
    for hour in hours:
        rows.append(holding(holdings, hour=hour, cash=cash))
        holdings = draw(some)
        following = hours[min(len(rows), len(hours) - 1)]
        cash = worth(rows[-1], following, opens) - sum(
            size * opens[symbol][following] for symbol, size in holdings.items()
        )
    return rows, opens


def worth(row: Row, hour: int, opens: Opens) -> float:
    """Cash and holdings of a row at the opens of an hour."""
    return sum(
        (size * opens[symbol][hour] for symbol, size in row["positions"].items() if symbol != "CASH"),
        start=float(row["positions"]["CASH"]),
    )


def hour_of(row: Row) -> int:
    return int(row["date"][11:13])


@settings(max_examples=20)
@given(logs())
def test_any_log_ends_with_the_holdings_of_its_last_row_and_accounts_for_all_of_its_equity(
    log: tuple[list[Row], Opens],
) -> None:
    """Open sizes are the last holdings; realised + unrealised is the change of equity at the opens, to a billionth."""
    rows, opens = log
    with tempfile.TemporaryDirectory() as folder, open_simulation(FakeClock(T0)) as memory:
        bars = some_bars(Path(folder), opens)
        answer = imported(memory, Path(folder), rows, bars=bars)
        open_now = open_trades(memory, answer)
        closed = closed_trades(memory)
        assert memory.verify_audit().intact
        assert imported(memory, Path(folder), rows, bars=bars).replayed
    sizes = {trade.symbol: trade.open_size * (1 if trade.direction == "long" else -1) for trade in open_now}
    assert sizes == {symbol: size for symbol, size in rows[-1]["positions"].items() if symbol != "CASH" and size}
    last = hour_of(rows[-1])
    unrealised = sum(
        sizes[trade.symbol] * (opens[trade.symbol][last] - (trade.average_cost or 0.0)) for trade in open_now
    )
    realised = sum(trade.realized_pnl or 0.0 for trade in (*open_now, *closed))
    change = worth(rows[-1], last, opens) - worth(rows[0], hour_of(rows[0]), opens)
    assert realised + unrealised == pytest.approx(change, rel=1e-9, abs=1e-6)
    counts = answer.summary
    assert answer.opened == counts.held_at_start + counts.opens + counts.flips
    assert answer.closed == counts.closes + counts.flips == len(closed)


# The real logs

GROUPS = {
    "ashare_daily": ("astock_daily", "Asia/Shanghai", "CNY"),
    "crypto_daily": ("crypto_daily", "UTC", "USDT"),
    "us_hourly": ("us_nasdaq100_60min", "America/New_York", "USD"),
}
AFTERWARDS = datetime(2026, 1, 1, tzinfo=UTC)
real = pytest.mark.skipif(not REAL.exists(), reason="the position logs are not beside this checkout")


@pytest.fixture(scope="module")
def simulation() -> Iterator[Memory]:
    with open_simulation(FakeClock(AFTERWARDS)) as memory:
        yield memory


def real_import(memory: Memory, path: Path) -> ImportedPositions:
    group, agent = path.parts[-4], path.parts[-3]
    name, zone, currency = GROUPS[group]
    bars = str(REAL / "bars" / f"{name}.jsonl")
    agent_label = f"{agent} {group}"
    return memory.import_positions(path=str(path), bars=bars, timezone=zone, currency=currency, name=agent_label)


def still_in(memory: Memory, answer: ImportedPositions, last: Decision) -> float:
    """Realised and unrealised profit of the trades that the last row left open, at its marks; all are long."""
    at = marks(last)
    return sum(
        (trade.realized_pnl or 0.0) + trade.open_size * (at[trade.symbol] - (trade.average_cost or 0.0))
        for trade in open_trades(memory, answer)
    )


@real
@pytest.mark.parametrize(
    ("group", "agents"),
    [
        ("ashare_daily", "[cg]*"),
        ("crypto_daily", "*"),
        ("us_hourly", "g*"),
        pytest.param("ashare_daily", "*", marks=pytest.mark.slow),
        pytest.param("us_hourly", "*", marks=pytest.mark.slow),
    ],
)
def test_real_logs_give_the_trades_that_their_rows_imply(simulation: Memory, group: str, agents: str) -> None:
    name, zone, _ = GROUPS[group]
    market = read_trader_bars(REAL / "bars" / f"{name}.jsonl")
    for path in sorted((REAL / group).glob(f"{agents}/position/position.jsonl")):
        changed = log_changes(read_positions(path, timezone=zone), bars=market.bars, openings=market.openings)
        answer = real_import(simulation, path)
        counts = summarise(changed)
        assert answer.summary == counts
        assert (answer.opened, answer.closed) == (counts.opens, counts.closes)
        (known,) = simulation.get_my_deployments(deployment=answer.deployment.id).deployments
        assert known.tally.trades == counts.closes
        sizes = {trade.symbol: trade.open_size for trade in open_trades(simulation, answer)}
        assert sizes == pytest.approx(changed[-1].row.holdings)
        if "several_symbols" not in counts.dirt:
            first, *_, last = decisions(simulation, answer)
            assert known.tally.pnl + still_in(simulation, answer, last) == pytest.approx(last.equity - first.equity)
        assert answer.cash.changes == answer.cash.checked == sum(1 for each in changed if each.moves)
        if group == "ashare_daily":
            assert answer.cash.reconciled == answer.cash.changes
    assert simulation.verify_audit().intact


def test_an_agent_of_a_known_period_is_learned_once(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt: list[str] = []

    def counted(transaction: Transaction, owner: str, mode: Mode, trades: Sequence[Episode]) -> BeliefRecords:
        rebuilt.append(owner)
        return rebuild_beliefs(transaction, owner, mode, trades)

    monkeypatch.setattr(learning, "rebuild_beliefs", counted)
    again = [a_row(hour, cash=800.0 + 10 * hour, BTC=2) if hour % 2 else a_row(hour) for hour in range(5, 11)]
    for name in ("first", "second", "third"):
        log = [*ROUND, *again]
        memory.import_positions(path=a_log(tmp_path, log, name), timezone="UTC", name=name)
    assert len(rebuilt) == 2  # once for the second agent and once for the third, whatever they closed
    assert memory.doctor().findings == ()
