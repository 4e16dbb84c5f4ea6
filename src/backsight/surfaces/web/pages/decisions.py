"""Decisions: what did it propose?"""

from typing import Any

from starlette.responses import RedirectResponse, Response

from backsight.core.agents.run import RunKind
from backsight.core.decision import Decision
from backsight.core.errors import NotFound
from backsight.core.risk_state import AttemptKind
from backsight.ops.agents import ListedRun
from backsight.ops.ticks import DecisionDetail
from backsight.surfaces.web.numbers import in_unit
from backsight.surfaces.web.page import PageRequest

RUN_KINDS: tuple[RunKind, ...] = ("heartbeat", "manual", "chat", "re_examination")
RUNS = 20
KINDS: tuple[AttemptKind, ...] = ("executed", "rejected", "noop")
LIMIT = 50


def show(page: PageRequest) -> Response:
    page = page.with_deployment()
    if not page.deployment:
        return page.render("empty.html", title="Decisions")
    kind = page.choice("kind", KINDS)
    answer = page.memory.list_decisions(
        **page.deployment, kind=kind, since=page.since, limit=LIMIT, cursor=page.text("cursor"), **page.when
    )
    runs = _runs(page)
    if not (answer.decisions or runs or kind or page.text("cursor")) and page.since is None:
        return page.render("empty.html", title="Decisions")
    return page.render(
        "decisions.html",
        title="Decisions",
        answer=answer,
        in_unit=in_unit,
        trades={each.id: _trades(page, each) for each in answer.decisions},
        kinds=KINDS,
        kind=kind,
        pair=_pair(page),
        runs=runs,
        review=page.memory.get_my_decisions(**page.deployment, limit=20, **page.explicit_when) if runs else None,
        session=page.memory.session_status(**page.deployment, **page.when),
    )


def _runs(page: PageRequest) -> list[ListedRun]:
    """The last runs that are no ticks, newest first."""
    pages = [page.memory.list_runs(**page.deployment, kind=kind, limit=RUNS, **page.when) for kind in RUN_KINDS]
    return sorted((run for each in pages for run in each.runs), key=lambda run: (run.at, run.id), reverse=True)[:RUNS]


def show_run(page: PageRequest) -> Response:
    """A run with its card, its outcome and how conviction changed."""
    detail = page.memory.get_run(run=page.query["id"], **page.when)
    if detail.tick is not None:
        return RedirectResponse(page.link(f"/decisions/{detail.tick.id}"), status_code=303)
    history = page.memory.conviction_history(run=page.query["id"], **page.when)
    return page.render("run.html", title="Decisions", detail=detail, run=detail.run, history=history.re_examinations)


def show_one(page: PageRequest) -> Response:
    detail = page.memory.get_decision(decision_id=page.query["id"], **page.when)
    return page.render("decision.html", title="Decisions", opened=[_whole(page, detail)])


def _pair(page: PageRequest) -> list[dict[str, Any]]:
    """The two decisions to compare, both open; empty if the address names fewer than two."""
    ids = [each for name in ("first", "second") if (each := page.text(name)) is not None]
    if len(ids) < 2:
        return []
    return [_whole(page, page.memory.get_decision(decision_id=each, **page.when)) for each in ids]


def _whole(page: PageRequest, detail: DecisionDetail) -> dict[str, Any]:
    """A decision, its recalls and its trades."""
    decision = detail.decision
    listed = page.memory.list_recalls(decision_id=decision.id, **page.when)
    episodes = {each.id: each for each in listed.episodes}
    trades = _trades(page, decision)
    return {"detail": detail, "decision": decision, "recalls": listed.recalls, "episodes": episodes, "trades": trades}


def _trades(page: PageRequest, decision: Decision) -> list[Any]:
    """The trades that a decision opened or closed."""
    trades = (_trade(page, trade_id) for trade_id in (*decision.opened, *decision.closed))
    return [trade for trade in trades if trade is not None]


def _trade(page: PageRequest, trade_id: str) -> Any:
    try:
        return page.memory.get_trade(trade_id=trade_id, **page.when).trade
    except NotFound:  # folded anew since, under another id
        return None
