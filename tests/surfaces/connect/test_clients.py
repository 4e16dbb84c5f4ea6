"""Where the configuration of each client is on each platform."""

from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.surfaces.connect.clients import CLIENTS, Machine, client_named

HOME = Path("/home/ana")


def machine(platform: str = "linux", **variables: str) -> Machine:
    return Machine(platform=platform, home_folder=HOME, variables=variables, folder=Path("/project"))


@pytest.mark.parametrize(
    ("name", "platform", "path"),
    [
        ("claude-code", "linux", ".claude.json"),
        ("claude-code", "win32", ".claude.json"),
        ("claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("cursor", "darwin", ".cursor/mcp.json"),
        ("codex", "linux", ".codex/config.toml"),
        ("vscode", "linux", ".config/Code/User/mcp.json"),
        ("vscode", "darwin", "Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "AppData/Roaming/Code/User/mcp.json"),
        ("windsurf", "linux", ".codeium/windsurf/mcp_config.json"),
        ("gemini-cli", "win32", ".gemini/settings.json"),
        ("zed", "darwin", ".config/zed/settings.json"),
        ("zed", "win32", "AppData/Roaming/Zed/settings.json"),
    ],
)
def test_the_file_of_the_user_is_where_the_client_documents_it(name: str, platform: str, path: str) -> None:
    assert client_named(name).configuration(machine(platform), "user") == HOME / path


@pytest.mark.parametrize(
    ("name", "path"),
    [("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")],
)
def test_the_file_of_a_project_is_in_its_folder(name: str, path: str) -> None:
    assert client_named(name).configuration(machine(), "project") == Path("/project", path)


def test_variables_of_clients_move_their_folders() -> None:
    moved = machine("win32", CLAUDE_CONFIG_DIR="/c", CODEX_HOME="/x", APPDATA="/roaming")
    claude = client_named("claude-code")
    assert claude.configuration(moved, "user") == Path("/c/.claude.json")
    assert claude.skill(moved, "user") == Path("/c/skills/backsight/SKILL.md")
    assert claude.skill(moved, "project") == Path("/project/.claude/skills/backsight/SKILL.md")
    assert client_named("codex").configuration(moved, "user") == Path("/x/config.toml")
    assert client_named("zed").configuration(moved, "user") == Path("/roaming/Zed/settings.json")


def test_a_client_is_found_in_other_spellings_and_a_mistyped_one_is_named() -> None:
    assert client_named(" Claude Code ").name == "claude-code"
    assert client_named("gemini_cli").name == "gemini-cli"
    with pytest.raises(Invalid, match="did you mean 'windsurf'"):
        client_named("winsurf")


def test_a_client_without_files_of_projects_says_so() -> None:
    for client in CLIENTS:
        if client.project_file is None:
            with pytest.raises(Invalid, match="no configuration of a project"):
                client.configuration(machine(), "project")
