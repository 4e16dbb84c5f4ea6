"""Facts about the owner: stored, changed and erased, and which of them a chat session is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backsight.core.errors import Conflict, NotFound, Refused, did_you_mean
from backsight.core.facts import (
    MOST_FACTS,
    ArchiveReason,
    Fact,
    FactConfidence,
    FactReference,
    FactSource,
    checked_fact,
    checked_topic,
    fold,
    is_stale,
    select_facts,
    traces_of,
)
from backsight.core.ids import derive_id
from backsight.services.context import Context
from backsight.services.deployments import deployments_at
from backsight.services.id_prefixes import whole_id
from backsight.store import facts as stored
from backsight.store.agents import runs_with
from backsight.store.decisions import SEGMENTS
from backsight.store.strategies import is_saved
from backsight.store.transaction import Transaction
from backsight.store.view import View

SALT_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FactView:
    """A fact as its owner sees it; a class beside `Fact` because it has no salt, and says when the fact was shown."""

    id: str
    fact: str
    source: FactSource
    confidence: FactConfidence
    topic: str | None
    strategy_name: str | None
    """None for a fact about all strategies."""
    created_at: datetime
    changed_at: datetime
    """When the fact was created, edited or restored last."""
    last_referenced_at: datetime | None
    """When a chat session was shown the fact last."""
    archived_at: datetime | None
    archived_reason: ArchiveReason | None
    stale: bool
    """Whether the fact was neither changed nor shown for 60 days."""


def view_of(fact: Fact, referenced_at: datetime | None, *, now: datetime) -> FactView:
    """A fact that is not erased, as its owner sees it."""
    return FactView(
        id=fact.id,
        fact=fact.fact or "",
        source=fact.source,
        confidence=fact.confidence,
        topic=fact.topic,
        strategy_name=fact.strategy_name,
        created_at=fact.created_at,
        changed_at=fact.changed_at,
        last_referenced_at=referenced_at,
        archived_at=fact.archived_at,
        archived_reason=fact.archived_reason,
        stale=fact.is_active and is_stale(fact, referenced_at, now=now),
    )


def strategy_id_of(view: View, name: str | None) -> str | None:
    """The id of a strategy that is saved or deployed; `NotFound` for another name."""
    if name is None:
        return None
    deployed = sorted({each.strategy_name for each in deployments_at(view)})
    if name not in deployed and not is_saved(view, name):
        remedy = did_you_mean(name, deployed) if deployed else "save it first"
        raise NotFound(f"no strategy {name!r}; {remedy}", field="strategy")
    return derive_id("strategy", view.owner, name)


def add_or_find(
    transaction: Transaction,
    ctx: Context,
    *,
    text: str,
    topic: str | None,
    source: FactSource,
    confidence: FactConfidence,
    strategy: str | None,
) -> tuple[Fact, str]:
    """A new fact, or the one that says the same; and what was done, in words.

    Asserting an inferred fact promotes it, and an archived one that is said again is restored.
    """
    fact_text, tag = checked_fact(text), checked_topic(topic)
    view = ctx.view(transaction.connection)
    strategy_id = strategy_id_of(view, strategy)
    facts = stored.facts(view)
    same = next(
        (each for each in facts if each.strategy_id == strategy_id and fold(each.fact or "") == fold(fact_text)), None
    )
    if same is not None:
        return _again(transaction, ctx, same, confidence)
    if sum(each.is_active for each in facts) >= MOST_FACTS:
        raise Refused(f"there are {MOST_FACTS:,} facts; archive those that no longer matter", field="fact")
    salt = ctx.randomness.random_bytes(SALT_BYTES).hex()
    fact = Fact(
        owner_id=ctx.owner,
        id=derive_id("fact", ctx.owner, salt),  # not of the text, which an id would let others guess at
        fact=fact_text,
        salt=salt,
        source=source,
        confidence=confidence,
        topic=tag,
        strategy_id=strategy_id,
        strategy_name=strategy,
        created_at=ctx.now,
        changed_at=ctx.now,
        archived_at=None,
        archived_reason=None,
        erased_at=None,
        known_at=ctx.now,
        recorded_at=ctx.now,
    )
    transaction.add(stored.USER_FACTS, fact)
    return fact, "Remembered."


def _again(transaction: Transaction, ctx: Context, fact: Fact, confidence: FactConfidence) -> tuple[Fact, str]:
    """A fact that is said again: restored if it was archived, promoted if it is asserted now."""
    changes: dict[str, Any] = {}
    words = []
    if fact.archived_at is not None:
        changes |= {"archived_at": None, "archived_reason": None}
        words.append("restored")
    if confidence == "asserted" and fact.confidence == "inferred":
        changes["confidence"] = "asserted"
        words.append("now asserted")
    if not changes:
        return fact, "Already known: nothing was changed."
    return revise(transaction, ctx, fact, **changes), f"Already known: {' and '.join(words)}."


def revise(transaction: Transaction, ctx: Context, fact: Fact, /, **changes: Any) -> Fact:
    """Write a new version of a fact, known from now on."""
    changed = replace(fact, **changes, changed_at=ctx.now, known_at=ctx.now, recorded_at=ctx.now)
    transaction.revise(stored.USER_FACTS, changed)
    return changed


def changed(fact: Fact, changes: dict[str, Any]) -> Fact:
    """A fact with some fields changed, not stored."""
    return replace(fact, **changes)


def fact_named(transaction: Transaction, ctx: Context, fact_id: str) -> Fact:
    """The fact with an id, or with an id that begins so; `NotFound` if there is none, `Conflict` if it is erased."""
    connection = transaction.connection
    known = stored.fact(
        connection, ctx.owner, whole_id(connection, ctx.owner, stored.USER_FACTS, fact_id, field="fact_id")
    )
    if known is None:
        raise NotFound(
            f"no fact has the id {fact_id[:40]!r}; list_facts and facts://profile show the ids", field="fact_id"
        )
    if known.erased_at is not None:
        raise Conflict("the text of this fact was erased; add it anew", field="fact_id")
    return known


def refuse_duplicate(transaction: Transaction, ctx: Context, fact: Fact) -> None:
    """Refuse a text that another fact has already."""
    for each in stored.facts(ctx.view(transaction.connection)):
        same = each.strategy_id == fact.strategy_id and fold(each.fact or "") == fold(fact.fact or "")
        if same and each.id != fact.id:
            raise Conflict(f"the fact {each.id[:8]} says the same; restore or edit that one", field="fact")


def erase(transaction: Transaction, ctx: Context, fact: Fact) -> tuple[int, int]:
    """Remove the text of a fact, its former versions, and the stored prompts that contain it.

    Returns the number of these prompts, and of the recorded runs that contain the text: a run is never changed.
    The row stays without text and salt. The audit chain has a hash of the text that nobody can match without the salt.
    """
    connection = transaction.connection
    stored.overwrite_deleted(connection)
    versions = [text for text in (fact.fact, *stored.former_texts(connection, ctx.owner, fact.id)) if text]
    texts = set[str]().union(*map(traces_of, versions))
    runs = runs_with(connection, ctx.owner, texts)
    prompts = stored.prompts_with(connection, ctx.owner, texts)
    transaction.remove_old(SEGMENTS, ctx.owner, prompts, before=ctx.now)
    revise(
        transaction,
        ctx,
        fact,
        fact=None,
        salt=None,
        topic=None,
        archived_at=fact.archived_at or ctx.now,
        archived_reason=fact.archived_reason or "user_deleted",
        erased_at=ctx.now,
    )
    transaction.erase_versions(stored.USER_FACTS, fact)
    return len(prompts), runs


# Chat sessions


def facts_for_session(ctx: Context, *, strategy: str | None, session: str | None) -> list[Fact]:
    """The facts that a chat session is shown: chosen at its first call, and without those archived since.

    That the facts were shown, or that there were none, is recorded at the first call. Without a session nothing is.
    """
    if session is None:
        with ctx.reading() as connection:
            return _selected(ctx.view(connection), strategy)
    with ctx.writing() as transaction:
        view = ctx.view(transaction.connection)
        references = stored.shown_in(transaction.connection, ctx.owner, session)
        if references:
            return _still_active(view, references)
        facts = _selected(view, strategy)
        ids: list[str | None] = [fact.id for fact in facts]
        for place, fact_id in enumerate(ids or [None]):
            reference = FactReference(
                owner_id=ctx.owner,
                id=derive_id("fact reference", ctx.owner, session, fact_id or ""),
                fact_id=fact_id,
                session=session,
                place=place,
                known_at=ctx.now,
                recorded_at=ctx.now,
            )
            transaction.add(stored.REFERENCES, reference)
    return facts


def _selected(view: View, strategy: str | None) -> list[Fact]:
    strategy_id = strategy_id_of(view, strategy)
    return select_facts(stored.facts(view), stored.referenced_at(view), strategy_id=strategy_id)


def _still_active(view: View, references: Sequence[FactReference]) -> list[Fact]:
    by_id = {fact.id: fact for fact in stored.facts(view) if fact.is_active}
    return [by_id[each.fact_id] for each in references if each.fact_id in by_id]
