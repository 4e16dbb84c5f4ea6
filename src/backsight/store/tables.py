"""All tables together. Importing this module imports every module that defines tables."""

from typing import Any

from backsight.store.agent_sessions import AGENT_SETTINGS, SCHEDULE_LEASES, SESSION_EVENTS
from backsight.store.agents import CARD_TYPES, RUNS
from backsight.store.audit import AUDIT
from backsight.store.bars import BARS
from backsight.store.decisions import DECISIONS, PLACED_ORDERS, SEGMENTS
from backsight.store.documents import INDEX_TABLES, WRITINGS
from backsight.store.events import MARKET_EVENTS
from backsight.store.experience import DERIVED, RETIREMENTS, STATED
from backsight.store.facts import REFERENCES, USER_FACTS
from backsight.store.instruments import INSTRUMENTS
from backsight.store.keys import KEYS
from backsight.store.mapping import Noun, define_indexes
from backsight.store.memories import EPISODES, RECALLS, RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.notes import NOTES, PROPOSALS, REFLECTIONS
from backsight.store.outcomes import OUTCOMES
from backsight.store.plans import PLAN_EVENTS, PLANS
from backsight.store.state import EQUITY
from backsight.store.strategies import ACCOUNTS, DEPLOYMENTS, STRATEGIES
from backsight.store.tick_claims import CLAIMS
from backsight.store.trades import FILLS, MARKS, TRADES
from backsight.store.verifications import VERIFICATIONS

CURRENT: tuple[Noun[Any], ...] = (
    ACCOUNTS,
    INSTRUMENTS,
    STRATEGIES,
    DEPLOYMENTS,
    DECISIONS,
    SEGMENTS,
    PLACED_ORDERS,
    FILLS,
    TRADES,
    MARKS,
    EPISODES,
    RECALLS,
    RETRIEVALS,
    RETRIEVED_EPISODES,
    BARS,
    EQUITY,
    PLANS,
    PLAN_EVENTS,
    STATED,
    RETIREMENTS,
    NOTES,
    REFLECTIONS,
    PROPOSALS,
    WRITINGS,
    RUNS,
    CARD_TYPES,
    OUTCOMES,
    SESSION_EVENTS,
    AGENT_SETTINGS,
    KEYS,
    VERIFICATIONS,
    USER_FACTS,
    REFERENCES,
    MARKET_EVENTS,
)
AUDITED = (*CURRENT, *(noun.former for noun in CURRENT if noun.former is not None))
"""The nouns whose rows the audit chain covers: current rows, and the versions that corrections replaced."""

TABLES = frozenset(
    {AUDIT.table.name, *(noun.table.name for noun in (*AUDITED, *DERIVED, *INDEX_TABLES, CLAIMS, SCHEDULE_LEASES))}
)

define_indexes()
