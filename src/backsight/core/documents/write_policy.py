"""What an agent may write, and where: an agent adds notes and proposes edits of rules; everything else is refused.

Paths are checked here as text, by the strictest reading of any file system; `importers/workspace.py` checks links.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from backsight.core.documents.chunk import FENCE, after_fence
from backsight.core.documents.citation import Source
from backsight.core.documents.workspace import AGENTS, agent_of, matches_pattern, source_of
from backsight.core.errors import Refused, did_you_mean
from backsight.core.instants import format_instant

NoteKind = Literal["journal", "learning", "note"]
"""The kinds of notes that an agent may add: an entry of today's journal, something learned, any other note."""

APPENDABLE = ("journal/**/*.md", "memory/learnings.md", "memory/notes.md", "memory/notes/**/*.md")
NOTE_SOURCES: frozenset[Source | None] = frozenset({"journal", "memory", "incident"})
"""The sources of files that an agent may add notes to in its own folder."""
PROPOSABLE = ("SOUL.md", "TRADING_MANUAL.md")
LONGEST_PATH = 240
LONGEST_PART = 120

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789¹²³"]
)
_COMMENT = re.compile("<!--")
_OPEN_TAG = re.compile(r"^( {0,3})<(?=script|pre|style|textarea|[!?](?!--))", re.IGNORECASE)
"""Tags that would swallow the lines after an entry until they are closed."""
_FORBIDDEN_CHARACTERS = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


def confine(path: str, *, field: str = "path") -> str:
    """A path within the workspace, normalised; a path that could lead out of the workspace is refused.

    >>> confine("./journal//2026-06-04.md")
    'journal/2026-06-04.md'
    >>> confine("journal/../../etc/passwd")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'journal/../../etc/passwd' leads out of its folder; give a path without '..'
    """
    quoted = ascii(path[:60])
    normal = unicodedata.normalize("NFC", path)
    if not normal or len(normal) > LONGEST_PATH:
        raise Refused(f"a path has 1 to {LONGEST_PATH} characters, and this one has {len(normal)}", field=field)
    if _FORBIDDEN_CHARACTERS.search(normal) or not normal.isprintable():
        raise Refused(
            f"{quoted} has characters that are not allowed in file names; use letters, digits, '-', '_' and '.'",
            field=field,
        )
    if normal.startswith(("/", "~")):
        raise Refused(f"{quoted} is outside the workspace; give a path relative to the workspace", field=field)
    parts = [part for part in normal.split("/") if part not in ("", ".")]
    for part in parts:
        _check_part(part, quoted, field)
    if not parts:
        raise Refused(f"{quoted} names no file; give the path of a file", field=field)
    return "/".join(parts)


def _check_part(part: str, quoted: str, field: str) -> None:
    if unicodedata.normalize("NFKC", part).strip(" .") == "":
        raise Refused(f"{quoted} leads out of its folder; give a path without '..'", field=field)
    if part != part.strip() or part.endswith("."):
        raise Refused(
            f"{quoted} has a part that begins or ends with a space or ends with a dot; remove it", field=field
        )
    if part.partition(".")[0].strip().lower() in _DEVICES:
        raise Refused(f"{quoted} contains a reserved device name of some systems; give another name", field=field)
    if part.startswith("."):
        raise Refused(f"{quoted} names a hidden file or folder; give names without a leading dot", field=field)
    if len(part) > LONGEST_PART:
        raise Refused(f"{quoted} has a part with more than {LONGEST_PART} characters; shorten the part", field=field)


def appendable_path(path: str, *, agent: str, field: str = "path") -> str:
    """The path of a file that an agent may add notes to; any other path is refused.

    >>> appendable_path("journal/2026-06-04.md", agent="btc"), appendable_path("agents/btc/ideas.md", agent="btc")
    ('journal/2026-06-04.md', 'agents/btc/ideas.md')
    >>> appendable_path("TRADING_MANUAL.md", agent="btc")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'TRADING_MANUAL.md' needs the owner's approval; use propose_edit
    """
    within = confine(path, field=field)
    if within in PROPOSABLE:
        raise Refused(f"{within!r} needs the owner's approval; use propose_edit", field=field)
    if agent_of(within) == agent and source_of(within) in NOTE_SOURCES:
        return within
    if not any(matches_pattern(within, pattern) for pattern in APPENDABLE):
        places = ", ".join([*APPENDABLE, f"{AGENTS}/{agent}/"])
        raise Refused(f"{agent!r} may not write to {within!a}; add notes to {places}", field=field)
    return within


def proposable_path(path: str, *, field: str = "path") -> str:
    """The path of a file that an agent may propose an edit of; any other path is refused.

    >>> proposable_path("SOUL.md")
    'SOUL.md'
    >>> proposable_path("soul.md")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: edits of 'soul.md' cannot be proposed; did you mean 'SOUL.md'? ...
    """
    within = confine(path, field=field)
    if within not in PROPOSABLE:
        raise Refused(f"edits of {within!a} cannot be proposed; {did_you_mean(within, PROPOSABLE)}", field=field)
    return within


def note_path(note: NoteKind, *, now: datetime) -> str:
    """The file that a note of this kind is added to.

    >>> from datetime import UTC
    >>> note_path("journal", now=datetime(2026, 6, 4, tzinfo=UTC)), note_path("learning", now=datetime(2026, 6, 4))
    ('journal/2026-06-04.md', 'memory/learnings.md')
    """
    match note:
        case "journal":
            return f"journal/{now:%Y-%m-%d}.md"
        case "learning":
            return "memory/learnings.md"
        case "note":
            return "memory/notes.md"


def format_entry(text: str, *, at: datetime, agent: str, run: str) -> str:
    """A note as an entry of its file: instant, agent, run and text; the text cannot imitate another entry.

    >>> from datetime import UTC
    >>> print(format_entry("Stopped out.", at=datetime(2026, 6, 4, 10, tzinfo=UTC), agent="btc-5m", run="r-1"), end="")
    ## 2026-06-04T10:00:00.000000Z
    <!-- agent: btc-5m · run: r-1 -->
    <BLANKLINE>
    Stopped out.
    <BLANKLINE>
    """
    author = f"agent: {_comment_safe(agent)} · run: {_comment_safe(run)}"
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return f"## {format_instant(at)}\n<!-- {author} -->\n\n{chr(10).join(_escaped(body.split(chr(10))))}\n\n"


def _comment_safe(name: str) -> str:
    return " ".join(name.replace("--", "- -").replace(">", "›").split())


def _escaped(lines: list[str]) -> Iterator[str]:
    """Lines that cannot start an entry; code between fences is kept as written, and an open fence is closed."""
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            yield _escape_line(lines[number])
            number += 1
            continue
        end = after_fence(lines, number)
        yield from lines[number:end]
        if end == len(lines) and (end == number + 1 or after_fence([*lines, fence[1]], number) > end):
            yield fence[1]
        number = end


def _escape_line(line: str) -> str:
    """A line outside of code: headings move below the level of entries; underlines, comments and tags are escaped."""
    if heading := re.match(r" {0,3}(#{1,2})(?=[ \t]|$)", line):
        return _COMMENT.sub(r"\\<!--", "#" * (2 + len(heading[1])) + line[heading.end() :])
    if underline := re.match(r"( {0,3})(?=(?:=+|-+)[ \t]*$)", line):
        return f"{underline[1]}\\{line[underline.end() :]}"
    return _COMMENT.sub(r"\\<!--", _OPEN_TAG.sub(r"\1\\<", line))
