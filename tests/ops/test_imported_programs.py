"""Files of other programs through the whole import: twice, with the results that the files themselves tell."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.testing import T0, FakeClock
from program_samples import ai_hedge_fund, freqtrade, metatrader5, nautilus, nofx

YEN = {"symbol": "USDJPY"}
DEALS = [
    metatrader5.BALANCE,
    metatrader5.ENTRY,
    metatrader5.EXIT,
    metatrader5.a_deal("02 13:00:00", 31, "buy", "in", "1.00", "150.000", "1", **YEN),
    metatrader5.a_deal("02 14:00:00", 32, "sell", "out", "0.50", "151.000", "2", "", "", "331.13", **YEN),
    metatrader5.a_deal("02 15:00:00", 33, "sell", "out", "0.50", "149.000", "3", "", "", "-335.57", **YEN),
]


def a_report(folder: Path) -> str:
    path = folder / "ReportHistory-12345.html"
    path.write_bytes(metatrader5.as_html(metatrader5.a_table(*DEALS)).encode("utf-16"))
    return str(path)


def only_trade(memory: Memory) -> Trade:
    (trade,) = memory.list_trades(mode="paper").trades
    return trade


def test_results_of_a_metatrader_report_are_the_brokers(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    clock.at = T0 + timedelta(days=300)
    first, again = (memory.import_fills(path=a_report(tmp_path), mode="paper") for _ in range(2))
    assert (first.format, first.fills, first.added, first.left_out) == ("metatrader5", 7, 7, ())
    assert first.trades is not None
    assert (first.trades.closed, first.trades.contradicted) == (2, 0)
    assert (first.trades.comparison.compared, first.trades.comparison.agreeing) == (2, 2)
    assert (again.added, again.trades) == (0, None)
    results = {trade.symbol: trade.pnl for trade in memory.list_trades(mode="paper").trades}
    assert results == pytest.approx({"EURUSD": 96.1, "USDJPY": -4.44})
    assert memory.doctor().healthy


def test_a_metatrader_report_goes_to_an_account_of_its_currency(
    memory: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    clock.at = T0 + timedelta(days=300)
    with pytest.raises(Invalid, match="is in USD, not in EUR"):
        memory.import_fills(path=a_report(tmp_path), mode="paper", currency="EUR")
    assert memory.verify_audit().links == 0


def test_fills_of_nautilus_are_in_their_currency(memory: Memory, tmp_path: Path) -> None:
    closing = {"trade_id": "SIM-1-2", "order_side": "BUY", "last_px": "76.00", "client_order_id": "O-1-4"}
    path = str(nautilus.a_report(tmp_path, nautilus.FILL, nautilus.FILL | closing))
    first, again = (memory.import_fills(path=path, mode="paper", currency="JPY") for _ in range(2))
    assert (first.format, first.added, again.added) == ("nautilus-fills", 2, 0)
    assert only_trade(memory).pnl == pytest.approx(1_000 * 0.25 - 2 * 2.1)


def test_decisions_of_nofx_and_cycles_of_ai_hedge_fund_are_trades(memory: Memory, tmp_path: Path) -> None:
    records = [nofx.a_record(nofx.OPEN, {"action": "wait"}), nofx.a_record(nofx.CLOSE, cycle=3)]
    (tmp_path / "decisions.json").write_text(json.dumps(records))
    (tmp_path / "cycles.json").write_text(json.dumps(ai_hedge_fund.RECORDS))
    for name in ("decisions.json", "cycles.json"):
        first, again = (memory.import_fills(path=str(tmp_path / name), mode="paper") for _ in range(2))
        assert (first.added, again.added, len(first.left_out)) == (2, 0, 1)
    results = {trade.symbol: trade.pnl for trade in memory.list_trades(mode="paper").trades}
    assert results == pytest.approx({"BTCUSDT": 0.015 * 200.0, "AAPL": -1.5})


def test_a_backtest_of_freqtrade_is_simulated_and_has_excursions(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "backtest-result.json"
    path.write_text(freqtrade.a_result(freqtrade.TRADE, freqtrade.TRADE | {"is_open": True}))
    first, again = (memory.import_trades(path=str(path)) for _ in range(2))
    assert (first.format, first.added, again.replayed) == ("freqtrade-backtest", 1, 1)
    assert [(rows.reason, rows.rows) for rows in first.left_out] == [("the trade was still open", 1)]
    (trade,) = memory.list_trades(mode="sim").trades
    assert [trade.pnl, trade.fees, trade.funding, trade.realized_pnl] == pytest.approx([18.86, 0.64, -0.5, 20.0])
    assert [trade.risk, trade.mfe_r, trade.mae_r] == pytest.approx([10.0, 2.4, -0.6])
    assert (trade.entry.reason, trade.exit_reason, trade.strategy_name) == ("breakout", "roi", "Breakout")


def test_the_mode_of_a_database_must_be_given_unless_it_was_a_dry_run(memory: Memory, tmp_path: Path) -> None:
    path = freqtrade.a_database(tmp_path / "tradesv3.sqlite", freqtrade.OLD, freqtrade.OLD_TRADE)
    with pytest.raises(Invalid, match=r"mode: .*give live, paper or sim"):
        memory.import_trades(path=str(path))
    assert memory.import_trades(path=str(path), mode="live").added == 1
    positions = nofx.a_database(tmp_path / "data.db", "trader_positions", nofx.POSITION)
    assert memory.import_trades(path=str(positions), mode="paper").added == 1
    assert only_trade(memory).pnl == 460.0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("header", ["Symbol,Side,Entry Price,Exit Price,Net PnL,Exit Time", "ARGUMENTS", "JSON"])
def test_a_table_of_trades_needs_no_name_of_its_format(
    memory: Memory, tmp_path: Path, header: str, encoding: str
) -> None:
    names = "symbol,direction,entry_price,exit_price,pnl,closed_at"
    cells = ["AAPL", "long", 200, 210, 100, "2026-06-02T10:00:00Z"]
    text = f"{names if header == 'ARGUMENTS' else header}\n{','.join(map(str, cells))}\n"
    path = tmp_path / "trades.csv"
    path.write_text(
        json.dumps([dict(zip(names.split(","), cells, strict=True))]) if header == "JSON" else text, encoding
    )
    assert memory.import_trades(path=str(path), strategy_name="S", mode="paper").added == 1
    assert [trade.pnl for trade in memory.list_trades().trades] == [100.0]
