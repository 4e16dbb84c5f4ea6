"""What became of decisions: by bars, late bars and the owner; and how an agent reviews them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.agents.outcomes import state_at
from backsight.core.decision import Verdict
from backsight.core.errors import Invalid, Refused
from backsight.core.market import Bar
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory
from backsight.services import decision_review
from backsight.services.withheld_memory import withholds_memory
from backsight.store.outcomes import outcomes_of
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

AGENT: dict[str, Any] = {"deployment": "VolBreakout@main"}
CARD: dict[str, Any] = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}


def decided(memory: Memory, **changes: Any) -> Any:
    """A run with a trade decision."""
    card: dict[str, Any] = {"card_type": "trade_decision", "result": CARD | changes}
    return memory.record_run(**AGENT, prompt="Look.", output="o", **card).run


def bar(minutes: int, low: float, high: float, *, seconds: int = 300, opens: float | None = None) -> Bar:
    opened = T0 + timedelta(minutes=minutes)
    first = low if opens is None else opens
    return Bar(
        symbol="BTC", interval_seconds=seconds, opened_at=opened, open=first, high=high, low=low, close=high, volume=1.0
    )


def state(memory: Memory, run: Any, as_of: datetime | None = None) -> Any:
    with memory.reading() as connection:
        return state_at(outcomes_of(connection, "ana", run.id), as_of or memory.clock.now())


def test_bars_decide_a_decision_as_they_are_recorded(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    run = decided(memory)
    assert state(memory, run) is None
    clock.advance(minutes=5)
    memory.record_bars(bars=[bar(0, 99.0, 101.0)])
    assert (state(memory, run).status, state(memory, run).fill) == ("active", 100.0)
    clock.advance(minutes=5)
    memory.record_bars(bars=[bar(5, 101.0, 111.0)])
    assert (state(memory, run).status, state(memory, run).outcome_r) == ("resolved", 2.0)
    assert state(memory, run, T0 + timedelta(minutes=6)).status == "active"
    assert memory.get_run(run=run.id).run == run
    assert memory.verify_audit().passed


def test_a_resolved_card_is_recalled_and_counts_in_base_rates_only_if_asked_for(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    decided(memory, summary="range break", confidence=80)
    clock.advance(minutes=10)
    memory.record_bars(bars=[bar(0, 99.0, 101.0), bar(5, 101.0, 111.0)])
    answer = memory.recall_memories(symbol="BTC", strategy_name="VolBreakout", **AGENT)
    (recalled,) = answer.memories
    assert (recalled.episode.kind, recalled.episode.confidence) == ("call", 0.8)
    assert recalled.episode.outcome is not None
    assert (recalled.episode.outcome.value, recalled.episode.outcome.unit) == (2.0, "R")
    assert answer.base_rate is None or answer.base_rate.levels[0].n == 0
    asked = memory.recall_memories(symbol="BTC", strategy_name="VolBreakout", **AGENT, with_calls=True).base_rate
    assert asked is not None
    assert asked.levels[0].n == 1
    for number in range(12):
        memory.remember_trade(**a_trade_call(**AGENT, symbol="BTC", idempotency_key=str(number)))
    size: dict[str, Any] = {"symbol": "BTC", "direction": "long", "strategy_name": "VolBreakout"}
    before = memory.position_size(**size, **AGENT).size
    decided(memory, entry=112.0, target=120.0, stop=110.0)
    clock.advance(minutes=10)
    memory.record_bars(bars=[bar(10, 111.0, 113.0), bar(15, 112.0, 125.0)])
    assert memory.position_size(**size, **AGENT).size == before
    assert memory.position_size(**size, **AGENT, with_calls=True).size != before


def test_late_bars_revise_the_outcome_and_the_former_is_kept(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    run = decided(memory)
    clock.advance(hours=3)
    memory.record_bars(bars=[bar(0, 99.0, 101.0, seconds=3600), bar(60, 101.0, 111.0, seconds=3600)])
    first, seen = state(memory, run), clock.now()
    assert first.outcome_r == 2.0
    clock.advance(hours=1)
    memory.record_bars(bars=[bar(0, 99.0, 101.0), bar(5, 94.0, 99.0, opens=98.0)])
    assert (state(memory, run).outcome_r, state(memory, run).revision) == (-1.0, 1)
    assert state(memory, run).known_at == T0 + timedelta(minutes=10)
    with memory.reading() as connection:
        rows = outcomes_of(connection, "ana", run.id)
    assert [row for row in rows if row.revision == 0][-1] == first
    then = memory.get_my_decisions(**AGENT, as_of=seen, seen_at=seen)
    assert then.decisions[0].outcome_r == 2.0
    assert memory.get_my_decisions(**AGENT).decisions[0].outcome_r == -1.0
    recalled = memory.recall_memories(symbol="BTC", strategy_name="VolBreakout", **AGENT).memories
    assert [each.episode.outcome.value for each in recalled if each.episode.outcome] == [-1.0]
    assert memory.resolve_decisions().changed == 0


def test_the_owner_wins_over_bars(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    run = decided(memory)
    clock.advance(minutes=10)
    memory.record_bars(bars=[bar(0, 99.0, 101.0), bar(5, 94.0, 99.0, opens=98.0)])
    assert state(memory, run).outcome_r == -1.0
    clock.advance(minutes=1)
    settled = memory.settle_decision(run=run.id[:8], entry=100.0, exit=104.0).outcome
    assert (settled.source, settled.outcome_r) == ("owner", 0.8)
    clock.advance(minutes=30)
    memory.record_bars(bars=[bar(10, 94.0, 120.0)])
    memory.resolve_decisions()
    assert state(memory, run).outcome_r == 0.8
    assert state(memory, run, T0 + timedelta(minutes=10)).outcome_r == -1.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"decision": "WAIT"}, "no position"),
        ({"target": 90.0}, "a LONG needs"),
        ({"stop": None}, "the stop is missing"),
        ({"symbol": ""}, "symbol is missing"),
        ({"decision": "MAYBE"}, "does not fit"),
    ],
)
def test_what_cannot_be_reached_is_not_applicable_with_its_reason(
    memory: Memory, change: dict[str, Any], reason: str
) -> None:
    deployed(memory)
    run = decided(memory, **change)
    assert state(memory, run).status == "not_applicable"
    assert reason in state(memory, run).reason
    with pytest.raises(Refused, match="no levels"):
        memory.settle_decision(run=run.id, entry=1.0, exit=2.0)


def test_an_entry_that_is_not_touched_expires_by_the_timeframe_of_the_card(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    short, long = decided(memory), decided(memory, timeframe="1h")
    clock.advance(hours=3)
    memory.record_bars(bars=[bar(5 * number, 104.0, 105.0) for number in range(30)])
    assert (state(memory, short).status, state(memory, long)) == ("expired", None)


@pytest.mark.parametrize("late_first", [False, True])
def test_bars_that_begin_too_late_do_not_decide_where_longer_bars_do(
    memory: Memory, clock: FakeClock, late_first: bool
) -> None:
    deployed(memory)
    run = decided(memory)
    clock.advance(days=12)
    hours = [bar(0, 99.0, 101.0, seconds=3_600), bar(60, 94.0, 101.0, seconds=3_600)]
    late = [bar(14_400, 99.0, 101.0), bar(14_405, 101.0, 111.0)]
    for bars in (late, hours) if late_first else (hours, late):
        memory.record_bars(bars=bars)
    memory.resolve_decisions()
    assert state(memory, run).outcome_r == -1.2


def test_a_settlement_at_a_price_that_cannot_be_is_refused(memory: Memory) -> None:
    deployed(memory)
    run = decided(memory)
    with pytest.raises(Invalid, match=r"exit: 1e.308 is 2.0e.307R from the entry 100; check both prices"):
        memory.settle_decision(run=run.id, entry=100.0, exit=1e308)


def test_a_tick_resolves_decisions_too(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    run = decided(memory)
    clock.advance(minutes=10)
    memory.close_tick(
        **AGENT,
        at=clock.now(),
        before=a_snapshot(at=clock.now()),
        bars=[bar(0, 99.0, 101.0), bar(5, 101.0, 111.0)],
        verdict=Verdict(kind="noop", detail="quiet"),
    )
    assert state(memory, run).outcome_r == 2.0


def test_a_review_has_one_line_for_each_decision_and_folds_equal_no_ops(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    decided(memory)
    clock.advance(minutes=10)
    memory.record_bars(bars=[bar(0, 99.0, 101.0), bar(5, 101.0, 111.0)])
    for _ in range(3):
        clock.advance(hours=1)
        decided(memory, decision="WAIT", summary="range unresolved")
    clock.advance(days=2)
    review = memory.get_my_decisions(**AGENT)
    assert review.lines == ("2d ago · BTC · WAIT ×3 · range unresolved", "2d ago · BTC · LONG · +2.00R")
    assert review.tally.sentence.startswith("1 of 1 right, 100% (90%:")
    assert "1 of 1 right" in review.message
    assert len(memory.get_my_decisions(**AGENT, limit=1).lines) == 1


def test_a_review_reads_past_as_many_equal_no_ops_as_there_are(
    memory: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(memory)
    decided(memory)
    for _ in range(12):
        clock.advance(minutes=5)
        decided(memory, decision="WAIT", summary="range unresolved")
    monkeypatch.setattr(decision_review, "READ", 2)
    lines = memory.get_my_decisions(**AGENT, limit=2).lines
    assert lines == (
        "0m ago · BTC · WAIT ×12 · range unresolved",
        "1h ago · BTC · LONG · not judged: no bars of BTC are stored",
    )
    monkeypatch.setattr(decision_review, "MOST_READ", 10)
    assert memory.get_my_decisions(**AGENT).lines == ("0m ago · BTC · WAIT ×10 or more · range unresolved",)


def test_a_decision_that_is_not_judged_says_why(memory: Memory) -> None:
    deployed(memory)
    decided(memory, entry=None)
    (line,) = memory.get_my_decisions(**AGENT).lines
    assert line == "0m ago · BTC · LONG · not judged: the entry is missing"


def test_bars_of_later_do_not_change_why_a_decision_was_not_judged(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    decided(memory)
    before = memory.get_my_decisions(**AGENT)
    clock.advance(minutes=5)
    memory.record_bars(bars=[bar(0, 105.0, 106.0)])
    assert memory.get_my_decisions(**AGENT, as_of=before.as_of) == before
    assert memory.get_my_decisions(**AGENT).lines == ("5m ago · BTC · LONG · not filled yet",)


def test_ticks_are_reviewed_as_decisions(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    for _ in range(2):
        clock.advance(hours=1)
        memory.close_tick(
            **AGENT, at=clock.now(), before=a_snapshot(at=clock.now()), verdict=Verdict(kind="noop", detail="quiet")
        )
    assert memory.get_my_decisions(**AGENT).lines == ("0m ago · noop ×2 · quiet",)


def test_the_prompt_reviews_decisions_only_where_the_owner_wants_it(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    decided(memory, decision="WAIT", summary="range unresolved " * 20)
    for number in range(8):
        clock.advance(hours=1)
        decided(memory, decision="WAIT", summary=f"reason {number} " * 12)

    def section() -> list[str]:
        prompt = memory.preview_context(**AGENT)
        return [segment.text for segment in prompt.segments if segment.name == "decisions_under_review"]

    assert section() == []
    memory.configure_deployment(**AGENT, review_decisions=True)
    (text,) = section()
    assert text.startswith("## Your last decisions\n- 0m ago · BTC · WAIT · reason 7")
    tokens = [each for each in memory.preview_context(**AGENT).tokens if each.name == "decisions_under_review"]
    assert tokens[0].tokens <= 120


def test_nothing_to_review_says_what_would_be(memory: Memory) -> None:
    deployed(memory)
    assert "record_run" in memory.get_my_decisions(**AGENT).message


def test_on_a_holdout_day_a_review_says_that_memory_is_withheld(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    deployment = memory.deploy(
        strategy_name="VolBreakout", account="main", name="half", memory=MemoryOverrides(holdout=0.5)
    ).deployment
    memory.record_run(
        deployment="half", prompt="Look.", output="o", card_type="trade_decision", result=CARD | {"decision": "WAIT"}
    )
    while not withholds_memory(deployment, clock.now()):
        clock.advance(days=1)
    review = memory.get_my_decisions(deployment="half")
    assert (review.lines, review.tally.resolved) == ((), 0)
    assert review.message.startswith("Memory is withheld today")
    assert "give as_of" in review.message
    assert len(memory.get_my_decisions(deployment="half", as_of=clock.now()).lines) == 1
