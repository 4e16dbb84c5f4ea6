"""What a tick shows is what the ledger holds right after it, and opening writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.adapters.brokers.paper import PaperTerms
from backsight.core.decision import OpenedTick, Segment, Verdict
from backsight.core.errors import Conflict
from backsight.core.instants import JUST_BEFORE
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Position
from backsight.core.strategies import MemoryOverrides
from backsight.core.trades.mark import PositionMark
from backsight.core.trades.trade import Trade
from backsight.memory import Memory, open_memory
from backsight.ops.ticks import ClosedTick
from backsight.services.deployments import account_of, deployment_named
from backsight.services.market import sorted_bars
from backsight.services.outlook import open_risk
from backsight.services.present_state import PresentState, recorded_state, state_at_tick
from backsight.store import audit
from backsight.store import trades as stored_trades
from backsight.store.view import View
from backsight.testing import T0, FakeClock, a_position, a_snapshot
from ops.test_tick_laws import PATHS, SYMBOLS, TERMS, Ask, Desk24, Hour, Reporting, law
from ops.test_ticks import DEPLOYMENT, EXECUTED, NOOP, a_report, at

MOST = 1_000
FOLDED = ("recent_activity", "recent_trades", "open_positions", "state")
"""The sections that say what is so at the instant of a tick."""


def texts(segments: Sequence[Segment], names: Sequence[str] = FOLDED) -> Mapping[str, str]:
    return {segment.name: segment.text for segment in segments if segment.name in names and segment.text}


class Witness(Desk24):
    """Closes every tick without a decision and compares; orders follow in a second tick of the instant."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.opened: list[tuple[dict[str, Any], OpenedTick]] = []
        self.plan = self.memory.create_trading_plan(
            trigger_condition={"field": "consecutive_losses", "op": ">=", "value": 1},
            planned_action={"type": "alert"},
            reasoning="after a loss",
            expiry_days=900,
            deployment=DEPLOYMENT,
        ).plan

    def tick(self, ask: Ask | None) -> None:
        self.clock.at = self.now
        snapshot = self.broker.snapshot()
        before, _ = self.reported(snapshot, replace(snapshot, fills=()))
        bars, self.new_bars = self.new_bars if self.with_bars else [], []
        self.compare(before, bars)
        if ask is not None:
            order = replace(self.order(ask), reason=f"asked at {self.number}")
            result = self.broker.submit(order)
            rule = getattr(result, "rule", None)
            verdict = Verdict(kind="executed") if rule is None else Verdict(kind="rejected", rule=rule)
            again = replace(before, fills=())
            self.open(sequence=1, before=again, bars=[])
            _, after = self.reported(again, self.broker.snapshot())
            call: dict[str, Any] = {
                "deployment": DEPLOYMENT,
                "at": self.now,
                "sequence": 1,
                "before": again,
                "after": after,
            }
            self.memory.close_tick(**call, proposal=order, verdict=verdict)

    def open(self, **call: Any) -> OpenedTick:
        call |= {"deployment": DEPLOYMENT, "at": self.now, "symbols": list(SYMBOLS)}
        head = self.head()
        opened = self.memory.open_tick(**call)
        assert self.head() == head  # opening writes nothing
        self.opened.append((call, opened))
        return opened

    def head(self) -> object:
        with self.memory.reading() as connection:
            return audit.head(connection, self.memory.owner)

    def compare(self, before: BrokerSnapshot, bars: list[Bar]) -> None:
        """Check that what an open tick shows is what closing it without a decision records."""
        opened, present = self.open(before=before, bars=bars), self.present(before, bars)
        trades = sorted(trade.id for trade in self.trades() if trade.status == "closed")
        closed = self.memory.close_tick(deployment=DEPLOYMENT, at=self.now, before=before, bars=bars, verdict=NOOP)
        with self.memory.reading() as connection:
            view = View(connection, self.memory.owner, self.memory.horizon(self.now, None))
            target = deployment_named(connection, self.memory.owner, DEPLOYMENT)
            state = recorded_state(view, target)
            recent = stored_trades.recent_closed(view, target.id, most=MOST)
        assert [marked(each) for each in present.open_trades] == [marked(each) for each in state.open_trades]
        assert present.mood == state.mood
        assert {trade.id for trade in present.closed} == {trade.id for trade in recent} - set(trades)
        assert {trade.id for trade in closed.closed} <= {trade.id for trade in present.closed}
        assert [present.changes.get(trade.id, trade) for trade in recent] == recent
        preview = self.memory.preview_context(deployment=DEPLOYMENT, as_of=self.now, symbols=list(SYMBOLS))
        assert texts(opened.segments) == texts(preview.segments)
        plans = texts(opened.segments, ("plans",)).get("plans", "")
        assert (self.plan.id in closed.plans) == (self.plan.reasoning in plans)

    def present(self, before: BrokerSnapshot, bars: list[Bar]) -> PresentState:
        with self.memory.reading() as connection:
            target = deployment_named(connection, self.memory.owner, DEPLOYMENT)
            return state_at_tick(
                View(connection, self.memory.owner, self.memory.horizon(self.now - JUST_BEFORE, None)),
                target,
                account_of(connection, target),
                before,
                at=self.now,
                sequence=0,
                unstored=sorted_bars(bars, until=self.now),
                recorded_at=self.memory.now,
            )

    def open_again(self) -> None:
        """Check that every tick, opened again now, shows what it showed then."""
        for call, opened in self.opened:
            again = self.memory.open_tick(**call)
            assert [segment.text for segment in again.segments] == [segment.text for segment in opened.segments]


def marked(pair: tuple[Trade, PositionMark | None]) -> tuple[Any, ...]:
    trade, mark = pair
    return trade, None if mark is None else replace(mark, decision_id="")


def check_path(
    url: str, path: Sequence[Hour], *, terms: PaperTerms, reporting: Reporting, with_bars: bool, seed: int = 0
) -> None:
    clock = FakeClock(T0)
    with open_memory(url, owner="ana", actor="test", clock=clock) as memory:
        desk = Witness(memory, clock, terms=terms, reporting=reporting, with_bars=with_bars, seed=seed)
        desk.live(path)
        desk.open_again()


BUSY = (
    Hour(ask=Ask(quantity=10.0, stop=0.02, target=0.1)),
    Hour(btc=(1.0, 1.01, 1.0, 1.01)),
    Hour(btc=(1.0, 0.95, 0.94, 0.93), ask=Ask(quantity=-7.3, stop=0.1)),
    Hour(btc=(0.99, 0.95, 0.9, 0.85), eth=(1.1, 1.1, 1.1, 1.1), by_hand=(Ask(symbol="ETH", quantity=30.0),)),
    Hour(btc=(1.0, 1.05, 1.18, 1.18), deposit=500.0, ask=Ask(symbol="ETH", quantity=-30.0, stop=0.02)),
    Hour(eth=(1.05, 1.05, 1.1, 1.1), ticked=False),
    Hour(eth=(1.0, 1.0, 1.0, 1.0), ask=Ask(quantity=1.0), by_hand=(Ask(quantity=30.0), Ask(quantity=-30.0))),
    Hour(btc=(0.9, 0.9, 0.9, 0.9)),
)
REPORTING: list[Reporting] = ["in time", "late", "never", "some"]


@pytest.mark.parametrize("reporting", REPORTING)
@pytest.mark.parametrize("with_bars", [True, False])
@pytest.mark.parametrize("position_mode", ["netting", "hedging"])
def test_a_tick_shows_what_it_records(url: str, reporting: Reporting, with_bars: bool, position_mode: Any) -> None:
    terms = PaperTerms(position_mode=position_mode, fee_rate=0.001, funding_rate=0.001, funding_interval_seconds=3600)
    check_path(url, BUSY, terms=terms, reporting=reporting, with_bars=with_bars, seed=3)


@law(25)
@given(terms=TERMS, path=PATHS, reporting=st.sampled_from(REPORTING), with_bars=st.booleans(), seed=st.integers(0, 99))
def test_any_tick_shows_what_it_records(
    terms: PaperTerms, path: tuple[Hour, ...], reporting: Reporting, with_bars: bool, seed: int
) -> None:
    check_path("sqlite://", path, terms=terms, reporting=reporting, with_bars=with_bars, seed=seed)


# A stop since the last tick, and the edges.


class Traders:
    """Two strategies on one account. The first has a long position with a stop; the second watches."""

    def __init__(self, memory: Memory, clock: FakeClock, **settings: Any) -> None:
        self.memory, self.clock = memory, clock
        clock.at = T0
        memory.open_account(venue="x", name="main", currency="USD", mode="paper")
        for name in ("S", "Other"):
            memory.save_strategy(name=name, risk_per_trade=0.01)
            memory.deploy(strategy_name=name, account="main", memory=MemoryOverrides(**settings))
        self.tick(0, [], [LONG], order=Order(symbol="BTC", quantity=2.0, reason="break", stop_price=95.0))
        self.tick(1, [LONG])

    def call(self, hour: float, before: Sequence[Position], **more: Any) -> dict[str, Any]:
        snapshot = a_snapshot(*before, at=at(hour), fills=more.pop("fills", ()))
        return {"deployment": DEPLOYMENT, "at": at(hour), "before": snapshot} | more

    def tick(
        self, hour: float, before: Sequence[Position], after: Sequence[Position] | None = None, **more: Any
    ) -> ClosedTick:
        self.clock.at = max(self.clock.at, at(hour))
        order = more.pop("order", None)
        call = self.call(hour, before, **more)
        then = None if after is None else a_snapshot(*after, at=at(hour))
        return self.memory.close_tick(**call, after=then, proposal=order, verdict=EXECUTED if order else NOOP)

    def open(self, hour: float, before: Sequence[Position], **more: Any) -> Mapping[str, str]:
        self.clock.at = max(self.clock.at, at(hour))
        opened = self.memory.open_tick(**self.call(hour, before, **more), symbols=["BTC"])
        return texts(opened.segments, (*FOLDED, "what_usually_happens"))


LONG = a_position(2.0, stop_price=95.0)
STOPPED = a_report("stop", at(1.5), -2.0, 95.0)


def test_a_stop_since_the_last_tick_is_shown_everywhere_and_counted_nowhere(memory: Memory, clock: FakeClock) -> None:
    desk = Traders(memory, clock)
    before, after = desk.open(2, [LONG]), desk.open(2, [], fills=[STOPPED])
    assert "open_positions" in before
    assert "open_positions" not in after
    assert "recent_trades" not in before
    assert after["recent_trades"].splitlines()[1].startswith("- #1 06-04 11:30 BTC long -1.0R")
    assert "consecutive losing closes: 1" in after["recent_activity"]
    assert after["what_usually_happens"].splitlines()[1:3] == [
        "- no closed trades counted yet: no recommendation, your strategy's own risk applies",
        "- not counted yet: BTC long -1.0R, stopped out 11:30",
    ]
    assert desk.open(2, [LONG]) == before  # nothing was remembered


def test_a_position_shows_its_mark_and_excursions_of_the_instant(memory: Memory, clock: FakeClock) -> None:
    text = Traders(memory, clock).open(2, [replace(LONG, mark=107.0)])["open_positions"]
    assert "mark=107 now +1.40R stop=95 MFE=+$14 / MAE=$0" in text


@pytest.mark.parametrize(("settings", "names"), [({"holdout": 1.0}, {"recent_activity"}), ({"enabled": False}, set())])
def test_withheld_memory_shows_the_present_and_memory_that_is_off_nothing(
    memory: Memory, clock: FakeClock, settings: dict[str, Any], names: set[str]
) -> None:
    assert Traders(memory, clock, **settings).open(2, [], fills=[STOPPED]).keys() == names


def test_the_trade_of_another_strategy_on_the_account_is_not_shown_as_ones_own(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Traders(memory, clock)
    for before, fills in (([LONG], []), ([], [STOPPED])):
        assert not desk.open(2, before, fills=fills, deployment="Other@main").keys() & set(FOLDED)


def test_a_second_tick_of_an_instant_shows_what_the_first_did(memory: Memory, clock: FakeClock) -> None:
    desk = Traders(memory, clock)
    short = a_position(-1.0, symbol="ETH", stop_price=120.0)
    order = Order(symbol="ETH", quantity=-1.0, reason="fade", stop_price=120.0)
    desk.tick(2, [LONG], [LONG, short], order=order, deployment="Other@main")
    first = desk.open(2, [LONG, short], sequence=1)
    assert "ETH" not in first["open_positions"]
    assert "ETH short $100" in desk.open(2, [LONG, short], sequence=1, deployment="Other@main")["open_positions"]
    desk.tick(2, [LONG, short], [short], sequence=1, order=Order(symbol="BTC", quantity=-2.0, reason="enough"))
    assert desk.open(2, [LONG, short], sequence=1) == first
    assert "open_positions" not in desk.open(2, [short], sequence=2)


def test_a_snapshot_that_close_tick_would_refuse_is_refused_before_the_decision(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Traders(memory, clock)
    desk.tick(2, [], fills=[STOPPED])
    for call in (
        desk.call(3, [], fills=[replace(STOPPED, price=90.0)]),
        desk.call(3, []) | {"before": a_snapshot(at=at(1.5))},
    ):
        desk.clock.at = at(3)
        with pytest.raises(Conflict) as opening:
            memory.open_tick(**call)
        with pytest.raises(Conflict) as closing:
            memory.close_tick(**call, verdict=NOOP)
        assert str(opening.value) == str(closing.value)


def test_a_preview_on_a_shared_account_shows_one_state(memory: Memory, clock: FakeClock) -> None:
    desk = Traders(memory, clock)
    desk.tick(2, [], fills=[STOPPED], deployment="Other@main")
    for hour, is_open in ((1, True), (2, False)):
        preview = texts(
            memory.preview_context(deployment=DEPLOYMENT, as_of=at(hour)).segments, ("portfolio", "open_positions")
        )
        assert ("BTC long" in preview["portfolio"], "open_positions" in preview) == (is_open, is_open)


def test_a_closed_position_frees_its_risk(memory: Memory, clock: FakeClock) -> None:
    Traders(memory, clock)
    shares = []
    for before, fills in (([LONG], []), ([], [STOPPED])):
        with memory.reading() as connection:
            target = deployment_named(connection, memory.owner, DEPLOYMENT)
            present = state_at_tick(
                View(connection, memory.owner, memory.horizon(at(2) - JUST_BEFORE, None)),
                target,
                account_of(connection, target),
                a_snapshot(*before, at=at(2), fills=fills),
                at=at(2),
                sequence=0,
                unstored=(),
                recorded_at=at(2),
            )
        shares.append(open_risk(present.open_trades, "S", ("BTC",), "long"))
    assert [each.trades for each in shares] == [1, 0]
    assert [each.share for each in shares] == pytest.approx([0.001, 0.0])
