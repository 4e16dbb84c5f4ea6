"""The outlook of a symbol: sizes as position_size gives them, and evidence that is kept only while it is current."""

from datetime import timedelta

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.instruments import NO_UNDERLYINGS
from backsight.core.portfolio import Direction
from backsight.core.prompts.symbol_memory import recommendation
from backsight.core.recall.arrays.columns import append_episodes, columns_of
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.sizing import closed_trades
from backsight.memory import Memory
from backsight.services.outlook import sizing_evidence, sizing_query
from backsight.testing import T0, FakeClock, an_episode

OURS = TradeFilter(strategy_name="VolBreakout", mode="live")
DAY = timedelta(days=1)


def test_the_evidence_is_kept_until_another_trade_is_known() -> None:
    columns = columns_of(an_episode(n, known_at=T0 + n * DAY) for n in range(5))
    first = sizing_evidence(columns, OURS, Horizon(as_of=T0 + 3 * DAY), NO_UNDERLYINGS)
    assert sizing_evidence(columns, OURS, Horizon(as_of=T0 + 3.5 * DAY), NO_UNDERLYINGS) is first
    later = sizing_evidence(columns, OURS, Horizon(as_of=T0 + 4 * DAY), NO_UNDERLYINGS)
    assert (first.n, later.n) == (4, 5)
    more = append_episodes(columns, [an_episode(9, known_at=T0 + 3.2 * DAY)])
    assert sizing_evidence(more, OURS, Horizon(as_of=T0 + 3.5 * DAY), NO_UNDERLYINGS).n == 5


def test_the_evidence_is_that_of_the_horizon() -> None:
    columns = columns_of(an_episode(n, known_at=T0 + n * DAY, recorded_at=T0 + 2 * n * DAY) for n in range(5))
    horizons = (
        Horizon(as_of=T0 - DAY),
        Horizon(as_of=T0 + 3 * DAY),
        Horizon(as_of=T0 + 9 * DAY, seen_at=T0 + 4 * DAY),
    )
    for horizon in horizons:
        kept, read = sizing_evidence(columns, OURS, horizon, NO_UNDERLYINGS), closed_trades(columns, OURS, horizon)
        assert (kept.n, kept.in_r.outcome_r.tolist()) == (read.n, read.in_r.outcome_r.tolist())


def test_the_prompt_recommends_what_position_size_does(memory: Memory, clock: FakeClock) -> None:
    for number in range(14):
        clock.advance(hours=20)
        memory.remember_trade(
            symbol="BTC",
            direction="short" if number % 3 == 0 else "long",
            strategy_name="S",
            entry_price=100.0,
            exit_price=101.0,
            pnl=-1.0 if number % 3 == 0 else 1.0,
            pnl_r=-1.0 if number % 3 == 0 else 1.5,
        )
    preview = memory.preview_context(deployment="manual:S", symbols=["BTC"])
    directions: tuple[Direction, ...] = ("long", "short")
    for direction in directions:
        advice = memory.position_size(
            symbol="BTC",
            direction=direction,
            strategy_name="S",
            deployment="manual:S",
            context=preview.contexts[0],
        )
        (line,) = [line for line in preview.text.splitlines() if line.startswith(f"- BTC {direction}:")]
        assert line.endswith(f": {recommendation(advice.size)}")
    assert sizing_query("long", ContextVector(symbol="BTC", regime="ranging"), NO_UNDERLYINGS).regime == "ranging"
