"""Sample files made by the simulation: bars, the fills of an account, and a log of its positions."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from backsight.core.decision import AgentInput
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.market import Bar
from backsight.core.orders import ReportedFill
from backsight.memory import PaperBroker, PaperTerms
from backsight.runtime.backtest import HISTORY
from backsight.runtime.demo import CASH, START, SYMBOL, demo_bars
from backsight.runtime.load import example, load_agent

DAYS = 42
TERMS = PaperTerms(fee_rate=0.0001, slippage=0.00005)
BARS_AN_HOUR = 12
BARS, FILLS, POSITIONS = "bars.csv", "fills.csv", "positions.jsonl"


def write_samples(folder: Path, *, days: int = DAYS) -> list[Path]:
    """Write the sample files into a folder, and return their paths; a file that exists is `Conflict`."""
    paths = [folder / name for name in (BARS, FILLS, POSITIONS)]
    for path in paths:
        if path.exists():
            raise Conflict(f"{path} exists already; name a new folder", field="folder")
    bars = demo_bars(days=days)
    fills = list(sample_fills(bars))
    folder.mkdir(parents=True, exist_ok=True)
    _write_table(paths[0], map(_bar_row, bars))
    _write_table(paths[1], map(_fill_row, fills))
    opens = {bar.opened_at: bar.open for bar in bars}
    paths[2].write_text("".join(f"{json.dumps(row)}\n" for row in position_log(fills, opens)), encoding="utf-8")
    return paths


def sample_fills(bars: Sequence[Bar]) -> Iterator[ReportedFill]:
    """The fills of an example strategy that decides by prices alone, once an hour."""
    agent = load_agent(f"{example('volatility_breakout.py')}:VolatilityBreakout")
    broker = PaperBroker("sample", at=START, cash=CASH, terms=TERMS)
    for end in range(BARS_AN_HOUR, len(bars) + 1, BARS_AN_HOUR):
        broker.advance(bars[end - BARS_AN_HOUR : end])
        snapshot = broker.snapshot()
        yield from snapshot.fills
        history = bars[max(0, end - HISTORY) : end]
        decision = agent.decide(
            AgentInput(
                at=history[-1].closes_at,
                open_tick=_open_nothing,
                portfolio=snapshot.portfolio,
                marks=snapshot.marks,
                bars={SYMBOL: history},
            )
        )
        for order in decision.orders:
            broker.submit(order)
    yield from broker.snapshot().fills


def position_log(fills: Iterable[ReportedFill], opens: Mapping[datetime, float]) -> Iterator[dict[str, Any]]:
    """One row for the start and one after each fill: quantities, and cash as on a spot account without fees.

    Such logs are written by agents that pay the open of the bar in which they trade, so that is what the cash has.
    """
    size, cash = 0.0, CASH
    yield {"date": format_instant(START), "id": 0, "positions": {SYMBOL: size, "CASH": cash}}
    for number, fill in enumerate(fills, start=1):
        size = round(size + fill.quantity, 9)
        cash -= fill.quantity * opens.get(fill.at, fill.price or 0.0)
        action = {"action": "buy" if fill.quantity > 0 else "sell", "symbol": SYMBOL, "amount": abs(fill.quantity)}
        positions = {SYMBOL: size, "CASH": cash}
        yield {"date": format_instant(fill.at), "id": number, "this_action": action, "positions": positions}


def _bar_row(bar: Bar) -> Mapping[str, object]:
    prices = {"open": bar.open, "high": bar.high, "low": bar.low, "close": bar.close}
    return {"time": format_instant(bar.opened_at), "symbol": bar.symbol, **prices}


def _fill_row(fill: ReportedFill) -> Mapping[str, object]:
    return {
        "time": format_instant(fill.at),
        "symbol": fill.symbol,
        "side": "buy" if fill.quantity > 0 else "sell",
        "quantity": abs(fill.quantity),
        "price": fill.price,
        "fee": fill.fee,
        "fill_id": fill.id,
    }


def _write_table(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)


def _open_nothing() -> NoReturn:
    raise NotImplementedError("the strategy of the samples reads no memory")
