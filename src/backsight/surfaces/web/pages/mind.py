"""Mind: what does it believe and do?"""

from datetime import datetime, timedelta

from starlette.responses import Response

from backsight.core.errors import Invalid, NotFound
from backsight.core.text.counts import count_of
from backsight.ops.beliefs import BeliefList
from backsight.ops.state_history import StateHistory
from backsight.services.beliefs import BeliefView
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.charts.lines import Panel, SeriesLine, line_chart
from backsight.surfaces.web.numbers import plain
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.state import read_instant

POINTS, MOST_DAYS = 200, 36_500


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    if not page.deployment:
        return page.render("empty.html", title="Mind")
    retired = page.text("retired") == "yes"
    beliefs = page.memory.list_beliefs(**page.deployment, retired=retired, **page.when)
    since = _changed_since(page)
    earlier = None if since is None else _beliefs_at(page, since)
    history = page.memory.get_state_history(**page.deployment, since=page.since, limit=POINTS, **page.when)
    return page.render(
        "mind.html",
        title="Mind",
        beliefs=beliefs,
        retired=retired,
        shown=changed_beliefs(beliefs, earlier),
        changed_since=since,
        habits=page.memory.get_behavioral_analysis(**page.deployment, **page.when),
        mood=page.memory.get_agent_state(**page.deployment, **page.when),
        mood_chart=mood_chart(history),
        plans=page.memory.list_plans(**page.deployment, **page.when).plans[::-1],
    )


def _beliefs_at(page: PageRequest, at: datetime) -> BeliefList | None:
    """The beliefs at an earlier instant; None before the deployment existed."""
    try:
        return page.memory.list_beliefs(**page.deployment, retired=True, as_of=at)
    except NotFound:
        return None


def _changed_since(page: PageRequest) -> datetime | None:
    """The instant of the address, or so many days before the instant of the page."""
    days = page.number("days")
    if days is None:
        return read_instant(page.query.get("changed_since", ""), field="changed_since")
    if not 0 < days <= MOST_DAYS:
        raise Invalid(f"is not between 0 and {MOST_DAYS}; give one like 7", field="days")
    return (page.state.as_of or page.memory.clock.now()) - timedelta(days=days)


def changed_beliefs(beliefs: BeliefList, earlier: BeliefList | None) -> list[tuple[BeliefView, BeliefView | None]]:
    """The beliefs that differ from what they were earlier, with what they were; all beliefs without an earlier list."""
    former = {} if earlier is None else {each.belief.id: each for each in earlier.beliefs}
    pairs = [(each, former.get(each.belief.id)) for each in beliefs.beliefs]
    return [(each, was) for each, was in pairs if was is None or _state(was) != _state(each)]


def _state(view: BeliefView) -> tuple[object, ...]:
    return view.posterior.n, view.posterior.credibility, view.belief.retired_at


def mood_chart(history: StateHistory) -> SvgChart | None:
    """Confidence after each close, and the risk appetite that the drawdown leaves."""
    confidence = tuple((point.at, point.confidence) for point in history.strategy)
    appetite = tuple((point.at, point.risk_appetite) for point in history.account if point.risk_appetite is not None)
    series = [("confidence", confidence, "main"), ("risk appetite", appetite, "quiet")]
    panels = tuple(
        Panel(lines=(SeriesLine(label=label, points=points, style=style),), height=80)
        for label, points, style in series
        if len(points) > 1
    )
    if not panels:
        return None
    rows = [
        (
            point.at,
            (
                f"{point.at:%Y-%m-%d %H:%M}",
                plain(point.confidence),
                str(point.consecutive_wins),
                str(point.consecutive_losses),
            ),
        )
        for point in history.strategy
    ]
    headings = ("close (UTC)", "confidence", "won in a row", "lost in a row")
    return line_chart(
        "Confidence and risk appetite over time.",
        panels,
        rows,
        headings,
        f"After each of {count_of(history.closes, 'close')}.",
    )
