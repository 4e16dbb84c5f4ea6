"""The behavioral analysis: habits and drift with their sample sizes, none from too few trades, at any instant."""

import random
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

import pytest

from backsight.core.errors import NotFound
from backsight.core.memory.drift_report import Drift
from backsight.core.memory.estimates import Estimate
from backsight.core.memory.procedural import Figure, Habits
from backsight.memory import Memory, open_memory
from backsight.ops.state import BehavioralAnalysis
from backsight.services.behavior import Behavior, VersionShare
from backsight.services.learning import LearningReport
from backsight.testing import T0, FakeClock, a_position, a_trade_call
from ops.test_ticks import Desk, a_report, an_order, at
from support import deployed

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
DEPLOYMENT = "VolBreakout@main"
UNKNOWN = Figure(value=None, n=0)
NOT_ESTIMATED = Estimate(value=None, n=0)
IN_TURN = (1.0, -1.0) * 6


@pytest.fixture
def quick(clock: FakeClock) -> Iterator[Memory]:
    """A memory for many trades."""
    with open_memory("sqlite://", owner="ana", actor="test", clock=clock) as opened:
        yield opened


def traded(
    memory: Memory, clock: FakeClock, results: Iterable[float], *, hours: float = 1.0, **changes: Any
) -> list[LearningReport]:
    """Remember one trade a day, each with its result in R and held for so many hours; return what each changed."""
    return [one_traded(memory, clock, r, hours=hours, **changes) for r in results]


def one_traded(memory: Memory, clock: FakeClock, r: float, *, hours: float = 1.0, **changes: Any) -> LearningReport:
    clock.advance(days=1)
    fields: dict[str, Any] = {"pnl": 100 * r, "pnl_r": r, "opened_at": clock.now() - hours * HOUR}
    learned = memory.remember_trade(**a_trade_call(**(fields | changes))).learned
    assert learned is not None
    return learned


def sized(memory: Memory, clock: FakeClock, *, after_win: float, after_loss: float, by: str = "size") -> Habits:
    """Habits of 21 trades, won and lost in turn, whose size (or confidence) depends on the result before."""
    for n in range(21):
        answer = after_win if n % 2 else after_loss
        one_traded(memory, clock, -1.0 if n % 2 else 1.0, deployment=DEPLOYMENT, entry_price=100.0, **{by: answer})
    return the_only(memory).habits


def the_only(memory: Memory, **arguments: Any) -> Behavior:
    (behavior,) = memory.get_behavioral_analysis(**arguments).behaviors
    return behavior


def drift_of(behavior: Behavior, series: str) -> Drift:
    return next(each for each in behavior.drift if each.series == series)


def approximately(value: float, n: int) -> tuple[Any, int]:
    return pytest.approx(value), n


def value_and_n(figure: Figure | Estimate) -> tuple[float | None, int]:
    return figure.value, figure.n


def test_without_trades_there_are_no_behaviors(memory: Memory) -> None:
    analysis = memory.get_behavioral_analysis()
    assert (analysis.behaviors, analysis.mode, analysis.as_of) == ((), "live", T0)
    message = "No closed live trades match. No closed trade is remembered yet; remember_trade adds one."
    assert analysis.message == message
    with pytest.raises(NotFound, match="deployment: no deployment 'nowhere'"):
        memory.get_behavioral_analysis(deployment="nowhere")


def test_fewer_than_ten_trades_give_no_figures(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.record_equity(account="main", equity=100_000.0)
    learned = traded(memory, clock, IN_TURN[:9], deployment=DEPLOYMENT, size=1.0)
    few = the_only(memory).habits
    assert [each.habits for each in learned] == list(range(1, 10))
    assert few.win_rate == few.outcomes["R"] == few.hold_seconds == few.size_variation == Figure(value=None, n=9)
    assert few.disposition_effect == Estimate(value=None, n=9)
    assert few.loss_aversion == few.recency_bias == Estimate(value=None, n=8)
    traded(memory, clock, [1.0], deployment=DEPLOYMENT, size=1.0)
    assert the_only(memory).habits.win_rate == Figure(value=0.6, n=10)


@pytest.mark.parametrize(("winners", "losers", "effect"), [(8.0, 1.0, -0.875), (1.0, 8.0, 7.0)])
def test_holding_losers_longer_than_winners_is_a_disposition_effect_and_letting_winners_run_is_none(
    memory: Memory, clock: FakeClock, winners: float, losers: float, effect: float
) -> None:
    for r in IN_TURN:
        one_traded(memory, clock, r, hours=winners if r > 0 else losers)
    habits = the_only(memory).habits
    assert value_and_n(habits.disposition_effect) == approximately(effect, 12)
    assert value_and_n(habits.hold_seconds) == approximately(4.5 * 3600, 12)


@pytest.mark.parametrize(
    ("after_win", "after_loss", "aversion", "bias"), [(2.0, 4.0, 1.0, -1.0), (4.0, 2.0, -0.5, 1.0)]
)
def test_sizes_after_wins_and_losses_give_loss_aversion_and_recency_bias(
    memory: Memory, clock: FakeClock, after_win: float, after_loss: float, aversion: float, bias: float
) -> None:
    deployed(memory)
    memory.record_equity(account="main", equity=10_000.0)
    habits = sized(memory, clock, after_win=after_win, after_loss=after_loss)
    assert value_and_n(habits.loss_aversion) == approximately(aversion, 20)
    assert value_and_n(habits.recency_bias) == approximately(bias, 20)
    assert habits.recency_bias_of == "size"
    assert habits.size_variation.n == 21


def test_recency_bias_is_measured_by_confidence_where_sizes_are_unknown(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    habits = sized(memory, clock, after_win=0.9, after_loss=0.3, by="confidence")
    assert (value_and_n(habits.recency_bias), habits.recency_bias_of) == (approximately(1.0, 20), "confidence")
    assert (habits.loss_aversion, habits.size_variation) == (NOT_ESTIMATED, UNKNOWN)


def test_a_size_is_a_share_of_the_equity_at_its_entry(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    for n in range(10):
        memory.record_equity(account="main", equity=10_000.0 * (n + 1))
        clock.advance(hours=2)
        memory.record_equity(account="main", equity=5_000.0)
        one_traded(memory, clock, 1.0, hours=25, deployment=DEPLOYMENT, entry_price=100.0, size=n + 1.0)
    assert value_and_n(the_only(memory).habits.size_variation) == approximately(0.0, 10)


def test_without_excursions_and_bars_no_timing_is_known(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, IN_TURN, max_adverse_excursion=50.0)
    behavior = the_only(memory)
    assert (behavior.habits.captured_share, behavior.habits.entry_timing) == (UNKNOWN, NOT_ESTIMATED)
    assert behavior.exit_timing == NOT_ESTIMATED


def test_the_captured_share_is_that_of_the_best_price_that_ticks_kept(quick: Memory, clock: FakeClock) -> None:
    desk = Desk(quick, clock)
    for n in range(10):
        desk.tick(4 * n, [], [a_position(2.0)], order=an_order(2.0))
        desk.tick(4 * n + 1, [a_position(2.0, mark=95.0)], mark=95.0)
        desk.tick(4 * n + 2, [a_position(2.0, mark=120.0)], mark=120.0)
        sold = a_report(f"out {n}", at(4 * n + 3), -2.0, 115.0, fee=4.0)
        desk.tick(4 * n + 3, fills=[sold], mark=115.0)
    habits = the_only(quick).habits
    assert value_and_n(habits.captured_share) == approximately(15 / 20, 10)
    assert value_and_n(habits.entry_timing) == (1.0, 10)


def test_win_rate_and_mean_outcome_are_those_of_the_window(quick: Memory, clock: FakeClock) -> None:
    rng = random.Random(5)
    results = [round(rng.gauss(0.1, 1.0), 2) for _ in range(90)]
    traded(quick, clock, results)
    habits = the_only(quick).habits
    recent, earlier = results[-75:], results[:-75]
    assert (habits.window, habits.n) == (75, 75)
    assert value_and_n(habits.win_rate) == approximately(fmean(r > 0 for r in recent), 75)
    assert value_and_n(habits.outcomes["R"]) == approximately(fmean(recent), 75)
    assert value_and_n(habits.expected_win_rate) == approximately(fmean(r > 0 for r in earlier), 15)
    assert value_and_n(habits.expected_outcomes["R"]) == approximately(fmean(earlier), 15)


def test_expected_figures_come_from_the_strategys_earlier_trades_in_any_symbol(
    memory: Memory, clock: FakeClock
) -> None:
    traded(memory, clock, [1.0] * 9 + [-2.0], symbol="BTC")
    traded(memory, clock, [-1.0] * 4, strategy_name="Fade")
    traded(memory, clock, IN_TURN)
    later = the_only(memory, strategy_name="VolBreakout", symbol="XAUUSD").habits
    assert (later.expected_win_rate, later.win_rate.value) == (Figure(value=0.9, n=10), 0.5)
    assert value_and_n(later.expected_outcomes["R"]) == approximately(0.7, 10)
    assert the_only(memory, symbol="BTC").habits.expected_win_rate == UNKNOWN


def test_strategies_and_symbols_are_separate_and_can_be_filtered(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    traded(memory, clock, [1.0], deployment=DEPLOYMENT)
    traded(memory, clock, [1.0, -1.0], symbol="BTC")
    traded(memory, clock, [1.0] * 3, strategy_name="Fade")

    def counts(**query: Any) -> list[tuple[str, str, int]]:
        behaviors = memory.get_behavioral_analysis(**query).behaviors
        return [(each.strategy_name, each.symbol, each.habits.n) for each in behaviors]

    fade, btc, gold = ("Fade", "XAUUSD", 3), ("VolBreakout", "BTC", 2), ("VolBreakout", "XAUUSD", 1)
    assert counts() == [fade, btc, gold]
    assert counts(symbol="XAUUSD") == [fade, gold]
    assert counts(strategy_name="VolBreakout") == counts(deployment=DEPLOYMENT) == [btc, gold]
    assert counts(strategy_name="Fade", symbol="BTC") == []
    assert counts(symbol="BTC", as_of=T0 + 2 * DAY) == [("VolBreakout", "BTC", 1)]


def test_live_and_paper_trades_never_mix(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.open_account(venue="binance", name="paper", mode="paper")
    memory.deploy(strategy_name="VolBreakout", account="paper")
    for r in IN_TURN[:10]:
        one_traded(memory, clock, 1.0, deployment=DEPLOYMENT)
        one_traded(memory, clock, r, deployment="VolBreakout@paper")
    assert the_only(memory).habits.win_rate == Figure(value=1.0, n=10)
    paper = the_only(memory, mode="paper")
    assert paper.habits.win_rate == Figure(value=0.5, n=10)
    assert the_only(memory, deployment="VolBreakout@paper") == paper
    assert paper.versions == (VersionShare(version=1, trades=10),)
    assert memory.get_behavioral_analysis(mode="sim").behaviors == ()


def test_versions_of_a_strategy_are_pooled_and_named(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    traded(memory, clock, [1.0] * 4, deployment=DEPLOYMENT)
    memory.save_strategy(name="VolBreakout", thesis="Breaks carry, if volume rises.")
    memory.deploy(strategy_name="VolBreakout", account="main", name="second")
    traded(memory, clock, [-1.0] * 6, deployment="second")
    behavior = the_only(memory)
    assert behavior.habits.win_rate == Figure(value=0.4, n=10)
    assert behavior.versions == (VersionShare(version=1, trades=4), VersionShare(version=2, trades=6))
    then = the_only(memory, as_of=T0 + 5 * DAY)
    assert then.versions == (VersionShare(version=1, trades=4), VersionShare(version=2, trades=1))


def falling(seed: int) -> Sequence[float]:
    """200 outcomes of one mean, then 60 of a much lower one."""
    rng = random.Random(seed)
    return [rng.gauss(0.3 if n < 200 else -1.2, 1.0) for n in range(260)]


def test_a_lasting_fall_in_outcomes_is_drift_since_about_when_it_began(quick: Memory, clock: FakeClock) -> None:
    results = falling(3)
    assert not any(learned.drifted for learned in traded(quick, clock, results[:200]))
    before = quick.get_behavioral_analysis()
    alarms = [each for learned in traded(quick, clock, results[200:]) for each in learned.drifted]
    assert [(each.symbol, each.series, each.unit, each.alarm.turn) for each in alarms] == [
        ("XAUUSD", "outcome", "R", "down"),
        (None, "outcome", "R", "down"),
    ]
    analysis = quick.get_behavioral_analysis()
    drift = drift_of(analysis.behaviors[0], "R")
    assert (drift.turn, drift.degrading, drift.at) == ("down", True, alarms[0].alarm.at)
    assert abs((drift.since or T0) - (T0 + 201 * DAY)) <= 10 * DAY
    assert (drift.magnitude or 0.0) < -0.5
    assert analysis.strategies[0].drift == (drift,)
    assert analysis.message.endswith("Degrading: VolBreakout in all symbols, VolBreakout in XAUUSD.")
    assert quick.get_behavioral_analysis(as_of=T0 + 200 * DAY) == before
    assert not drift_of(before.behaviors[0], "R").degrading


def test_larger_sizes_are_drift_but_not_degrading(quick: Memory, clock: FakeClock) -> None:
    deployed(quick)
    quick.record_equity(account="main", equity=10_000.0)
    for n in range(50):
        one_traded(quick, clock, IN_TURN[n % 12], deployment=DEPLOYMENT, entry_price=100.0, size=1.0 if n < 40 else 4.0)
    drift = drift_of(the_only(quick), "size")
    assert (drift.turn, drift.since, drift.degrading) == ("up", T0 + 41 * DAY, False)
    assert drift_of(the_only(quick), "R").turn is None


def round_trips(memory: Memory, desk: Desk) -> dict[datetime, BehavioralAnalysis]:
    """The answers after each of six winning trades, and after a late fee turned each into a loss."""
    answers = {}
    for first in range(0, 24, 4):
        bought, sold = (
            a_report(f"in {first}", at(first), 2.0, 100.0),
            a_report(f"out {first}", at(first + 1), -2.0, 110.0),
        )
        fee = a_report(f"fee {first}", at(first + 1), kind="fee", fee=50.0)
        desk.tick(first, [], [a_position(2.0)], done=[bought], order=an_order(2.0))
        for hours, fills in ((first + 1, [sold]), (first + 2, [fee])):
            desk.tick(hours, fills=fills)
            answers[at(hours)] = memory.get_behavioral_analysis()
    return answers


def test_corrections_and_late_trades_change_no_answer_as_of_an_earlier_instant(
    memory: Memory, clock: FakeClock
) -> None:
    answers = round_trips(memory, Desk(memory, clock))
    clock.advance(days=1)
    for hours in range(0, 24, 4):
        memory.remember_trade(**a_trade_call(strategy_name="S", symbol="BTC", closed_at=at(hours + 1.5)))
    for when, answer in answers.items():
        assert memory.get_behavioral_analysis(as_of=when, seen_at=when) == answer
    assert value_and_n(the_only(memory).habits.win_rate) == approximately(0.5, 12)
    assert memory.doctor().healthy


def test_later_trades_change_no_earlier_answer(memory: Memory, clock: FakeClock) -> None:
    answers = {}
    for r in (1.0, 1.0, -1.0) * 6:
        one_traded(memory, clock, r, confidence=0.5 + 0.1 * r)
        answers[clock.now()] = memory.get_behavioral_analysis()
    for when, answer in answers.items():
        assert memory.get_behavioral_analysis(as_of=when) == answer
    assert memory.get_behavioral_analysis(as_of=T0).behaviors == ()


def rising_bars(memory: Memory, since: datetime, hours: int) -> None:
    """Bars of five minutes in which the price only rises from 100."""
    prices = [100.0 + 0.1 * n for n in range(12 * hours)]
    memory.record_bars(
        bars=[
            {
                "symbol": "XAUUSD",
                "interval_seconds": 300,
                "opened_at": since + n * timedelta(minutes=5),
                "open": price,
                "high": price + 0.1,
                "low": price,
                "close": price + 0.1,
            }
            for n, price in enumerate(prices)
        ]
    )


def test_exit_timing_looks_at_the_bars_after_the_exit_for_as_long_as_the_trade_was_open(
    quick: Memory, clock: FakeClock
) -> None:
    for _ in range(10):
        one_traded(quick, clock, 1.0, hours=2, direction="long", entry_price=98.0, exit_price=100.0)
        closed = clock.now()
        clock.advance(hours=4)
        rising_bars(quick, closed, hours=4)
    assert value_and_n(the_only(quick).exit_timing) == (-1.0, 10)
    assert "exits are early" not in " ".join(the_only(quick).sentences)  # equal timings do not tell the margin
    before_the_end = the_only(quick, as_of=closed + timedelta(hours=1.9)).exit_timing
    assert before_the_end == Estimate(value=None, n=9)


def test_habits_that_chance_makes_are_not_said(quick: Memory, clock: FakeClock) -> None:
    rng = random.Random(8)
    for _ in range(30):
        one_traded(quick, clock, rng.choice((1.0, -1.0)), hours=rng.uniform(1, 9))
    analysis = quick.get_behavioral_analysis()
    assert analysis.behaviors[0].sentences == ()
    assert "No habit is larger than chance makes it." in analysis.message


def test_revenge_across_symbols_is_found_and_said(quick: Memory, clock: FakeClock) -> None:
    """Twice the size after a loss in whatever symbol; each symbol alone follows nothing."""
    deployed(quick)
    quick.record_equity(account="main", equity=10_000.0)
    rng, lost = random.Random(2), False
    for n in range(120):
        size = rng.uniform(0.8, 1.2) * (2.0 if lost else 1.0)
        lost = rng.random() < 0.5
        symbol = ("XAUUSD", "BTC")[n % 2]
        r = -1.0 if lost else 1.0
        one_traded(quick, clock, r, deployment=DEPLOYMENT, symbol=symbol, entry_price=100.0, size=size)
    for behavior in quick.get_behavioral_analysis().behaviors:
        assert behavior.habits.loss_aversion.value == pytest.approx(1.0, abs=0.15)
        assert any(text.startswith("After a loss, in whatever symbol") for text in behavior.sentences)
    assert quick.doctor().healthy
