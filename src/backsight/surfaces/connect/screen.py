"""What `backsight connect` prints."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from backsight.core.text.counts import count_of
from backsight.surfaces.cli import program_name
from backsight.surfaces.connect.clients import CLIENT_NAMES
from backsight.surfaces.connect.connecting import Connection, ConnectRequest, Disconnection, FoundClient

if TYPE_CHECKING:
    from backsight.surfaces.connect.server_check import ServerAnswer

FIRST_WORDS = 100
"""Characters of a server's instructions that are shown."""


def connection_lines(connection: Connection, request: ConnectRequest) -> Iterator[str]:
    """What the server answered, what was written, and what to do next."""
    entry, change = connection.entry, connection.configuration
    yield f"Server   {' '.join([entry['command'], *entry['args']])}"
    yield f"Store    {shown_env(connection, 'BACKSIGHT_URL')}: {connection.store}"
    if connection.answer is not None:
        yield f"Answer   {_answer(connection.answer, request)}"
    if not change.is_needed:
        yield f"Already connected: {change.path} has this entry. Nothing was written there."
    else:
        yield f"Written  {change.path}" + (f" (before: {connection.backup})" if connection.backup else "")
    if connection.skill is not None:
        yield f"{'Written ' if connection.skill.is_needed else 'Skill   '} {connection.skill.path}"
    if connection.left_out:
        names = ", ".join(connection.left_out)
        yield f"Left out {names}: secret. If the server needs it, add it to the entry; it stays there."
    yield f"{connection.client.next_step}. Then ask: what do you remember of my trades?"
    yield f"To take it out again: {program_name()} connect {undo_words(request)}"


def _answer(answer: "ServerAnswer", request: ConnectRequest) -> str:
    words = answer.instructions[:FIRST_WORDS].rsplit(" ", 1)[0]
    server = f"{answer.name} {answer.version} after {answer.seconds:.1f} s"
    return f"{server}: {count_of(len(answer.tools), 'tool')} for a {request.audience}. “{words} …”"


def undo_words(request: ConnectRequest) -> str:
    """The arguments that undo a connection."""
    words = [request.client.name, "--undo"]
    if request.name != ConnectRequest.__dataclass_fields__["name"].default:
        words += ["--name", request.name]
    if request.scope != "user":
        words += ["--scope", request.scope]
    return " ".join(words)


def shown_env(connection: Connection, name: str) -> str:
    """A variable of an entry without its secrets."""
    return connection.without_secrets(str(connection.entry["env"][name]))


def plan_lines(connection: Connection) -> Iterator[str]:
    """What would be written."""
    difference = connection.difference()
    yield difference or f"Already connected: {connection.configuration.path} has this entry."
    yield "Nothing was written: this was a dry run, and the server was not started."


def disconnection_lines(disconnection: Disconnection, request: ConnectRequest, *, dry_run: bool) -> Iterator[str]:
    """What was taken out, or would be."""
    change, verb = disconnection.configuration, "Would be taken out" if dry_run else "Taken out"
    if not change.is_needed:
        yield f"{change.path} has no server {request.name!r}; nothing is to be taken out of it."
    elif change.new is None:
        yield f"{verb}: {change.path}, which had nothing else in it."
    else:
        rest = "the file is as it was before" if disconnection.is_restored else "everything else in it stays"
        yield f"{verb}: {request.name!r} of {change.path}; {rest}."
    if disconnection.skill is not None:
        yield f"{verb}: {disconnection.skill.path}"


def client_lines(clients: Sequence[FoundClient]) -> Iterator[str]:
    """The clients, their configurations and whether they are connected, as aligned columns."""
    rows = [("client", "state", "configuration")]
    for row in clients:
        scope = "" if row.scope == "user" else f" ({row.scope})"
        rows.append((f"{row.client.name}{scope}", row.state, str(row.configuration)))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, state, path in rows:
        yield f"{name:{widths[0]}}  {state:{widths[1]}}  {path}"
    yield f"Connect one with: {program_name()} connect {'|'.join(CLIENT_NAMES)}"


def connection_json(connection: Connection, *, dry_run: bool) -> str:
    """A connection as JSON, without secrets."""
    answer = connection.answer
    content: dict[str, Any] = {
        "client": connection.client.name,
        "configuration": str(connection.configuration.path),
        "entry": connection.entry,
        "changed": [str(change.path) for change in connection.changes()],
        "written": not dry_run,
        "backup": None if connection.backup is None else str(connection.backup),
        "skill": None if connection.skill is None else str(connection.skill.path),
        "server": None
        if answer is None
        else {
            "name": answer.name,
            "version": answer.version,
            "tools": answer.tools,
            "instructions": answer.instructions,
            "seconds": round(answer.seconds, 3),
        },
        "store": connection.store or None,
        "difference": connection.difference(),
    }
    return connection.without_secrets(json.dumps(content, ensure_ascii=False, indent=2))
