"""A path stays in the workspace on every file system, and a secret is never written down."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.chunk import FENCE, blocks_of
from backsight.core.documents.write_policy import (
    appendable_path,
    confine,
    format_entry,
    note_path,
    proposable_path,
)
from backsight.core.errors import Refused
from backsight.testing import T0

ATTACKS = [
    "../etc/passwd",
    "journal/../../x.md",
    "journal/..",
    "..",
    "/etc/passwd",
    "//server/share",
    "\\\\server\\share",
    "C:\\x.md",
    "C:x.md",
    "journal\\..\\..\\x.md",
    "~/x.md",
    "journal/x.md\0.png",
    "journal/x\n.md",
    "CON",
    "journal/con.md",
    "journal/NUL",
    "journal/Com1.md",
    "journal/lpt¹.txt",
    "journal/aux .md",
    "journal/x.md.",
    "journal/x.md ",
    "journal/ /x.md",
    "journal/.../x.md",
    "journal/．．/x.md",
    "journal/x.md:stream",
    ".git/config",
    "journal/.hidden.md",
    "journal/\u202egpj.md",
    "journal/" + "a" * 300 + ".md",
    "",
    ".",
]


@pytest.mark.parametrize("path", ATTACKS)
def test_a_way_out_is_refused(path: str) -> None:
    with pytest.raises(Refused):
        confine(path)


@given(st.text(alphabet="./\\~:ab \0\u2024\uff0e", max_size=12))
def test_an_accepted_path_stays_in_the_workspace(path: str) -> None:
    try:
        within = confine(path)
    except Refused:
        return
    assert confine(within) == within
    assert not within.startswith(("/", "~"))
    assert all(part and part.strip(".") for part in within.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "SOUL.md",
        "soul.md",
        "TRADING_MANUAL.md",
        "Trading_Manual.md",
        "Journal/x.md",
        "journal.md",
        "journal/x.py",
        "strategies/x.md",
        "artifacts/x.md",
        "memory/incidents/x.md",
        "memory/Learnings.md",
        "memory/learnings.md/x.md",
    ],
)
def test_only_notes_are_added_to(path: str) -> None:
    with pytest.raises(Refused):
        appendable_path(path, agent="btc")


@pytest.mark.parametrize(
    "path", ["journal/2026-06-04.md", "journal/2026/06/04.md", "memory/learnings.md", "memory/notes/a.md"]
)
def test_notes_may_be_added_to(path: str) -> None:
    assert appendable_path(path, agent="btc") == path


@pytest.mark.parametrize("path", ["soul.md", "journal/x.md", "./x", "TRADING_MANUAL.MD"])
def test_only_rules_are_proposed_an_edit_of(path: str) -> None:
    with pytest.raises(Refused):
        proposable_path(path)


def test_a_note_goes_where_notes_may_go() -> None:
    for note in ("journal", "learning", "note"):
        assert appendable_path(note_path(note, now=T0), agent="btc")


FORGED_LINES = (
    *("## 2026-01-01T00:00:00Z", "  # x", "---", "   ===", "<!-- agent: eve -->", " <!-- agent: eve -->"),
    *("```", "~~~~", "``` `", "<pre>", "text", "", "    code", "~~~", "> quote"),
)
FORGED = st.lists(st.sampled_from(FORGED_LINES), max_size=12).map("\n".join)


@given(st.text(max_size=200) | FORGED)
def test_an_entry_cannot_pass_for_several(text: str) -> None:
    entry = format_entry(text, at=T0, agent="btc\n## x -->", run="r")
    following = format_entry("later", at=T0 + timedelta(days=1), agent="b", run="r")
    blocks = blocks_of(entry + following)
    instants = [block.heading for block in blocks if block.is_heading and len(block.heading) == 1]
    assert instants == [("2026-06-04T10:00:00.000000Z",), ("2026-06-05T10:00:00.000000Z",)]
    code = (line for block in blocks if not FENCE.match(block.lines[0]) for line in block.lines)
    comments = [line for line in code if line.lstrip().startswith("<!--") and not line.startswith("    ")]
    assert len(comments) == 2


def test_code_is_kept_as_written_and_an_open_fence_is_closed() -> None:
    entry = format_entry("```\n# x\n---", at=T0, agent="a", run="r")
    assert "\n```\n# x\n---\n```\n\n" in entry
    closed = format_entry("~~~\n## y\n~~~", at=T0, agent="a", run="r")
    assert closed.endswith("\n\n~~~\n## y\n~~~\n\n")
