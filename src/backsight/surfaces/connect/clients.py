"""The MCP clients that `backsight connect` knows: where their configurations are, and what an entry looks like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, Literal, get_args

from backsight.core.errors import Invalid, did_you_mean

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PROGRAM = "backsight"
SKILL = "SKILL.md"
"""The name of an agent skill's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the paths of a client depend on."""

    platform: str
    """As in `sys.platform`: `linux`, `darwin` or `win32`."""
    home_folder: Path
    variables: Mapping[str, str]
    """The variables of the environment."""
    folder: Path
    """The folder of the project."""

    def expanded(self, path: str) -> Path:
        """A path with `~` or `%APPDATA%` at its beginning replaced; another relative path is within the project."""
        if path.startswith("%APPDATA%"):
            appdata = self.variables.get("APPDATA") or self.home_folder / "AppData" / "Roaming"
            return Path(appdata, path.removeprefix("%APPDATA%/"))
        return self.home_folder / path.removeprefix("~/") if path.startswith("~/") else self.folder / path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFolder:
    """A variable that moves the configuration folder of a client, and the default that it replaces."""

    variable: str
    replaces: tuple[str, ...]
    """Beginnings of paths that the variable's folder stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers: its configuration files and the form of an entry."""

    name: str
    title: str
    program: str
    """The command that starts the client, by which it is found."""
    user_files: Mapping[str, str]
    """The user's configuration file by platform; `linux` also stands for platforms that are not named."""
    project_file: str | None = None
    """The configuration file within a project; None if the client has none."""
    table: str = "mcpServers"
    """The object or table of all servers."""
    format: Literal["json", "toml"] = "json"
    comments: bool = True
    """Whether the client reads comments and trailing commas in its JSON."""
    further_fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of an entry beside command, args and env."""
    folder: ClientFolder | None = None
    skills: Mapping[Scope, str] = field(default_factory=dict)
    """The folder of agent skills in each scope that has one."""
    next_step: str

    def configuration(self, machine: Machine, scope: Scope) -> Path:
        """Where the configuration of a scope is."""
        if scope == "user":
            return self._moved(self.user_files.get(machine.platform, self.user_files["linux"]), machine)
        if self.project_file is None:
            raise Invalid(f"{self.title} has no configuration of a project; leave --scope out", field="scope")
        return machine.expanded(self.project_file)

    def skill(self, machine: Machine, scope: Scope) -> Path | None:
        """Where the client looks for this project's skill; None if it has no skills."""
        folder = self.skills.get(scope)
        return None if folder is None else self._moved(folder, machine) / PROGRAM / SKILL

    def _moved(self, path: str, machine: Machine) -> Path:
        new_folder = self.folder and machine.variables.get(self.folder.variable)
        if self.folder and new_folder:
            for beginning in self.folder.replaces:
                if path.startswith(beginning):
                    return Path(new_folder, path.removeprefix(beginning))
        return machine.expanded(path)

    def entry(self, command: str, args: list[str], env: Mapping[str, str]) -> dict[str, Any]:
        """What the client must find under the server's name to start it."""
        return {**self.further_fields, "command": command, "args": args, "env": dict(env)}


CLIENTS: tuple[McpClient, ...] = (
    McpClient(
        name="claude-code",
        title="Claude Code",
        program="claude",
        user_files={"linux": "~/.claude.json"},
        project_file=".mcp.json",
        comments=False,
        further_fields={"type": "stdio"},
        folder=ClientFolder(variable="CLAUDE_CONFIG_DIR", replaces=("~/.claude/", "~/")),
        skills={"user": "~/.claude/skills", "project": ".claude/skills"},
        next_step="Start `claude` anew; /mcp lists the server (that of a project must be approved once)",
    ),
    McpClient(
        name="claude-desktop",
        title="Claude Desktop",
        program="claude-desktop",
        user_files={
            "linux": "~/.config/Claude/claude_desktop_config.json",
            "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
            "win32": "%APPDATA%/Claude/claude_desktop_config.json",
        },
        comments=False,
        next_step="Quit Claude Desktop (closing its window is not enough) and open it again",
    ),
    McpClient(
        name="cursor",
        title="Cursor",
        program="cursor",
        user_files={"linux": "~/.cursor/mcp.json"},
        project_file=".cursor/mcp.json",
        skills={"user": "~/.cursor/skills", "project": ".cursor/skills"},
        next_step="Cursor reads the file again by itself; its settings, under MCP, list the server",
    ),
    McpClient(
        name="codex",
        title="Codex",
        program="codex",
        user_files={"linux": "~/.codex/config.toml"},
        project_file=".codex/config.toml",
        table="mcp_servers",
        format="toml",
        folder=ClientFolder(variable="CODEX_HOME", replaces=("~/.codex/",)),
        skills={"user": "~/.agents/skills", "project": ".agents/skills"},
        next_step="Start `codex` anew; /mcp lists the server",
    ),
    McpClient(
        name="vscode",
        title="VS Code",
        program="code",
        user_files={
            "linux": "~/.config/Code/User/mcp.json",
            "darwin": "~/Library/Application Support/Code/User/mcp.json",
            "win32": "%APPDATA%/Code/User/mcp.json",
        },
        project_file=".vscode/mcp.json",
        table="servers",
        further_fields={"type": "stdio"},
        next_step="Run `MCP: List Servers` in the command palette, and start the server there",
    ),
    McpClient(
        name="windsurf",
        title="Windsurf",
        program="windsurf",
        user_files={"linux": "~/.codeium/windsurf/mcp_config.json"},
        next_step="Press refresh in the MCP settings of Windsurf",
    ),
    McpClient(
        name="gemini-cli",
        title="Gemini CLI",
        program="gemini",
        user_files={"linux": "~/.gemini/settings.json"},
        project_file=".gemini/settings.json",
        skills={"user": "~/.gemini/skills", "project": ".gemini/skills"},
        next_step="Start `gemini` anew; /mcp lists the server",
    ),
    McpClient(
        name="zed",
        title="Zed",
        program="zed",
        user_files={"linux": "~/.config/zed/settings.json", "win32": "%APPDATA%/Zed/settings.json"},
        project_file=".zed/settings.json",
        table="context_servers",
        further_fields={"source": "custom"},
        next_step="Zed reads the file again by itself; the settings of its agent panel list the server",
    ),
)
"""One row a client, by the documentation of each."""
CLIENT_NAMES = tuple(client.name for client in CLIENTS)


def client_named(name: str) -> McpClient:
    """The client with a name, in any case and with blanks or underscores for hyphens."""
    spelling = "-".join(name.strip().lower().replace("_", " ").split())
    for client in CLIENTS:
        if spelling == client.name:
            return client
    raise Invalid(f"no client {name[:40]!r}; {did_you_mean(spelling, CLIENT_NAMES)}", field="client")


def starts_backsight(entry: object) -> bool:
    """Whether an entry starts this program: as a command, as a module, or through another program's arguments.

    >>> starts_backsight({"command": "C:\\\\venv\\\\Scripts\\\\backsight.exe"})
    True
    >>> starts_backsight({"command": "uvx", "args": ["backsight", "mcp"]}), starts_backsight({"url": "http://a"})
    (True, False)
    """
    if not isinstance(entry, dict):
        return False
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else [])]
    return any(isinstance(word, str) and PureWindowsPath(word).stem.lower() == PROGRAM for word in words)
