"""Reports of closed trades: completed fields, refusals, and the resulting ledger row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.instants import CLOCK_SKEW
from backsight.core.strategies import Deployment, MemorySettings
from backsight.core.trades.report import (
    TradeNote,
    TradeReport,
    checked_report,
    keyed_trade_id,
    reported_trade_id,
    trade_from_report,
    with_note,
)
from backsight.core.trades.trade import REPORTED_ENTRY, Entry, Outcome, Trade

NOW = datetime(2026, 6, 4, 12, tzinfo=UTC)
OPENED, CLOSED = NOW - timedelta(hours=3), NOW - timedelta(hours=1)
DEPLOYMENT = Deployment(
    owner_id="me",
    id="d1",
    name="manual:VolBreakout",
    strategy_id="s1",
    strategy_name="VolBreakout",
    strategy_version=None,
    account_id="a1",
    mode="live",
    memory=MemorySettings(),
    known_at=OPENED,
    recorded_at=OPENED,
)


def a_report(**changes: Any) -> TradeReport:
    report = TradeReport(
        symbol="BTC",
        direction="long",
        entry_price=100.0,
        exit_price=110.0,
        pnl=20.0,
        opened_at=OPENED,
        closed_at=CLOSED,
    )
    return replace(report, **changes)


def a_trade(report: TradeReport | None = None, *, equity: float | None = None) -> Trade:
    checked = checked_report(report or a_report(), now=NOW)
    entry = Entry(equity=equity)
    return trade_from_report(checked, DEPLOYMENT, "t1", entry=entry, usd_rate=None, request_digest="r", now=NOW)


def test_a_context_is_completed_with_the_symbol_the_price_and_the_time_of_the_entry() -> None:
    context = checked_report(a_report(context_regime="ranging", context_atr_d1=5.0), now=NOW).context
    assert (context.symbol, context.price, context.hour_utc) == ("BTC", 100.0, 9)
    assert (context.regime, context.atr_d1) == ("ranging", 5.0)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"pnl_r": 2.0}, Outcome(value=2.0, unit="R")),
        ({"risk": 10.0}, Outcome(value=2.0, unit="R")),
        ({"stop_price": 95.0, "size": 2.0}, Outcome(value=2.0, unit="R")),
        ({"size": 2.0, "context_atr_d1": 5.0}, Outcome(value=2.0, unit="vol")),
        ({"size": 2.0}, Outcome(value=0.1, unit="pct")),
        ({}, None),
    ],
)
def test_an_outcome_has_the_best_unit_that_the_report_allows(changes: Any, outcome: Outcome | None) -> None:
    assert checked_report(a_report(**changes), now=NOW).outcome == outcome


def test_a_stated_risk_or_r_is_not_computed_from_the_stop() -> None:
    stop = {"stop_price": 95.0, "size": 2.0}
    assert checked_report(a_report(**stop), now=NOW).risk == 10.0
    assert checked_report(a_report(**stop, risk=8.0), now=NOW).risk == 8.0
    assert checked_report(a_report(**stop, pnl_r=1.5), now=NOW).risk is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"closed_at": NOW + CLOCK_SKEW + timedelta(seconds=1)}, "closed_at: .* is in the future"),
        ({"opened_at": CLOSED + timedelta(seconds=1)}, "opened_at: .* is after the close"),
        ({"opened_at": NOW + timedelta(seconds=1), "closed_at": None}, "opened_at: .* is after the close"),
        ({"pnl_r": -1.0}, "pnl_r: -1.0 and pnl 20.0 have different signs"),
        ({"pnl_r": 1.0, "pnl": 0.0}, "pnl_r: 1.0 and pnl 0.0 have different signs"),
        ({"pnl_r": 2.1, "risk": 10.0}, r"pnl_r: 2.1 is not pnl / risk = 2; give either"),
        ({"context": ContextVector(regime="ranging"), "context_regime": "volatile"}, "context_regime: .*contradicts"),
        ({"pnl": 1e308, "risk": 1e-9}, "pnl: too large or too small"),
        ({"pnl": 1e308, "fees": 1e308}, "pnl: too large or too small"),
        ({"stop_price": -1e308, "size": 1e308}, "stop_price: too large or too small"),
        ({"max_favorable_excursion": 1e308, "risk": 1e-9}, "max_favorable_excursion: too large or too small"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        checked_report(a_report(**changes), now=NOW)


def test_another_clock_may_be_a_little_ahead() -> None:
    assert checked_report(a_report(closed_at=NOW + CLOCK_SKEW), now=NOW).closed_at == NOW + CLOCK_SKEW


def test_a_stated_r_may_be_rounded() -> None:
    assert checked_report(a_report(pnl_r=2.01, risk=10.0), now=NOW).pnl_r == 2.01


def test_a_trade_is_known_from_its_close_and_recorded_now() -> None:
    trade = a_trade(a_report(fees=3.0, max_adverse_excursion=7.0))
    assert (trade.closed_at, trade.known_at, trade.recorded_at) == (CLOSED, CLOSED, NOW)
    assert (trade.pnl, trade.realized_pnl, trade.mae, trade.holding_minutes) == (20.0, 23.0, -7.0, 120.0)
    assert (trade.position_key, trade.deployment_id, trade.strategy_name) == ("BTC", "d1", "VolBreakout")


def test_columns_of_a_file_are_facts_of_the_trade() -> None:
    words = {"reason": "breakout", "exit_reason": "trailing_stop_loss", "leverage": 3.0}
    money = {"fees": 3.0, "funding": -2.0, "max_favorable_excursion": 30.0, "max_adverse_excursion": -5.0}
    trade = a_trade(a_report(risk=10.0, **words, **money))
    assert (trade.entry.reason, trade.exit_reason, trade.entry.leverage) == ("breakout", "trailing_stop_loss", 3.0)
    assert (trade.pnl, trade.funding, trade.fees, trade.realized_pnl) == (20.0, -2.0, 3.0, 25.0)
    assert (trade.mfe, trade.mae, trade.mfe_r, trade.mae_r) == (30.0, -5.0, 3.0, -0.5)


def test_the_best_of_a_trade_that_was_never_in_profit_is_nothing() -> None:
    trade = a_trade(a_report(max_favorable_excursion=-4.0))
    assert (trade.mfe, trade.mfe_r, trade.mae) == (0.0, None, None)


def test_a_trade_without_a_close_time_was_closed_now() -> None:
    assert a_trade(a_report(closed_at=None)).closed_at == NOW


def test_an_unknown_equity_leaves_the_entry_empty() -> None:
    assert a_trade().entry == REPORTED_ENTRY
    assert a_trade(equity=500.0).entry == Entry(equity=500.0)


def test_a_note_replaces_words_and_adds_tags() -> None:
    trade = a_trade(a_report(reflection="first", confidence=0.4, tags=("a", "b")))
    noted = with_note(trade, TradeNote(reflection="second", tags=("b", "c")), now=NOW)
    assert (noted.reflection, noted.confidence, noted.tags) == ("second", 0.4, ("a", "b", "c"))
    assert (noted.known_at, noted.recorded_at, noted.pnl) == (NOW, NOW, trade.pnl)


def test_a_confidence_of_zero_is_a_note() -> None:
    assert TradeNote().is_empty
    assert not TradeNote(confidence=0.0).is_empty
    assert with_note(a_trade(a_report(confidence=0.4)), TradeNote(confidence=0.0), now=NOW).confidence == 0.0


def test_a_key_names_a_trade_and_content_does_without_one() -> None:
    assert reported_trade_id("me", "k", "digest") == keyed_trade_id("me", "k")
    assert reported_trade_id("me", None, "k") not in (keyed_trade_id("me", "k"), reported_trade_id("me", None, "l"))
