"""Mind: what does it believe and do?"""

from starlette.responses import Response

from backsight.ops.state_history import StateHistory
from backsight.surfaces.web.charts.drawing import SvgChart
from backsight.surfaces.web.charts.lines import Panel, SeriesLine, line_chart
from backsight.surfaces.web.numbers import plain
from backsight.surfaces.web.page import PageRequest
from backsight.surfaces.web.state import read_instant

POINTS = 200


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    if not page.deployment:
        return page.render("empty_mind.html", title="Mind")
    retired = page.text("retired") == "yes"
    beliefs = page.memory.list_beliefs(**page.deployment, retired=retired, **page.when)
    since = read_instant(page.query.get("changed_since", ""), field="changed_since")
    earlier = None if since is None else page.memory.list_beliefs(**page.deployment, retired=True, as_of=since)
    history = page.memory.get_state_history(**page.deployment, since=page.since, limit=POINTS, **page.when)
    return page.render(
        "mind.html",
        title="Mind",
        beliefs=beliefs,
        retired=retired,
        earlier={} if earlier is None else {each.belief.id: each for each in earlier.beliefs},
        changed_since=since,
        habits=page.memory.get_behavioral_analysis(**page.deployment, **page.when),
        mood=page.memory.get_agent_state(**page.deployment, **page.when),
        mood_chart=mood_chart(history),
        plans=page.memory.list_plans(**page.deployment, **page.when).plans[::-1],
    )


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
    return line_chart("Confidence and risk appetite over time.", panels, rows, headings, f"{history.closes} closes.")
