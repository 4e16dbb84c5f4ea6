"""Trades: which ones?"""

import csv
import io
from collections.abc import Iterator
from typing import Any, get_args

from starlette.responses import Response

from backsight.core.trades.choices import TradeOrder
from backsight.core.trades.performance import CATEGORIES
from backsight.core.trades.trade import Trade
from backsight.ops.performance import BrokenDown
from backsight.ops.trades_pages import TradePage
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.charts.ranges import Group, range_chart
from backsight.surfaces.web.charts.scatter import Dot, scatter_chart
from backsight.surfaces.web.numbers import in_unit, signed
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.state import read_instant
from backsight.surfaces.web.visible_text import shown

LIMIT, MOST_DOWNLOADED = 50, 100_000
BRUSHED = ("mae_r", "mfe_r")
GROUPS_SHOWN = 20
CSV_COLUMNS = (
    *("id", "opened_at", "closed_at", "symbol", "direction", "strategy_name", "mode", "status"),
    *("size", "entry_price", "exit_price", "stop_price", "risk", "pnl", "fees", "funding", "mfe_r", "mae_r"),
    *("holding_minutes", "exit_reason", "confidence", "market_context", "reflection"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins with one of these is a formula to a spreadsheet."""


def show(page: PageRequest) -> Response:
    page = page.with_deployment(or_every=True)
    if page.fragment == "results":
        return page.render("trades_results.html", **results_of(page))
    answer = page.memory.list_trades(**arguments(page), limit=LIMIT, cursor=page.text("cursor"), count=True)
    currencies = page.currencies() if page.state.unit == "money" else {}
    scatter = scatter_of(page, answer)
    table: dict[str, Any] = {"answer": answer, "in_unit": in_unit, "currencies": currencies, "scatter": scatter}
    if page.fragment == "table":
        return page.render("trades_table.html", **table)
    if (
        not answer.trades
        and not page.text("cursor")
        and not page.memory.list_trades(mode="all", limit=1, **page.when).trades
    ):
        return page.render("empty.html", title="Trades")
    orders = get_args(TradeOrder)
    return page.render("trades.html", title="Trades", orders=orders, **table, **results_of(page))


def results_of(page: PageRequest) -> dict[str, Any]:
    """The results of the trades by category, and what a plain stop and target would have given."""
    scope, by = scope_of(page), page.choice("by", CATEGORIES) or "regime"
    stop, target = page.number("stop", 1.0) or 0.0, page.number("target", 2.0) or 0.0
    groups = page.memory.break_down(by=by, **scope, limit=GROUPS_SHOWN)
    exits = page.memory.compare_exits(stop_r=stop, target_r=target, **scope)
    chart = breakdown_chart(groups)
    return {"categories": CATEGORIES, "by": by, "groups": groups, "breakdown": chart, "exits": exits}


def scope_of(page: PageRequest) -> dict[str, Any]:
    """The deployment, the mode, the period and the instant of the page, as arguments of a query."""
    values = {
        **page.deployment,
        "mode": page.state.mode,
        "symbol": page.text("symbol"),
        "since": read_instant(page.query.get("since", ""), field="since") or page.since,
        "until": read_instant(page.query.get("until", ""), field="until"),
    }
    return {**{name: value for name, value in values.items() if value is not None}, **page.when}


def arguments(page: PageRequest) -> dict[str, Any]:
    """The filters and the order in the address, as arguments of `list_trades`."""
    between = {
        name: [page.number(f"{name}_from", -1e9), page.number(f"{name}_to", 1e9)]
        for name in BRUSHED
        if page.text(f"{name}_from") or page.text(f"{name}_to")
    }
    values: dict[str, Any] = {
        "mode": page.state.mode or ("all" if not page.deployment else None),
        "direction": page.text("direction"),
        "status": page.text("status"),
        "result": page.text("result"),
        "by": page.text("group_by"),
        "label": page.text("group"),
        "belief": page.text("belief"),
        "order": page.text("order"),
        "between": between or None,
    }
    return {**scope_of(page), **{name: value for name, value in values.items() if value is not None}}


def breakdown_chart(groups: BrokenDown) -> SvgChart | None:
    """The expectancy of each group, in R where it is known, else in money."""
    if not groups.groups:
        return None
    in_r = any(each.figures.r is not None for each in groups.groups)
    rows = [
        Group(
            label=each.label.replace("_", " "),
            n=each.figures.trades,
            mean=None if figure is None else figure.mean,
            bounds=None if figure is None or figure.low is None or figure.high is None else (figure.low, figure.high),
        )
        for each in groups.groups
        for figure in [each.figures.r if in_r else each.figures.money]
    ]
    unit = "R" if in_r else f" {groups.currency}" if groups.currency else ""
    return range_chart(f"Expectancy by {groups.by}, with 90% intervals.", rows, suffix=unit)


def scatter_of(page: PageRequest, answer: TradePage) -> SvgChart | None:
    """MAE against MFE of the trades in the table, in R."""
    dots = [
        Dot(
            mae=trade.mae_r,
            mfe=trade.mfe_r,
            won=(trade.pnl or 0.0) > 0,
            cells=(
                f"{trade.closed_at:%Y-%m-%d} {trade.symbol}",
                signed(trade.mae_r, 2, "R"),
                signed(trade.mfe_r, 2, "R"),
                signed(in_unit(trade, "R"), 2, "R"),
            ),
        )
        for trade in answer.trades
        if trade.mae_r is not None and trade.mfe_r is not None
    ]
    if not dots:
        return None
    note = "The trades of the table: ● won, ○ lost. Drag over the chart to filter."
    return scatter_chart("Worst against best of each trade in R.", dots, ("trade", "worst", "best", "result"), note)


def download(page: PageRequest) -> Response:
    """The trades that match the filters as CSV, the newest first, at most 100,000."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    writer.writerows(map(csv_row, _every(page)))
    headers = {"Content-Disposition": 'attachment; filename="trades.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _every(page: PageRequest) -> Iterator[Trade]:
    arguments_of_page, cursor = arguments(page.with_deployment(or_every=True)), None
    for _ in range(MOST_DOWNLOADED // 100):
        answer = page.memory.list_trades(**arguments_of_page, limit=100, cursor=cursor)
        yield from answer.trades
        cursor = answer.next_cursor
        if cursor is None:
            return


def csv_row(trade: Trade) -> list[str]:
    """The cells of a trade; a text that a spreadsheet would run as a formula is quoted."""
    return [_cell(getattr(trade, name)) for name in CSV_COLUMNS]


def _cell(value: object) -> str:
    if isinstance(value, str):
        text = shown(value)
        return f"'{text}" if text.startswith(FORMULA) else text
    return "" if value is None else str(value)
