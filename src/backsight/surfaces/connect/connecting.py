"""Connect an MCP client to this installation: its entry and its skill, the check of the server, and the way back."""

import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import unified_diff
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backsight.audience import Audience
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused
from backsight.settings import PREFIX, SECRETS, portable_variables, settings_from
from backsight.surfaces.connect.clients import (
    CLIENTS,
    PROGRAM,
    SCOPES,
    SKILL,
    Machine,
    McpClient,
    Scope,
    starts_backsight,
)
from backsight.surfaces.connect.configuration import add_entry, entries_in, remove_entry
from backsight.surfaces.connect.files import FileChange, addition, is_edit, read_text, removal, write

if TYPE_CHECKING:
    from backsight.surfaces.connect.server_check import ServerAnswer

    AskServer = Callable[[str, list[str], Mapping[str, str]], "ServerAnswer"]

URL, WORKSPACE, KEY = f"{PREFIX}URL", f"{PREFIX}WORKSPACE", f"{PREFIX}KEY"
AUDIT_KEY = f"{PREFIX}AUDIT_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest:
    """Which client gets which server."""

    client: McpClient
    machine: Machine
    name: str = PROGRAM
    scope: Scope = "user"
    audience: Audience = "trader"
    tools: str | None = None
    workspace: Path | None = None
    skill: bool = True
    """Whether the skill is installed too, where the client has skills; it is written for a trader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What was done, or would be done, to connect a client."""

    client: McpClient
    entry: Mapping[str, Any]
    configuration: FileChange
    skill: FileChange | None
    backup: Path | None = None
    answer: "ServerAnswer | None" = None
    """What the server answered; None if it was not started."""
    store: str = ""
    """What the store holds."""
    left_out: tuple[str, ...] = ()
    """Secret variables of this process that the entry does not have."""

    def changes(self) -> Iterator[FileChange]:
        """The changes of files that are needed."""
        yield from (change for change in (self.configuration, self.skill) if change is not None and change.is_needed)

    def difference(self) -> str:
        """What the changes are, as a unified diff, without secrets."""
        return self.without_secrets("\n".join(_difference(change) for change in self.changes()))

    def without_secrets(self, text: str) -> str:
        """A text about the entry, to be shown."""
        for secret in _secrets(self.entry["env"]):
            text = text.replace(secret, "…")
        return text


def _difference(change: FileChange) -> str:
    if change.old is None and change.path.name == SKILL:
        return f"+++ {change.path} (new: when to recall, when to remember, how to read answers)"
    old, new = change.old or "", change.new or ""
    before = "/dev/null" if change.old is None else str(change.path)
    return "\n".join(unified_diff(old.splitlines(), new.splitlines(), before, str(change.path), lineterm=""))


def plan(request: ConnectRequest) -> Connection:
    """What has to be written to connect a client; nothing is written."""
    entry, path = _entry(request), request.client.configuration(request.machine, request.scope)
    with _naming(path):
        configuration = addition(path, _adding(request, entry))
    return Connection(
        client=request.client,
        entry=entry,
        configuration=configuration,
        skill=_skill_to_add(request),
        left_out=tuple(sorted(_secret_names(request.machine.variables) - set(entry["env"]))),
    )


def _secret_names(variables: Mapping[str, str]) -> set[str]:
    return {name for secret in SECRETS if variables.get(name := f"{PREFIX}{secret.upper()}")}


def connect(request: ConnectRequest, ask: "AskServer") -> Connection:
    """Start the server as the client will, then write what is needed; if it does not answer, nothing is written."""
    connection = plan(request)
    env = connection.entry["env"]
    answer = ask(connection.entry["command"], connection.entry["args"], env)
    backup = None
    if connection.configuration.is_needed:
        backup = write(connection.configuration, keep_backup=_is_only_entry(request, connection.configuration))
    if connection.skill is not None and connection.skill.is_needed:
        write(connection.skill, keep_backup=False)
    return replace(connection, backup=backup, answer=answer, store=_store(env))


def _is_only_entry(request: ConnectRequest, change: FileChange) -> bool:
    """Whether a file differs from its backup by an earlier entry of ours and nothing else."""
    before, now = read_text(change.backup), change.old or ""
    entry = entries_in(now, request.client).get(request.name)
    return before is not None and entry is not None and is_edit(_adding(request, entry), before, now)


def _adding(request: ConnectRequest, entry: Mapping[str, Any]) -> Callable[[str], str]:
    """The edit that adds an entry."""
    return partial(add_entry, client=request.client, name=request.name, entry=entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnection:
    """What was taken out of a client's files, or would be."""

    configuration: FileChange
    is_restored: bool
    """Whether the file is, to the byte, what it was before it was connected."""
    skill: FileChange | None


def disconnect(request: ConnectRequest, *, dry_run: bool) -> Disconnection:
    """Take the entry and the skill out of a client, and leave everything else as it is."""
    client, path = request.client, request.client.configuration(request.machine, request.scope)
    with _naming(path):
        text = read_text(path)
        entry = entries_in(text or "", client).get(request.name)
        change = FileChange(path, text, text)
        if entry is not None:
            change = removal(path, partial(remove_entry, client=client, name=request.name), _adding(request, entry))
    is_restored = change.is_needed and change.new == read_text(change.backup)
    skill = _skill_to_remove(request)
    if not dry_run:
        if change.is_needed:
            write(change, keep_backup=True)
        if is_restored:
            change.backup.unlink(missing_ok=True)
        if skill is not None:
            write(skill, keep_backup=True)
        for removed_file in (change, skill):
            if removed_file is not None and removed_file.new is None:
                _remove_empty_folders(removed_file.path, request.machine)
    return Disconnection(configuration=change, is_restored=is_restored, skill=skill)


def _remove_empty_folders(path: Path, machine: Machine) -> None:
    """Remove the folders of a file that is gone, below the user's and the project's, as long as they are empty."""
    for folder in path.parents:
        if folder in (machine.home_folder, machine.folder) or any(folder.iterdir()):
            return
        folder.rmdir()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors name the file, and that nothing was written."""
    try:
        yield
    except (Invalid, Conflict) as error:
        raise type(error)(f"{path}: {error.message}; nothing was written") from None


@cache
def skill_text() -> str:
    """The agent skill that ships with the program."""
    return files("backsight.surfaces.connect").joinpath(SKILL).read_text(encoding="utf-8")


def _skill_to_add(request: ConnectRequest) -> FileChange | None:
    path = request.client.skill(request.machine, request.scope)
    if path is None or not request.skill or request.audience != "trader":
        return None
    return addition(path, lambda _text: skill_text())


def _skill_to_remove(request: ConnectRequest) -> FileChange | None:
    """The removal of the skill, if it is there as it was written."""
    path = request.client.skill(request.machine, request.scope)
    if path is None or read_text(path) != skill_text():
        return None
    return FileChange(path, skill_text(), None)


def _entry(request: ConnectRequest) -> dict[str, Any]:
    """The entry of the client: this installation's program, and the settings of this process."""
    machine = request.machine
    env = portable_variables(machine.variables, folder=machine.folder)
    if request.workspace is not None:
        env[WORKSPACE] = str(machine.folder / request.workspace)
    if WORKSPACE in env and not Path(env[WORKSPACE]).is_dir():
        remedy = f"`{WORKSPACE}={env[WORKSPACE]} backsight documents init` makes one"
        raise NotFound(f"there is no folder {env[WORKSPACE]}; {remedy}", field="workspace")
    if machine.variables.get(AUDIT_KEY) and not machine.variables.get(f"{AUDIT_KEY}_FILE"):
        remedy = f"put it into a file, and the name of the file into {AUDIT_KEY}_FILE"
        raise Refused(f"the server must sign heads, and {AUDIT_KEY} is a secret; {remedy}", field="audit_key")
    if request.audience == "owner":
        if not machine.variables.get(KEY):
            remedy = "make one with `backsight keys create --name connect --audience owner --scope write`, and set it"
            raise Refused(f"the owner's tools need the owner's key in {KEY}; {remedy}", field="audience")
        env[KEY] = machine.variables[KEY]
    if request.scope == "project" and _secrets(env):
        raise Refused(
            "the configuration of a project is shared, and this one has a secret; use --scope user", field="scope"
        )
    command, *args = installed_program()
    args += ["mcp"]
    if request.audience != "trader":
        args += ["--audience", request.audience]
    if request.tools:
        args += ["--tools", request.tools]
    return request.client.entry(command, args, env)


def _secrets(env: Mapping[str, str]) -> list[str]:
    """The key and the password among the variables of an entry."""
    credentials, at, _ = env.get(URL, "").partition("://")[2].rpartition("@")
    password = credentials.partition(":")[2] if at else ""
    return [secret for secret in (env.get(KEY, ""), password) if secret]


def installed_program() -> list[str]:
    """The command of this installation, absolute; a link to Python is not followed, because it is the environment."""
    suffix = ".exe" if sys.platform == "win32" else ""
    program = Path(sysconfig.get_path("scripts")) / f"{PROGRAM}{suffix}"
    return [str(program)] if program.exists() else [sys.executable, "-m", PROGRAM]


def _store(env: Mapping[str, str]) -> str:
    """What the store of an entry holds for its owner."""
    from backsight.memory import open_memory

    with open_memory(settings=settings_from(env)) as memory:
        return memory.status().message


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClient:
    """A client on this machine."""

    client: McpClient
    scope: Scope
    configuration: Path
    state: str


def found_clients(machine: Machine) -> Iterator[FoundClient]:
    """The clients in each scope: those of the user all, those of the project that are connected."""
    for client in CLIENTS:
        for scope in SCOPES:
            if scope == "project" and client.project_file is None:
                continue
            path = client.configuration(machine, scope)
            state = _state(client, path, machine)
            if scope == "user" or state.startswith("connected"):
                yield FoundClient(client=client, scope=scope, configuration=path, state=state)


def _state(client: McpClient, path: Path, machine: Machine) -> str:
    try:
        text = read_text(path)
        entries = entries_in(text or "", client)
    except BacksightError as error:
        return f"cannot be read: {error.message}"
    names = [name for name, entry in entries.items() if starts_backsight(entry)]
    if names:
        return f"connected as {', '.join(names)}"
    is_here = text is not None or (path.parent.is_dir() and path.parent not in (machine.home_folder, machine.folder))
    if is_here or shutil.which(client.program, path=machine.variables.get("PATH", "")):
        return "not connected"
    return "not found"
