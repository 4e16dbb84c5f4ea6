"""Facts: what the owner wants remembered. A coach adds and forgets facts; the owner reviews, edits and erases them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from backsight.arguments import AnyText, AsOf, Flag, Key, Name, NoSecret, SeenAt
from backsight.core.decision import Segment
from backsight.core.errors import Invalid
from backsight.core.facts import (
    ArchiveReason,
    FactConfidence,
    checked_fact,
    checked_topic,
    source_of,
)
from backsight.core.prompts.chat import ChatMode, chat_segments
from backsight.core.text.counts import count_of
from backsight.core.text.tokens import estimate
from backsight.operation import command, query
from backsight.services import facts as service
from backsight.services.context import Context
from backsight.services.facts import FactView
from backsight.store import facts as stored
from backsight.store.transaction import Transaction

Topic = Annotated[AnyText | None, "A short tag, like risk, symbols, session or goal."]
StrategyScope = Annotated[Name | None, "The strategy that the fact is about; all strategies if left out."]
FactId = Annotated[Key, "The id of the fact, or its first characters."]
Cleared = Annotated[list[Literal["topic", "strategy"]], Field(max_length=2)]
CallersText = Annotated[str, Field(strict=True, max_length=4_000), NoSecret]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFact:
    """A fact after a command, and what the command did."""

    fact: FactView
    replayed: bool
    """Whether nothing was changed."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactList:
    """Facts, newest first."""

    facts: tuple[FactView, ...]
    stale: int
    """How many of them were neither changed nor shown for 60 days."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedFact:
    """What was erased, and what may still be elsewhere."""

    fact_id: str
    erased_at: datetime
    prompts: int
    """Stored prompts that contained the text and were removed."""
    runs: int
    """Recorded runs that contain the text and stay, because a run is never changed."""
    overwritten: bool
    """Whether the space of the removed text was overwritten; if not, the text may still be in the files."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPrompt:
    """The system prompt of a chat, in segments: what is stable for the owner, for the session, and for the turn."""

    segments: tuple[Segment, ...]
    text: str
    facts: tuple[str, ...]
    """The ids of the facts in it."""
    tokens: int
    """An estimate that is never too low."""


@command(audience=("coach",))
def remember(
    ctx: Context,
    *,
    fact: Annotated[AnyText, "What the owner said or does, in one sentence of 4 to 500 characters."],
    topic: Topic = None,
    confidence: Annotated[FactConfidence, "asserted if the owner said so outright."] = "inferred",
    origin: Annotated[AnyText, "said by the owner, or observed in what the owner does; nothing else is kept."] = "said",
    strategy: StrategyScope = None,
) -> StoredFact:
    """Remember something about the owner for later sessions: a preference, a limit, a goal, a constraint.

    Not today's positions or the market. The same fact again changes nothing, promotes it if it is asserted now, and
    restores it if it was archived.
    """
    source = source_of(origin)
    with ctx.writing() as transaction:
        known, message = service.add_or_find(
            transaction,
            ctx,
            text=fact,
            topic=topic,
            source=source,
            confidence="inferred" if source == "inferred" else confidence,
            strategy=strategy,
        )
        if source == "inferred" and confidence == "asserted" and known.confidence == "inferred":
            message = f"{message} It stays inferred, because it was observed and not said."
        return _stored(ctx, transaction, known.id, message)


@command(audience=("coach",))
def forget(
    ctx: Context,
    *,
    fact_id: FactId,
    reason: Annotated[ArchiveReason, "Why the fact no longer holds."] = "agent_forget",
) -> StoredFact:
    """Archive a fact that no longer holds: chats are no longer shown it, and the owner can restore it."""
    with ctx.writing() as transaction:
        fact = service.fact_named(transaction, ctx, fact_id)
        if fact.archived_at is None:
            service.revise(transaction, ctx, fact, archived_at=ctx.now, archived_reason=reason)
        return _stored(ctx, transaction, fact.id, "Archived; restore_fact brings it back.")


@query()
def list_facts(
    ctx: Context,
    *,
    archived: Annotated[Flag, "The archived facts instead of the active ones."] = False,
    topic: Annotated[AnyText | None, "Only facts with this tag."] = None,
    strategy: Annotated[Name | None, "Only facts about this strategy and about all strategies."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> FactList:
    """List what is remembered about the owner, newest first, with its source and when a chat was shown it last."""
    tag = checked_topic(topic)
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        strategy_id = service.strategy_id_of(view, strategy)
        referenced_at, every = stored.referenced_at(view), stored.facts(view)
    facts = tuple(
        service.view_of(fact, referenced_at.get(fact.id), now=view.as_of)
        for fact in every
        if fact.is_active != archived
        and tag in (None, fact.topic)
        and (strategy_id is None or fact.strategy_id in (None, strategy_id))
    )
    return FactList(
        facts=facts,
        stale=sum(fact.stale for fact in facts),
        message=_list_message(len(facts), len(every), archived=archived),
        as_of=view.as_of,
    )


def _list_message(listed: int, known: int, *, archived: bool) -> str:
    kind = "archived fact" if archived else "fact"
    if listed:
        return f"{count_of(listed, kind)}, newest first."
    if known:
        other = "without archived" if archived else "with archived"
        return f"No {kind}s match; there are {count_of(known, 'fact')} in all: list them {other}, topic or strategy."
    return "No facts are known yet: add_fact adds one, and a coach remembers what you tell it."


@command()
def add_fact(
    ctx: Context,
    *,
    fact: Annotated[AnyText, "One sentence of 4 to 500 characters."],
    topic: Topic = None,
    confidence: Annotated[FactConfidence, "Whether it is certain."] = "asserted",
    strategy: StrategyScope = None,
) -> StoredFact:
    """Add a fact about yourself that every coach is told."""
    with ctx.writing() as transaction:
        known, message = service.add_or_find(
            transaction, ctx, text=fact, topic=topic, source="profile", confidence=confidence, strategy=strategy
        )
        return _stored(ctx, transaction, known.id, message)


@command()
def edit_fact(
    ctx: Context,
    *,
    fact_id: FactId,
    fact: Annotated[AnyText | None, "The new text; unchanged if left out."] = None,
    topic: Annotated[AnyText | None, "The new tag; unchanged if left out."] = None,
    strategy: Annotated[Name | None, "The strategy that it is about from now on; unchanged if left out."] = None,
    clear: Annotated[Cleared, "What to remove: topic, strategy or both."] = [],  # noqa: B006
) -> StoredFact:
    """Correct the text, the tag or the strategy of a fact; the former version stays visible as of then."""
    if fact is None and topic is None and strategy is None and not clear:
        raise Invalid("nothing to change; give a text, a topic or a strategy, or clear one", field="fact")
    for name, given in (("topic", topic), ("strategy", strategy)):
        if name in clear and given is not None:
            raise Invalid(f"clears the {name}, which is also given; leave one of them out", field="clear")
    changes: dict[str, Any] = {}
    if "topic" in clear:
        changes["topic"] = None
    if "strategy" in clear:
        changes |= {"strategy_id": None, "strategy_name": None}
    if fact is not None:
        changes["fact"] = checked_fact(fact)
    if topic is not None:
        changes["topic"] = checked_topic(topic)
    with ctx.writing() as transaction:
        known = service.fact_named(transaction, ctx, fact_id)
        if strategy is not None:
            strategy_id = service.strategy_id_of(ctx.view(transaction.connection), strategy)
            changes |= {"strategy_id": strategy_id, "strategy_name": strategy}
        if any(getattr(known, name) != value for name, value in changes.items()):
            service.refuse_duplicate(transaction, ctx, service.changed(known, changes))
            service.revise(transaction, ctx, known, **changes)
        return _stored(ctx, transaction, known.id, "Changed.")


@command()
def set_fact_confidence(
    ctx: Context,
    *,
    fact_id: FactId,
    confidence: Annotated[FactConfidence, "asserted: it is so; inferred: a guess."],
) -> StoredFact:
    """Promote a fact to asserted, or demote it to inferred."""
    with ctx.writing() as transaction:
        fact = service.fact_named(transaction, ctx, fact_id)
        if fact.confidence != confidence:
            service.revise(transaction, ctx, fact, confidence=confidence)
        return _stored(ctx, transaction, fact.id, f"The fact is {confidence}.")


@command()
def restore_fact(ctx: Context, *, fact_id: FactId) -> StoredFact:
    """Restore an archived fact."""
    with ctx.writing() as transaction:
        fact = service.fact_named(transaction, ctx, fact_id)
        if fact.archived_at is not None:
            service.revise(transaction, ctx, fact, archived_at=None, archived_reason=None)
        return _stored(ctx, transaction, fact.id, "Restored.")


@command()
def erase_fact(ctx: Context, *, fact_id: FactId) -> ErasedFact:
    """Erase the text of a fact for good, its former versions, and stored prompts that contain it.

    A row without text remains, which verify_audit counts. Nothing can be undone. Backups that were made before stay.
    """
    with ctx.writing() as transaction:
        fact = service.fact_named(transaction, ctx, fact_id)
        prompts, runs = service.erase(transaction, ctx, fact)
    ctx.database.forget()
    overwritten = ctx.database.compact()
    return ErasedFact(
        fact_id=fact.id,
        erased_at=ctx.now,
        prompts=prompts,
        runs=runs,
        overwritten=overwritten,
        notes=(*(() if overwritten else (_NOT_OVERWRITTEN,)), *((_in_runs(runs),) if runs else ()), _ELSEWHERE),
    )


def _in_runs(runs: int) -> str:
    verb = "contains" if runs == 1 else "contain"
    return f"{count_of(runs, 'recorded run')} of agents {verb} the text: a run is never changed."


_NOT_OVERWRITTEN = (
    "The text is deleted, but its space could not be overwritten: another process reads the store, or this role does "
    "not own the tables. Call vacuum later, as the owner of the tables."
)
_ELSEWHERE = "Backups and exports of before, and the write-ahead log of a database server, are not erased."


@command()
def compose_chat(
    ctx: Context,
    *,
    persona: Annotated[CallersText | None, "Who the assistant is, in your words."] = None,
    tier: Annotated[CallersText | None, "What the owner's plan or experience adds, in your words."] = None,
    mode: Annotated[ChatMode, "What the chat is for."] = "coach",
    focus: Annotated[CallersText | None, "What this turn is about, in your words."] = None,
    strategy: Annotated[Name | None, "The strategy in focus: facts about it are shown too."] = None,
    session: Annotated[
        Key | None, "The chat session: its facts are chosen once; nothing is recorded without it."
    ] = None,
) -> ChatPrompt:
    """Compose the system prompt of a chat: persona, tier, facts about the owner, mode, focus, rules of trust.

    What changes least comes first, so that a provider can cache the beginning. That a session was shown facts is
    recorded once.
    """
    facts = service.facts_for_session(ctx, strategy=strategy, session=session)
    segments = tuple(chat_segments(persona=persona, tier=tier, facts=facts, mode=mode, focus=focus))
    text = "\n\n".join(segment.text for segment in segments)
    return ChatPrompt(segments=segments, text=text, facts=tuple(fact.id for fact in facts), tokens=estimate(text))


def _stored(ctx: Context, transaction: Transaction, fact_id: str, message: str) -> StoredFact:
    """The answer of a command: the fact as it is now."""
    view = ctx.view(transaction.connection)
    fact = stored.fact(transaction.connection, ctx.owner, fact_id)
    if fact is None:
        raise AssertionError(f"fact {fact_id!r} was just read")
    shown = service.view_of(fact, stored.referenced_at(view).get(fact_id), now=ctx.now)
    replayed = not transaction.changes
    return StoredFact(
        fact=shown, replayed=replayed, message="Already so: nothing was changed." if replayed else message
    )
