"""Connecting clients whose configurations have other servers, comments and forms of their own."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.memory import open_memory
from backsight.surfaces.connect.clients import CLIENTS, Machine, McpClient, client_named
from backsight.surfaces.connect.configuration import entries_in
from backsight.surfaces.connect.connecting import (
    Connection,
    ConnectRequest,
    connect,
    disconnect,
    found_clients,
    plan,
    skill_text,
)
from backsight.surfaces.connect.files import BACKUP
from backsight.surfaces.connect.json_text import read_json
from backsight.surfaces.connect.server_check import ServerAnswer

SAMPLES = Path(__file__).parents[2] / "data" / "connect"
CLIENT = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


def answering(command: str, args: list[str], env: Mapping[str, str]) -> ServerAnswer:
    """A server that answers."""
    return ServerAnswer(name="backsight", version="0", tools=("recall_memories",), instructions="Recall.", seconds=0.1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store, which is only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db"
    open_memory(url).close()
    return url


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Machine:
    """A machine with a home, a project and a store."""
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    return Machine(
        platform="linux", home_folder=tmp_path / "home", variables={"BACKSIGHT_URL": url}, folder=tmp_path / "project"
    )


def installed(client: McpClient, machine: Machine) -> Path:
    """The configuration of a client as it is on a machine that was used for a while."""
    (sample,) = SAMPLES.glob(f"{client.name}.*")
    path = client.configuration(machine, "user")
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(sample, path)
    path.chmod(0o640)
    return path


def content(path: Path) -> Any:
    """A configuration as its client reads it."""
    text = path.read_bytes().decode()
    return tomllib.loads(text) if path.suffix == ".toml" else read_json(text, comments=True).content


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def connected_entry(client: McpClient, machine: Machine) -> Any:
    return content(client.configuration(machine, "user"))[client.table]["backsight"]


@CLIENT
def test_a_used_configuration_gets_the_entry_and_keeps_everything_else(client: McpClient, machine: Machine) -> None:
    path = installed(client, machine)
    before, text = content(path), path.read_bytes()
    connection = connect(ConnectRequest(client=client, machine=machine), answering)
    after = content(path)
    entry = after[client.table].pop("backsight")
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "mcp"
    assert entry["env"]["BACKSIGHT_URL"] == machine.variables["BACKSIGHT_URL"]
    before.setdefault(client.table, {}).pop("backsight", None)
    assert after == before
    assert connection.backup is not None
    assert connection.backup.read_bytes() == text
    assert path.stat().st_mode & 0o777 == 0o640
    comments = re.findall(rb"(?://|/\*|#) .*", text)
    assert [comment for comment in comments if comment not in path.read_bytes()] == []


@CLIENT
def test_a_second_time_writes_nothing(client: McpClient, machine: Machine) -> None:
    installed(client, machine)
    request = ConnectRequest(client=client, machine=machine)
    connect(request, answering)
    before = snapshot(machine.home_folder)
    times = {path: path.stat().st_mtime_ns for path in machine.home_folder.rglob("*")}
    connection = connect(request, answering)
    assert not list(connection.changes())
    assert snapshot(machine.home_folder) == before
    assert {path: path.stat().st_mtime_ns for path in machine.home_folder.rglob("*")} == times


@CLIENT
def test_a_dry_run_shows_the_difference_and_writes_nothing(client: McpClient, machine: Machine) -> None:
    installed(client, machine)
    before = snapshot(machine.home_folder)
    difference = plan(ConnectRequest(client=client, machine=machine)).difference()
    assert snapshot(machine.home_folder) == before
    assert f"+++ {client.configuration(machine, 'user')}" in difference
    assert "BACKSIGHT_URL" in difference


@CLIENT
def test_undo_leaves_the_files_as_they_were_to_the_byte(client: McpClient, machine: Machine) -> None:
    installed(client, machine)
    before = snapshot(machine.home_folder)
    request = ConnectRequest(client=client, machine=machine)
    connect(request, answering)
    elsewhere = ConnectRequest(client=client, machine=machine, audience="coach")
    connect(elsewhere, answering)
    gone = disconnect(request, dry_run=True)
    assert gone.is_restored
    assert snapshot(machine.home_folder) != before
    disconnect(request, dry_run=False)
    assert snapshot(machine.home_folder) == before


@CLIENT
def test_undo_after_the_client_changed_its_file_takes_only_the_entry_out(client: McpClient, machine: Machine) -> None:
    path = installed(client, machine)
    request = ConnectRequest(client=client, machine=machine)
    connect(request, answering)
    text = path.read_bytes()
    path.write_bytes(text + b"\n# more\n" if client.format == "toml" else text.replace(b"{", b'{ "more": 1,', 1))
    expected = content(path)
    del expected[client.table]["backsight"]
    disconnect(request, dry_run=False)
    assert content(path) == expected
    assert not disconnect(request, dry_run=False).configuration.is_needed


@CLIENT
def test_a_client_without_a_configuration_gets_one_and_undo_removes_it(client: McpClient, machine: Machine) -> None:
    request = ConnectRequest(client=client, machine=machine)
    connect(request, answering)
    path = client.configuration(machine, "user")
    assert connected_entry(client, machine)["args"][-1] == "mcp"
    assert path.stat().st_mode & 0o777 == 0o600
    disconnect(request, dry_run=False)
    assert list(machine.home_folder.iterdir()) == []


BROKEN = [b'{"mcpServers": {', b"\xff\xfe{\x00}\x00", b"[]", b'{"mcpServers": [1]}', b'{"servers": "x"} trailing']


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_by_its_name_and_nothing_is_written(broken: bytes, machine: Machine) -> None:
    client = client_named("claude-code")
    path = client.configuration(machine, "user")
    path.write_bytes(broken)
    request = ConnectRequest(client=client, machine=machine)
    for attempt in (lambda: connect(request, answering), lambda: disconnect(request, dry_run=False)):
        with pytest.raises(Invalid, match=r"claude\.json"):
            attempt()
    assert snapshot(machine.home_folder) == {".claude.json": broken}


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { docs = { command = "x" } }\n', "[mcp_servers]\nbacksight = { command = 'backsight' }\n"],
)
def test_a_form_that_cannot_be_edited_is_refused(text: str, machine: Machine) -> None:
    client = client_named("codex")
    path = client.configuration(machine, "user")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(Invalid, match="by hand; nothing was written"):
        connect(ConnectRequest(client=client, machine=machine), answering)
    assert path.read_text() == text


def test_an_entry_of_another_program_is_refused(machine: Machine) -> None:
    client = client_named("cursor")
    path = client.configuration(machine, "user")
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"backsight": {"command": "other"}}}')
    request = ConnectRequest(client=client, machine=machine)
    for attempt in (lambda: connect(request, answering), lambda: disconnect(request, dry_run=False)):
        with pytest.raises(Conflict, match="starts another program; give --name; nothing was written"):
            attempt()
    named = ConnectRequest(client=client, machine=machine, name="memory")
    connect(named, answering)
    assert set(content(path)["mcpServers"]) == {"backsight", "memory"}


def test_an_earlier_entry_keeps_what_the_user_added(machine: Machine) -> None:
    client = client_named("windsurf")
    installed(client, machine)
    connect(ConnectRequest(client=client, machine=machine), answering)
    entry = connected_entry(client, machine)
    assert entry["disabledTools"] == ["list_trades"]
    assert set(entry["env"]) == {"BACKSIGHT_KEY", "HTTPS_PROXY", "BACKSIGHT_URL"}


def test_a_server_that_does_not_answer_is_not_entered(machine: Machine) -> None:
    def failing(command: str, args: list[str], env: Mapping[str, str]) -> ServerAnswer:
        raise Unavailable("the server does not start: no disk", field="server")

    with pytest.raises(Unavailable, match="no disk"):
        connect(ConnectRequest(client=client_named("cursor"), machine=machine), failing)
    assert list(machine.home_folder.iterdir()) == []


def test_a_file_that_changes_meanwhile_is_not_overwritten(machine: Machine) -> None:
    client = client_named("claude-code")
    path = installed(client, machine)

    def meanwhile(command: str, args: list[str], env: Mapping[str, str]) -> ServerAnswer:
        path.write_text('{"numStartups": 185}')
        return answering(command, args, env)

    with pytest.raises(Conflict, match="changed by another program"):
        connect(ConnectRequest(client=client, machine=machine), meanwhile)
    assert path.read_text() == '{"numStartups": 185}'


def test_a_link_stays_a_link_to_the_file_that_is_written(machine: Machine) -> None:
    client = client_named("gemini-cli")
    path, dotfiles = installed(client, machine), machine.home_folder / "dotfiles.json"
    path.rename(dotfiles)
    path.symlink_to(dotfiles)
    connect(ConnectRequest(client=client, machine=machine), answering)
    assert path.is_symlink()
    assert "backsight" in content(dotfiles)["mcpServers"]
    assert Path(f"{dotfiles}{BACKUP}").exists()


def test_the_settings_of_the_process_come_along_with_absolute_paths_and_without_secrets(machine: Machine) -> None:
    variables = {
        "BACKSIGHT_URL": "sqlite:///data/../agent.db",
        "BACKSIGHT_WORKSPACE": "notes",
        "BACKSIGHT_OWNER": "ana",
        "BACKSIGHT_SHARED_FOLDERS": os.pathsep.join(["shared", "/srv/shared"]),
        "BACKSIGHT_MODEL_KEY": "secret",
        "BACKSIGHT_KEY": "secret",
        "PATH": "/bin",
    }
    (machine.folder / "notes").mkdir()
    moved = Machine(platform="linux", home_folder=machine.home_folder, folder=machine.folder, variables=variables)
    connection = plan(ConnectRequest(client=client_named("cursor"), machine=moved))
    folder = machine.folder
    assert connection.entry["env"] == {
        "BACKSIGHT_URL": f"sqlite:///{folder}/agent.db",
        "BACKSIGHT_WORKSPACE": f"{folder}/notes",
        "BACKSIGHT_OWNER": "ana",
        "BACKSIGHT_SHARED_FOLDERS": f"{folder}/shared{os.pathsep}/srv/shared",
    }
    assert connection.left_out == ("BACKSIGHT_KEY", "BACKSIGHT_MODEL_KEY")


def test_an_entry_that_would_not_sign_heads_is_refused(machine: Machine) -> None:
    variables = {"BACKSIGHT_AUDIT_KEY": "k" * 32, "BACKSIGHT_HEADS_FILE": "heads.jsonl"}
    with pytest.raises(Refused, match="BACKSIGHT_AUDIT_KEY_FILE"):
        plan(ConnectRequest(client=client_named("cursor"), machine=with_variables(machine, **variables)))


def with_variables(machine: Machine, **variables: str) -> Machine:
    return Machine(
        platform="linux",
        home_folder=machine.home_folder,
        folder=machine.folder,
        variables={**machine.variables, **variables},
    )


def test_secrets_are_masked_in_what_is_shown_and_refused_in_the_file_of_a_project(machine: Machine) -> None:
    with_password = with_variables(machine, BACKSIGHT_URL="postgresql://ana:pass-word@host/name")
    request = ConnectRequest(client=client_named("cursor"), machine=with_password)
    assert "pass-word" not in plan(request).difference()
    assert "postgresql://ana:…@host/name" in plan(request).difference()
    with pytest.raises(Refused, match="use --scope user"):
        plan(ConnectRequest(client=client_named("cursor"), machine=with_password, scope="project"))


def test_an_owner_needs_a_key_and_gets_it_into_the_entry(machine: Machine) -> None:
    with pytest.raises(Refused, match="backsight keys create"):
        plan(ConnectRequest(client=client_named("cursor"), machine=machine, audience="owner"))
    keyed = with_variables(machine, BACKSIGHT_KEY="bk-token")
    connection: Connection = plan(ConnectRequest(client=client_named("cursor"), machine=keyed, audience="owner"))
    assert connection.entry["env"]["BACKSIGHT_KEY"] == "bk-token"
    assert "bk-token" not in connection.difference()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_store_in_memory_is_refused(url: str, machine: Machine) -> None:
    with pytest.raises(Invalid, match="not a store in a file"):
        plan(ConnectRequest(client=client_named("cursor"), machine=with_variables(machine, BACKSIGHT_URL=url)))


def test_a_workspace_that_is_not_there_is_named(machine: Machine) -> None:
    with pytest.raises(NotFound, match="documents init"):
        plan(ConnectRequest(client=client_named("cursor"), machine=machine, workspace=Path("nowhere")))


def test_the_skill_is_for_traders_and_one_that_was_edited_stays(machine: Machine) -> None:
    client = client_named("claude-code")
    path = client.skill(machine, "user")
    assert path is not None
    for request in (
        ConnectRequest(client=client, machine=machine, audience="coach"),
        ConnectRequest(client=client, machine=machine, skill=False),
    ):
        connect(request, answering)
        assert not path.exists()
    trader = ConnectRequest(client=client, machine=machine)
    connect(trader, answering)
    assert path.read_text() == skill_text()
    path.write_text("edited")
    disconnect(trader, dry_run=False)
    assert path.read_text() == "edited"


def test_the_list_says_which_clients_are_here_and_connected(machine: Machine) -> None:
    installed(client_named("zed"), machine)
    connect(ConnectRequest(client=client_named("cursor"), machine=machine, name="memory"), answering)
    connect(ConnectRequest(client=client_named("vscode"), machine=machine, scope="project"), answering)
    client_named("windsurf").configuration(machine, "user").parent.mkdir(parents=True)
    client_named("gemini-cli").configuration(machine, "user").parent.mkdir()
    client_named("gemini-cli").configuration(machine, "user").write_text("{")
    states = {(found.client.name, found.scope): found.state for found in found_clients(machine)}
    assert states[("zed", "user")] == "not connected"
    assert states[("windsurf", "user")] == "not connected"
    assert states[("cursor", "user")] == "connected as memory"
    assert states[("vscode", "project")] == "connected as backsight"
    assert states[("codex", "user")] == "not found"
    assert states[("gemini-cli", "user")].startswith("cannot be read: line 1")
    assert ("cursor", "project") not in states


def test_every_sample_can_be_read_by_its_client() -> None:
    for client in CLIENTS:
        (sample,) = SAMPLES.glob(f"{client.name}.*")
        try:
            entries_in(sample.read_bytes().decode(), client)
        except BacksightError as error:  # pragma: no cover
            pytest.fail(f"{sample}: {error}")
    json.loads((SAMPLES / "claude-code.json").read_text())
