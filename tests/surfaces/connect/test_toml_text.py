"""Setting a table of a TOML text: what it says afterwards, and that nothing else changes."""

import tomllib
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.surfaces.connect.toml_text import read_toml, with_table, without_table

PATH = ("mcp_servers", "backsight")
ENTRY = {"command": "C:\\backsight.exe", "args": ["mcp", 'a"b'], "env": {"A b": "é\x7f\n", "C": ""}}
CODEX = (Path(__file__).parents[2] / "data" / "connect" / "codex.toml").read_text()


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n\n\n", "a = 1\r\n[b]\r\nc = 2\r\n", CODEX])
def test_a_table_is_added_at_the_end_and_taken_out_again(text: str) -> None:
    added = with_table(text, PATH, ENTRY)
    before = tomllib.loads(text)
    servers = {**before.get("mcp_servers", {}), "backsight": ENTRY}
    assert tomllib.loads(added) == {**before, "mcp_servers": servers}
    assert added.startswith(text)
    assert without_table(added, PATH) == (text if text.endswith("\n") or not text else f"{text}\n")


def test_a_table_with_inner_tables_is_replaced_and_removed_in_its_place() -> None:
    text = """[mcp_servers.backsight]  # ours
command = "old"
args = [
  "]",
]
[mcp_servers.backsight.env]
A = "1"

# other
[mcp_servers.other]
command = "x"
"""
    other = '\n# other\n[mcp_servers.other]\ncommand = "x"\n'
    assert with_table(text, PATH, {"command": "new"}) == f'[mcp_servers.backsight]\ncommand = "new"\n{other}'
    assert without_table(text, PATH) == other


def test_an_inner_table_elsewhere_goes_with_its_table() -> None:
    text = "[mcp_servers.backsight]\na = 1\n[other]\nb = 2\n[mcp_servers.backsight.env]\nC = '3'\n[last]\n"
    assert without_table(text, PATH) == "[other]\nb = 2\n[last]\n"


@pytest.mark.parametrize("text", ["[mcp_servers]\nbacksight = { command = 'x' }\n", "mcp_servers.backsight.a = 1\n"])
def test_a_table_without_a_header_is_not_touched(text: str) -> None:
    assert without_table(text, PATH) == text


def test_a_text_that_is_not_toml_is_refused_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 2"):
        read_toml("a = 1\nb = \n")
