"""What an agent may write, and where: an agent adds notes and proposes edits of rules; everything else is refused.

Paths are checked here as text, by the strictest reading of any file system; `importers/workspace.py` checks links.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from backsight.core.documents.workspace import matches_pattern
from backsight.core.errors import Refused, did_you_mean
from backsight.core.instants import format_instant

NoteKind = Literal["journal", "learning", "note"]
"""The kinds of notes that an agent may add: an entry of today's journal, something learned, any other note."""

APPENDABLE = ("journal/**/*.md", "memory/learnings.md", "memory/notes.md", "memory/notes/**/*.md")
PROPOSABLE = ("SOUL.md", "TRADING_MANUAL.md")
LONGEST_PATH = 240
LONGEST_PART = 120

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789¹²³"]
)
_FORBIDDEN_CHARACTERS = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_SECRETS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_\w{40,}\b"),
    "a Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a model provider's key": re.compile(r"\bsk-(?=[A-Za-z_-]{0,99}[0-9])[A-Za-z0-9_-]{20}"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a web token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,400}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{1,200}:[^\s/@]{3,200}@"),
    "a key": re.compile(
        r"(?i)\b(?:api[_ -]?(?:key|secret)|secret(?:[_ -]?(?:access[_ -]?)?key)?|passw(?:or)?d|passphrase"
        r"|access[_ -]?token|auth[_ -]?token|private[_ -]?key|mnemonic)\b[\"']?\s*[:=]\s*[\"']?[^\s\"']{8,}"
    ),
    "a wallet's key": re.compile(r"\b(?:0x)?(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{64}\b"),
}


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


def appendable_path(path: str, *, field: str = "path") -> str:
    """The path of a file that an agent may add notes to; any other path is refused.

    >>> appendable_path("journal/2026-06-04.md")
    'journal/2026-06-04.md'
    >>> appendable_path("TRADING_MANUAL.md")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'TRADING_MANUAL.md' needs the owner's approval; use propose_edit
    """
    within = confine(path, field=field)
    if within in PROPOSABLE:
        raise Refused(f"{within!r} needs the owner's approval; use propose_edit", field=field)
    if not any(matches_pattern(within, pattern) for pattern in APPENDABLE):
        raise Refused(f"agents may not write to {within!a}; add notes to {', '.join(APPENDABLE)}", field=field)
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


def refuse_secrets(text: str, *, field: str = "text") -> None:
    """Raise Refused if a text contains a string that looks like a secret.

    >>> refuse_secrets("the cap is 2 %")
    >>> refuse_secrets("api_key = 3f9a8b7c6d5e4f3a")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: text: line 1 looks like it contains a key; language models read it, so remove it
    """
    for secret, pattern in _SECRETS.items():
        if match := pattern.search(text):
            line = text.count("\n", 0, match.start()) + 1
            raise Refused(
                f"line {line} looks like it contains {secret}; language models read it, so remove it", field=field
            )


def format_entry(text: str, *, at: datetime, agent: str, run: str | None) -> str:
    """A note as an entry of its file: instant, agent, run and text; the text cannot imitate another entry.

    >>> from datetime import UTC
    >>> print(format_entry("Stopped out.", at=datetime(2026, 6, 4, 10, tzinfo=UTC), agent="btc-5m", run="r-1"), end="")
    ## 2026-06-04T10:00:00.000000Z
    <!-- agent: btc-5m · run: r-1 -->
    <BLANKLINE>
    Stopped out.
    <BLANKLINE>
    """
    author = f"agent: {_comment_safe(agent)}" + (f" · run: {_comment_safe(run)}" if run else "")
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    nested = "\n".join(_nest_headings(line) for line in body.split("\n"))
    return f"## {format_instant(at)}\n<!-- {author} -->\n\n{nested}\n\n"


def _comment_safe(name: str) -> str:
    return " ".join(name.replace("--", "- -").replace(">", "›").split())


def _nest_headings(line: str) -> str:
    """A line that cannot start an entry: headings move below the level of entries, underlines are escaped."""
    heading = re.match(r" {0,3}(#{1,2})(?=[ \t]|$)", line)
    if heading:
        return "#" * (2 + len(heading[1])) + line[heading.end() :]
    return "\\" + line if re.match(r"(?:=+|-+)\s*$", line) or line.startswith("<!-- agent:") else line
