"""Rules of a manual: which of them mention a symbol or a strategy."""

from backsight.core.documents.protocol import rules_about, rules_in


def test_a_rule_that_mentions_more_names_comes_first() -> None:
    rules = rules_in("M.md", "- BTC alone\n\n- nothing\n\n- BTC in ranging markets\n")
    assert [rule.text for rule in rules_about(rules, ["BTC", "ranging"])] == ["BTC in ranging markets", "BTC alone"]
    assert rules_about(rules, [""]) == []


def test_a_pair_is_one_symbol_in_either_spelling() -> None:
    rules = rules_in("M.md", "- EUR/USD: no news\n- EURUSD: half\n- EUR and USD apart\n- GBPUSD\n")
    assert [rule.text for rule in rules_about(rules, ["EURUSD"])] == ["EUR/USD: no news", "EURUSD: half"]
    assert "EURUSD: half" in [rule.text for rule in rules_about(rules, ["EUR/USD"])]
