"""A path stays in the workspace on every file system, and a secret is never written down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.chunk import chunks_of
from backsight.core.documents.write_policy import (
    appendable_path,
    confine,
    format_entry,
    note_path,
    proposable_path,
    refuse_secrets,
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
        appendable_path(path)


@pytest.mark.parametrize(
    "path", ["journal/2026-06-04.md", "journal/2026/06/04.md", "memory/learnings.md", "memory/notes/a.md"]
)
def test_notes_may_be_added_to(path: str) -> None:
    assert appendable_path(path) == path


@pytest.mark.parametrize("path", ["soul.md", "journal/x.md", "./x", "TRADING_MANUAL.MD"])
def test_only_rules_are_proposed_an_edit_of(path: str) -> None:
    with pytest.raises(Refused):
        proposable_path(path)


def test_a_note_goes_where_notes_may_go() -> None:
    for note in ("journal", "learning", "note"):
        assert appendable_path(note_path(note, now=T0))


@pytest.mark.parametrize(
    "text",
    [
        "use sk-proj-abcdefghij0123456789xyz",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1" * 20,
        "-----BEGIN RSA PRIVATE KEY-----",
        "API_KEY: 9f8e7d6c5b4a",
        "password = hunter2hunter2",
        "postgresql://me:secret@host/db",
        "0x" + "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "first line\nsecret_key='abcd1234efgh'",
    ],
)
def test_a_text_that_looks_like_a_key_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="looks like it contains"):
        refuse_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Key level at 3,410; the password to this market is patience.",
        "order 7c9e6679-7425-40de-944b-e07fc1f90ae7 filled",
        "R3_POSITION_CAP applies to BTC/USDT, see #406",
        "risk-adjusted-return-over-the-whole-period was fine",
        "https://example.com/report?id=12345678",
    ],
)
def test_a_note_about_trading_is_no_key(text: str) -> None:
    refuse_secrets(text)


@given(st.text(max_size=200))
def test_an_entry_cannot_pass_for_several(text: str) -> None:
    entry = format_entry(text, at=T0, agent="btc\n## x -->", run="r")
    headed = [line for line in entry.split("\n") if line.startswith(("# ", "## "))]
    assert headed == ["## 2026-06-04T10:00:00.000000Z"]
    assert sum(line.startswith("<!-- agent:") for line in entry.split("\n")) == 1
    assert chunks_of(entry)[0].heading == ("2026-06-04T10:00:00.000000Z",)
