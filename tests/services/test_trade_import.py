"""Importing trades: all of a file or none, once, and with the same memory as if each were remembered at its close."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused
from backsight.core.memory.semantic import Belief
from backsight.core.portfolio import Mode
from backsight.memory import Memory, open_memory
from backsight.services import trade_import
from backsight.services.derivation import derive_rows, find_differences
from backsight.store.experience import BELIEFS
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed, empty_postgres_store, ticked

DAY = timedelta(days=1)
DEPLOYMENTS: dict[str, Mode] = {"A@main": "live", "B@main": "live", "A@paper": "paper"}


def settle_in(memory: Memory) -> Memory:
    """Two strategies on a live account, one of them also on a paper account."""
    for name in ("A", "B"):
        memory.save_strategy(name=name)
    for deployment, mode in DEPLOYMENTS.items():
        strategy, _, account = deployment.partition("@")
        memory.open_account(venue="v", name=account, mode=mode)
        memory.deploy(strategy_name=strategy, account=account)
    return memory


def trade_row(number: int, at: datetime, *, r: float = 1.0, **changes: Any) -> dict[str, Any]:
    """The arguments of a trade of two hours that closed then, as JSON has them."""
    times = {"opened_at": (at - timedelta(hours=2)).isoformat(), "closed_at": at.isoformat()}
    result = {"pnl": 100 * r, "pnl_r": r, "size": 1.0, "idempotency_key": f"{number}"}
    return a_trade_call(**times, **result) | changes


def a_years_trades(seed: int = 1, count: int = 140) -> list[dict[str, Any]]:
    """Trades with an edge in one regime and none in the other, some of them at one instant."""
    rng, trades = random.Random(seed), []
    for number in range(count):
        trending = rng.random() < 0.5
        r = 1.5 if rng.random() < (0.95 if trending else 0.2) else -1.0
        deployment = rng.choice(list(DEPLOYMENTS))
        where = {"deployment": deployment, "strategy_name": deployment[0], "symbol": rng.choice(["BTC", "ETH"])}
        regime = "trending_up" if trending else "ranging"
        at = T0 + timedelta(hours=(number - number % 3) * 9)
        trades.append(trade_row(number, at, r=r, context_regime=regime, confidence=round(rng.random(), 2), **where))
    return trades


def a_file(folder: Path, trades: list[dict[str, Any]], name: str = "trades.jsonl") -> str:
    (folder / name).write_text("".join(json.dumps(trade) + "\n" for trade in trades))
    return str(folder / name)


def memories(memory: Memory, **query: Any) -> list[Any]:
    """Every answer about trades, mood, beliefs and habits."""
    answers: list[Any] = [memory.list_trades(limit=100, **query)]
    answers += [memory.get_agent_state(deployment=deployment, **query) for deployment in DEPLOYMENTS]
    for mode in sorted(set(DEPLOYMENTS.values())):
        answers += [
            memory.list_beliefs(mode=mode, retired=True, **query),
            memory.get_behavioral_analysis(mode=mode, **query),
        ]
    return answers


def healthy(memory: Memory) -> bool:
    with memory.reading() as connection:
        return find_differences(connection, memory.owner) == []


def induced(memory: Memory) -> list[Belief]:
    with memory.reading() as connection:
        beliefs = [each.standing.belief for each in derive_rows(connection, memory.owner)[BELIEFS]]
    return [belief for belief in beliefs if belief.source == "induced"]


def lived(memory: Memory, clock: FakeClock) -> Memory:
    """An account with equity and a stated belief, before any trade."""
    clock.at = T0 - DAY
    settle_in(memory).record_equity(account="main", equity=10_000.0)
    memory.add_belief(proposition="BTC trends", symbol="BTC", mode="live")
    clock.at = T0 + 90 * DAY
    return memory


@pytest.mark.parametrize("rows_in_part", [10_000, 7])
def test_a_file_teaches_what_its_trades_would_have_taught_one_by_one(
    memory: Memory, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_in_part: int
) -> None:
    monkeypatch.setattr(trade_import, "ROWS_IN_PART", rows_in_part)
    trades = a_years_trades()
    with open_memory("sqlite://", owner="ana", actor="test", clock=clock) as one_by_one:
        lived(one_by_one, clock)
        for trade in trades:
            one_by_one.remember_trade(**trade)
        done = lived(memory, clock).import_trades(path=a_file(tmp_path, trades))
        assert (done.rows, done.added, done.replayed) == (140, 140, 0)
        assert memories(memory) == memories(one_by_one)
        for at in (T0, T0 + 9 * DAY, T0 + 30 * DAY + timedelta(hours=3)):
            assert memories(memory, as_of=at) == memories(one_by_one, as_of=at)
    assert induced(memory)
    assert memory.doctor().healthy
    assert memory.verify_audit().intact


def test_the_answer_says_what_changed_in_each_memory(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    done = lived(memory, clock).import_trades(path=a_file(tmp_path, a_years_trades()))
    assert done.learned is not None
    assert (done.learned.episodes, done.learned.habits, done.learned.moods, done.learned.plans) == (140, 6, 3, ())
    assert done.learned.induced == tuple(induced(memory))
    beliefs_by_mode = {mode: memory.list_beliefs(mode=mode, retired=True).beliefs for mode in set(DEPLOYMENTS.values())}
    assert done.learned.evidence == sum(each.posterior.n for beliefs in beliefs_by_mode.values() for each in beliefs)
    assert (done.first_closed_at, done.last_closed_at) == (T0, T0 + timedelta(hours=138 * 9))


def test_a_mode_that_nobody_gave_is_said(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text(
        "symbol,direction,entry_price,exit_price,pnl,closed_at,strategy_name\nBTC,long,1,2,1,2026-06-04,S\n"
    )
    said = "1 trade without a mode or a deployment: taken as live."
    assert said in memory.import_trades(path=str(file), dry_run=True).notes
    assert said not in memory.import_trades(path=str(file), mode="paper", dry_run=True).notes


SECRET = "my api_key = 3f9a8b7c6d5e4f3a"


def test_a_secret_in_a_file_is_named_by_its_row(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.at = T0 + DAY
    trades = [trade_row(1, T0), trade_row(2, T0, reflection=SECRET)]
    with pytest.raises(Refused, match=r"^reflection: \S+ line 2: line 1 looks like it contains a key"):
        memory.import_trades(path=a_file(tmp_path, trades))
    assert memory.list_trades().trades == ()


def test_a_row_of_a_table_with_a_secret_is_broken(memory: Memory, tmp_path: Path) -> None:
    row = "BTC,long,1,2,1,2026-06-04,S"
    file = tmp_path / "trades.csv"
    file.write_text(f"Ticker,direction,open price,close price,profit,close time,setup,notes\n{row},\n{row},{SECRET}\n")
    with pytest.raises(Invalid, match="line 3: reflection: line 1 looks like it contains a key"):
        memory.import_trades(path=str(file), format="trades-table", mode="paper")
    done = memory.import_trades(path=str(file), format="trades-table", mode="paper", skip_broken=True)
    assert (done.added, [each.reason for each in done.left_out]) == (1, ["reflection cannot be used"])


def test_importing_again_changes_nothing_and_says_so(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    without_keys = [{**trade, "idempotency_key": None} for trade in a_years_trades()[:6]]
    path = a_file(tmp_path, without_keys)
    first = lived(memory, clock).import_trades(path=path)
    head = memory.verify_audit().head
    clock.advance(days=3)
    again = memory.import_trades(path=path)
    assert (first.added, first.replayed, again.added, again.replayed, again.learned) == (6, 0, 0, 6, None)
    assert "nothing was changed" in again.message
    assert memory.verify_audit().head == head


def test_trades_remembered_by_hand_and_repeated_rows_are_replays(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = T0 + DAY
    keyed, unkeyed = trade_row(1, T0), trade_row(2, T0) | {"idempotency_key": None}
    memory.remember_trade(**keyed)
    memory.remember_trade(**unkeyed)
    done = memory.import_trades(path=a_file(tmp_path, [keyed, unkeyed, trade_row(3, T0), trade_row(3, T0)]))
    assert (done.rows, done.added, done.replayed) == (4, 1, 3)
    assert len(memory.list_trades().trades) == 3
    assert healthy(memory)


@pytest.mark.parametrize("first", ["early", "late", "mixed"])
def test_a_file_may_be_older_than_what_is_stored(memory: Memory, clock: FakeClock, tmp_path: Path, first: str) -> None:
    trades = a_years_trades()
    cuts = {"early": trades[:70], "late": trades[70:], "mixed": trades[::2]}
    lived(memory, clock).import_trades(path=a_file(tmp_path, cuts[first]))
    done = memory.import_trades(path=a_file(tmp_path, trades))
    assert (done.added, done.replayed) == (70, 70)
    assert memory.doctor().healthy
    assert induced(memory)
    assert memory.verify_audit().intact


STEPS = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 999)), min_size=1, max_size=12)),
    max_size=5,
)


@given(steps=STEPS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_memory_follows_from_the_episodes_after_files_and_single_trades_in_any_order(
    steps: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import_and_remember("sqlite://", steps, tmp_path_factory.mktemp("files"))


@given(steps=STEPS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_memory_follows_from_the_episodes_in_any_order_on_postgresql_too(
    steps: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with empty_postgres_store() as url:
        import_and_remember(url, steps, tmp_path_factory.mktemp("files"))


def import_and_remember(url: str, steps: list[Any], folder: Path) -> None:
    with open_memory(url, clock=FakeClock(T0 + 60 * DAY)) as memory:
        settle_in(memory)
        number = 0
        for as_file, picks in steps:
            trades = []
            for days, pick in picks:
                rng, number = random.Random(pick), number + 1
                deployment, r = rng.choice(list(DEPLOYMENTS)), rng.choice([2.0, -1.0, 0.0])
                where = {"deployment": deployment, "strategy_name": deployment[0], "symbol": rng.choice(["BTC", "ETH"])}
                trades.append(trade_row(number, T0 + days * DAY, r=r, **where))
            if as_file:
                memory.import_trades(path=a_file(folder, trades))
            else:
                for trade in trades:
                    memory.remember_trade(**trade)
            assert healthy(memory)
        assert memory.verify_audit().intact


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"pnl": "a lot"}, Invalid, r"pnl: .*trades\.jsonl line 2: 'a lot' is text; give a number"),
        ({"pnl": -5.0}, Invalid, r"pnl_r: .* line 2: 1\.0 and pnl -5\.0 have different signs"),
        ({"closed_at": None}, Invalid, r"closed_at: .* line 2: missing; every trade in a file needs"),
        ({"closed_at": "2030-01-01T00:00:00Z"}, Invalid, r"closed_at: .* line 2: .* is in the future"),
        ({"opened_at": "yesterday"}, Invalid, r"opened_at: .* line 2: 'yesterday' is not a time"),
        ({"pln": 5.0}, Invalid, r"pln: .* line 2: unknown argument; did you mean 'pnl'\?"),
        ({"exit_reasn": "x"}, Invalid, r"exit_reasn: .* line 2: unknown argument; did you mean 'exit_reason'\?"),
        ({"leverage": 0.0}, Invalid, r"leverage: .* line 2: "),
        ({"context": {"sesion": "london"}}, Invalid, r"context\.sesion: .* line 2: unknown argument"),
        ({"deployment": "nothing"}, NotFound, r"deployment: .* line 2: no deployment 'nothing'"),
        (
            {"idempotency_key": "1", "pnl": 50.0, "pnl_r": 0.5},
            Conflict,
            r"idempotency_key: .* line 2: already used for another trade",
        ),
    ],
)
def test_a_row_that_is_wrong_is_named_and_nothing_is_written(
    memory: Memory, clock: FakeClock, tmp_path: Path, changes: dict[str, Any], kind: type[BacksightError], message: str
) -> None:
    clock.advance(days=1)
    path = a_file(tmp_path, [trade_row(1, T0), trade_row(2, T0) | changes, trade_row(3, T0)])
    with pytest.raises(kind, match=message):
        memory.import_trades(path=path)
    assert (memory.list_trades().trades, memory.verify_audit().links) == ((), 0)


def test_a_key_that_is_stored_with_other_content_is_a_conflict(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.advance(days=1)
    memory.remember_trade(**trade_row(1, T0))
    with pytest.raises(Conflict, match=r"idempotency_key: .* line 2: already used for another trade"):
        memory.import_trades(path=a_file(tmp_path, [trade_row(2, T0), trade_row(1, T0, r=2.0)]))
    assert len(memory.list_trades().trades) == 1


def test_arguments_fill_in_what_the_file_leaves_out(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    deployed(memory)
    clock.advance(days=1)
    header = "symbol;direction;entry_price;exit_price;pnl;closed_at;context.regime"
    (tmp_path / "trades.csv").write_text(f"{header}\nBTC;long;1;2;5.0;2026-06-04 06:00;ranging\n")
    memory.import_trades(
        path=str(tmp_path / "trades.csv"),
        strategy_name="VolBreakout",
        deployment="VolBreakout@main",
        timezone="America/New_York",
    )
    (trade,) = memory.list_trades(deployment="VolBreakout@main").trades
    assert (trade.closed_at, trade.pnl, trade.context.regime) == (T0, 5.0, "ranging")


def test_a_file_has_columns_that_no_call_has(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.advance(days=1)
    header = "symbol,direction,entry_price,exit_price,pnl,closed_at,strategy_name,funding,leverage,reason,exit_reason"
    row = "BTC,long,100,103,5,2026-06-04T10:00:00Z,A,-1.5,3,breakout,roi"
    text = f"{header},max_favorable_excursion\n{row},7.5\n"
    (tmp_path / "trades.csv").write_text(text)
    first = memory.import_trades(path=str(tmp_path / "trades.csv"))
    again = memory.import_trades(path=str(tmp_path / "trades.csv"))
    (trade,) = memory.list_trades().trades
    assert (first.added, again.replayed) == (1, 1)
    assert (trade.funding, trade.realized_pnl, trade.mfe, trade.exit_reason) == (-1.5, 6.5, 7.5, "roi")
    assert (trade.entry.leverage, trade.entry.reason) == (3.0, "breakout")


def test_a_file_for_a_deployment_that_runs_by_ticks_is_a_conflict(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    links = memory.verify_audit().links
    with pytest.raises(Conflict, match=r"deployment: .* line 1: 'VolBreakout@main' runs by ticks"):
        memory.import_trades(path=a_file(tmp_path, [trade_row(1, T0)]), deployment="VolBreakout@main")
    assert memory.verify_audit().links == links


def test_a_size_is_a_share_of_the_equity_at_its_entry(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    settle_in(memory)
    looks = {T0: 10_000.0, T0 + timedelta(hours=5): 20_000.0}
    clock.at = T0 + DAY
    for at, equity in looks.items():
        memory.record_equity(account="main", equity=equity, at=at)
    hours = (1, 2, 4, 6, 7, 9)
    where: dict[str, Any] = {"deployment": "A@main", "strategy_name": "A", "entry_price": 100.0}
    trades = [trade_row(number, T0 + timedelta(hours=number), **where) for number in hours]
    memory.import_trades(path=a_file(tmp_path, trades))
    entry_equity = {trade.closed_at: trade.entry.equity for trade in memory.list_trades().trades}
    worth = [None, 10_000.0, 10_000.0, 10_000.0, 20_000.0, 20_000.0]
    assert [entry_equity[T0 + timedelta(hours=number)] for number in hours] == worth


def test_trades_of_a_file_count_in_the_results_of_a_plan_in_force(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    settle_in(memory)
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "ranging"}, planned_action={"type": "alert"}, reasoning="watch it"
    ).plan
    memory.check_active_plans(deployment="A@main", symbol="BTC", current_context=ContextVector(regime="ranging"))
    clock.advance(days=2)
    where: dict[str, Any] = {"deployment": "A@main", "strategy_name": "A", "symbol": "BTC"}
    trades = [trade_row(number, T0 + timedelta(hours=number), **where) for number in (1, 3, 4)]
    memory.import_trades(path=a_file(tmp_path, trades))
    settled = memory.settle_plan(plan_id=plan.id, followed=True).settlement
    assert sum(result.n for result in settled.results) == 2


def test_recent_trades_in_a_file_propose_plans_and_old_ones_do_not(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    lived(memory, clock)
    trades = a_years_trades(count=220)
    history = memory.import_trades(path=a_file(tmp_path, trades[:-3]))
    assert history.learned is not None
    assert (history.learned.plans, history.learned.proposals) == ((), ())
    news = [trade | {"closed_at": clock.now().isoformat()} for trade in trades[-3:]]
    learned = memory.import_trades(path=a_file(tmp_path, news)).learned
    assert learned is not None
    assert learned.proposals
    assert {view.proposal.id for view in memory.list_proposals().proposals} == set(learned.proposals)
    assert memory.list_plans().plans == ()


def test_rows_go_to_the_account_of_their_mode(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.advance(days=9)
    rows = [trade_row(0, T0), trade_row(1, T0 + DAY, mode="sim"), trade_row(2, T0 + 2 * DAY, mode="live")]
    memory.import_trades(path=a_file(tmp_path, rows), mode="paper")
    trades = memory.list_trades(mode="all").trades
    assert [trade.mode for trade in trades] == ["live", "sim", "paper"]
    assert len({trade.account_id for trade in trades}) == 3
    with pytest.raises(Invalid, match=r"mode: .* line 1: deployment 'manual:VolBreakout' is live, not paper"):
        memory.import_trades(path=a_file(tmp_path, [trade_row(3, T0)]), mode="paper", deployment="manual:VolBreakout")
