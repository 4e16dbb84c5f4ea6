"""An answer as of an instant is that of a store which never held what came later, to the byte."""

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

HOME = "VolBreakout@main"
REGIMES = ("trending_up", "ranging", None)
TEXTS = ("London broke the range", "quiet, then a sweep of the low", None)
ASKING = T0 + timedelta(days=60)


@dataclass(frozen=True)
class Event:
    """Something that becomes known at a day, and is told so many days later."""

    what: str
    known: int
    late: int
    number: int
    """Which trade, and which of a few forms."""

    @property
    def recorded(self) -> int:
        return self.known + self.late


def traded(memory: Memory, event: Event) -> None:
    r = (event.number * 7 % 11 - 5) / 2
    memory.remember_trade(
        **a_trade_call(
            closed_at=T0 + timedelta(days=event.known),
            pnl=r * 100.0,
            pnl_r=r if event.number % 4 else None,
            symbol=("XAUUSD", "EURUSD")[event.number % 5 == 0],
            strategy_name="VolBreakout" if event.number % 3 else "Other",
            deployment=HOME if event.number % 3 == 1 else None,
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
    """The trade that was told last, by now."""
    found = memory.list_trades(limit=100).trades
    return max(found, key=lambda trade: (trade.created_at, trade.id), default=None)


def annotated(memory: Memory, event: Event) -> None:
    trade = last_trade(memory)
    if trade is not None:
        memory.annotate_trade(trade_id=trade.id, confidence=event.number % 5 / 4, market_context="a sweep, then back")


def put_away(memory: Memory, event: Event) -> None:
    trade = last_trade(memory)
    if trade is not None:
        episode = memory.get_trade(trade_id=trade.id).episode
        assert episode is not None
        memory.archive_episode(episode_id=episode.id, restore=bool(event.number % 2))


def planned(memory: Memory, event: Event) -> None:
    memory.create_trading_plan(
        trigger_condition={"regime": ("trending_up", "ranging")[event.number % 2]},
        planned_action={"type": "alert"},
        reasoning="look twice",
        deployment=HOME,
        idempotency_key=name_of(event),
    )


def decided(memory: Memory, event: Event) -> None:
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
    "trade": traded,
    "annotate": annotated,
    "archive": put_away,
    "plan": planned,
    "decide": decided,
    "equity": lambda memory, event: memory.record_equity(equity=10_000.0 - 500.0 * (event.known % 5), account="main"),
    "belief": lambda memory, event: memory.add_belief(
        proposition=f"longs carry {name_of(event)}", symbol="XAUUSD", direction="long"
    ),
    "reflect": lambda memory, _: memory.reflect(deployment=HOME),
}
OF_THE_MOMENT = [name for name in HAPPENINGS if name != "trade"]
TRADES = st.builds(Event, st.just("trade"), st.integers(0, 30), st.integers(0, 12), st.integers(0, 30))
OTHERS = st.builds(Event, st.sampled_from(OF_THE_MOMENT), st.integers(0, 30), st.just(0), st.integers(0, 30))
EVENTS = st.lists(TRADES | TRADES | OTHERS, max_size=14, unique_by=name_of)
QUERIES: list[dict[str, Any]] = [
    {"context_regime": "trending_up", "direction": "long", "market_context": "the range broke"},
    {"strategy_name": "VolBreakout", "mode": "all", "period_weight": True, "limit": 3, "context_regime": "ranging"},
    {"deployment": HOME, "context": {"regime": "ranging", "drawdown_pct": 0.05}, "tags": ["a"]},
]


def answers(events: list[Event], others: list[Event], **when: Any) -> list[str]:
    """What is answered after these events, beside those of another owner."""
    clock = FakeClock(T0)
    with open_memory("sqlite://", clock=clock) as memory:
        deployed(memory)
        stranger = Memory(database=memory.database, clock=clock, owner="eve", actor="test")
        deployed(stranger)
        told = [(event, memory) for event in events] + [(event, stranger) for event in others]
        for event, whose in sorted(told, key=lambda each: (each[0].recorded, each[0].known, name_of(each[0]))):
            clock.at = max(clock.at, T0 + timedelta(days=event.recorded))
            HAPPENINGS[event.what](whose, event)
        clock.at = ASKING
        found: list[Any] = [memory.recall_memories(symbol="XAUUSD", **asked, **when) for asked in QUERIES]
        found += [
            memory.explain_recall(memory_id=each.id, recall=answer.recall)
            for answer in found
            for each in answer.nearest[:2]
        ]
        for strategy in ("VolBreakout", "Other"):
            for mode in ("live", "paper"):
                asked = {"symbol": "XAUUSD", "direction": "long", "strategy_name": strategy, "mode": mode}
                found.append(sized(memory, **asked, **when))
        found += [
            memory.list_lessons(deployment=HOME, **when),
            memory.compare_lessons(strategy_name="VolBreakout", **when),
        ]
        found.append(memory.review_period(deployment=HOME, period="monthly", **when))
        return [canonical_json(plain(answer)) for answer in found]


def sized(memory: Memory, **asked: Any) -> Any:
    try:
        return memory.position_size(**asked)
    except BacksightError as error:
        return str(error)


@settings(max_examples=20)
@given(events=EVENTS, others=st.lists(TRADES, max_size=4), at=st.integers(0, 40), seen=st.none() | st.integers(0, 45))
def test_nothing_looks_ahead(events: list[Event], others: list[Event], at: int, seen: int | None) -> None:
    when = {"as_of": T0 + timedelta(days=at), "seen_at": None if seen is None else T0 + timedelta(days=seen)}
    visible = [event for event in events if event.known <= at and (seen is None or event.recorded <= seen)]
    assert answers(events, others, **when) == answers(visible, [], **when)
