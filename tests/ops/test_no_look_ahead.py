"""An answer as of an instant equals, byte for byte, that of a store which never held anything later."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.errors import BacksightError
from backsight.core.ids import canonical_json, plain
from backsight.memory import Memory, open_memory
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
REGIMES = ("trending_up", "ranging", None)
TEXTS = ("London broke the range", "quiet, then a sweep of the low", None)
ASKING = T0 + timedelta(days=60)


@dataclass(frozen=True)
class Event:
    """Something that becomes known on a day and is recorded so many days later."""

    what: str
    known: int
    late: int
    number: int
    """Identifies the event and selects its variant."""

    @property
    def recorded(self) -> int:
        return self.known + self.late


def remember_trade(memory: Memory, event: Event) -> None:
    r = (event.number * 7 % 11 - 5) / 2
    memory.remember_trade(
        **a_trade_call(
            closed_at=T0 + timedelta(days=event.known),
            pnl=r * 100.0,
            pnl_r=r if event.number % 4 else None,
            symbol=("XAUUSD", "EURUSD")[event.number % 5 == 0],
            strategy_name="VolBreakout" if event.number % 3 else "Other",
            deployment=DEPLOYMENT if event.number % 3 == 1 else None,
            direction=("long", "short")[event.number % 2],
            context_regime=REGIMES[event.number % 3],
            market_context=TEXTS[event.number % 3],
            tags=["a"] if event.number % 2 else [],
            idempotency_key=name_of(event),
        )
    )


def name_of(event: Event) -> str:
    return f"{event.known} {event.late} {event.number}"


def last_trade(memory: Memory) -> Any:
    """The trade that was recorded last."""
    trades = memory.list_trades(limit=100, mode="all").trades
    return max(trades, key=lambda trade: (trade.created_at, trade.id), default=None)


def annotate_trade(memory: Memory, event: Event) -> None:
    trade = last_trade(memory)
    if trade is not None:
        memory.annotate_trade(trade_id=trade.id, confidence=event.number % 5 / 4, market_context="a sweep, then back")


def archive_episode(memory: Memory, event: Event) -> None:
    trade = last_trade(memory)
    if trade is not None:
        episode = memory.get_trade(trade_id=trade.id).episode
        assert episode is not None
        memory.archive_episode(episode_id=episode.id, restore=bool(event.number % 2))


def create_plan(memory: Memory, event: Event) -> None:
    memory.create_trading_plan(
        trigger_condition={"regime": ("trending_up", "ranging")[event.number % 2]},
        planned_action={"type": "alert"},
        reasoning="look twice",
        deployment=DEPLOYMENT,
        idempotency_key=name_of(event),
    )


def record_decision(memory: Memory, event: Event) -> None:
    memory.record_decision(
        symbol="XAUUSD",
        direction="long",
        strategy_name="VolBreakout",
        horizon_hours=24.0,
        reasoning="would, may not",
        recalls=[memory.recall_memories(symbol="XAUUSD", limit=2).recall],
        idempotency_key=name_of(event),
    )


HAPPENINGS: dict[str, Callable[[Memory, Event], object]] = {
    "trade": remember_trade,
    "annotate": annotate_trade,
    "archive": archive_episode,
    "plan": create_plan,
    "decide": record_decision,
    "equity": lambda memory, event: memory.record_equity(equity=10_000.0 - 500.0 * (event.known % 5), account="main"),
    "belief": lambda memory, event: memory.add_belief(
        proposition=f"longs carry {name_of(event)}", symbol="XAUUSD", direction="long"
    ),
    "reflect": lambda memory, _: memory.reflect(deployment=DEPLOYMENT),
}
IMMEDIATE = [name for name in HAPPENINGS if name != "trade"]
TRADES = st.builds(Event, st.just("trade"), st.integers(0, 30), st.integers(0, 12), st.integers(0, 30))
OTHERS = st.builds(Event, st.sampled_from(IMMEDIATE), st.integers(0, 30), st.just(0), st.integers(0, 30))
EVENTS = st.lists(TRADES | TRADES | OTHERS, max_size=14, unique_by=name_of)
QUERIES: list[dict[str, Any]] = [
    {},
    {"strategy_name": "Other", "memory_types": ["episodic", "procedural"]},
    {"context_regime": "trending_up", "direction": "long", "market_context": "the range broke"},
    {"strategy_name": "VolBreakout", "mode": "all", "period_weight": True, "limit": 3, "context_regime": "ranging"},
    {"deployment": DEPLOYMENT, "context": {"regime": "ranging", "drawdown_pct": 0.05}, "tags": ["a"]},
]


def answers(events: list[Event], others: list[Event], **when: Any) -> list[str]:
    """The answers after these events, in a store that also holds the events of another owner."""
    clock = FakeClock(T0)
    with open_memory("sqlite://", clock=clock) as memory:
        deployed(memory)
        stranger = Memory(database=memory.database, clock=clock, owner="eve", actor="test")
        deployed(stranger)
        occurrences = [(event, memory) for event in events] + [(event, stranger) for event in others]
        for event, store in sorted(occurrences, key=lambda each: (each[0].recorded, each[0].known, name_of(each[0]))):
            clock.at = max(clock.at, T0 + timedelta(days=event.recorded))
            HAPPENINGS[event.what](store, event)
        clock.at = ASKING
        results: list[Any] = [memory.recall_memories(symbol="XAUUSD", **query, **when) for query in QUERIES]
        results += [
            memory.explain_recall(memory_id=each.id, recall=answer.recall)
            for answer in results
            for each in answer.nearest[:2]
        ]
        for strategy in ("VolBreakout", "Other"):
            for mode in ("live", "paper"):
                query = {"symbol": "XAUUSD", "direction": "long", "strategy_name": strategy, "mode": mode}
                results.append(position_size(memory, **query, **when))
        results += [
            memory.list_lessons(deployment=DEPLOYMENT, **when),
            memory.compare_lessons(strategy_name="VolBreakout", **when),
            memory.list_trades(**when),
            memory.list_beliefs(**when),
            memory.get_behavioral_analysis(**when),
        ]
        results.append(memory.review_period(deployment=DEPLOYMENT, period="monthly", **when))
        return [canonical_json(plain(answer)) for answer in results]


def position_size(memory: Memory, **query: Any) -> Any:
    try:
        return memory.position_size(**query)
    except BacksightError as error:
        return str(error)


@settings(max_examples=20)
@given(
    events=EVENTS, others=st.lists(TRADES, max_size=4), day=st.integers(0, 40), seen_day=st.none() | st.integers(0, 45)
)
def test_no_answer_depends_on_later_events(
    events: list[Event], others: list[Event], day: int, seen_day: int | None
) -> None:
    when = {"as_of": T0 + timedelta(days=day), "seen_at": None if seen_day is None else T0 + timedelta(days=seen_day)}
    visible = [event for event in events if event.known <= day and (seen_day is None or event.recorded <= seen_day)]
    assert answers(events, others, **when) == answers(visible, [], **when)
