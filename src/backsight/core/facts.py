"""Facts: what the owner wants remembered about themselves, and which of them a chat is shown.

Only the owner's words and behaviour become facts. A fact is archived, restored and edited in versions; erasing removes
its text for good and leaves the row without it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from unicodedata import category, normalize

from backsight.core.errors import Invalid, Refused
from backsight.core.secret_text import refuse_secrets
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import flat, shorten

FactSource = Literal["chat", "profile", "inferred"]
FactConfidence = Literal["asserted", "inferred"]
ArchiveReason = Literal["user_deleted", "user_corrected", "agent_forget"]

FEWEST_CHARACTERS, MOST_CHARACTERS = 4, 500
MOST_TOPIC = 24
MOST_FACTS = 1_000
"""Facts of an owner that are not archived; more are refused, because nobody would review them."""
MOST_IN_PROMPT = 10
"""Facts in a prompt."""
LEAST_RECENT = 2
"""Places of them for the facts shown least recently, so that those that are shown do not keep the others out."""
MOST_TOKENS = 250
FACT_TOKENS = 60
"""Tokens of one fact in a prompt; a longer one is cut."""
STALE_AFTER = timedelta(days=60)
HEADING = "## What I know about you"
INFERRED = " (inferred)"

_BAD_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_TOPIC = re.compile(r"[\w][\w &/+-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One version of a fact."""

    owner_id: str
    id: str
    fact: str | None
    """None once it is erased."""
    salt: str | None
    """Makes the hash in the audit chain worthless to guess at; None once the fact is erased."""
    source: FactSource
    confidence: FactConfidence
    topic: str | None
    strategy_id: str | None
    """None for a fact about all strategies."""
    strategy_name: str | None
    created_at: datetime
    changed_at: datetime
    """When the fact was created, edited or restored last."""
    archived_at: datetime | None
    archived_reason: ArchiveReason | None
    erased_at: datetime | None
    known_at: datetime
    recorded_at: datetime

    @property
    def is_active(self) -> bool:
        return self.archived_at is None and self.erased_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReference:
    """A chat session was shown a fact, or began without any."""

    owner_id: str
    id: str
    fact_id: str | None
    """None if there was no fact to show."""
    session: str
    place: int
    """The place of the fact in the session's prompt, from 0 on."""
    known_at: datetime
    recorded_at: datetime


def checked_fact(text: str, *, field: str = "fact") -> str:
    """The text of a fact without the spaces around it; `Invalid` or `Refused` if it is none.

    >>> checked_fact("  I never trade alts. ")
    'I never trade alts.'
    """
    trimmed = text.strip()
    bad = next((character for character in trimmed if category(character) in _BAD_KINDS), None)
    if bad is not None:
        message = f"contains the character U+{ord(bad):04X}, which is invisible or controls the text"
        raise Invalid(f"{message}; give one line of plain text", field=field)
    if not FEWEST_CHARACTERS <= len(trimmed) <= MOST_CHARACTERS:
        message = f"has {len(trimmed)} characters; give {FEWEST_CHARACTERS} to {MOST_CHARACTERS}"
        raise Invalid(message, field=field)
    if not fold(trimmed):
        raise Invalid("has no letter or digit; give a sentence", field=field)
    refuse_secrets(trimmed, field=field)
    return trimmed


def checked_topic(topic: str | None) -> str | None:
    """The topic as a short tag in lower case; `Invalid` if it is none.

    >>> checked_topic(" Risk "), checked_topic(None)
    ('risk', None)
    """
    if topic is None:
        return None
    tag = topic.strip().lower()
    if len(tag) > MOST_TOPIC or not _TOPIC.fullmatch(tag):
        message = f"{topic[:40]!r} is not a tag; give a word like 'risk', of at most {MOST_TOPIC} characters"
        raise Invalid(message, field="topic")
    return tag


def source_of(origin: str) -> FactSource:
    """The source of a fact that a coach remembers, by its origin.

    >>> source_of("said"), source_of("observed")
    ('chat', 'inferred')
    """
    match origin:
        case "said":
            return "chat"
        case "observed":
            return "inferred"
    message = f"a fact from {origin[:40]!r} is not remembered: only what the owner said or did becomes a fact"
    raise Refused(f"{message}; give origin 'said' or 'observed', or leave it out of memory", field="origin")


def fold(text: str) -> str:
    """A text without the differences that make no other fact: case, punctuation, whitespace, forms of characters.

    Marks before a digit stay, and spaces between digits: 1.5, 15 and 1 5 differ.

    >>> fold("I DON'T trade  alts!") == fold("i dont trade alts")
    True
    >>> fold("Risk 1.5%") == fold("risk 15%"), fold("mean-reversion") == fold("Mean reversion.")
    (False, True)
    """
    line = " ".join(normalize("NFKC", text).casefold().split())
    letters: list[str] = []
    for number, character in enumerate(line):
        following = line[number + 1 : number + 2]
        if character == " ":
            keep = following.isdigit() and line[number - 1].isdigit()
        else:
            keep = not category(character).startswith("P") or character == "%" or following.isdigit()
        if keep:
            letters.append(character)
    folded = "".join(letters)
    return folded if any(character.isalnum() for character in folded) else ""


def last_used(fact: Fact, referenced_at: datetime | None) -> datetime:
    """The latest of created, edited, restored and referenced."""
    return fact.changed_at if referenced_at is None else max(fact.changed_at, referenced_at)


def is_stale(fact: Fact, referenced_at: datetime | None, *, now: datetime) -> bool:
    """Whether a fact was neither changed nor shown for 60 days."""
    return now - last_used(fact, referenced_at) >= STALE_AFTER


def select_facts(
    facts: Iterable[Fact], referenced_at: Mapping[str, datetime], *, strategy_id: str | None
) -> list[Fact]:
    """The facts that a new chat session is shown, in their order, as far as they fit.

    Asserted ones come before inferred ones, and within each the last used first. The last two places go to those that
    were shown least recently.
    """
    eligible = [fact for fact in facts if fact.is_active and fact.strategy_id in (None, strategy_id)]
    newest = sorted(eligible, key=lambda fact: (fact.created_at, fact.id), reverse=True)
    by_use = sorted(newest, key=lambda fact: last_used(fact, referenced_at.get(fact.id)), reverse=True)
    ranked = sorted(by_use, key=lambda fact: fact.confidence != "asserted")
    if len(ranked) <= MOST_IN_PROMPT:
        return fitting_facts(ranked)
    first, others = ranked[: MOST_IN_PROMPT - LEAST_RECENT], ranked[MOST_IN_PROMPT - LEAST_RECENT :]
    waiting = sorted(others, key=lambda fact: (_when_shown(fact, referenced_at), fact.created_at, fact.id))
    return fitting_facts([*first, *waiting[:LEAST_RECENT]])


def _when_shown(fact: Fact, referenced_at: Mapping[str, datetime]) -> tuple[bool, datetime]:
    """Orders facts by when they were shown; those that never were come first."""
    at = referenced_at.get(fact.id)
    return (False, fact.created_at) if at is None else (True, at)


def fitting_facts(facts: Sequence[Fact]) -> list[Fact]:
    """Of the facts those that together fit into a prompt; one that is too long makes room for the next."""
    used, fitting = estimate(HEADING), list[Fact]()
    for fact in facts:
        cost = estimate(f"\n{fact_line(fact)}")
        if used + cost <= MOST_TOKENS:
            fitting.append(fact)
            used += cost
    return fitting


def shown_text(text: str) -> str:
    """The text of a fact as a prompt shows it: flat, and cut if it is long."""
    return shorten(text, most=MOST_CHARACTERS, tokens=FACT_TOKENS)


def traces_of(text: str) -> set[str]:
    """The texts that a stored prompt has of a fact: the whole of it, or what a prompt shows.

    >>> sorted(traces_of("I owe  my brother money"))
    ['I owe  my brother money', 'I owe my brother money']
    """
    shown = shown_text(text).removesuffix("…").strip()
    return {text, shown} if len(shown) >= FEWEST_CHARACTERS else {text}


def fact_line(fact: Fact) -> str:
    """A fact as one line of a prompt."""
    text = shown_text(fact.fact or "")
    topic = "" if fact.topic is None else f"[{flat(fact.topic)}] "
    return f"- {topic}{text}{INFERRED if fact.confidence == 'inferred' else ''}"


def facts_section(facts: Sequence[Fact]) -> str:
    """The section of a prompt with facts; empty without any."""
    return "\n".join([HEADING, *map(fact_line, facts)]) if facts else ""
