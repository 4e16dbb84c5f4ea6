"""Episodes: those of trades, the outcome of a call, and runs of inactions."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.memory.episodic import continues, episode_id_of, episode_of_trade, resolve_call
from backsight.core.trades.trade import Entry, Trade
from backsight.memory import open_memory
from backsight.testing import T0, FakeClock, a_trade_call, an_episode


def a_call(direction: str) -> dict[str, Any]:
    return {"kind": "call", "pnl_r": None, "direction": direction, "opened_at": T0, "due_at": T0 + timedelta(days=1)}


@pytest.mark.parametrize(
    ("direction", "benchmark", "outcome"),
    [("long", None, 0.1), ("short", None, -0.1), ("long", (100.0, 104.0), 0.06), ("short", (100.0, 104.0), -0.06)],
)
def test_a_call_earns_the_return_above_its_benchmark(
    direction: str, benchmark: tuple[float, float] | None, outcome: float
) -> None:
    call = an_episode(1, **a_call(direction), ended_at=T0 + timedelta(days=1))
    later = T0 + timedelta(days=1)
    judged = resolve_call(
        call, entry_price=100.0, exit_price=110.0, benchmark=benchmark, known_at=later, recorded_at=later
    )
    assert judged.outcome is not None
    assert judged.outcome.value == pytest.approx(outcome)
    assert judged.outcome.unit == "pct"
    assert (judged.hold_seconds, judged.due_at, judged.known_at) == (86_400.0, None, later)


def test_a_return_that_is_no_number_is_no_outcome() -> None:
    judged = resolve_call(
        an_episode(1, kind="call"), entry_price=1e-320, exit_price=1e300, benchmark=None, known_at=T0, recorded_at=T0
    )
    assert judged.outcome is None


def test_an_inaction_continues_one_with_the_same_reason() -> None:
    inaction = an_episode(1, kind="inaction", pnl_r=None, reason="spread too wide")
    assert continues(inaction, reason="spread too wide")
    assert not continues(inaction, reason="news")
    assert not continues(an_episode(1, reason="spread too wide"), reason="spread too wide")
    assert not continues(None, reason="news")


@pytest.fixture
def trade() -> Trade:
    with open_memory("sqlite://", owner="ana", clock=FakeClock(T0)) as memory:
        return memory.remember_trade(**a_trade_call()).trade


def test_the_episode_of_a_trade_has_its_values_and_an_id_of_its_own(trade: Trade) -> None:
    episode = episode_of_trade(trade)
    assert (episode.id, episode.trade_id) == (episode_id_of(trade.id), trade.id)
    assert (episode.pnl, episode.outcome, episode.context) == (trade.pnl, trade.outcome, trade.context)
    assert episode.ended_at == trade.closed_at


@pytest.mark.parametrize(
    ("equity", "size", "share"), [(10_000.0, 2.0, 0.02), (None, 2.0, None), (0.0, 2.0, None), (10_000.0, None, None)]
)
def test_the_share_of_a_size_needs_size_and_equity(
    trade: Trade, equity: float | None, size: float | None, share: float | None
) -> None:
    sized = replace(trade, size=size, entry_price=100.0, entry=Entry(equity=equity))
    assert episode_of_trade(sized).size_share == share
