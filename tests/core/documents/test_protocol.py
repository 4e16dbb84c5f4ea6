"""Rules of a manual: which of them mention a symbol or a strategy."""

from backsight.core.documents.protocol import rules_about, rules_in


def test_a_rule_that_mentions_more_names_comes_first() -> None:
    rules = rules_in("M.md", "- BTC alone\n\n- nothing\n\n- BTC in ranging markets\n")
    assert [rule.text for rule in rules_about(rules, ["BTC", "ranging"])] == ["BTC in ranging markets", "BTC alone"]
    assert rules_about(rules, [""]) == []
