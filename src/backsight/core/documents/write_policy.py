"""What an agent may write, and where: notes are added, rules are proposed, everything else is refused.

Paths are judged as text, the strictest way any file system could read them; whether a link leads out of the workspace
is for those to see who have the file system.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from backsight.core.documents.workspace import fits
from backsight.core.errors import Refused, did_you_mean
from backsight.core.instants import format_instant

Note = Literal["journal", "learning", "note"]
"""What an agent may add: an entry of the day, something learned, anything else."""

APPENDED = ("journal/**/*.md", "memory/learnings.md", "memory/notes.md", "memory/notes/**/*.md")
PROPOSED = ("SOUL.md", "TRADING_MANUAL.md")
LONGEST_PATH = 240
LONGEST_PART = 120

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{kind}{number}" for kind in ("com", "lpt") for number in "0123456789¹²³"]
)
_NEVER = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_SECRETS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_\w{40,}\b"),
    "a Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a model provider's key": re.compile(r"\bsk-(?:[a-z]+-)*(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a web token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]{3,}@"),
    "a key": re.compile(
        r"(?i)\b(?:api[_ -]?(?:key|secret)|secret(?:[_ -]?(?:access[_ -]?)?key)?|passw(?:or)?d|passphrase"
        r"|access[_ -]?token|auth[_ -]?token|private[_ -]?key|mnemonic)\b[\"']?\s*[:=]\s*[\"']?[^\s\"']{8,}"
    ),
    "a wallet's key": re.compile(r"\b(?:0x)?(?=[0-9a-fA-F]*[a-fA-F])(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{64}\b"),
}


def confined(path: str, *, field: str = "path") -> str:
    """A path in the workspace in its one spelling; whatever could be read as a way out of it is refused.

    >>> confined("./journal//2026-06-04.md")
    'journal/2026-06-04.md'
    >>> confined("journal/../../etc/passwd")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'journal/../../etc/passwd' leads out of its folder; give a path without '..'
    """
    shown = ascii(path[:60])
    normal = unicodedata.normalize("NFC", path)
    if not normal or len(normal) > LONGEST_PATH:
        raise Refused(f"give a path of 1 to {LONGEST_PATH} characters", field=field)
    if _NEVER.search(normal) or not normal.isprintable():
        raise Refused(f"{shown} has characters that no file here may have; give a plain path", field=field)
    if normal.startswith(("/", "~")):
        raise Refused(f"{shown} is not within the workspace; give a path relative to it", field=field)
    parts = [part for part in normal.split("/") if part not in ("", ".")]
    for part in parts:
        _check_part(part, shown, field)
    if not parts:
        raise Refused(f"{shown} names no file; give one", field=field)
    return "/".join(parts)


def _check_part(part: str, shown: str, field: str) -> None:
    if unicodedata.normalize("NFKC", part).strip(" .") == "":
        raise Refused(f"{shown} leads out of its folder; give a path without '..'", field=field)
    if part != part.strip() or part.endswith("."):
        raise Refused(f"{shown} has a part that ends in a space or a dot; give a plain path", field=field)
    if part.partition(".")[0].strip().lower() in _DEVICES:
        raise Refused(f"{shown} names a device on some systems; give another name", field=field)
    if part.startswith("."):
        raise Refused(f"{shown} is hidden; give a path that is seen", field=field)
    if len(part) > LONGEST_PART:
        raise Refused(f"{shown} has a part longer than {LONGEST_PART} characters; shorten it", field=field)


def appendable(path: str, *, field: str = "path") -> str:
    """The path of a note that an agent may add to; anything else is refused.

    >>> appendable("journal/2026-06-04.md")
    'journal/2026-06-04.md'
    >>> appendable("TRADING_MANUAL.md")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'TRADING_MANUAL.md' is the owner's; propose an edit of it
    """
    within = confined(path, field=field)
    if within in PROPOSED:
        raise Refused(f"{within!r} is the owner's; propose an edit of it", field=field)
    if not any(fits(within, pattern) for pattern in APPENDED):
        raise Refused(f"{within!a} may not be written; notes go to {', '.join(APPENDED)}", field=field)
    return within


def proposable(path: str, *, field: str = "path") -> str:
    """The path of a rule that an agent may propose an edit of; anything else is refused.

    >>> proposable("SOUL.md")
    'SOUL.md'
    >>> proposable("soul.md")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: path: 'soul.md' cannot be proposed an edit of; did you mean 'SOUL.md'? ...
    """
    within = confined(path, field=field)
    if within not in PROPOSED:
        raise Refused(f"{within!a} cannot be proposed an edit of; {did_you_mean(within, PROPOSED)}", field=field)
    return within


def home_of(note: Note, *, now: datetime) -> str:
    """The file that a note of this kind goes to.

    >>> from datetime import UTC
    >>> home_of("journal", now=datetime(2026, 6, 4, tzinfo=UTC)), home_of("learning", now=datetime(2026, 6, 4))
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
    """Nothing, where a text holds nothing that looks like a key; else it is refused with what it looks like.

    >>> refuse_secrets("the cap is 2 %")
    >>> refuse_secrets("api_key = 3f9a8b7c6d5e4f3a")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Refused: text: line 1 holds what looks like a key; notes are read by models, so leave it out
    """
    for what, pattern in _SECRETS.items():
        if found := pattern.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise Refused(
                f"line {line} holds what looks like {what}; notes are read by models, so leave it out", field=field
            )


def entry(text: str, *, at: datetime, agent: str, run: str | None) -> str:
    """A note as it stands in its file: when, by whom, in which run, and what; it cannot pass for another entry.

    >>> from datetime import UTC
    >>> print(entry("Stopped out.", at=datetime(2026, 6, 4, 10, tzinfo=UTC), agent="btc-5m", run="r-1"), end="")
    ## 2026-06-04T10:00:00.000000Z
    <!-- agent: btc-5m · run: r-1 -->
    <BLANKLINE>
    Stopped out.
    <BLANKLINE>
    """
    told = f"agent: {_tame(agent)}" + (f" · run: {_tame(run)}" if run else "")
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    lowered = "\n".join(_lowered(line) for line in body.split("\n"))
    return f"## {format_instant(at)}\n<!-- {told} -->\n\n{lowered}\n\n"


def _tame(name: str) -> str:
    return " ".join(name.replace("--", "- -").replace(">", "›").split())


def _lowered(line: str) -> str:
    """A line that does not begin an entry: its heading goes below that of the entry."""
    found = re.match(r" {0,3}(#{1,2})(?=[ \t]|$)", line)
    if found:
        return "#" * (2 + len(found[1])) + line[found.end() :]
    return "\\" + line if re.match(r"(?:=+|-+)\s*$", line) or line.startswith("<!-- agent:") else line
