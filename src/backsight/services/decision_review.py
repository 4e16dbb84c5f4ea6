"""The review of a deployment's previous decisions: cards and ticks in one list, with what became of them."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from backsight.core.agents.card import CardRole, CardType, direction_of
from backsight.core.agents.outcomes import DecisionOutcome, state_at
from backsight.core.agents.review import DecisionTally, ReviewedDecision, folded, tally_of
from backsight.core.agents.run import AgentRun
from backsight.core.decision import Decision
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade
from backsight.services.card_outcomes import mark_of, why_pending
from backsight.store import agents as stored_agents
from backsight.store import decisions as stored_decisions
from backsight.store import outcomes as stored_outcomes
from backsight.store import trades as stored_trades
from backsight.store.view import View

READ = 200
"""Ticks, and runs, that are read at once: equal no-ops take one line, so a review may need many."""
MOST_READ = 500
"""Decisions that a review looks at."""
MOST_TRADES = 1_000
"""Closed trades in the tally."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReview:
    """The last decisions, newest first, and the tally of all that have a result."""

    decisions: tuple[ReviewedDecision, ...]
    tally: DecisionTally


NOTHING_TO_REVIEW = DecisionReview(decisions=(), tally=tally_of([]))


def review_decisions(view: View, deployment: Deployment, *, limit: int) -> DecisionReview:
    """The last decisions of a deployment; re-examinations are not decisions."""
    newest_first = heapq.merge(
        _runs(view, deployment), _ticks(view, deployment), key=lambda each: (each.at, each.run_id), reverse=True
    )
    lines = folded(islice(newest_first, MOST_READ), most=limit)
    if sum(line.count for line in lines) == MOST_READ:
        lines[-1] = replace(lines[-1], is_cut=True)
    return DecisionReview(decisions=tuple(lines), tally=_tally(view, deployment))


def _runs(view: View, deployment: Deployment) -> Iterator[ReviewedDecision]:
    """The runs with a card, newest first, read as far as they are needed."""
    types = {each.name: each for each in stored_agents.card_types(view)}
    before = None
    while runs := stored_agents.cards(view, deployment.id, limit=READ, before=before):
        outcomes = stored_outcomes.outcomes_by_run(view, [run.id for run in runs])
        children = stored_agents.children_by_parent(view, [run.id for run in runs])
        for run in runs:
            conviction = latest_conviction(children.get(run.id, []))
            yield _of_run(view, run, types.get(run.card_type or ""), outcomes.get(run.id, []), conviction)
        before = (runs[-1].started_at, runs[-1].id)


def _ticks(view: View, deployment: Deployment) -> Iterator[ReviewedDecision]:
    """The ticks, newest first, read as far as they are needed."""
    before = None
    while ticks := stored_decisions.decisions(
        view, deployment_id=deployment.id, kind=None, since=None, until=None, before=before, limit=READ
    ):
        opened = stored_trades.trades_then(view, {trade_id for tick in ticks for trade_id in tick.opened})
        for tick in ticks:
            yield _of_tick(tick, opened)
        before = (ticks[-1].at, ticks[-1].sequence)


def _of_run(
    view: View,
    run: AgentRun,
    card_type: CardType | None,
    rows: Sequence[DecisionOutcome],
    conviction: tuple[int, str] | None,
) -> ReviewedDecision:
    def value(role: CardRole) -> str | None:
        given = None if card_type is None else card_type.value_of(run.card, role)
        return str(given) if given else None

    state = state_at(rows, view.as_of)
    reason = None
    if state is None and card_type is not None:
        reason = why_pending(view, card_type, run)
    elif state is not None and (run.fits is False or direction_of(value("direction")) is not None):
        reason = state.reason
    action = value("direction")
    return ReviewedDecision(
        run_id=run.id,
        at=run.started_at,
        symbol=value("symbol"),
        action=action.upper() if action else run.card_type or run.kind,
        summary=value("summary"),
        takes_position=direction_of(action) is not None,
        status="pending" if state is None else state.status,
        outcome_r=None if state is None else state.outcome_r,
        marked_r=None if state is None or card_type is None else mark_of(view, card_type, run, state),
        reason=reason,
        conviction=None if conviction is None else conviction[0],
        suggested_action=None if conviction is None else conviction[1],
    )


def latest_conviction(children: Sequence[AgentRun]) -> tuple[int, str] | None:
    """The score and the advice of the latest successful re-examination of a run; `children` are oldest first."""
    for child in reversed(children):
        score = child.card.get("conviction_score")
        if child.status == "succeeded" and child.fits and isinstance(score, int):
            return score, str(child.card.get("suggested_action", ""))
    return None


def _of_tick(tick: Decision, opened: Mapping[str, Trade]) -> ReviewedDecision:
    verdict = tick.verdict
    trades = [opened[trade_id] for trade_id in tick.opened if trade_id in opened]
    closed = [trade for trade in trades if trade.closed_at is not None]
    results = [trade.outcome.value for trade in closed if trade.outcome is not None and trade.outcome.unit == "R"]
    return ReviewedDecision(
        run_id=tick.id,
        at=tick.at,
        symbol=tick.symbol,
        action=" ".join(filter(None, (verdict.kind, verdict.rule))),
        summary=tick.reason or verdict.detail,
        takes_position=verdict.kind == "executed",
        status=None if not trades else "resolved" if len(closed) == len(trades) else "active",
        outcome_r=sum(results) if closed and len(results) == len(closed) == len(trades) else None,
    )


def _tally(view: View, deployment: Deployment) -> DecisionTally:
    """The results in R of all resolved cards and closed trades of a deployment."""
    outcomes = stored_outcomes.outcomes_by_run(view, stored_outcomes.card_ids(view, deployment.id))
    states = [state_at(rows, view.as_of) for rows in outcomes.values()]
    of_cards = [state.outcome_r for state in states if state is not None and state.outcome_r is not None]
    trades = stored_trades.recent_closed(view, deployment.id, most=MOST_TRADES)
    of_trades = [trade.outcome.value for trade in trades if trade.outcome is not None and trade.outcome.unit == "R"]
    return tally_of([*of_cards, *of_trades])
