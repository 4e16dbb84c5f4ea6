"""Two clocks: an answer as of an instant can be repeated later, whatever was learned since."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.adapters.brokers.paper import PaperTerms
from backsight.core.decision import OpenedTick
from backsight.core.errors import NotFound
from backsight.core.instants import JUST_BEFORE
from backsight.core.orders import BrokerSnapshot, ReportedFill
from backsight.memory import Memory
from backsight.testing import FakeClock, a_position, a_snapshot, a_trade_call
from ops.test_tick_laws import PATHS, TERMS, Desk24, Hour, a_store, law
from ops.test_ticks import DEPLOYMENT, Desk, a_bar, a_report, an_order, at

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiaryEntry:
    """The answers right after a tick."""

    as_of: datetime
    seen_at: datetime
    answers: dict[str, Any]


def answers(memory: Memory, trades: list[str], **when: Any) -> dict[str, Any]:
    """The answers to everything that an agent can ask about its past."""
    by_name = {
        "trades": memory.list_trades(limit=100, **when).trades,
        "recent": memory.list_trades(limit=1, **when).trades,
        "activity": memory.get_recent_activity(deployment=DEPLOYMENT, **when),
        "recalled": replace(memory.recall_memories(symbol="BTC", mode="all", limit=100, **when), seen_at=None),
        "deployments": memory.get_my_deployments(detail="trades", **when),
    }
    return by_name | {f"trade {each}": trade_or_none(memory, each, **when) for each in trades}


def trade_or_none(memory: Memory, trade_id: str, **when: Any) -> Any:
    try:
        return memory.get_trade(trade_id=trade_id, **when)
    except NotFound:
        return None


class Diary:
    """Asks everything right after every tick, and again at the end."""

    def __init__(self, memory: Memory, clock: FakeClock, trades: Callable[[], list[str]]) -> None:
        self.memory, self.clock, self.trades = memory, clock, trades
        self.entries: list[DiaryEntry] = []

    def ask(self, as_of: datetime) -> None:
        answered = answers(self.memory, self.trades(), as_of=as_of)
        self.entries.append(DiaryEntry(as_of=as_of, seen_at=self.clock.at, answers=answered))

    def ask_again(self) -> None:
        for entry in self.entries:
            names = [name.removeprefix("trade ") for name in entry.answers if name.startswith("trade ")]
            again = answers(self.memory, names, as_of=entry.as_of, seen_at=entry.seen_at)
            for name, answer in entry.answers.items():
                assert again[name] == answer, (name, entry.as_of)


class LateFees:
    """Fees that a broker charges hours after the trade, for a position that may be closed by then."""

    def __init__(self, desk: Desk24) -> None:
        self.desk, self.number = desk, 0
        self.reported = desk.reported

    def __call__(self, before: BrokerSnapshot, after: BrokerSnapshot) -> tuple[BrokerSnapshot, BrokerSnapshot]:
        before, after = self.reported(before, after)
        self.number += 1
        fee = ReportedFill(
            id=f"fee {self.number}", at=self.desk.now - 90 * MINUTE, sequence=9, kind="fee", symbol="BTC", fee=0.25
        )
        return replace(before, fills=(*before.fills, fee)), after


def check_diary(terms: PaperTerms, path: tuple[Hour, ...], *, seed: int) -> None:
    with a_store() as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, reporting="some", seed=seed)
        desk.reported = LateFees(desk)  # type: ignore[method-assign]
        diary = Diary(memory, clock, lambda: [trade.id for trade in desk.trades()])
        desk.live((*path, Hour(), Hour()), after=lambda: diary.ask(desk.now))
        clock.advance(hours=1)
        late = {"symbol": "BTC", "strategy_name": "S", "mode": "live", "closed_at": desk.now - 2 * HOUR}
        memory.remember_trade(**a_trade_call(**late))
        diary.ask_again()


@law(3)
@given(TERMS, PATHS, st.integers(0, 99))
def test_answers_after_any_tick_are_repeated_at_the_end(terms: PaperTerms, path: tuple[Hour, ...], seed: int) -> None:
    check_diary(terms, path, seed=seed)


@pytest.mark.slow
@law(100)
@given(TERMS, PATHS, st.integers(0, 99))
def test_answers_after_any_tick_of_many_paths_are_repeated_at_the_end(
    terms: PaperTerms, path: tuple[Hour, ...], seed: int
) -> None:
    check_diary(terms, path, seed=seed)


def test_late_fees_and_late_fills_change_no_answer_that_was_given(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    diary = Diary(memory, clock, lambda: [trade.id for trade in desk.trades()])
    for number, tick in enumerate(corrected(desk)):
        tick()
        clock.at += MINUTE
        diary.ask(at(number))
        clock.at += MINUTE
    assert len({str(entry.answers["trades"]) for entry in diary.entries}) > 3
    trade = desk.trade()
    words = {"symbol": "BTC", "strategy_name": "S", "deployment": DEPLOYMENT, "pnl": trade.pnl, "pnl_r": None}
    memory.remember_trade(**a_trade_call(**words, closed_at=trade.closed_at, reflection="too late"))
    assert desk.trade().reflection == "too late"
    diary.ask_again()


def test_a_note_on_a_trade_survives_a_later_fee(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = desk.enter()
    desk.tick(1, [position], [], mark=110.0, order=an_order(-2.0))
    words = {"symbol": "BTC", "strategy_name": "S", "deployment": DEPLOYMENT, "pnl": 20.0, "pnl_r": None}
    clock.at = at(1.5)
    memory.remember_trade(**a_trade_call(**words, reflection="well held", tags=["a"]))
    desk.tick(2, fills=[a_report("late", at(1.5), kind="fee", fee=2.5)])
    trade = desk.trade()
    assert (trade.pnl, trade.reflection, trade.tags) == (17.5, "well held", ("a",))
    read = memory.get_trade(trade_id=trade.id, as_of=at(1.25))
    assert (read.trade.pnl, read.trade.reflection) == (20.0, None)  # type: ignore[union-attr]


def corrected(desk: Desk) -> Iterator[Callable[[], object]]:
    """Ticks that open and close a trade and then get late reports: two fills, a fee and funding."""
    position = a_position(2.0, average_price=99.0)
    yield lambda: desk.tick(0, [], [position], order=an_order(2.0))
    yield lambda: desk.tick(1, [position], fills=[a_report("1", at(0), 1.0, 98.0)])
    yield lambda: desk.tick(2, [position], [], mark=104.0, order=an_order(-2.0))
    yield lambda: desk.tick(3, fills=[a_report("2", at(0), 1.0, 100.0), a_report("3", at(2), -2.0, 103.0)])
    yield lambda: desk.tick(4, fills=[a_report("4", at(3.5), kind="fee", fee=9.0)])
    yield lambda: desk.tick(5, fills=[a_report("5", at(4.5), kind="funding", amount=-1.0)])


def opened(memory: Memory, hours: float, **more: Any) -> OpenedTick:
    before = a_snapshot(at=at(hours))
    return memory.open_tick(deployment=DEPLOYMENT, at=at(hours), before=before, symbols=["BTC"], **more)


def test_a_tick_opened_again_gives_the_same_prompt_byte_for_byte(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    prompts: list[OpenedTick] = []
    for number, tick in enumerate(corrected(desk)):
        clock.at = at(number)
        prompts.append(opened(memory, number))
        clock.at += MINUTE
        tick()
        clock.at += MINUTE
    clock.at = at(9)
    memory.remember_trade(**a_trade_call(symbol="BTC", strategy_name="S", closed_at=at(1.5)))
    assert [opened(memory, hours, seen_at=each.seen_at) for hours, each in enumerate(prompts)] == prompts
    assert len({each.text for each in prompts}) > 2


def test_a_trade_remembered_late_is_known_from_its_close_and_seen_from_its_recording(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock)
    desk.enter(0)
    desk.tick(2)
    clock.at = at(3)
    before = answers(memory, [], as_of=at(2))
    clock.at = at(4)
    trade = memory.remember_trade(**a_trade_call(symbol="BTC", strategy_name="S", closed_at=at(1))).trade
    assert answers(memory, [], as_of=at(2), seen_at=at(3)) == before
    assert trade in memory.list_trades(as_of=at(1)).trades
    assert trade not in memory.list_trades(as_of=at(1) - JUST_BEFORE).trades


def test_a_withdrawn_trade_is_still_there_as_of_an_earlier_instant(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    desk.tick(0)
    fills = [a_report("b", at(0.5), -1.0, 100.0), a_report("c", at(0.75), 1.0, 90.0)]
    desk.tick(1, [a_position(1.0)], fills=fills)
    (short,) = memory.list_trades().trades
    desk.tick(2, [a_position(1.0)], fills=[a_report("a", at(0.25), 1.0, 100.0)])
    assert memory.list_trades(as_of=at(1)).trades == (short,)
    assert short.id not in {trade.id for trade in memory.list_trades().trades}
    with pytest.raises(NotFound):
        memory.get_trade(trade_id=short.id)


def test_finer_bars_recorded_later_change_no_context_of_an_earlier_prompt(memory: Memory, clock: FakeClock) -> None:
    Desk(memory, clock)
    hours = [a_bar(n, 100.0, 100.0 + (5 if n < -200 else 1), 99.0, 100.0) for n in range(-1200, 0)]
    memory.record_bars(bars=hours)
    first = opened(memory, 0)
    clock.at = at(1)
    memory.record_bars(bars=[a_bar(0.5, 100.0, seconds=60)])
    assert opened(memory, 0, seen_at=at(0)) == first


def test_plans_in_a_prompt_that_is_shown_again_follow_the_mood_that_was_known(memory: Memory, clock: FakeClock) -> None:
    Desk(memory, clock)
    memory.create_trading_plan(
        trigger_condition={"consecutive_losses": 1}, planned_action={"type": "skip_trade"}, reasoning="cool down"
    )
    clock.at = at(5)
    prompt = opened(memory, 5)
    clock.at = at(9)
    lost = {"symbol": "BTC", "strategy_name": "S", "deployment": DEPLOYMENT, "pnl": -10.0, "pnl_r": -1.0}
    memory.remember_trade(**a_trade_call(**lost, opened_at=at(2), closed_at=at(3)))
    assert "skip" not in prompt.text
    assert "skip" in opened(memory, 5).text
    assert opened(memory, 5, seen_at=prompt.seen_at) == prompt
    preview = memory.preview_context(deployment=DEPLOYMENT, symbols=["BTC"], as_of=at(5), seen_at=prompt.seen_at)
    assert "skip" not in str(preview.segments)
