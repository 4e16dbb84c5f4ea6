"""MCP resources: answers of queries under an address, for clients that attach them to a conversation."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from backsight.answers.detail import brief_answer
from backsight.audience import Audience
from backsight.core.errors import NotFound
from backsight.memory import OPERATIONS, Memory

PLACEHOLDER = re.compile(r"\\\{(\w+)\\\}")
TEXT = "text/plain"


class ResourceText(NamedTuple):
    """A resource: its name and purpose, and where its text comes from."""

    name: str
    description: str
    operation: str
    """Who may call this operation may read the resource."""
    text: Callable[[Any], str] | None = None
    """Makes the text from the operation's answer; None: the brief answer."""
    read: Callable[[Memory], str] | None = None
    """Reads the text itself; the operation is not called."""


def _profile(memory: Memory) -> str:
    from backsight.surfaces.mcp_profile import profile_text  # its services are slow to import

    return profile_text(memory)


RESOURCES: Mapping[str, ResourceText] = {
    "trade://{trade_id}": ResourceText("trade", "One trade, by its id or the beginning of it.", "get_trade"),
    "lessons://active": ResourceText(
        "active lessons", "The lessons in force for the only deployment.", "active_lessons"
    ),
    "lessons://active/{deployment}": ResourceText(
        "active lessons of a deployment", "The lessons in force for a deployment, by its name.", "active_lessons"
    ),
    "audit://head": ResourceText(
        "audit head",
        "The head of the audit chain: save it elsewhere, and verify_audit proves that nothing before it was changed.",
        "status",
        text=lambda status: status.head,
    ),
    "facts://profile": ResourceText(
        "profile",
        "What the owner told you before: preferences, limits, goals. Read it first.",
        "remember",
        read=_profile,
    ),
}
"""The resources by their address. The names in braces are arguments of the query."""


def resources_for(audience: Audience) -> dict[str, ResourceText]:
    """The resources whose operation an audience may call."""
    return {uri: each for uri, each in RESOURCES.items() if audience in OPERATIONS[each.operation].audience}


def is_template(uri: str) -> bool:
    """Whether an address has arguments."""
    return "{" in uri


def read_resource(memory: Memory, uri: str, resources: Mapping[str, ResourceText]) -> str:
    """The text of the resource at an address."""
    for pattern, resource in resources.items():
        arguments = arguments_in(uri, pattern)
        if arguments is not None:
            if resource.read is not None:
                return resource.read(memory)
            operation = OPERATIONS[resource.operation]
            answer = memory.run(operation, arguments)
            if resource.text is not None:
                return resource.text(answer)
            return brief_answer(operation, arguments, answer).text()
    raise NotFound(f"no resource {uri[:80]!r}; known: {', '.join(resources)}", field="uri")


def arguments_in(uri: str, pattern: str) -> dict[str, str] | None:
    """The arguments that an address gives to a pattern; None if it does not fit.

    >>> arguments_in("trade://2bc9c40c", "trade://{trade_id}")
    {'trade_id': '2bc9c40c'}
    >>> arguments_in("lessons://active/Fade%40main", "lessons://active/{deployment}")
    {'deployment': 'Fade@main'}
    >>> arguments_in("trade://", "trade://{trade_id}")
    """
    match = re.fullmatch(PLACEHOLDER.sub(r"(?P<\1>[^/]+)", re.escape(pattern)), uri)
    return None if match is None else {name: unquote(text) for name, text in match.groupdict().items()}
