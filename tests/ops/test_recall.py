"""Recall through the operation: queries, filters, pages, base rates and messages."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.decision import Verdict
from backsight.core.errors import BacksightError, Invalid
from backsight.core.orders import Order
from backsight.core.recall.base_rate import BaseRate, BaseRateLevel
from backsight.memory import Memory, open_memory
from backsight.store.memories import EPISODES
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call
from support import deployed


def days_ago(days: float, **changes: Any) -> dict[str, Any]:
    return a_trade_call(closed_at=T0 - timedelta(days=days), **changes)


def test_the_seeds_recall_works(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    answer = memory.recall_memories(
        symbol="XAUUSD",
        market_context="Gold above the prior high",
        context_regime="trending_up",
        context_atr_d1=100.0,
        strategy_name="VolBreakout",
        memory_types=["episodic", "semantic"],
        limit=10,
    )
    assert [memory.episode.symbol for memory in answer.memories] == ["XAUUSD"]
    assert answer.memories[0].factors.Sim > 0.75


def test_an_empty_memory_says_that_nothing_matches(memory: Memory) -> None:
    answer = memory.recall_memories(symbol="XAUUSD")
    assert answer.memories == ()
    assert answer.message == (
        "Nothing is remembered about XAUUSD in live accounts. "
        "No closed trade is remembered yet; remember_trade adds one."
    )


def test_winners_in_like_contexts_come_first(memory: Memory) -> None:
    memory.remember_trade(**days_ago(1, pnl=-300.0, pnl_r=-1.0))
    memory.remember_trade(**days_ago(2))
    memory.remember_trade(**days_ago(1, context_regime="ranging"))
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up")
    outcomes = [(m.episode.outcome and m.episode.outcome.value, m.episode.context.regime) for m in answer.memories]
    assert outcomes[0] == (3.0, "trending_up")
    assert [m.score for m in answer.memories] == sorted((m.score for m in answer.memories), reverse=True)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {1, 2, 3}),
        ({"strategy_name": "Other"}, {2}),
        ({"tags": ["a"]}, {3}),
        ({"tags": ["a", "b"]}, {3}),
        ({"tags": ["a", "c"]}, set()),
        ({"since": T0 - timedelta(days=2)}, {1, 2}),
        ({"until": T0 - timedelta(days=2)}, {3}),
        ({"deployment": "manual:Other"}, {2}),
        ({"mode": "paper"}, set()),
        ({"mode": "all"}, {1, 2, 3}),
        ({"memory_types": ["semantic"]}, set()),
        ({"direction": "long"}, {1, 2, 3}),
        ({"direction": "short"}, set()),
    ],
)
def test_each_filter_selects_its_episodes(memory: Memory, query: dict[str, Any], expected: set[int]) -> None:
    memory.remember_trade(**days_ago(1))
    memory.remember_trade(**days_ago(2, strategy_name="Other"))
    memory.remember_trade(**days_ago(3, tags=["a", "b"]))
    memory.remember_trade(**days_ago(1, symbol="EURUSD"))
    memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason="narrow")
    answer = memory.recall_memories(symbol="XAUUSD", **query)
    assert {(T0 - m.episode.known_at).days for m in answer.memories} == expected
    assert answer.candidates == len(expected)


def test_a_deployment_brings_its_mode(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main", mode="paper")
    memory.save_strategy(name="VolBreakout")
    memory.deploy(strategy_name="VolBreakout", account="main")
    memory.remember_trade(**a_trade_call(deployment="VolBreakout@main"))
    assert memory.recall_memories(symbol="XAUUSD", mode="live").candidates == 0
    for deployment in ("VolBreakout@main", None):
        answer = memory.recall_memories(symbol="XAUUSD", deployment=deployment)
        assert (answer.candidates, answer.mode) == (1, "paper")


def test_a_period_that_ends_before_it_begins_is_refused(memory: Memory) -> None:
    with pytest.raises(Invalid, match="until: must be after since"):
        memory.recall_memories(symbol="XAUUSD", since=T0, until=T0)


def test_a_loss_in_the_same_context_is_among_the_warnings_whatever_the_winners(memory: Memory) -> None:
    for number in range(12):
        memory.remember_trade(**days_ago(1 + number / 10))
    lost = memory.remember_trade(**days_ago(40, pnl=-900.0, pnl_r=-3.0)).episode_id
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up", limit=5)
    assert [warning.id for warning in answer.warnings] == [lost]
    assert lost not in [memory.id for memory in answer.memories]


def test_the_nearest_are_blind_to_the_outcome(memory: Memory) -> None:
    alike = memory.remember_trade(**days_ago(3, pnl=-300.0, pnl_r=-1.0)).episode_id
    memory.remember_trade(**days_ago(3, context_regime="ranging"))
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up")
    assert answer.nearest[0].id == alike
    assert answer.nearest[0].score == answer.nearest[0].factors.Sim * answer.nearest[0].factors.Rec


def test_the_base_rate_comes_first_and_counts_all_trades_of_the_strategy(memory: Memory) -> None:
    for number in range(30):
        r = 1.0 if number % 3 else -1.0
        memory.remember_trade(**days_ago(1 + number, pnl=100 * r, pnl_r=r, symbol=("XAUUSD", "EURUSD")[number % 2]))
    usual = memory.recall_memories(symbol="XAUUSD", strategy_name="VolBreakout", direction="long").base_rate
    assert usual is not None
    assert [(level.name, level.n) for level in usual.levels] == [("strategy", 30), ("direction", 30), ("symbol", 15)]
    assert usual.headline.name == "direction"
    assert usual.sentence.startswith("only 15 long XAUUSD trades; more broadly: 6")


def test_matching_beliefs_and_plans_are_in_the_answer_and_no_plan_is_triggered(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    belief_id = memory.add_belief(proposition="trends carry", regime="trending_up").belief.belief.id
    memory.add_belief(proposition="ranges do not", regime="ranging", claims="below")
    plan = memory.create_trading_plan(
        trigger_condition={"regime": "trending_up"}, planned_action={"type": "alert"}, reasoning="look twice"
    )
    links = memory.verify_audit().links
    query: dict[str, Any] = {"symbol": "XAUUSD", "deployment": "VolBreakout@main"}
    answer = memory.recall_memories(**query, context_regime="trending_up")
    assert [belief.belief.id for belief in answer.beliefs] == [belief_id]
    assert [each.id for each in answer.plans] == [plan.plan.id]
    assert answer.mood is not None
    assert memory.recall_memories(**query, context_regime="volatile").plans == ()
    assert memory.verify_audit().links == links


def test_in_a_losing_streak_the_mood_changes_the_affect_factor(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    for number in range(3):
        memory.remember_trade(
            **days_ago(3 - number, pnl=-100.0, pnl_r=-1.0, deployment="VolBreakout@main", idempotency_key=str(number))
        )
    for deployment in ("VolBreakout@main", None):
        (first, *_) = memory.recall_memories(symbol="XAUUSD", deployment=deployment).memories
        assert first.factors.Aff == 0.94
    before = memory.recall_memories(symbol="XAUUSD", as_of=T0 - timedelta(days=2))
    assert before.memories[0].factors.Aff == 1.0


def test_words_count_as_one_more_field_of_the_similarity(memory: Memory) -> None:
    memory.remember_trade(**days_ago(1, market_context="Asian range broken at the London open"))
    query: dict[str, Any] = {"symbol": "XAUUSD", "context_regime": "trending_up"}
    sims = [
        memory.recall_memories(**query, market_context=words).nearest[0].factors.Sim
        for words in (None, "the London opening breaks ranges", "a quiet afternoon")
    ]
    assert sims[0] == 1.0
    assert sims[1] == pytest.approx((0.25 + 0.1 * 0.75) / 0.35)
    assert sims[2] == pytest.approx(0.25 / 0.35)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": 0}, "limit: 0 is out of range; give 1 or more"),
        ({"limit": 10_000}, "limit: 10000 is out of range; give 100 or less"),
        ({"memory_types": ["episodical"]}, "memory_types.0: 'episodical' is not known; did you mean 'episodic'?"),
        ({"memory_types": []}, "memory_types:"),
        ({"context": {"sesion": "london"}}, "context.sesion: unknown argument; did you mean 'session'?"),
        ({"context": {"atr_d1": "fifty"}}, "context.atr_d1: 'fifty' is text; give a number"),
        ({"as_of": "2026-06-04T10:00:00"}, "as_of: 2026-06-04T10:00:00 has no time zone; add one"),
        ({"cursor": "nonsense"}, "cursor: is not a cursor; give the next_cursor of the previous page"),
        ({"period_weight": "maybe"}, "period_weight: 'maybe' is text"),
        ({"deployment": "nowhere"}, "deployment: "),
    ],
)
def test_an_invalid_query_is_refused_by_name(memory: Memory, query: dict[str, Any], message: str) -> None:
    with pytest.raises(BacksightError) as refused:
        memory.recall_memories(symbol="XAUUSD", **query)
    assert str(refused.value).startswith(message)


# Pages


def pages(memory: Memory, clock: FakeClock, *, limit: int, **query: Any) -> list[str]:
    """All memories, page by page, while time goes on and more is remembered."""
    ids: list[str] = []
    cursor = None
    while True:
        answer = memory.recall_memories(symbol="XAUUSD", limit=limit, cursor=cursor, **query)
        ids += [each.id for each in answer.memories]
        assert len(answer.memories) <= limit
        cursor = answer.next_cursor
        if cursor is None:
            return ids
        clock.at += timedelta(hours=1)
        memory.remember_trade(**a_trade_call(closed_at=T0 - timedelta(days=2), pnl=9000.0, pnl_r=90.0))


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
@pytest.mark.parametrize("query", [{}, {"period_weight": True, "context_regime": "ranging"}])
def test_all_pages_together_are_the_whole_answer(
    memory: Memory, clock: FakeClock, limit: int, query: dict[str, Any]
) -> None:
    for number in range(7):
        r = (2.0, -1.0, 2.0)[number % 3]
        memory.remember_trade(**days_ago(1 + number // 2, pnl=r * 100, pnl_r=r, idempotency_key=str(number)))
    whole = [each.id for each in memory.recall_memories(symbol="XAUUSD", limit=100, **query).memories]
    assert len(whole) == 7
    assert pages(memory, clock, limit=limit, **query) == whole


def test_a_cursor_of_another_query_is_refused(memory: Memory) -> None:
    for number in range(3):
        memory.remember_trade(**days_ago(1 + number))
    cursor = memory.recall_memories(symbol="XAUUSD", limit=1).next_cursor
    assert cursor is not None
    others: list[dict[str, Any]] = [{"symbol": "EURUSD"}, {"symbol": "XAUUSD", "direction": "long"}]
    for other in others:
        with pytest.raises(Invalid, match="cursor: belongs to another query"):
            memory.recall_memories(**other, cursor=cursor)
    trades = memory.list_trades(limit=1).next_cursor
    with pytest.raises(Invalid, match="cursor: belongs to another query"):
        memory.recall_memories(symbol="XAUUSD", cursor=trades)


# Open trades, and falling results


def test_open_trades_count_at_their_last_mark_and_are_named(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    tick: dict[str, Any] = {"deployment": "VolBreakout@main", "verdict": Verdict(kind="executed")}
    order = Order(symbol="BTC", quantity=2.0, stop_price=95.0, reason="break of the range")
    clock.advance(hours=1)
    first = clock.now()
    after = a_snapshot(a_position(2.0, stop_price=95.0), at=first)
    opened = memory.close_tick(**tick, at=first, before=a_snapshot(at=first), after=after, proposal=order).opened
    clock.advance(hours=1)
    later = a_snapshot(a_position(2.0, stop_price=95.0, mark=97.0), at=clock.now())
    memory.close_tick(**tick | {"verdict": Verdict(kind="noop")}, at=clock.now(), before=later)

    def base_rate(at: datetime) -> BaseRateLevel | None:
        answer = memory.recall_memories(symbol="BTC", strategy_name="VolBreakout", direction="long", as_of=at)
        return None if answer.base_rate is None else answer.base_rate.levels[-1]

    assert base_rate(first - timedelta(microseconds=1)) is None
    marked = [base_rate(first), base_rate(clock.now())]
    assert [level and (level.n, level.open_ids) for level in marked] == [(0, (opened[0].id,))] * 2
    assert [level and level.outcomes[0].mean for level in marked] == [0.0, pytest.approx(-0.6)]
    assert [level and (level.outcomes[0].unit, level.outcomes[0].open) for level in marked] == [("R", 1)] * 2


def test_while_results_fall_the_base_rate_counts_only_trades_since_the_fall(clock: FakeClock) -> None:
    with open_memory("sqlite://", clock=clock) as memory:

        def traded(*outcomes: float) -> None:
            for r in outcomes:
                clock.advance(days=1)
                memory.remember_trade(**a_trade_call(pnl=100.0 * r, pnl_r=r))

        def base_rate(**query: Any) -> BaseRate | None:
            return memory.recall_memories(symbol="XAUUSD", strategy_name="VolBreakout", **query).base_rate

        traded(*[1.0, -0.5] * 60)
        risen = clock.now()
        before = base_rate()
        traded(*[-1.0] * 25)
        fallen = base_rate()
        assert before is not None
        assert fallen is not None
        assert (before.left_out, before.headline.n) == (0, 120)
        assert fallen.left_out >= 115
        assert fallen.headline.n + fallen.left_out == 145
        assert fallen.headline.win_rate == pytest.approx(0.0, abs=0.1)
        assert base_rate(as_of=risen) == before


def test_deleted_rows_are_not_recalled(memory: Memory) -> None:
    for number in range(3):
        memory.remember_trade(**days_ago(1 + number))
    gone = memory.recall_memories(symbol="XAUUSD").nearest[0].id
    with memory.database.writing(memory.owner) as connection:
        connection.execute(EPISODES.table.delete().where(EPISODES.table.c.id == gone))
    assert len(memory.recall_memories(symbol="XAUUSD").nearest) == 2
    assert not memory.verify_audit().intact


def test_an_underlying_joins_symbols_from_the_moment_it_is_known(memory: Memory, clock: FakeClock) -> None:
    for number, symbol in enumerate(["BTC", "BTC/USDT", "BTC-PERP", "ETH"] * 3):
        memory.remember_trade(**days_ago(1 + number, symbol=symbol, pnl_r=-1.0, pnl=-100.0))
    clock.advance(hours=1)
    apart = clock.now()
    clock.advance(hours=1)
    for symbol in ("BTC/USDT", "BTC-PERP"):
        memory.save_instrument(symbol=symbol, underlying="BTC")

    def symbols(symbol: str, **query: Any) -> tuple[set[str], ...]:
        answer = memory.recall_memories(symbol=symbol, limit=20, **query)
        return tuple({each.episode.symbol for each in part} for part in (answer.nearest, answer.memories))

    every = {"BTC", "BTC/USDT", "BTC-PERP"}
    assert [symbols(symbol) for symbol in sorted(every)] == [(every, every)] * 3
    assert symbols("ETH") == ({"ETH"}, {"ETH"})
    assert symbols("BTC", as_of=apart) == symbols("BTC", seen_at=apart) == ({"BTC"}, {"BTC"})
    answer = memory.recall_memories(symbol="BTC-PERP", strategy_name="VolBreakout")
    assert answer.joined == ("BTC", "BTC/USDT")
    assert "Trades of BTC-PERP (with BTC, BTC/USDT) count as one" in answer.message
    assert answer.base_rate is not None
    assert {level.name: level.n for level in answer.base_rate.levels} == {"strategy": 12, "symbol": 9}
    assert len(answer.warnings) == 3
    eth = next(iter(memory.recall_memories(symbol="ETH").nearest)).id
    assert "its symbol is ETH" in memory.explain_recall(memory_id=eth, recall=answer.recall).explanation.sentence
    size = memory.position_size(symbol="BTC-PERP", direction="long", strategy_name="VolBreakout")
    before = memory.position_size(symbol="BTC-PERP", direction="long", strategy_name="VolBreakout", as_of=apart)
    assert [level.n for each in (size, before) for level in each.size.levels if level.name == "symbol"] == [9, 3]
    assert (size.joined, before.joined) == (("BTC", "BTC/USDT"), ())


def test_the_prompt_counts_joined_symbols_and_names_them(memory: Memory) -> None:
    for number, symbol in enumerate(["BTC", "BTC-PERP"] * 6):
        memory.remember_trade(**days_ago(1 + number, symbol=symbol))
    memory.save_instrument(symbol="BTC-PERP", underlying="BTC")
    text = memory.preview_context(deployment="manual:VolBreakout", symbols=["BTC"]).text
    assert "- BTC (with BTC-PERP) now: " in text
    (line,) = [line for line in text.splitlines() if line.startswith("- BTC long: ")]
    assert " of 12 won" in line
