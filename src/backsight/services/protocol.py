"""Protocol recall: the rules and incidents of the workspace that concern a decision, without a query."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.documents.protocol import Rule, rules_about, rules_in
from backsight.core.documents.query import read_query, words_of
from backsight.core.documents.workspace import AGENTS
from backsight.core.prompts.protocol import incident_line, rule_line, rules_and_incidents
from backsight.core.prompts.sections import Section
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.document_search import cite_matches, library_of
from backsight.store import documents as stored
from backsight.store.documents import Scope
from backsight.store.search.hybrid import hybrid_search
from backsight.store.view import View

MANUAL = "TRADING_MANUAL.md"
MAX_INCIDENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The prompt section of rules and incidents, and the citation of each of its lines."""

    section: Section
    places: dict[str, str]
    """Citations by line of the section."""


def protocol_for(
    ctx: Context, view: View, deployment: Deployment, contexts: tuple[ContextVector, ...]
) -> Protocol | None:
    """The rules of the manual and the incidents that concern a deployment's decision; None without an index."""
    connection, owner = view.connection, view.owner
    index = stored.index_state(connection, owner)
    if index is None:
        return None
    until = view.as_of if view.seen_at is None else min(view.as_of, view.seen_at)
    at = None if index.synced_at <= until else until
    names = list(dict.fromkeys(_names(deployment, contexts)))
    rules = [rule for path in _manuals(deployment) for rule in _rules(view, path, at)]
    relevant = rules_about(rules, names)
    scope = Scope(at=at, agent=deployment.name, sources=("incident",))
    matches = hybrid_search(connection, index, read_query(" ".join(names)), scope)
    incidents = cite_matches(connection, owner, matches, library_of(ctx).ranking, now=until, limit=MAX_INCIDENTS)
    others = [rule for rule in rules if rule not in relevant]
    places = {rule_line(rule): rule.place for rule in rules}
    places |= {incident_line(incident): incident.place for incident in incidents}
    return Protocol(section=rules_and_incidents(relevant, others, incidents), places=places)


def _manuals(deployment: Deployment) -> Iterator[str]:
    """The manual for all agents, then the agent's own."""
    yield MANUAL
    for name in dict.fromkeys([deployment.name, deployment.strategy_name]):
        yield f"{AGENTS}/{name}/{MANUAL}"


def _rules(view: View, path: str, at: datetime | None) -> tuple[Rule, ...]:
    text = stored.document_text(view.connection, view.owner, path, at)
    return rules_in(path, text) if text else ()


def _names(deployment: Deployment, contexts: tuple[ContextVector, ...]) -> Iterator[str]:
    """Names by which a rule can refer to a decision: strategy, symbol and its first part, regimes, session."""
    yield deployment.strategy_name
    for context in contexts:
        if context.symbol:
            yield context.symbol
            yield from list(words_of(context.symbol))[:1]
        if context.regime:
            yield context.regime
        if context.volatility_regime:
            yield f"{context.volatility_regime} volatility"
        if context.session:
            yield f"{context.session} session"
