"""Files for the lab: fills, trades, positions and bars."""

from datetime import timedelta
from pathlib import Path

from backsight.core.instants import format_instant
from backsight.lab.load import LabFiles, is_position_log, load
from backsight.lab.planted import START, planted_trades
from backsight.runtime.samples import write_samples
from lab_samples import planted_path


def test_a_file_of_planted_trades_gives_them_back(tmp_path: Path) -> None:
    planted = planted_trades("revenge_trading", trades=40, seed=1).trades
    read = load(LabFiles(trades=(planted_path(tmp_path, "revenge_trading", trades=40),))).trades.trades
    assert [trade.outcome_r for trade in read] == [trade.outcome_r for trade in planted]
    assert [trade.entry.at for trade in read] == [trade.entry.at for trade in planted]
    assert [trade.entry.context.regime for trade in read] == [trade.entry.context.regime for trade in planted]


def test_fills_and_positions_of_one_account_give_the_same_trades(tmp_path: Path) -> None:
    bars, fills, positions = write_samples(tmp_path / "samples", days=20)
    by_fills = load(LabFiles(trades=(fills,), bars=(bars,)))
    by_positions = load(LabFiles(trades=(positions,), bars=(bars,)))
    assert is_position_log(positions)
    assert not is_position_log(fills)
    assert [trade.entry.at for trade in by_fills.trades.trades] == [
        each.entry.at for each in by_positions.trades.trades
    ]
    assert any(trade.entry.context.regime for trade in by_fills.trades.trades)
    assert by_fills.digest != by_positions.digest


def test_bars_complete_the_context_of_trades_with_what_had_closed_by_the_entry(tmp_path: Path) -> None:
    entry = START + timedelta(hours=100)
    trades, bars = tmp_path / "trades.csv", tmp_path / "bars.csv"
    header = "symbol,direction,entry_price,exit_price,size,pnl,strategy_name,opened_at,closed_at"
    closed = format_instant(entry + timedelta(hours=5))
    trades.write_text(f"{header}\nBTC,long,100,101,1,1,s,{format_instant(entry)},{closed}\n")
    rows = [(START + timedelta(hours=hour), 100.0 + hour if hour < 100 else 1.0) for hour in range(130)]
    lines = [f"{format_instant(at)},BTC,{price},{price + 1},{price - 1},{price + 0.5}" for at, price in rows]
    bars.write_text("\n".join(["time,symbol,open,high,low,close", *lines]) + "\n")
    (trade,) = load(LabFiles(trades=(trades,), bars=(bars,))).trades.trades
    assert trade.entry.context.regime == "trending_up"  # the fall comes after the entry
