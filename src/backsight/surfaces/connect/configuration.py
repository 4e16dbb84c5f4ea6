"""The text of a client's configuration with this server in it, and without it. Text in, text out."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from backsight.core.errors import Conflict, Invalid
from backsight.settings import PREFIX, SECRETS
from backsight.surfaces.connect.clients import McpClient, starts_backsight
from backsight.surfaces.connect.json_text import read_json, with_member, without_member
from backsight.surfaces.connect.toml_text import read_toml, with_table, without_table


def entries_in(text: str, client: McpClient) -> dict[str, Any]:
    """The servers of a configuration by their name; empty if it has none. `Invalid` if the text cannot be read."""
    table = _read(text, client).get(client.table, {})
    if not isinstance(table, dict):
        raise Invalid(f"{client.table!r} is not a table of servers")
    return table


def add_entry(text: str, *, client: McpClient, name: str, entry: Mapping[str, Any]) -> str:
    """The text with an entry for this server; the same text if the entry is there.

    An entry with this name that starts another program is refused. Fields and variables that the user added to an
    earlier entry stay.
    """
    existing = entries_in(text, client).get(name)
    if existing is not None:
        _require_own(existing, name)
        entry = merge_entries(existing, entry)
        if entry == existing:
            return text
    path, content = (client.table, name), dict(entry)
    if client.format == "toml":
        new_text = with_table(text, path, content)
    else:
        new_text = with_member(text, path, content, comments=client.comments)
    expected = deepcopy(_read(text, client))
    expected.setdefault(client.table, {})[name] = content
    return _checked(new_text, expected, client)


def remove_entry(text: str, *, client: McpClient, name: str) -> str:
    """The text without the entry of this server; the same text if it has none."""
    existing = entries_in(text, client).get(name)
    if existing is None:
        return text
    _require_own(existing, name)
    if client.format == "toml":
        new_text = without_table(text, (client.table, name))
    else:
        new_text = without_member(text, (client.table, name), comments=client.comments)
    expected = deepcopy(_read(text, client))
    del expected[client.table][name]
    if not expected[client.table] and client.table not in _read(new_text, client):
        del expected[client.table]
    return _checked(new_text, expected, client)


def merge_entries(existing: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """A new entry with what the user added to the earlier one: further fields, other variables, and secrets."""
    variables = existing.get("env")
    additions = {
        name: value
        for name, value in (variables.items() if isinstance(variables, dict) else ())
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX).lower() in SECRETS
    }
    return {**existing, **entry, "env": {**additions, **entry["env"]}}


def _read(text: str, client: McpClient) -> dict[str, Any]:
    if client.format == "toml":
        return read_toml(text)
    content: dict[str, Any] = read_json(text, comments=client.comments).content
    return content


def _require_own(entry: object, name: str) -> None:
    if not starts_backsight(entry):
        raise Conflict(f"the server {name!r} of this configuration starts another program; give --name")


def _checked(new_text: str, expected: Mapping[str, Any], client: McpClient) -> str:
    """An edited text, if it reads as expected: whatever the form of a file, nothing else in it may change."""
    try:
        content = _read(new_text, client)
    except Invalid:
        content = {}
    if content != expected:
        message = f"{client.table!r} has a form that cannot be edited; add or remove the entry by hand"
        raise Invalid(message)
    return new_text
