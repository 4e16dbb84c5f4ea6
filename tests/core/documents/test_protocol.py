"""Rules of a manual: which of them mention a symbol or a strategy."""

import pytest

from backsight.core.documents.protocol import rules_about, rules_in
from backsight.core.prompts.protocol import rule_line


def test_a_rule_that_mentions_more_names_comes_first() -> None:
    rules = rules_in("M.md", "- BTC alone\n\n- nothing\n\n- BTC in ranging markets\n")
    assert [rule.text for rule in rules_about(rules, ["BTC", "ranging"])] == ["BTC in ranging markets", "BTC alone"]
    assert rules_about(rules, [""]) == []


def test_a_pair_is_one_symbol_in_either_spelling() -> None:
    rules = rules_in("M.md", "- EUR/USD: no news\n- EURUSD: half\n- EUR and USD apart\n- GBPUSD\n")
    assert [rule.text for rule in rules_about(rules, ["EURUSD"])] == ["EUR/USD: no news", "EURUSD: half"]
    assert "EURUSD: half" in [rule.text for rule in rules_about(rules, ["EUR/USD"])]


def test_an_exception_below_a_list_item_belongs_to_the_item() -> None:
    first = "1. No BTC at weekends\n\n   unless the owner agreed.\n\n   - in writing\n"
    rules = rules_in("M.md", first + "2. Stop first.\n\n  * DAX: half\n\n  * FTSE: none\n")
    assert [rule.text for rule in rules] == [
        "No BTC at weekends unless the owner agreed. - in writing",
        "Stop first. * DAX: half * FTSE: none",
    ]
    assert [rule.place for rule in rules] == ["M.md:1-5", "M.md:6-10"]


def test_an_indented_list_with_blank_lines_has_one_rule_an_item() -> None:
    assert [rule.text for rule in rules_in("M.md", "Caps.\n\n  - BTC 2\n\n  - DAX 1\n")] == ["Caps.", "BTC 2", "DAX 1"]


@pytest.mark.parametrize(
    ("manual", "texts"),
    [
        ("1.1 No oil.\n1.2 No corn,\n    unless flat.\n", ["1.1 No oil.", "1.2 No corn, unless flat."]),
        ("Never:\n(a) oil\n(b) gas\n", ["Never:", "(a) oil", "(b) gas"]),
        ("Never:\n\na) oil\n\nb) gas\n", ["Never:", "a) oil", "b) gas"]),
        ("• oil\n• gas\n", ["oil", "gas"]),
        ("1、不做黄金\n2、止损先行\n", ["1、不做黄金", "2、止损先行"]),
        (
            "Never risk more than\n1.5% of equity, or\n2.5% in all.\n",
            ["Never risk more than 1.5% of equity, or 2.5% in all."],
        ),
        ("1.5% is the cap\nof every day.\n", ["1.5% is the cap of every day."]),
    ],
)
def test_lists_with_other_marks_have_one_rule_an_item(manual: str, texts: list[str]) -> None:
    rules = rules_in("M.md", manual)
    assert [rule.text for rule in rules] == texts
    assert all(rule.introduction == "Never:" for rule in rules[1:] if texts[0] == "Never:")


def test_an_item_has_the_line_that_introduces_its_list() -> None:
    rules = rules_in("M.md", "Never:\n- buy BTC on Sundays\n\n- average down\n\nAlways stop.\n\n- Sleep\n")
    assert [(rule.introduction, rule.text) for rule in rules] == [
        ("", "Never:"),
        ("Never:", "buy BTC on Sundays"),
        ("Never:", "average down"),
        ("", "Always stop."),
        ("", "Sleep"),
    ]
    assert rule_line(rules[1]) == "- a rule: Never: buy BTC on Sundays (M.md:2)"


def test_a_heading_without_a_text_is_a_rule_and_front_matter_is_none() -> None:
    rules = rules_in("M.md", "---\nowner: ana\n---\n# Manual\n\n## No BTC on Sundays\n\n## Caps\n\n2%\n")
    assert [(rule.place, rule.text) for rule in rules] == [("M.md:6", "No BTC on Sundays"), ("M.md:10", "2%")]
