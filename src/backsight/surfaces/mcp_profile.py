"""What a coach is told about the owner over MCP: as the resource `facts://profile` and before the prompt `coach`."""

from collections.abc import Sequence

from backsight.answers.values import short_id
from backsight.core.facts import Fact, facts_section
from backsight.core.prompts.chat import chat_segments
from backsight.memory import Memory
from backsight.services.facts import facts_for_session

NO_FACTS = "Nothing is known about the owner yet. Ask, and remember what will matter in later sessions."


def profile_text(memory: Memory) -> str:
    """The facts that this session is shown."""
    context, session = _session(memory)
    facts = facts_for_session(context, strategy=None, session=session)
    return "\n\n".join(filter(None, (facts_section(facts) or NO_FACTS, _ids(facts))))


def coach_preamble(memory: Memory) -> str:
    """Facts, the mode of a coach and the rules of trust: the beginning of a chat."""
    context, session = _session(memory)
    facts = facts_for_session(context, strategy=None, session=session)
    segments = chat_segments(persona=None, tier=None, facts=facts, mode="coach", focus=None)
    return "\n\n".join([*(segment.text for segment in segments), *filter(None, [_ids(facts)])])


def _ids(facts: Sequence[Fact]) -> str:
    """What a coach needs to forget a fact; empty without facts."""
    ids = ", ".join(short_id(fact.id) for fact in facts)
    return f"The ids of these facts for forget, in their order: {ids}." if facts else ""


def _session(memory: Memory) -> tuple[Memory, str | None]:
    """A context for one read, and the name of the session: a caller has one a UTC day.

    A caller who may not write has none: that facts were shown is then not recorded.
    """
    context = memory.at_one_instant(operation="compose_chat", request={})
    may_write = memory.authority is None or memory.authority.may_write
    return context, f"mcp {memory.actor} {context.now.date()}" if may_write else None
