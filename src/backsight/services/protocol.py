"""Protocol recall: the rules of the workspace that an agent always sees, and what of them concerns a decision."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.documents.citation import Citation
from backsight.core.documents.protocol import mentions, rules_about
from backsight.core.documents.query import read_query
from backsight.core.documents.workspace import AGENTS
from backsight.core.events import base_of
from backsight.core.instruments import NATIONAL_CURRENCIES
from backsight.core.prompts.protocol import ProtocolText, incident_line, protocol_text, rule_line, rules_and_incidents
from backsight.core.prompts.sections import Section
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.document_check import FileComparison, compare_paths, compare_with_files
from backsight.services.document_search import cite_matches, library_of
from backsight.store import documents as stored
from backsight.store import strategies as stored_strategies
from backsight.store.documents import Scope
from backsight.store.search.hybrid import hybrid_search
from backsight.store.view import View

SOUL, MANUAL = "SOUL.md", "TRADING_MANUAL.md"
MAX_INCIDENTS = 2
INCIDENTS_READ = 20
"""The best matches by all names, among which are incidents that only have the name of the session or the regime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The protocol of the system prompt, and the section of the message with what applies to the decision."""

    text: ProtocolText
    section: Section
    places: dict[str, str]
    """Citations by line of the section."""


def protocol_for(
    ctx: Context, view: View, deployment: Deployment, contexts: tuple[ContextVector, ...], *, with_incidents: bool
) -> Protocol | None:
    """The rules of SOUL and manual, and which of them and of the incidents concern a decision; None without an index.

    Without incidents only the text for the system prompt is read.
    """
    connection, owner = view.connection, view.owner
    until = view.as_of if view.seen_at is None else min(view.as_of, view.seen_at)
    index, at = stored.index_state(connection, owner), None
    if index is not None and index.changed_at > until:
        index, at = stored.index_state(connection, owner, until), until
    if index is None:
        return None
    agents = (deployment.name, deployment.strategy_name)
    texts = stored.document_texts(connection, owner, list(_paths(agents)), at)
    comparison = FileComparison() if at is not None else compare_with_files(ctx, connection, texts)
    texts = {path: each for path, each in texts.items() if path not in comparison.left_out}
    text = _protocol_text(texts, agents, comparison.notes)
    if not with_incidents:
        return Protocol(text=text, section=rules_and_incidents(()), places={})
    names = list(dict.fromkeys(_names(deployment, contexts)))
    relevant = rules_about(text.rules, names)
    incidents: list[Citation] = []
    if stored.has_documents_of(connection, owner, "incident"):
        scope = Scope(at=at, agents=agents, sources=("incident",))
        matches = hybrid_search(connection, index, read_query(" ".join(names)), scope)
        # An incident that names the symbol applies, however little it has of all names together.
        ranking = replace(library_of(ctx).ranking, minimum_score=0.0)
        cited = cite_matches(connection, owner, matches, ranking, now=until, limit=INCIDENTS_READ)
        incidents = list(_applying(cited, deployment, contexts))[:MAX_INCIDENTS]
        if at is None:
            left_out = compare_paths(ctx, connection, {each.path for each in incidents}).left_out
            incidents = [each for each in incidents if each.path not in left_out]
    places = {rule_line(rule): rule.place for rule in relevant}
    places |= {incident_line(incident): incident.place for incident in incidents}
    return Protocol(text=text, section=rules_and_incidents(relevant, incidents), places=places)


def protocol_warnings(view: View, at: datetime | None) -> list[str]:
    """For the owner: which rules do not fit into the protocol that the agent of each deployment always sees.

    `at` is the instant at which the documents were indexed; None for now.
    """
    deployments = stored_strategies.deployments(view)
    agents = dict.fromkeys([(), *((each.name, each.strategy_name) for each in deployments)])
    paths = {path for names in agents for path in _paths(names)}
    texts = stored.document_texts(view.connection, view.owner, paths, at)
    protocols = (_protocol_text(texts, names) for names in agents)
    return list(dict.fromkeys(protocol.warning for protocol in protocols if protocol.warning))


def _protocol_text(texts: Mapping[str, str], agents: Iterable[str], notes: tuple[str, ...] = ()) -> ProtocolText:
    return protocol_text(tuple((path, texts[path]) for path in _paths(agents) if path in texts), notes)


def _paths(agents: Iterable[str]) -> Iterator[str]:
    """SOUL and manual for all agents, then the agent's own."""
    yield from (SOUL, MANUAL)
    for name in dict.fromkeys(agents):
        yield from (f"{AGENTS}/{name}/{SOUL}", f"{AGENTS}/{name}/{MANUAL}")


def _applying(
    incidents: Iterable[Citation], deployment: Deployment, contexts: Iterable[ContextVector]
) -> Iterator[Citation]:
    """The incidents that name the strategy or a symbol; a regime or a session alone does not make one apply."""
    names = [deployment.strategy_name, *(name for context in contexts for name in _symbol_names(context))]
    yield from (incident for incident in incidents if mentions(" ".join([*incident.heading, incident.snippet]), names))


def _names(deployment: Deployment, contexts: tuple[ContextVector, ...]) -> Iterator[str]:
    """Names by which a rule can refer to a decision: strategy, symbol and its first part, regimes, session."""
    yield deployment.strategy_name
    for context in contexts:
        yield from _symbol_names(context)
        if context.regime:
            yield context.regime
        if context.volatility_regime:
            yield f"{context.volatility_regime} volatility"
        if context.session:
            yield f"{context.session} session"


def _symbol_names(context: ContextVector) -> Iterator[str]:
    """The symbol and its base, in every spelling the same; the base of a pair of currencies is money of other rules."""
    if context.symbol:
        yield context.symbol
        if (base := base_of(context.symbol)) not in NATIONAL_CURRENCIES:
            yield base
