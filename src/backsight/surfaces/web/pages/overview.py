"""Overview: how is it going?"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, partial
from typing import Any

from starlette.responses import Response

from backsight.core.portfolio import Mode
from backsight.core.trades.performance import EquityDay, ResultFigures
from backsight.surfaces.web.charts.calendar import calendar_chart
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.charts.lines import Panel, SeriesLine, line_chart
from backsight.surfaces.web.numbers import Unit, plain, signed
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.pages.attention import waiting

POINTS = 240


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    deployments, own = page.deployments(), page.own_deployment()
    if own is None:
        return page.render("empty_overview.html", title="Overview", waiting=waiting(page))
    since: dict[str, Any] = {} if page.since is None else {"since": page.since}
    equity = page.memory.get_equity(deployment=own.id, **since, **page.when)
    open_trades = page.memory.list_trades(deployment=own.id, status="open", limit=100, **page.when).trades
    figures = figures_by_deployment(page, {each.mode for each in deployments}, since)
    arms = page.memory.break_down(by="memory", deployment=own.id, **since, **page.when)
    return page.render(
        "overview.html",
        title="Overview",
        own=own,
        deployments=deployments,
        currencies=page.currencies(),
        figures=figures,
        equity=equity,
        equity_chart=equity_chart(equity.days, equity.currency, page.state.unit),
        calendar=calendar_of(equity.days, equity.currency, page),
        positions=[page.memory.get_trade(trade_id=each.id, **page.when) for each in open_trades[:20]],
        mood=page.memory.get_agent_state(deployment=own.id, **page.when),
        arms={each.label: each.figures for each in arms.groups},
        waiting=waiting(page),
    )


def figures_by_deployment(page: PageRequest, modes: set[Mode], since: dict[str, Any]) -> dict[str, ResultFigures]:
    """The figures of every deployment in the period, by name."""
    answers = [
        page.memory.break_down(by="deployment", mode=mode, limit=100, **since, **page.when) for mode in sorted(modes)
    ]
    return {group.label: group.figures for answer in answers for group in answer.groups}


def equity_chart(days: Sequence[EquityDay], currency: str, unit: Unit) -> SvgChart | None:
    """Equity by day with its drawdown below; days are thinned to what a screen shows."""
    last = max((number for number, day in enumerate(days) if day.net or day.transfers), default=0)
    days = days[: last + 2]  # nothing happened after that
    if len(days) < 2:
        return None
    first = days[0].start or 1.0
    growth, peak, drawdowns, grown = 1.0, 1.0, [], []
    for day in days:
        growth *= 1.0 + (day.net / day.start if day.start else 0.0)
        peak = max(peak, growth)
        grown.append(100.0 * (growth - 1.0))
        drawdowns.append(100.0 * (growth / peak - 1.0) if peak else 0.0)
    values = [day.end for day in days] if unit == "money" else grown
    step = -(-len(days) // POINTS)
    places = sorted({*range(0, len(days), step), len(days) - 1, drawdowns.index(min(drawdowns))})
    at = [datetime.combine(day.day, time(), tzinfo=UTC) for day in days]

    def text(value: float) -> str:
        return plain(value) if unit == "money" else signed(value, 2, "%")

    label = plain(values[-1], 0) if unit == "money" else signed(values[-1], 1, "%")
    end = f"{drawdowns[-1]:.1f}%".replace("-", "−")
    line = SeriesLine(label=label, points=tuple((at[n], values[n]) for n in places))
    area = SeriesLine(label=end, points=tuple((at[n], drawdowns[n]) for n in places), style="area")
    panels = (
        Panel(lines=(line,), height=150, suffix="" if unit == "money" else "%"),
        Panel(lines=(area,), height=50, suffix="%"),
    )
    rows = [
        (at[n], (f"{days[n].day:%Y-%m-%d}", text(values[n]), signed(drawdowns[n], 2, "%"), plain(days[n].net)))
        for n in places
    ]
    heading = f"equity, {currency}" if unit == "money" else "growth"
    name = f"Equity by day from {first:,.0f} to {days[-1].end:,.0f} {currency}, and drawdown below it."
    note = "Closed trades only, by UTC day; drawdown below."
    if unit == "R":
        note += " An account has no R: shown in %."
    return line_chart(name, panels, rows, ("day", heading, "drawdown", f"net, {currency}"), note)


def calendar_of(days: Sequence[EquityDay], currency: str, page: PageRequest) -> SvgChart | None:
    """The result of each day on which a trade closed."""
    in_money = page.state.unit == "money"
    results = {
        day.day: day.net if in_money else 100.0 * day.net / day.start if day.start else 0.0 for day in days if day.net
    }
    if not results:
        return None

    def text_of(value: float) -> str:
        return f"{signed(value)} {currency}" if in_money else signed(value, 2, "%")

    return calendar_chart("Result of each day.", results, text_of=text_of, link=cache(partial(day_link, page)))


def day_link(page: PageRequest, day: date) -> str:
    """The trades that closed on a day."""
    start = datetime.combine(day, time(), tzinfo=UTC)
    return page.link("/trades", since=start, until=start + timedelta(days=1))
