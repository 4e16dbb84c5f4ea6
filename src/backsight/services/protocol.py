"""Protocol recall: what the workspace says of a decision that is at hand, whatever is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.documents.citation import Citation
from backsight.core.documents.protocol import Rule, applying, rules_in
from backsight.core.documents.query import read_query, words_of
from backsight.core.documents.workspace import AGENTS
from backsight.core.instants import Horizon
from backsight.core.prompts.protocol import incident_line, rule_line, rules_and_incidents
from backsight.core.prompts.sections import Section
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.document_search import cited, library
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.documents import Scope
from backsight.store.search.hybrid import find

MANUAL = "TRADING_MANUAL.md"
MOST_INCIDENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Rules and incidents, and where each line of them stands."""

    section: Section
    places: dict[str, str]
    """By line."""


def protocol_for(
    ctx: Context, connection: Connection, home: Deployment, contexts: tuple[ContextVector, ...], horizon: Horizon
) -> Protocol | None:
    """The rules of the manual and the incidents that speak of a deployment's decision; None without an index."""
    stands = stored.index(connection, ctx.owner)
    if stands is None:
        return None
    until = horizon.as_of if horizon.seen_at is None else min(horizon.as_of, horizon.seen_at)
    at = None if stands.synced_at <= until else until
    names = list(dict.fromkeys(_names(home, contexts)))
    rules = [rule for path in _manuals(home) for rule in _rules(connection, ctx.owner, path, at)]
    told = applying(rules, names)
    scope = Scope(at=at, agent=home.name, sources=("incident",))
    found = find(connection, stands, read_query(" ".join(names)), scope)
    incidents = cited(connection, ctx.owner, found, library(ctx).rules, now=until, limit=MOST_INCIDENTS)
    others = [rule for rule in rules if rule not in told]
    return Protocol(
        section=rules_and_incidents(told, others, incidents),
        places={**{rule_line(rule): rule.place for rule in rules}, **_by_line(incidents)},
    )


def _by_line(incidents: tuple[Citation, ...]) -> dict[str, str]:
    return {incident_line(each): each.place for each in incidents}


def _manuals(home: Deployment) -> Iterator[str]:
    """The manual of everybody, and the agent's own."""
    yield MANUAL
    yield from (f"{AGENTS}/{name}/{MANUAL}" for name in dict.fromkeys([home.name, home.strategy_name]))


def _rules(connection: Connection, owner: str, path: str, at: datetime | None) -> tuple[Rule, ...]:
    text = "".join(piece.text for piece in stored.chunks(connection, owner, path, at))
    return rules_in(path, text) if text else ()


def _names(home: Deployment, contexts: tuple[ContextVector, ...]) -> Iterator[str]:
    """What a rule may call what is at hand: symbols whole and by their first part, the strategy, regimes."""
    yield home.strategy_name
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
