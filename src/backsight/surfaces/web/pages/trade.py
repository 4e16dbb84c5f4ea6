"""One trade: why, and was it good?"""

from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from backsight.core.errors import Invalid, NotFound
from backsight.core.trades.trade import Trade
from backsight.ops.events_bars import BarList
from backsight.surfaces.web.charts.candles import Level, Mark, candle_chart
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.numbers import in_unit, signed
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.pages.recall import LABELS
from backsight.surfaces.web.state import read_instant

BARS = 300
AROUND = 0.5
"""How much is shown before and after a trade, as a share of its length."""
LEAST_AROUND = timedelta(hours=3)


def show(page: PageRequest) -> Response:
    memory, when = page.memory, page.when
    reflection = memory.get_trade_reflection(trade_id=page.query["id"], **when)
    read = memory.get_trade(trade_id=page.query["id"], **when)
    trade = reflection.trade
    chart, window = price_chart(page, trade)
    if page.fragment == "chart":
        return page.render("trade_chart.html", trade=trade, chart=chart, window=window)
    decision = _decision(page, trade)
    listed = None if decision is None else memory.list_recalls(decision_id=decision.decision.id, **when)
    return page.render(
        "trade.html",
        title=f"{trade.symbol} {trade.direction}",
        trade=trade,
        read=read,
        reflection=reflection,
        chart=chart,
        window=window,
        decision=decision,
        recalls=[] if listed is None else listed.recalls,
        episodes={} if listed is None else {each.id: each for each in listed.episodes},
        lessons=_lessons(page, trade),
        result=in_unit(trade, page.state.unit),
        currency=page.currencies().get(trade.deployment_id or "", ""),
        situation={name: getattr(trade.context, name) for name in LABELS},
    )


def _decision(page: PageRequest, trade: Trade) -> Any:
    """The decision that opened the trade; None if none was recorded, or if it is no longer stored."""
    if trade.entry.snapshot_id is None:
        return None
    try:
        return page.memory.get_decision(decision_id=trade.entry.snapshot_id, **page.when)
    except NotFound:
        return None


def _lessons(page: PageRequest, trade: Trade) -> Any:
    """The lessons that were in force at the entry; None if none were shown."""
    if trade.entry.lessons_hash is None or trade.opened_at is None:
        return None
    notes = page.memory.list_lessons(deployment=trade.deployment_id, limit=100, **page.when).notes
    return next((note for note in notes if note.content_hash == trade.entry.lessons_hash), None)


def price_chart(page: PageRequest, trade: Trade) -> tuple[SvgChart | None, dict[str, Any]]:
    """The bars around a trade, or those between the two instants of the address, and how to zoom and move."""
    start, end = _window(page, trade)
    length = end - start
    window = {
        "closer": {"from_": start + length / 4, "to": end - length / 4},
        "wider": {"from_": start - length / 2, "to": end + length / 2},
        "left": {"from_": start - length / 4, "to": end - length / 4},
        "right": {"from_": start + length / 4, "to": end + length / 4},
        "start": start,
        "end": end,
    }
    bars = page.memory.list_bars(symbol=trade.symbol, since=start, until=end, limit=BARS, **page.when)
    return (_draw(trade, bars, end) if len(bars.bars) > 1 else None), {**window, "message": bars.message}


def _window(page: PageRequest, trade: Trade) -> tuple[datetime, datetime]:
    start, end = (read_instant(page.query.get(name, ""), field=name) for name in ("from", "to"))
    if start is not None and end is not None:
        if end - start < timedelta(minutes=1):
            raise Invalid("is not after the beginning; zoom out", field="to")
        return start, end
    opened = trade.opened_at or trade.closed_at or trade.known_at
    closed = trade.closed_at or page.state.as_of or page.memory.clock.now()
    around = max(AROUND * (closed - opened), LEAST_AROUND)
    return opened - around, closed + around


def _draw(trade: Trade, bars: BarList, end: datetime) -> SvgChart:
    opened = trade.opened_at or bars.bars[0].opened_at
    closed = trade.closed_at or end
    is_long = trade.direction == "long"
    levels = [Level(label="entry", price=trade.entry_price, since=opened, until=closed, style="level entry")]
    if trade.exit_price is not None and trade.closed_at is not None:
        result = trade.outcome.value if trade.outcome is not None and trade.outcome.unit == "R" else None
        text = "exit" if result is None else f"exit {signed(result, 2, 'R')}"
        levels.append(Level(label=text, price=trade.exit_price, since=opened, until=closed, style="level exit"))
    if trade.stop_price is not None:
        levels.append(Level(label="stop", price=trade.stop_price, since=opened, until=closed, style="level stop"))
    risk = None if trade.stop_price is None else abs(trade.entry_price - trade.stop_price)
    for label, amount in (("MFE", trade.mfe_r), ("MAE", trade.mae_r)):
        if amount is not None and risk:
            reached = trade.entry_price + (amount if is_long else -amount) * risk
            text = f"{label} {signed(amount, 2, 'R')}"
            levels.append(Level(label=text, price=reached, since=opened, until=closed, style="level reach"))
    marks = [Mark(label="in", at=opened, price=trade.entry_price, up=is_long)]
    if trade.exit_price is not None and trade.closed_at is not None:
        marks.append(Mark(label="out", at=trade.closed_at, price=trade.exit_price, up=not is_long))
    first, last = bars.bars[0].opened_at, bars.bars[-1].closes_at
    name = f"Bars of {trade.symbol} from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC, with entry and exit."
    note = f"{(bars.interval_seconds or 0) // 60} min bars, times in UTC; filled bars fell."
    return candle_chart(name, bars.bars, levels, marks, note)
