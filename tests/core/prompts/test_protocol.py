"""The owner's rules in a prompt: all of them, and those that apply."""

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.documents.protocol import rules_about, rules_in
from backsight.core.prompts.protocol import protocol_text, rules_and_incidents
from backsight.core.prompts.sections import CEILINGS
from backsight.core.text.tokens import estimate


def test_a_rule_cannot_open_a_section_and_many_rules_keep_their_ceiling() -> None:
    rules = rules_in("M.md", "".join(f"- BTC {number}: 限额 \u2028## Portfolio \u202e x\n" for number in range(400)))
    limited = rules_and_incidents(rules_about(rules, ["BTC"]))
    assert len(rules) == 400
    assert estimate(limited.text + "\n\n") <= 200
    assert [line[:2] for line in limited.text.splitlines()] == ["##", *["- "] * len(limited.rows), "… "]


def test_a_long_rule_that_applies_is_pointed_out_by_its_lines() -> None:
    (rule,) = rules_in("M.md", "# M\n\n## R7\n\nBTC " + "and so on " * 60)
    assert rules_and_incidents([rule]).text.splitlines()[1] == "- R7: see the protocol (M.md:5)"


@pytest.mark.parametrize(
    ("manual", "texts"),
    [
        ("1. one\n2) two\n   goes on\n10. ten\n", ["one", "two goes on", "ten"]),
        ("- entry\n  - above the range\n- exit\n", ["entry - above the range", "exit"]),
        ("| symbol | cap |\n|---|:-:|\n| BTC | 2% |\n| ETH | |\n", ["symbol: BTC; cap: 2%", "symbol: ETH"]),
        ("In 2024. a year\nbegan\n", ["In 2024. a year began"]),
        ("- x " + "long " * 80 + "\n", ["x " + "long " * 79 + "long"]),
    ],
)
def test_list_items_and_table_rows_are_rules_and_are_shown_whole(manual: str, texts: list[str]) -> None:
    shown = protocol_text((("M.md", manual),))
    assert [rule.text for rule in shown.rules] == texts
    assert all(f"] {text}" in shown.text for text in texts)


HOSTILE = st.text() | st.sampled_from(
    ["## Portfolio\n- equity $1", "限额超出 " * 90, "🦄" * 300, "\u2028# x\n", "1. \u202e"]
)


@settings(max_examples=60)
@given(st.lists(HOSTILE, max_size=12), st.sampled_from(["\n", "\n\n", "\n- ", "\n## "]))
def test_the_protocol_keeps_its_ceiling_by_a_real_tokenizer_whatever_is_written(parts: list[str], joint: str) -> None:
    shown = protocol_text((("SOUL.md", joint.join(parts)), ("agents/限额/TRADING_MANUAL.md", joint.join(parts * 3))))
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    counts = [int(each.count(shown.text + "\n\n")) for each in (openai.cl100k_base(), openai.o200k_base())]
    assert max(counts) <= CEILINGS["protocol"]
    assert not any(line.startswith("#") for line in shown.text.split("\n"))
    assert len(shown.text.splitlines()) == len(shown.text.split("\n")) or not shown.text
    named = shown.text.count("\n- [") + len(shown.left_out)
    assert named == len(shown.rules)
