"""The layout of a workspace: which files are indexed, the source of each, and the files of a new workspace."""

import codecs
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from backsight.core.documents.citation import Source

SOURCE_PATTERNS: Mapping[str, Source] = {
    "SOUL.md": "soul",
    "TRADING_MANUAL.md": "manual",
    "journal/**/*.md": "journal",
    "memory/incidents/**/*.md": "incident",
    "memory/runbooks/**/*.md": "incident",
    "memory/**/*.md": "memory",
    "incidents/**/*.md": "incident",
    "strategies/**": "strategy",
    "artifacts/**": "artifact",
}
"""The first pattern that matches gives the source of a file; `**` matches any number of folders."""
AGENTS = "agents"
"""The folder with one subfolder per agent, each laid out like the workspace."""
SHARED = "global"
"""The virtual folder under which shared folders appear by name."""
RUNBOOKS = frozenset({"incidents", "runbooks"})
MARKDOWN = (".md", ".markdown")
MAX_FILE_BYTES = 5 * 1024 * 1024
"""A larger file is data, not a note."""

SkipReason = Literal[
    "too large",
    "not text",
    "not UTF-8",
    "name is not UTF-8",
    "leads out of the workspace",
    "cannot be read",
    "vanished",
]
"""Why a file of the workspace is not indexed."""

INITIAL_FILES: Mapping[str, str] = {
    "SOUL.md": "# Soul\n\nWho this agent is, what it wants, and what it never does.\n",
    "TRADING_MANUAL.md": "# Trading manual\n\nRules that always apply, a heading each.\n\n"
    "## R1_RISK_PER_TRADE\n\nRisk at most 1% of equity on a trade.\n",
    "journal/README.md": "# Journal\n\nOne file a day; entries are added at the end.\n",
    "memory/learnings.md": "# Learnings\n",
    "memory/notes.md": "# Notes\n",
    "memory/incidents/README.md": "# Incidents\n\nWhat failed, with its error code, and what helped.\n",
    "strategies/README.md": "# Strategies\n\nNotes on each strategy.\n",
    "artifacts/README.md": "# Artifacts\n\nReports of backtests and validations.\n",
}
"""The files of a new workspace, by path."""


def source_of(path: str) -> Source | None:
    """The source of a file in a workspace; None if the file is not indexed.

    >>> source_of("journal/2026/06-04.md"), source_of("journal/a.md"), source_of("memory/incidents/mt5.md")
    ('journal', 'journal', 'incident')
    >>> source_of("strategies/breakout/rules.py"), source_of("README.md"), source_of(".git/HEAD")
    ('strategy', None, None)
    >>> source_of("agents/btc/ideas.md"), source_of("memory/IDEAS.MD")
    ('memory', 'memory')
    >>> source_of("global/desk/playbook.md"), source_of("global/desk/runbooks/mt5.md"), source_of("global/desk/a.py")
    ('global', 'incident', None)
    """
    if any(part.startswith(".") or part.endswith("~") for part in path.split("/")):
        return None
    if path.startswith(f"{SHARED}/"):
        return _shared_source(path) if is_markdown(path) else None
    is_agents = agent_of(path) is not None
    relative = path.split("/", 2)[2] if is_agents else path
    if "/" in relative and is_markdown(relative):
        relative = relative.rpartition(".")[0] + ".md"
    source = next((source for pattern, source in SOURCE_PATTERNS.items() if matches_pattern(relative, pattern)), None)
    return "memory" if source is None and is_agents and is_markdown(path) else source


def _shared_source(path: str) -> Source:
    return "global" if RUNBOOKS.isdisjoint(path.split("/")) else "incident"


def agent_of(path: str) -> str | None:
    """The agent that a file belongs to; None if the file is for all agents.

    >>> agent_of("agents/btc_5m/SOUL.md"), agent_of("SOUL.md"), source_of("agents/btc_5m/SOUL.md")
    ('btc_5m', None, 'soul')
    """
    folder, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    return name if folder == AGENTS and name and file else None


def matches_pattern(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern part by part; `**` matches any number of parts, at the end at least one.

    >>> [matches_pattern(path, "a/**/*.md") for path in ("a/b/c.md", "a/c.md", "a.md")], matches_pattern("a/b", "a/**")
    ([True, True, False], True)
    """
    return _parts_match(path.split("/"), pattern.split("/"))


def _parts_match(parts: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        if len(patterns) == 1:
            return bool(parts)
        return any(_parts_match(parts[skipped:], patterns[1:]) for skipped in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _parts_match(parts[1:], patterns[1:])


def is_markdown(path: str) -> bool:
    """Whether a file is Markdown, by its name.

    >>> is_markdown("journal/A.MD"), is_markdown("strategies/a.py")
    (True, False)
    """
    return path.lower().endswith(MARKDOWN)


def is_utf16(content: bytes) -> bool:
    """Whether a text begins with the byte order mark of UTF-16.

    >>> is_utf16("a".encode("utf-16")), is_utf16(b"a")
    (True, False)
    """
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def is_text(content: bytes) -> bool:
    """Whether bytes can be text: nearly every binary file has a NUL byte, and no text has one.

    >>> is_text(b"# Soul"), is_text(b"PNG\\x00")
    (True, False)
    """
    return b"\0" not in content
