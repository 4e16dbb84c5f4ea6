"""A workspace: which files are memory, of which source, and what a new one holds."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from backsight.core.documents.citation import Source

PLACES: Mapping[str, Source] = {
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
"""The first pattern that fits says what a file is; `**` is any number of folders."""
AGENTS = "agents"
"""Below it a folder an agent, laid out like the workspace."""
SHARED = "global"
"""Below it a name for each folder that is shared with others: playbooks, and runbooks for incidents."""
RUNBOOKS = frozenset({"incidents", "runbooks"})
MARKDOWN = (".md", ".markdown")
LARGEST = 5 * 1024 * 1024
"""Bytes; a larger file is data and not a note."""

Skip = Literal["too large", "not text", "not UTF-8", "leads out of the workspace", "cannot be read", "vanished"]
"""Why a file that should be indexed is not."""

LAID_OUT: Mapping[str, str] = {
    "SOUL.md": "# Soul\n\nWho this agent is, what it wants, and what it never does.\n",
    "TRADING_MANUAL.md": "# Trading manual\n\nRules that always apply, a heading each.\n\n"
    "## R1_RISK_PER_TRADE\n\nRisk at most 1 % of equity on a trade.\n",
    "journal/README.md": "# Journal\n\nOne file a day; entries are added at the end.\n",
    "memory/learnings.md": "# Learnings\n",
    "memory/notes.md": "# Notes\n",
    "memory/incidents/README.md": "# Incidents\n\nWhat failed, with its error code, and what helped.\n",
    "strategies/README.md": "# Strategies\n\nNotes on each strategy.\n",
    "artifacts/README.md": "# Artifacts\n\nReports of backtests and validations.\n",
}
"""What a new workspace holds."""


def source_of(path: str) -> Source | None:
    """What kind of document a file of a workspace is; None for one that is no memory.

    >>> source_of("journal/2026/06-04.md"), source_of("journal/a.md"), source_of("memory/incidents/mt5.md")
    ('journal', 'journal', 'incident')
    >>> source_of("strategies/breakout/rules.py"), source_of("README.md"), source_of(".git/HEAD")
    ('strategy', None, None)
    >>> source_of("global/desk/playbook.md"), source_of("global/desk/runbooks/mt5.md"), source_of("global/desk/a.py")
    ('global', 'incident', None)
    """
    if any(part.startswith(".") or part.endswith("~") for part in path.split("/")):
        return None
    if path.startswith(f"{SHARED}/"):
        return _shared_source(path) if is_markdown(path) else None
    own = path if agent_of(path) is None else path.split("/", 2)[2]
    return next((source for pattern, source in PLACES.items() if fits(own, pattern)), None)


def _shared_source(path: str) -> Source:
    return "global" if RUNBOOKS.isdisjoint(path.split("/")) else "incident"


def agent_of(path: str) -> str | None:
    """The agent whose file it is; None where it is everybody's.

    >>> agent_of("agents/btc_5m/SOUL.md"), agent_of("SOUL.md"), source_of("agents/btc_5m/SOUL.md")
    ('btc_5m', None, 'soul')
    """
    folder, _, rest = path.partition("/")
    name, _, own = rest.partition("/")
    return name if folder == AGENTS and name and own else None


def fits(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern, part by part; `**` is any number of parts, at the end at least one.

    >>> fits("a/b/c.md", "a/**/*.md"), fits("a/c.md", "a/**/*.md"), fits("a.md", "a/**/*.md"), fits("a/b", "a/**")
    (True, True, False, True)
    """
    return _fits(path.split("/"), pattern.split("/"))


def _fits(parts: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        if len(patterns) == 1:
            return bool(parts)
        return any(_fits(parts[skipped:], patterns[1:]) for skipped in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _fits(parts[1:], patterns[1:])


def is_markdown(path: str) -> bool:
    """Whether headings, fences and tables are to be read in a file.

    >>> is_markdown("journal/A.MD"), is_markdown("strategies/a.py")
    (True, False)
    """
    return path.lower().endswith(MARKDOWN)


def is_text(content: bytes) -> bool:
    """Whether bytes can be text at all: a NUL is in nearly every other file, and in no text.

    >>> is_text(b"# Soul"), is_text(b"PNG\\x00")
    (True, False)
    """
    return b"\0" not in content
